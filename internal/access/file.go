package access

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"mneme.dev/mneme/internal/writefile"
)

// File keeps tokens in a file, for those who keep configuration elsewhere: one JSON record
// on each line; blank lines and lines that begin with # are skipped. Servers read it again
// within a second of a change, and never write to it, so it holds no last use.
type File struct{ path string }

// NewFile returns the file at a path. It need not exist before the first token.
func NewFile(path string) *File { return &File{filepath.Clean(path)} }

// rereadEvery is how often a server looks whether the file has changed.
const rereadEvery = time.Second

// maxFileBytes bounds what is read of a file.
const maxFileBytes = 16 << 20

// Read returns the records. The error names the line.
func (f *File) Read() ([]Record, error) {
	list := []Record{}
	return list, f.lines(func(_ []byte, r *Record) {
		if r != nil {
			list = append(list, *r)
		}
	})
}

// lines calls do for every line, with its record if it has one.
func (f *File) lines(do func(line []byte, r *Record)) error {
	file, err := os.Open(f.path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	if err != nil {
		return err
	}
	if len(text) > maxFileBytes {
		return fmt.Errorf("%s has more than %d bytes", f.path, maxFileBytes)
	}
	seen := map[Hash]int{}
	for i, line := range bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n")) {
		trimmed := bytes.TrimSpace(line)
		if len(trimmed) == 0 || trimmed[0] == '#' {
			do(line, nil)
			continue
		}
		r, err := parseRecord(trimmed)
		if err != nil {
			return fmt.Errorf("%s, line %d: %w", f.path, i+1, err)
		}
		if first := seen[r.Hash]; first > 0 {
			return fmt.Errorf("%s, line %d: the same token as in line %d", f.path, i+1, first)
		}
		seen[r.Hash] = i + 1
		do(line, &r)
	}
	return nil
}

// Add implements [Store].
func (f *File) Add(ctx context.Context, r Record) error {
	return f.edit(ctx, func(out *bytes.Buffer, line []byte, _ *Record) { out.Write(append(line, '\n')) }, &r)
}

// List implements [Store].
func (f *File) List(context.Context) ([]Listed, error) {
	records, err := f.Read()
	list := make([]Listed, len(records))
	for i, r := range records {
		list[i].Record = r
	}
	sortListed(list)
	return list, err
}

// Remove implements [Store].
func (f *File) Remove(ctx context.Context, hashes ...Hash) error {
	gone := map[Hash]bool{}
	for _, h := range hashes {
		gone[h] = true
	}
	removed := 0
	err := f.edit(ctx, func(out *bytes.Buffer, line []byte, r *Record) {
		if r != nil && gone[r.Hash] {
			removed++
			return
		}
		out.Write(append(line, '\n'))
	}, nil)
	if err == nil && removed == 0 {
		return ErrUnknown
	}
	return err
}

// lockEvery is how often a command tries to lock the file while another one has it.
const lockEvery = 10 * time.Millisecond

// edit replaces the file in one step: no server ever reads half of it. A lock file keeps
// two commands from losing each other's change. It is beside the file itself, so that all links to it share one.
func (f *File) edit(ctx context.Context, keep func(out *bytes.Buffer, line []byte, r *Record), add *Record) error {
	path, err := writefile.Follow(f.path)
	if err != nil {
		return err
	}
	lock := flock.New(path + ".lock")
	if _, err := lock.TryLockContext(ctx, lockEvery); err != nil {
		return err
	}
	defer func() { _ = lock.Unlock() }()
	var out bytes.Buffer
	err = f.lines(func(line []byte, r *Record) { keep(&out, line, r) })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if add != nil {
		line, err := json.Marshal(add)
		if err != nil {
			return err
		}
		out.Write(append(line, '\n'))
	}
	return writefile.Write(f.path, &out)
}

// Load reads the file into a set, once.
func (f *File) Load(t *Tokens) error {
	records, err := f.Read()
	if err != nil {
		return err
	}
	held := map[Hash]bool{}
	for _, r := range records {
		held[r.Hash] = true
		t.put(r)
	}
	t.keep(held)
	return nil
}

// Follow implements [Store].
func (f *File) Follow(ctx context.Context, t *Tokens, logger *slog.Logger, loaded func()) {
	Reread(ctx, f.path, rereadEvery, func() error {
		err := f.Load(t)
		if err == nil && loaded != nil {
			loaded()
			loaded = nil
		}
		return err
	}, func(err error) {
		logger.Error("the tokens file can't be read; the tokens read before stay valid", "error", err)
	}, t.used)
}

// Reread calls load at once and whenever the file at path has changed, until ctx ends. It
// calls failed for each new error. What arrives on unused is dropped.
func Reread(ctx context.Context, path string, every time.Duration, load func() error, failed func(error), unused <-chan Hash) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var last stamp
	said, first := "", true
	for {
		now := stampOf(path)
		if first || now != last {
			first = false
			err := load()
			if err == nil {
				last, said = now, ""
			} else if err.Error() != said {
				said = err.Error()
				failed(err)
			}
		}
		select {
		case <-tick.C:
		case <-unused:
		case <-ctx.Done():
			return
		}
	}
}

// stamp shows whether a file has changed, even if only a link to it was moved.
type stamp struct {
	modified time.Time
	size     int64
	exists   bool
}

func stampOf(path string) stamp {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}
	}
	return stamp{info.ModTime(), info.Size(), true}
}
