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
	// a line takes more than 20 characters as a rule; some rows fall away below
	found, err := b.src.Files.Files(ctx, b.req.Conversation, graph.FileQuery{AsOf: b.req.AsOf, Limit: min(50+room/20, 5_000)})
	if err != nil {
		return f, err
	}
	list := distinct(found)
	f.drop("accesses", len(found)-len(list), "another access of the same file is newer or a modification")
	slices.SortStableFunc(list, func(a, b graph.FileAccess) int { return cmp.Compare(fileRank[a.Kind], fileRank[b.Kind]) })

	room -= headingCost(s.heading)
	groups := map[string][]Item{}
	for _, a := range list {
		if room < minFileLine {
			f.drop("files", 1, reasonBudget)
			continue
		}
		if files.Excluded(a.Path, b.req.Exclude) {
			f.drop("files", 1, "excluded by a pattern")
			continue
		}
		it := Item{Kind: KindFile, Turn: a.Turn, Seq: a.Seq, ToolName: a.Tool, Path: a.Path, Access: a.Kind}.measured()
		need := it.Chars
		if groups[a.Kind] == nil {
			need += length(groupHeading(a.Kind))
		}
		if need > room {
			f.drop("files", 1, reasonBudget)
			continue
		}
		room -= need
		groups[a.Kind] = append(groups[a.Kind], it)
	}
	for _, kind := range fileOrder {
		f.items = append(f.items, groups[kind]...)
	}
	return f, nil
}

// minFileLine is a line with hardly a name on it: with less room the rest of the
// files is not looked at.
const minFileLine = 8

// distinct leaves each path once, in the order of the latest accesses: as modified
// if one of its accesses is a write, otherwise as it was accessed last. found is
// newest first. A kind of a later version is left out.
func distinct(found []graph.FileAccess) (list []graph.FileAccess) {
	at := map[string]int{}
	for _, a := range found {
		i, known := at[a.Path]
		switch {
		case fileGroups[a.Kind] == "":
		case !known:
			at[a.Path] = len(list)
			list = append(list, a)
		case a.Kind == "write" && list[i].Kind != "write":
			list[i] = a
		}
	}
	return list
}
