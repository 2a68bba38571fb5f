package window

import (
	"cmp"
	"context"

	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/plain"
)

// queryRowChars is how much room allows one more row to be read. It bounds the read even if many
// user messages are not queries.
const queryRowChars = 50

// collectQueries lists user messages before the recent turns: the first instruction, and the newest
// others that fit. The recent turns show their own.
func collectQueries(ctx context.Context, b *builder, s section, room int) (f filled, err error) {
	if b.oneAnchor() || b.recent.queriesEnd <= b.first.Seq {
		return f, nil
	}
	first := b.firstItem
	room -= headingCost(s.heading) + first.Chars
	piece := pieceOf(room)
	others := 0      // user messages that are left out: those after the first and before the oldest listed
	var items []Item // newest first
	rows := 10 + room/queryRowChars
reading:
	for before := b.recent.queriesEnd; rows > 0; {
		page := min(rows, 50)
		list, err := b.src.Graph.Messages(ctx, b.req.Conversation, graph.MessageQuery{Role: "user", Before: before, Limit: page})
		if err != nil {
			return f, err
		}
		for i := range list {
			m := &list[i]
			if m.Seq == b.first.Seq {
				others = 0
				break reading
			}
			others = m.Turn - b.first.Turn - 1
			if !asks(m) {
				reason := "not written by the user: " + cmp.Or(plain.Speaker(m.Via), "the agent's program")
				f.drop("queries", 1, reason)
				b.leave(&f, b.queryItem(m, cut(m.Content, piece, m.Seq)), reason)
				continue
			}
			it := b.queryItem(m, cut(m.Content, piece, m.Seq))
			if it.Chars > room {
				others++
				for i := range list[i:] {
					if o := &list[i]; o.Seq != b.first.Seq && asks(o) {
						b.leave(&f, b.queryItem(o, cut(o.Content, piece, o.Seq)), reasonBudget)
					}
				}
				break reading
			}
			room -= it.Chars
			items = append(items, it)
		}
		if rows -= page; len(list) < page {
			break
		}
		before = list[len(list)-1].Seq
	}
	f.items = append(f.items, first)
	for i := len(items) - 1; i >= 0; i-- {
		f.items = append(f.items, items[i])
	}
	f.drop("queries", others, reasonBudget)
	return f, nil
}
