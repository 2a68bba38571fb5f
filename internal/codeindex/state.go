package codeindex

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"mneme.dev/mneme/internal/writefile"
)

// State is what a run remembers for the next one.
type State struct {
	Project string           `json:"project"`
	Rules   string           `json:"rules"` // by which files were cut and redacted
	Files   map[string]*File `json:"files"` // by path
	// Scan is the id of the last event that says that a run began or ended, and Open whether that run has not ended.
	Scan string `json:"scan,omitempty"`
	Open bool   `json:"open,omitempty"`
}

// File is a file of a state.
type File struct {
	Size int64  `json:"s,omitempty"`
	Time int64  `json:"t,omitempty"`
	Read int64  `json:"r,omitempty"` // when it was read: a file that changed at the same moment is read again
	Hash string `json:"h"`
	ID   string `json:"e,omitempty"` // of the last event about it, "" if nothing was published
	Gone bool   `json:"g,omitempty"` // that event says that it was removed, or holds nothing
	Why  string `json:"w,omitempty"` // the reason if it was not cut
	// Unsure says that a first event about it may have been published whose id is not known.
	Unsure bool `json:"u,omitempty"`
	// Again says that several events about it may have been published since ID, so that the log may hold the one that
	// follows from ID already, and another one after it.
	Again bool `json:"a,omitempty"`
}

// settledAfter is how long a file must have been unchanged before it was read, so that its size and time prove its
// content: the clock of a file system may be this coarse.
const settledAfter = 2 * time.Second

func (f *File) same(now found) bool {
	return f.Size == now.size && f.Time == now.time && f.Read-f.Time > int64(settledAfter)
}

// intents is a file beside a state. It names the files that are about to be published. A run that is killed between the
// log's answer and the next write of the state leaves it behind, and the next run assumes nothing about those files.
func intents(path string) string { return path + ".pending" }

// scan takes the place of a path in the intents: for the events that say that a run began or ended. No
// file has this path.
const scan = "."

// intend names files that are about to be published.
func intend(path string, files []string) error {
	out, err := os.OpenFile(intents(path), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = out.WriteString(strings.Join(files, "\x00") + "\x00")
	return errors.Join(err, out.Sync(), out.Close())
}

// recover takes into account the intents of a run that was killed.
func (s *State) recover(path string) error {
	raw, err := os.ReadFile(intents(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	seen := map[string]bool{}
	for name := range strings.SplitSeq(string(raw), "\x00") {
		again := seen[name]
		seen[name] = true
		if name == scan {
			s.Open = true
			continue
		}
		f := s.Files[name]
		if f == nil && name != "" {
			f = &File{}
			s.Files[name] = f
		}
		if f != nil {
			f.Read, f.Hash, f.Gone, f.Unsure, f.Again = 0, "", false, f.ID == "", f.Again || again
		}
	}
	return err
}

// LoadState reads a state; one that does not exist, or can't be read, is nil.
func LoadState(path string) (*State, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s := &State{}
	if json.Unmarshal(raw, s) != nil || s.Files == nil {
		return nil, nil // as good as none
	}
	return s, s.recover(path)
}

// save writes a state. unsure keeps the intents, because it is not known whether all of them were published.
func (s *State) save(path string, unsure bool) error {
	// In pieces, because a state of many files is large.
	content, to := io.Pipe()
	var encoding sync.WaitGroup
	encoding.Go(func() { to.CloseWithError(jsonv2.MarshalWrite(to, s, jsonv1.DefaultOptionsV1())) })
	err := writefile.Write(path, content)
	_ = content.Close() // ends the encoding if the file could not be written
	encoding.Wait()
	if err != nil {
		return err
	}
	if unsure {
		return nil
	}
	if err := os.Remove(intents(path)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
