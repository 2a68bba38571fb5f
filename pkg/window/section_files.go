package window

import (
	"cmp"
	"context"
	"slices"

	"mneme/pkg/files"
	"mneme/pkg/graph"
)

// fileGroups are the headings of the groups of files by access; fileOrder is their
// order on the page.
var (
	fileGroups = map[string]string{"read": "Read", "write": "Modified", "search": "Found in searches", "list": "Listed"}
	fileOrder  = []string{"read", "write", "search", "list"}
)

// fileRank says which files have the room first if it does not suffice: a modified
// file tells more than one that was only read, and that more than a hit.
var fileRank = map[string]int{"write": 0, "read": 1, "search": 2, "list": 3}

// collectFiles lists the files that tools touched, each once, with its latest
// access; a file that was modified is listed as modified, whatever came after.
func collectFiles(ctx context.Context, b *builder, s section, room int) (f filled, err error) {
	if b.src.Files == nil || room <= headingCost(s.heading) {
		return f, nil
	}
	// a line takes some 20 characters or more; some rows fall away below
	found, err := b.src.Files.Files(ctx, b.req.Conversation, graph.FileQuery{AsOf: b.req.AsOf, Limit: min(50+room/10, 5_000)})
	if err != nil {
		return f, err
	}
	list, repeated, excluded := distinct(found, b.req.Exclude)
	slices.SortStableFunc(list, func(a, b graph.FileAccess) int { return cmp.Compare(fileRank[a.Kind], fileRank[b.Kind]) })

	room -= headingCost(s.heading)
	groups := map[string][]Item{}
	left := 0
	for _, a := range list {
		it := Item{Kind: KindFile, Turn: a.Turn, Seq: a.Seq, ToolName: a.Tool, Path: a.Path, Access: a.Kind}.measured()
		need := it.Chars
		if groups[a.Kind] == nil {
			need += length(groupHeading(a.Kind))
		}
		if need > room {
			left++
			continue
		}
		room -= need
		groups[a.Kind] = append(groups[a.Kind], it)
	}
	for _, kind := range fileOrder {
		f.items = append(f.items, groups[kind]...)
	}
	f.drop("files", left, reasonBudget)
	f.drop("files", excluded, "excluded by a pattern")
	f.drop("accesses", repeated, "another access of the same file is listed")
	return f, nil
}

// distinct leaves each path once, in the order of the latest accesses: as modified
// if one of its accesses is a write, otherwise as it was accessed last. found is
// newest first.
func distinct(found []graph.FileAccess, exclude []string) (list []graph.FileAccess, repeated, excluded int) {
	at := map[string]int{} // -1: excluded
	for _, a := range found {
		i, known := at[a.Path]
		switch {
		case fileGroups[a.Kind] == "": // of a later version
		case known && i >= 0:
			repeated++
			if a.Kind == "write" && list[i].Kind != "write" {
				list[i] = a
			}
		case known:
		case files.Excluded(a.Path, exclude):
			at[a.Path] = -1
			excluded++
		default:
			at[a.Path] = len(list)
			list = append(list, a)
		}
	}
	return list, repeated, excluded
}
