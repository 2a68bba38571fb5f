package graph

import (
	"cmp"
	"context"
	"slices"
)

// AboutCode is a conversation about a piece of code, with its newest mentions.
type AboutCode struct {
	CodeReferences
	Accesses []FileAccess
}

// ConversationsAbout finds the conversations of a tenant that refer to a piece of code, or
// whose tool calls accessed the file, ordered by their newest mention of either kind. more
// means that there may be more. It examines only [MaxMentions] of each kind, so older
// conversations can be missing if a name is very common.
func ConversationsAbout(ctx context.Context, g Reader, f FilesReader, tenant string, q CodeQuery) (list []AboutCode, more bool, err error) {
	referring, err := g.Referring(ctx, tenant, q)
	if err != nil {
		return nil, false, err
	}
	accessing, err := f.Accessing(ctx, tenant, q)
	if err != nil {
		return nil, false, err
	}
	referred := map[string]uint64{}
	for _, m := range referring.Conversations {
		referred[m.ID] = m.Seq
	}
	newest := append(slices.Clone(referring.Conversations), accessing.Conversations...)
	slices.SortStableFunc(newest, func(a, b Mentioned) int { return cmp.Compare(b.Seq, a.Seq) })
	var references []Mentioned
	var ids []string
	known := map[string]bool{}
	more = referring.More || accessing.More
	for _, m := range newest {
		if known[m.ID] {
			continue
		}
		if len(known) == q.limit() {
			more = true
			break
		}
		known[m.ID] = true
		// A conversation found only by its accesses may have older references to the file.
		references, ids = append(references, Mentioned{m.ID, cmp.Or(referred[m.ID], Latest)}), append(ids, m.ID)
	}
	if len(known) == 0 {
		return nil, more, nil
	}
	found, err := g.References(ctx, tenant, references, q)
	if err != nil {
		return nil, false, err
	}
	touched, err := f.Accesses(ctx, tenant, ids, q)
	if err != nil {
		return nil, false, err
	}
	for _, c := range found {
		about := AboutCode{c, touched[c.ID.ID]}
		if len(about.References)+len(about.Accesses) > 0 { // or its rows have changed since
			list = append(list, about)
		}
	}
	return list, more, nil
}
