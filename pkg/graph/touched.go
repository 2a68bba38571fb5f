package graph

import "mneme/pkg/files"

// TouchedFile is a path with all of its accesses in one.
type TouchedFile struct {
	Path   string
	Latest FileAccess // decides where the file stands among others
	// Strongest decides what the file counts as: modified outranks read, read
	// outranks found in a search, and that outranks listed.
	Strongest FileAccess
	Count     int // accesses of all kinds
}

// Strength orders kinds of access: the higher tells more of a file.
func Strength(kind string) int { return strength[kind] }

var strength = map[string]int{string(files.KindWrite): 4, string(files.KindRead): 3, string(files.KindSearch): 2, string(files.KindList): 1}

// MergeByPath makes one file of a path's kinds. accesses are newest first, as
// [FilesReader] gives them; so are the files, by their latest access.
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
