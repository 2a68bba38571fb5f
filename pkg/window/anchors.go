package window

import (
	"context"

	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/harness"
)

// The anchors are the two messages that every context keeps: the newest user message and the first
// instruction. A message that a program put into the user's role has an origin, such as meta for the text of a skill, and
// is never an anchor. A program's text without an origin, such as the output of a command, can be the newest message,
// because it begins a turn, but it is no instruction.

// findAnchors reads the newest user message, the first instruction, and the newest message that asks for something.
func (b *builder) findAnchors(ctx context.Context) (err error) {
	b.newest, err = b.written(ctx, graph.MessageQuery{Before: b.end}, isWritten)
	if err != nil || b.newest == nil {
		return err
	}
	b.first, b.asked = b.newest, b.newest
	if b.newest.Turn == 1 {
		return nil
	}
	first, err := b.written(ctx, graph.MessageQuery{Before: b.end, OldestFirst: true}, asks)
	if err != nil || first == nil {
		return err
	}
	if first.Seq != b.newest.Seq {
		b.first = first
	}
	if !asks(b.newest) {
		b.asked, err = b.written(ctx, graph.MessageQuery{Before: b.newest.Seq}, asks)
	}
	return err
}

// maxUnwritten is how many messages in the user's role written reads.
const maxUnwritten = 1_000

// written returns the first of the user's messages selected by q that is wanted, or nil if the first maxUnwritten have
// none. Nearly always the first one will do.
func (b *builder) written(ctx context.Context, q graph.MessageQuery, wanted func(*graph.Message) bool) (*graph.Message, error) {
	q.Role, q.Limit = "user", 1
	for read := 0; read < maxUnwritten; {
		list, err := b.src.Graph.Messages(ctx, b.req.Conversation, q)
		if err != nil {
			return nil, err
		}
		for i := range list {
			if wanted(&list[i]) {
				return &list[i], nil
			}
		}
		if len(list) < q.Limit {
			return nil, nil
		}
		if last := list[len(list)-1].Seq; q.OldestFirst {
			q.From = last + 1
		} else {
			q.Before = last
		}
		read, q.Limit = read+len(list), 50
	}
	return nil, nil
}

// isWritten reports whether a message of the user has no origin. It begins a turn.
func isWritten(m *graph.Message) bool { return m.Role == "user" && m.Via == "" }

// asks reports whether a user wrote a message and asks for something.
func asks(m *graph.Message) bool { return harness.Asks(m.Role, m.Via, m.Content.Text) }

// oneAnchor reports whether the newest user message is also the first.
func (b *builder) oneAnchor() bool { return b.first == nil || b.first == b.newest }

// cutAnchors returns the texts of both anchors for room characters: whole if they fit, otherwise
// cut. The shorter one is cut only if it takes more than half.
func (b *builder) cutAnchors(room int) (newest, first string) {
	room = max(0, room)
	if b.oneAnchor() {
		return cut(b.newest.Content, room, b.newest.Seq), ""
	}
	n, f := bodyCost(b.newest.Content), bodyCost(b.first.Content)
	half := room / 2
	switch {
	case n <= half:
		f = room - n
	case f <= half:
		n = room - f
	default: // they do not fit
		n, f = half, room-half
	}
	return cut(b.newest.Content, n, b.newest.Seq), cut(b.first.Content, f, b.first.Seq)
}

// messageText returns a message's text, cut to piece characters unless it is an anchor.
func (b *builder) messageText(m *graph.Message, piece int) string {
	if b.newest != nil && (m.Seq == b.newest.Seq || m.Seq == b.first.Seq) {
		piece = bodyCost(m.Content)
	}
	return cut(m.Content, piece, m.Seq)
}

// bodyCost is the cost of an uncut body. If the read model holds only part of it, the mark counts
// too.
func bodyCost(body graph.Body) int {
	n := textCost(body.Text)
	if !body.Whole() {
		n += 3 * maxMark
	}
	return n
}

// setAnchors makes the items of both anchors for the queries and the recent turns.
func (b *builder) setAnchors() {
	if b.newest == nil || b.newestItem.Kind != "" {
		return
	}
	room := b.req.MaxChars - frameCost - headingCost(turnsHeading) - b.messageItem(b.newest, "").Chars - 1 - b.markCost()
	if !b.oneAnchor() {
		room -= headingCost(queriesHeading) + b.queryItem(b.first, "").Chars
	}
	newest, first := b.cutAnchors(room)
	b.newestItem = b.messageItem(b.newest, newest)
	if !b.oneAnchor() {
		b.firstItem = b.queryItem(b.first, first)
	}
}

// markCost is the most that the mark for steps left out of the newest turn can take.
func (b *builder) markCost() int {
	return leftOutCost(b.newest.Turn, b.conversation.StepCount-b.newest.Step)
}

// reserveNewest is the room that the recent turns need for the newest user message.
func reserveNewest(b *builder) int {
	if b.newest == nil {
		return 0
	}
	b.setAnchors()
	return headingCost(turnsHeading) + b.newestItem.Chars + b.markCost()
}

// reserveFirst is the room that the queries need for the first instruction.
func reserveFirst(b *builder) int {
	if b.newest == nil || b.oneAnchor() {
		return 0
	}
	b.setAnchors()
	return headingCost(queriesHeading) + b.firstItem.Chars
}
