package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mneme.dev/mneme/internal/capture"
	"mneme.dev/mneme/internal/connect"
	"mneme.dev/mneme/internal/hook"
)

// settled is how long an agent may take to write what it was shown.
const settled = time.Minute

// delivered checks whether what a hook showed last has reached the agent: its id must be in the transcript of the
// session. Some agents have silently dropped what hooks print. It returns what was seen, and what is wrong, "" for
// nothing.
func delivered(ctx context.Context, s *connect.State, calls []hook.Fired, now time.Time) (seen, wrong string) {
	i := slices.IndexFunc(calls, func(f hook.Fired) bool { return f.Agent == s.Agent && f.Context != "" })
	if i < 0 {
		return "none of its sessions was shown anything since the server started", ""
	}
	f := calls[i]
	at := f.At.Local().Format(time.DateTime)
	if !s.Keeps {
		return "a session was shown something, last heard of at " + at + "; its transcript does not hold such texts, so whether they arrived can't be seen", ""
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	files, err := written(&f)
	found, looked := "", ""
	for _, path := range files {
		has, failed := holds(ctx, path, f.Context)
		if failed == nil {
			looked = path
		}
		if has {
			found = path
			break
		}
		err = errors.Join(err, failed)
	}
	switch {
	case found != "":
		return fmt.Sprintf("what it was shown has arrived: %s holds %s", found, f.Context), ""
	case looked == "":
		return fmt.Sprintf("whether what it was shown has arrived can't be seen, because the transcript of session %s can't be read (%v)", f.Session, err), ""
	case now.Sub(f.At) < settled:
		return fmt.Sprintf("it was shown %s, which is not in its transcript yet", f.Context), ""
	}
	return "", fmt.Sprintf("session %s, last heard of at %s, was shown %s, but its transcript %s does not hold it", f.Session, at, f.Context, looked)
}

// written returns the files of a session: the one that its hooks name, else those in the folder with its id where the agent keeps its sessions.
func written(f *hook.Fired) (files []string, err error) {
	if f.Transcript != "" {
		return []string{f.Transcript}, nil
	}
	roots, err := capture.Roots(f.Agent)
	if err != nil {
		return nil, err
	}
	for _, root := range roots {
		parents := []string{root}
		projects, _ := os.ReadDir(root) // some agents keep the sessions of each project apart
		for _, p := range projects {
			if p.IsDir() {
				parents = append(parents, filepath.Join(root, p.Name()))
			}
		}
		for _, name := range []string{f.Session, strings.ReplaceAll(f.Session, "-", "")} {
			if name == "." || !filepath.IsLocal(name) {
				continue
			}
			for _, parent := range parents {
				_ = filepath.WalkDir(filepath.Join(parent, name), func(path string, entry fs.DirEntry, err error) error {
					if err == nil && entry.Type().IsRegular() {
						files = append(files, path)
					}
					return nil // what can't be read counts as absent
				})
			}
		}
	}
	if len(files) == 0 {
		return nil, fs.ErrNotExist
	}
	return files, nil
}

// holds reports whether a file holds a text. It reads the file piece by piece, because transcripts may be large.
func holds(ctx context.Context, path, text string) (bool, error) {
	info, err := os.Stat(path)
	if err != nil {
		return false, err
	}
	if !info.Mode().IsRegular() {
		return false, fmt.Errorf("%s is not a regular file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer func() { _ = file.Close() }()
	buffer := make([]byte, 1<<20)
	kept := 0 // bytes of the previous piece, in which the text may begin
	for ctx.Err() == nil {
		n, err := file.Read(buffer[kept:])
		if n += kept; bytes.Contains(buffer[:n], []byte(text)) {
			return true, nil
		}
		if err == io.EOF {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		kept = copy(buffer, buffer[max(0, n-len(text)+1):n])
	}
	return false, ctx.Err()
}
