package window

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"mneme.dev/mneme/pkg/graph"
)

// turn is a message that a user wrote and everything up to the next one, as far as it was read.
// What a program said in the user's role is one of its steps.
type turn struct {
	number int            // of its user message, 0 before the first one
	user   *graph.Message // nil before the first one
	steps  []step         // oldest first, without the user message
	whole  bool           // all its steps are here
	before int            // steps of the conversation before this turn
	last   int            // steps of the conversation up to its end
}

// recentTurns is what collectTurns shows.
type recentTurns struct {
	items  []Item
	oldest *turn // nil if none is shown
	steps  int   // left out of the oldest turn
}

// users counts the messages in the user's role; a conversation counts its turns the same way.
func (r *recentTurns) users() (n int) {
	for i := range r.items {
		if r.items[i].Kind == KindMessage && r.items[i].Role == "user" {
			n++
		}
	}
	return n
}

// collectTurns shows the newest turns uncondensed: whole turns, except that the oldest one may show
// only its user message and newest whole steps.
func collectTurns(ctx context.Context, b *builder, s section, room int) (filled, error) {
	return b.collectTurns(ctx, s, room, nil)
}

// collectTurnsBesideRelevant shows the newest turns in the section's share plus the room that the
// relevant past does not need.
func collectTurnsBesideRelevant(ctx context.Context, b *builder, s section, room int) (filled, error) {
	if err := b.search(ctx); err != nil {
		return filled{}, err
	}
	return b.collectTurns(ctx, s, room, func(r *recent, shown func(room int) []Item) (int, error) {
		return b.turnsBeside(ctx, s, room, r, shown)
	})
}

// collectTurns shows the newest turns in room characters, or in the room that beside returns,
// unless all turns fit anyway. beside can ask what the turns show in a given room.
func (b *builder) collectTurns(ctx context.Context, s section, room int, beside func(r *recent, shown func(room int) []Item) (int, error)) (filled, error) {
	unused := b.req.MaxChars - b.used
	w, err := b.load(ctx, extent{chars: unused + unused/8, piece: pieceOf(unused)})
	if err != nil {
		return filled{}, err
	}
	r := &recent{steps: w.steps, spoken: w.spoken(), awaited: b.awaited(w)}
	list, err := b.turnsOf(ctx, w)
	if err != nil || len(list) == 0 {
		return filled{recent: r}, err
	}
	f := filled{room: room, recent: r}
	shown := recentTurns{}
	all := false
	if first := b.firstTurn(); list[0].number <= first {
		// if the first turn is shown, there are no other queries, and no reserve is needed
		free := unused - headingCost(s.heading)
		piece := pieceOf(free)
		if b.fit(w, list, free) { // no text has to leave room for others
			piece = free
		}
		shown = b.fitTurns(w, list, free, piece)
		all = shown.oldest != nil && shown.oldest.number <= first
		if beside != nil && all { // other sections may find what is left out or shortened, also before the first instruction
			all = w.complete && shown.oldest == &list[0] && shown.steps == 0 && !slices.ContainsFunc(shown.items, func(it Item) bool { return it.WholeChars > 0 || it.ResultWholeChars > 0 })
		}
	}
	if all {
		f.room, r.whole = unused, beside != nil
	} else {
		if beside != nil {
			f.room, err = beside(r, func(room int) []Item {
				room -= headingCost(s.heading)
				return b.fitTurns(w, list, room, pieceOf(room)).items
			})
			if err != nil {
				return filled{}, err
			}
		}
		free := f.room - headingCost(s.heading)
		shown = b.fitTurns(w, list, free, pieceOf(free))
	}
	f.items, r.items = shown.items, shown.items
	r.queriesEnd = b.end
	r.rawFrom = b.rawBegins(f.items)
	if w.complete && shown.oldest == &list[0] && shown.steps == 0 { // what comes before the first row is no text
		r.rawFrom = min(r.rawFrom, b.conversation.FirstSeq)
	}
	if shown.oldest != nil {
		r.queriesEnd = 0
		if shown.oldest.user != nil {
			r.queriesEnd = shown.oldest.user.Seq
		}
		f.drop("steps", shown.steps, reasonBudget)
	}
	f.drop("turns", b.conversation.TurnCount-shown.users(), reasonBudget)
	b.leaveSteps(&f, w, f.room, reasonBudget)
	return f, nil
}

