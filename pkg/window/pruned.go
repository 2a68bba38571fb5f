package window

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"mneme.dev/mneme/pkg/graph"
)

// What pruning keeps, in messages.
const (
	prunedWhole  = 10 // a conversation up to this long is shown whole
	prunedNewest = 9  // of a longer one, the first and this many of the newest
)

// kept is a message that pruning keeps, with the calls of its step.
type kept struct {
	n     int // the message's number in the conversation, 0 for calls without a message
	seq   uint64
	items []Item
}

// collectPruned shows a conversation whole if it has up to 10 messages and they fit. Otherwise it
// shows the first message, the bridge, and as many as fit of the newest 9. The anchors always stay,
// and each gap has its bridge. A message comes with its calls and their results, except a first
// message that is the assistant's.
func collectPruned(ctx context.Context, b *builder, s section, room int) (f filled, err error) {
	room -= headingCost(s.heading)
	piece := pieceOf(room)
	w, err := b.load(ctx, extent{chars: room + room/8, messages: prunedWhole + 1, piece: piece})
	if err != nil {
		return f, err
	}
	if b.conversation.MessageCount <= prunedWhole && w.complete {
		for i := range w.steps {
			f.items = append(f.items, b.items(w, &w.steps[i], piece)...)
		}
		if cost(f.items) <= room {
			return f, nil
		}
		f.items = nil
	}
	room -= b.gaps() * bridgeCost(b.conversation.MessageCount)
	list, err := b.heads(ctx, room, piece)
	if err != nil {
		return f, err
	}
	// The story fills the largest gap, the one after the first message. The anchors have priority
	// over it.
	left := room
	for _, k := range list {
		left -= cost(k.items)
	}
	told := storyWithin(b.frontier, min(left, share(b.req.MaxChars, story.share)))
	list = b.newestWithin(w, list, room-cost(told), piece)
	told = b.toldBefore(told, list)
	shown, last := 0, 0
	for _, k := range list {
		if k.n > last+1 && (last > 0 || b.leadShown()) {
			f.items = append(f.items, bridge(k.n-last-1))
			if k.n-last-1 == widestGap(list) {
				f.items = append(f.items, told...)
				told = nil
			}
		}
		if k.n > 0 {
			last = k.n
			shown++
		}
		f.items = append(f.items, k.items...)
	}
	if rest := b.conversation.MessageCount - last; rest > 0 && last > 0 {
		f.items = append(f.items, bridge(rest))
	}
	f.drop("messages", b.conversation.MessageCount-shown, "pruned")
	b.leaveSteps(&f, w, room, "pruned")
	f.dropParts(b.frontier)
	return f, nil
}

// toldBefore returns the summaries that cover a message not shown, if there is a gap.
func (b *builder) toldBefore(told []Item, list []kept) (left []Item) {
	widest := widestGap(list)
	last := 0
	for _, k := range list {
		if k.n > 0 && k.n-last-1 == widest && widest > 0 {
			for _, it := range told {
				if it.Summary.FirstSeq < k.seq {
					left = append(left, it)
				}
			}
			return left
		}
		last = max(last, k.n)
	}
	return nil
}

// widestGap returns the largest number of adjacent messages that are missing.
func widestGap(list []kept) (widest int) {
	last := 0
	for _, k := range list {
		if k.n > 0 {
			widest, last = max(widest, k.n-last-1), k.n
		}
	}
	return widest
}

// gaps returns how many gaps there can be: before the first instruction, between it and the newest
// user message, and after that.
func (b *builder) gaps() int {
	if b.newest == nil {
		return 1
	}
	n := 0
	if b.first.N > 1 && b.leadShown() {
		n++
	}
	if b.newest.N > b.first.N+1 {
		n++
	}
	if b.newest.N < b.conversation.MessageCount {
		n++
	}
	return n
}

// leadShown reports whether there is room for what precedes the first instruction, as a message or
// as a bridge.
func (b *builder) leadShown() bool { return b.newest == nil || b.req.MaxChars >= minCharsForNames }

// heads returns the messages that stay wherever they are: the anchors, and the first message if it
// is not an anchor and fits.
func (b *builder) heads(ctx context.Context, room, piece int) (heads []kept, err error) {
	if b.newest != nil {
		texts := room - b.messageItem(b.newest, "").Chars - 1
		if !b.oneAnchor() {
			texts -= b.messageItem(b.first, "").Chars + 1
		}
		newest, first := b.cutAnchors(texts)
		heads = append(heads, kept{b.newest.N, b.newest.Seq, []Item{b.messageItem(b.newest, newest)}})
		if !b.oneAnchor() {
			heads = append(heads, kept{b.first.N, b.first.Seq, []Item{b.messageItem(b.first, first)}})
		}
		if b.first.N == 1 || !b.leadShown() {
			return heads, nil
		}
	}
	oldest, err := b.src.Graph.Messages(ctx, b.req.Conversation, graph.MessageQuery{Before: b.end, Limit: 1, OldestFirst: true})
	if err != nil || len(oldest) == 0 {
		return heads, err
	}
	for _, h := range heads {
		room -= cost(h.items)
	}
	m := &oldest[0]
	if it := b.messageItem(m, cut(m.Content, piece, m.Seq)); it.takes() <= room {
		heads = append(heads, kept{m.N, m.Seq, []Item{it}})
	}
	return heads, nil
}

// newestWithin adds the newest messages that fit to those already kept, and returns all in order.
func (b *builder) newestWithin(w *window, list []kept, room, piece int) []kept {
	for _, k := range list {
		room -= cost(k.items)
	}
	messages, heads := 0, list
	for i := len(w.steps) - 1; i >= 0 && messages < prunedNewest; i-- {
		s := &w.steps[i]
		k := kept{seq: s.seq}
		if s.message != nil {
			k.n = s.message.N
			messages++
		}
		at := slices.IndexFunc(heads, func(h kept) bool { return h.seq == s.seq })
		if at >= 0 && len(s.calls) == 0 {
			continue
		}
		before := 0 // room already used
		if at >= 0 {
			before = cost(list[at].items)
		}
		k.items = b.items(w, s, piece)
		if i == len(w.steps)-1 && cost(k.items) > room+before {
			k.items = b.itemsWithin(w, s, piece/2, room+before)
		}
		if k.items == nil || cost(k.items) > room+before {
			break
		}
		room -= cost(k.items) - before
		if at >= 0 {
			list[at] = k
		} else {
			list = append(list, k)
		}
	}
	slices.SortFunc(list, func(a, b kept) int { return cmp.Compare(a.seq, b.seq) })
	return list
}

func bridgeCost(n int) int {
	it := bridge(n)
	return it.takes()
}

// bridge marks a gap.
func bridge(n int) Item {
	text := fmt.Sprintf("… [%d messages in between left out] …", n)
	if n == 1 {
		text = "… [1 message in between left out] …"
	}
	return Item{Kind: KindLeftOut, Role: "system", Text: text}.measured()
}
