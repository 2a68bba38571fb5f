package graph

import "mneme.dev/mneme/pkg/files"

// TouchedFile combines all accesses of a path.
type TouchedFile struct {
	Path   string
	Latest FileAccess // determines the order of files
	// Strongest is the file's main kind of access: modified outranks read, read
	// outranks found in a search, and that outranks listed.
	Strongest FileAccess
	Count     int // accesses of all kinds
}

// Strength ranks kinds of access; a higher kind says more about a file.
func Strength(kind string) int { return strength[kind] }

var strength = map[string]int{string(files.KindWrite): 4, string(files.KindRead): 3, string(files.KindSearch): 2, string(files.KindList): 1}

// MergeByPath merges the kinds of access of each path. accesses are newest first, as
// [FilesReader] returns them; the files are sorted by their latest access, newest first.
func MergeByPath(accesses []FileAccess) []TouchedFile {
	var list []TouchedFile
	at := map[string]int{}
	for _, a := range accesses {
		i, seen := at[a.Path]
		if !seen {
			at[a.Path] = len(list)
			list = append(list, TouchedFile{Path: a.Path, Latest: a, Strongest: a, Count: a.Count})
			continue
		}
		list[i].Count += a.Count
		if strength[a.Kind] > strength[list[i].Strongest.Kind] {
			list[i].Strongest = a
		}
	}
	return list
}