// leaveSteps notes the newest steps that are not shown, as they would be in room characters.
func (b *builder) leaveSteps(f *filled, w *window, room int, reason string) {
	if !b.req.Candidates {
		return
	}
	shown := map[uint64]bool{}
	for i := range f.items {
		shown[f.items[i].Seq] = true
	}
	for i := len(w.steps) - 1; i >= 0 && len(f.candidates) < maxLeft; i-- {
		for _, it := range slices.Backward(b.items(w, &w.steps[i], pieceOf(room))) {
			if !shown[it.Seq] {
				b.leave(f, it, reason)
			}
		}
	}
}

// rawBegins returns the first sequence from which everything is shown: the one after the last mark
// for something left out, or b.end if no item follows it.
func (b *builder) rawBegins(items []Item) uint64 {
	from := b.end
	for i := len(items) - 1; i >= 0 && items[i].Kind != KindLeftOut; i-- {
		from = items[i].Seq
	}
	return from
}

// turnsOf groups the steps of a window, oldest turn first.
func (b *builder) turnsOf(ctx context.Context, w *window) ([]turn, error) {
	var list []turn
	for _, s := range w.steps {
		if m := s.message; m != nil && isWritten(m) {
			list = append(list, turn{number: m.Turn, user: m, whole: true, before: m.Step, last: b.conversation.StepCount})
			continue
		}
		if len(list) == 0 {
			list = append(list, turn{whole: w.complete, last: b.conversation.StepCount})
		}
		t := &list[len(list)-1]
		t.steps = append(t.steps, s)
	}
	for i := range list[:max(0, len(list)-1)] {
		if next := list[i+1].user; next != nil {
			list[i].last = next.Step
		}
	}
	if len(list) == 0 && b.newest != nil { // only a part of one large step was read
		list = []turn{{last: b.conversation.StepCount}}
	}
	if len(list) > 0 && list[0].user == nil && !w.complete {
		oldest := &list[0]
		oldest.user = b.newest
		if len(list) > 1 {
			user, err := b.written(ctx, graph.MessageQuery{Before: list[1].user.Seq}, isWritten)
			if err != nil {
				return nil, err
			}
			oldest.user = user
		}
		if oldest.user != nil {
			oldest.number, oldest.before = oldest.user.Turn, oldest.user.Step
		}
	}
	return list, nil
}

// firstTurn returns the turn of the first instruction, 0 if there is none.
func (b *builder) firstTurn() int {
	if b.first == nil {
		return 0
	}
	return b.first.Turn
}

// awaited is the room that the newest step needs if its tools have returned something: the model has asked for it and
// has not seen it. Shown less of it, an agent calls the tool again.
func (b *builder) awaited(w *window) int {
	if len(w.steps) == 0 || !w.steps[len(w.steps)-1].returned() {
		return 0
	}
	most := b.awaitedRoom()
	return min(cost(b.items(w, &w.steps[len(w.steps)-1], most)), most)
}

// awaitedRoom is the most that such a step takes on top of the share of the recent turns: a quarter of the budget.
func (b *builder) awaitedRoom() int { return share(b.req.MaxChars, 25) }

// returned reports whether a tool that the step called has returned.
func (s *step) returned() bool {
	return slices.ContainsFunc(s.calls, func(c call) bool { return c.result != nil })
}

