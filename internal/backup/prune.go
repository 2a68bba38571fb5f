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
// just made stays, even if the clock was set back since the others were made. Prune also removes what killed programs left
// of a backup a day ago or earlier. It leaves alone whatever else is there. It returns the paths of what it removed.
func Prune(made string, keep int) (removed []string, err error) {
	made = filepath.Clean(made)
	dir := filepath.Dir(made)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
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
				return removed, err
			}
			removed = append(removed, path)
		} else if m, err := readManifest(path); err == nil {
			others = append(others, found{path, m})
		}
	}
	slices.SortStableFunc(others, func(a, b found) int { return a.Time.Compare(b.Time) })
	for len(others) > max(keep-1, 0) {
		// Without its manifest, it is no longer a backup, should the program end here.
		if err := errors.Join(os.Remove(filepath.Join(others[0].path, manifestFile)), os.RemoveAll(others[0].path)); err != nil {
			return removed, err
		}
		removed, others = append(removed, others[0].path), others[1:]
	}
	return removed, nil
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
		return !slices.Contains([]string{configFile, snapshotFile, manifestFile}, f.Name()) || err != nil || time.Since(info.ModTime()) < abandonedAfter
	})
}
