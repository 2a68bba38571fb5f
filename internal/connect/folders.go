package connect

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"mneme.dev/mneme/internal/writefile"
)

// makeFolder makes a folder and those above it that are missing. It remembers them first: one that was not made after all
// does no harm.
func (o *Options) makeFolder(folder string) error {
	var missing []string
	for at := folder; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(at); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		missing = append(missing, at)
	}
	if len(missing) == 0 {
		return nil
	}
	made, err := o.made()
	if err != nil {
		return err
	}
	if err := o.remember(append(made, missing...)); err != nil {
		return err
	}
	return os.MkdirAll(folder, 0o700)
}

// removeFolders removes the folders that connecting made and that are empty.
func (o *Options) removeFolders() error {
	made, err := o.made()
	if err != nil || len(made) == 0 {
		return err
	}
	slices.Sort(made)
	slices.Reverse(made) // what is in a folder comes before it
	return o.remember(slices.DeleteFunc(made, func(folder string) bool {
		info, err := os.Lstat(folder)
		if err != nil || !info.IsDir() { // a link in its place is the user's
			return err == nil || errors.Is(err, fs.ErrNotExist)
		}
		return os.Remove(folder) == nil
	}))
}

// made returns the folders that connecting made.
func (o *Options) made() (list []string, err error) {
	if o.Made == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(o.Made)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && json.Unmarshal(raw, &list) != nil {
		return nil, nil // as good as none
	}
	return list, err
}

func (o *Options) remember(made []string) error {
	if o.Made == "" {
		return nil
	}
	if len(made) == 0 {
		if err := os.Remove(o.Made); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	slices.Sort(made)
	made = slices.Compact(made)
	if err := os.MkdirAll(filepath.Dir(o.Made), 0o700); err != nil {
		return err
	}
	raw, err := json.Marshal(made)
	if err != nil {
		return err
	}
	return writefile.Write(o.Made, bytes.NewReader(raw))
}