// fit reports whether all turns take at most room characters if no text is cut for its length.
func (b *builder) fit(w *window, list []turn, room int) bool {
	left := room
	for i := range list {
		t := &list[i]
		if t.user != nil {
			it := b.userItem(t.user, room)
			left -= it.takes()
		}
		for n := range t.steps {
			if left -= cost(b.items(w, &t.steps[n], room)); left < 0 {
				return false
			}
		}
	}
	return left >= 0
}

// fitTurns shows turns in room characters, newest first, until one does not fit. Each text takes at most piece
// characters.
func (b *builder) fitTurns(w *window, list []turn, room, piece int) (out recentTurns) {
	var shown [][]Item
	for i := len(list) - 1; i >= 0; i-- {
		t := &list[i]
		lists, left, ok := b.fitTurn(w, t, room, piece)
		if !ok {
			break
		}
		for _, items := range lists {
			room -= cost(items)
		}
		shown = append(shown, lists...)
		out.oldest, out.steps = t, left
		if left != 0 {
			break
		}
	}
	slices.Reverse(shown)
	out.items = slices.Concat(shown...)
	return out
}

// fitTurn shows a turn in room characters: whole, or its user message, a mark and its newest whole
// steps. lists are their items, the newest first. left is how many steps are left out, or -1 if only
// something that is not a step is. The newest turn is always shown, an older one only with a step.
//
// If a step does not fit, it is tried with shorter texts instead of being left out, provided that
// it is the newest of all or much room (an eighth of the section's) is left.
func (b *builder) fitTurn(w *window, t *turn, room, piece int) (lists [][]Item, left int, ok bool) {
	newest := b.newest == nil || t.number == b.newest.Turn
	var head []Item
	if t.user != nil {
		head = append(head, b.userItem(t.user, piece))
	}
	room -= cost(head)
	mark := leftOutCost(t.number, t.last-t.before)
	from := len(t.steps) // steps[from:] are shown
	for ; from > 0; from-- {
		s := &t.steps[from-1]
		need := mark
		if from == 1 && t.whole {
			need = 0
		}
		piece, last := piece, newest && from == len(t.steps)
		if last && s.returned() {
			piece = max(piece, b.awaitedRoom())
		}
		shown := b.items(w, s, piece)
		if cost(shown)+need > room && (last || room > piece/2) {
			shown = b.itemsWithin(w, s, piece/2, room-need)
		}
		if shown == nil || cost(shown)+need > room {
			break
		}
		room -= cost(shown)
		lists = append(lists, shown)
	}
	if from == 0 && t.whole {
		return append(lists, head), 0, room >= 0 || newest
	}
	if len(lists) == 0 && (!newest || t.user == nil) {
		return nil, 0, false
	}
	left = t.missing(from)
	lists = append(lists, []Item{leftOutSteps(t.number, left)}, head)
	left = cmp.Or(left, -1)
	return lists, left, true
}

// missing counts the steps of a turn before steps[from].
func (t *turn) missing(from int) int {
	for _, s := range t.steps[from:] {
		if s.message != nil && s.message.Role == "assistant" {
			return s.step - t.before - 1
		}
	}
	return t.last - t.before
}

// userItem shows a user message in recent turns.
func (b *builder) userItem(m *graph.Message, piece int) Item {
	if b.newest != nil && m.Seq == b.newest.Seq {
		return b.newestItem
	}
	return b.messageItem(m, b.messageText(m, piece))
}

func leftOutCost(turn, n int) int {
	it := leftOutSteps(turn, n)
	return it.takes()
}

// leftOutSteps is the mark for earlier steps left out of a turn.
func leftOutSteps(turn, n int) Item {
	text := fmt.Sprintf("[… %d earlier steps of this turn left out]", n)
	switch n {
	case 0:
		text = "[… the beginning of this turn left out]"
	case 1:
		text = "[… 1 earlier step of this turn left out]"
	}
	return Item{Kind: KindLeftOut, Turn: turn, Text: text}.measured()
}
