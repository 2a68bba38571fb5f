package files

// Directory is a folder with the accesses of the files directly in it.
type Directory struct {
	Path  string // "." for relative paths without a folder
	Files []Access
}

// GroupByDirectory puts accesses of the same folder together. Folders come in the
// order of their first access and the accesses of each stay in order: grouped from
// newest to oldest, the folder with the newest access is first.
func GroupByDirectory(accesses []Access) []Directory {
	var groups []Directory
	at := map[string]int{}
	for _, a := range accesses {
		dir := folder(a.Path)
		i, known := at[dir]
		if !known {
			i = len(groups)
			at[dir] = i
			groups = append(groups, Directory{Path: dir})
		}
		groups[i].Files = append(groups[i].Files, a)
	}
	return groups
}
