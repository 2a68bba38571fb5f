package backup

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
)

// Prune removes backups from a directory, the oldest first, until keep are left. It leaves alone what is not a complete
// backup of a log. It returns the paths of the removed ones.
func Prune(dir string, keep int) (removed []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	type found struct {
		path string
		Manifest
	}
	var list []found
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if m, err := readManifest(path); err == nil && e.IsDir() {
			list = append(list, found{path, m})
		}
	}
	slices.SortStableFunc(list, func(a, b found) int { return a.Time.Compare(b.Time) })
	for len(list) > keep {
		// Without its manifest, it is no longer a backup, should the program end here.
		if err := errors.Join(os.Remove(filepath.Join(list[0].path, manifestFile)), os.RemoveAll(list[0].path)); err != nil {
			return removed, err
		}
		removed, list = append(removed, list[0].path), list[1:]
	}
	return removed, nil
}
