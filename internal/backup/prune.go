package backup

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// abandonedAfter is how long nothing was written to a backup that was killed.
const abandonedAfter = 24 * time.Hour

// Prune removes backups from the directory that holds a backup just made, the oldest first, until keep are left. The one
// just made stays, even if the clock was set back since the others were made. Backups of another log stay too, and Prune
// returns their paths: if the log was lost and begins anew, they are all that is left of it. Of a damaged one it can't tell
// of which log it is, so it treats it likewise. Prune also removes what killed programs left of a backup a day ago or
// earlier. It leaves alone whatever else is there. It returns the paths of what it removed.
func Prune(made string, keep int) (removed, foreign []string, err error) {
	made = filepath.Clean(made)
	dir := filepath.Dir(made)
	of, err := originOf(made)
	if err != nil {
		return nil, nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	type found struct {
		path string
		Manifest
	}
	var others []found
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if !e.IsDir() || path == made {
			continue
		}
		if isAbandoned(path) {
			if err := os.RemoveAll(path); err != nil {
				return removed, foreign, err
			}
			removed = append(removed, path)
		} else if m, err := readManifest(path); err == nil && of.matches(path, m) {
			others = append(others, found{path, m})
		} else if err == nil {
			foreign = append(foreign, path)
		}
	}
	slices.SortStableFunc(others, func(a, b found) int { return a.Time.Compare(b.Time) })
	for len(others) > max(keep-1, 0) {
		// Without its manifest, it is no longer a backup, should the program end here.
		if err := errors.Join(os.Remove(filepath.Join(others[0].path, manifestFile)), os.RemoveAll(others[0].path)); err != nil {
			return removed, foreign, err
		}
		removed, others = append(removed, others[0].path), others[1:]
	}
	return removed, foreign, nil
}

// origin is the oldest message of a log, by which its backups are known. It stays the same when the log is restored.
type origin struct{ first *entry } // nil if the log has none

func originOf(dir string) (origin, error) {
	m, err := readManifest(dir)
	if err != nil || m.Events == 0 {
		return origin{}, err
	}
	first, err := messageFrom(dir, m.First)
	return origin{first}, err
}

// matches reports whether an older backup is of the same log. One of which the log has no message any longer, because all
// were erased, counts as such, and so does an empty one.
func (o origin) matches(dir string, m Manifest) bool {
	if m.Events == 0 {
		return true
	}
	if o.first == nil {
		return false
	}
	if m.Last < o.first.Seq {
		return true
	}
	e, err := messageFrom(dir, o.first.Seq)
	return err == nil && e != nil && e.Seq == o.first.Seq && e.Time == o.first.Time && e.Subject == o.first.Subject && e.messageID() == o.first.messageID()
}

// messageFrom returns the first message of a backup from a sequence on, nil if there is none.
func messageFrom(dir string, seq uint64) (first *entry, err error) {
	found := errors.New("found")
	_, err = scan(filepath.Join(dir, snapshotFile), nil, func(e *entry) error {
		if e.Seq < seq {
			return nil
		}
		first = e
		return found
	}, nil)
	if errors.Is(err, found) {
		err = nil
	}
	return first, err
}

// isAbandoned reports whether a directory is what [Create] had written when it was killed, and nothing writes to it now.
func isAbandoned(path string) bool {
	if !strings.HasSuffix(path, partialSuffix) {
		return false
	}
	files, err := os.ReadDir(path)
	if err != nil || len(files) == 0 {
		return false
	}
	return !slices.ContainsFunc(files, func(f os.DirEntry) bool {
		info, err := f.Info()
		return !isOurs(f) || err != nil || time.Since(info.ModTime()) < abandonedAfter
	})
}

// isOurs reports whether a file is one that [Create] writes.
func isOurs(f os.DirEntry) bool {
	return f.Type().IsRegular() && slices.Contains([]string{configFile, snapshotFile, manifestFile}, f.Name())
}
