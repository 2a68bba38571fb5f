package window

import (
	"cmp"
	"context"
	"slices"

	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/plain"
)

// fileGroups are the headings of the file groups by access; fileOrder is their order on the page.
var (
	fileGroups = map[string]string{"read": "Read", "write": "Modified", "search": "Found in searches", "list": "Listed"}
	fileOrder  = []string{"read", "write", "search", "list"}
)

// collectFiles lists each file that tools touched once, by its strongest access: modified, then
// read, then found. Stronger accesses get the room first. Within a group, the latest access comes
// first.
func collectFiles(ctx context.Context, b *builder, s section, room int) (f filled, err error) {
	if b.src.Files == nil || room <= headingCost(s.heading) {
		return f, nil
	}
	// a line usually takes more than 20 characters; some rows are dropped below
	found, err := b.src.Files.Files(ctx, b.req.Conversation, graph.FileQuery{AsOf: b.end - 1, Limit: min(50+room/20, 5_000)})
	if err != nil {
		return f, err
	}
	list := graph.MergeByPath(found)
	f.drop("accesses", len(found)-len(list), "another access of the same file tells more")
	slices.SortStableFunc(list, func(a, b graph.TouchedFile) int {
		return cmp.Compare(graph.Strength(b.Strongest.Kind), graph.Strength(a.Strongest.Kind))
	})

	room -= headingCost(s.heading)
	groups := map[string][]Item{}
	for _, file := range list {
		a := file.Strongest
		leave := func(reason string) {
			f.drop("files", 1, reason)
			b.leave(&f, fileItem(&a), reason)
		}
		if room < minFileLine {
			leave(reasonBudget)
			continue
		}
		if a.Path == b.conversation.Cwd {
			leave("the working directory itself")
			continue
		}
		if b.excluded(a.Path) {
			leave("excluded by a pattern")
			continue
		}
		it := fileItem(&a)
		need := it.Chars
		if groups[a.Kind] == nil {
			need += plain.Length(groupHeading(a.Kind))
		}
		if need > room {
			leave(reasonBudget)
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

// fileItem is the line of a file.
func fileItem(a *graph.FileAccess) Item {
	return Item{Kind: KindFile, Turn: a.Turn, Seq: a.Seq, ToolName: a.Tool, Path: a.Path, Access: a.Kind}.measured()
}

// minFileLine is the length of a line with hardly a name on it. With less room the remaining files
// are not read.
const minFileLine = 8
