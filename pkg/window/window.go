package window

import (
	"cmp"
	"context"
	"math"
	"slices"

	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/summary"
)

// window is the newest end of a conversation, as far as it was read.
type window struct {
	steps    []step // oldest first
	complete bool   // it reaches back to the conversation's beginning
	mode     string // how to condense
	oldFrom  uint64 // results below this sequence are older than the last summary.FreshMessages messages

	condensed map[graph.Ref]graph.Condensed // condensed by a model
	shortened map[shortening]string         // condensed without a model
}

// step is the unit that is shown or left out: an assistant message with its calls and their
// results. A message of another role is a step alone, and so is each call, with its result, that has no
// assistant message before it in its turn: a program may record nothing but calls.
type step struct {
	message *graph.Message // nil if there is none
	calls   []call
	results []graph.ToolResult // results whose call was never recorded
	turn    int
	step    int // number of assistant messages up to here
	seq     uint64

	whole []Item // see [builder.items]; nil before they are made
}

type call struct {
	graph.ToolCall
	result *graph.ToolResult // nil if there is none
}

// old reports whether a result is old enough to be condensed.
func (w *window) old(seq uint64) bool { return seq < w.oldFrom }

// extent says how much of the transcript to read.
type extent struct {
	chars    int // approximate characters in the Markdown
	messages int // or this many messages; 0 means any number
	piece    int // the most that one text takes
}

// load reads the newest end of the transcript page by page.
func (b *builder) load(ctx context.Context, want extent) (*window, error) {
	w := &window{mode: b.req.Condense}
	var entries []graph.Entry // newest first
	messages, chars := 0, 0
	for before := b.end; !w.complete && chars < want.chars && (want.messages == 0 || messages < want.messages); {
		page := want.page(len(entries), chars)
		list, err := b.src.Graph.Transcript(ctx, b.req.Conversation, graph.TranscriptQuery{Before: before, Limit: page})
		if err != nil {
			return nil, err
		}
		for _, e := range list {
			if chars += estimate(e, want.piece, w.oldFrom != 0); e.Message == nil {
				continue
			}
			if messages++; messages == summary.FreshMessages {
				w.oldFrom = e.Message.Seq
			}
		}
		entries = append(entries, list...)
		if w.complete = len(list) < page; !w.complete {
			before = list[len(list)-1].Position().Seq
		}
	}
	slices.Reverse(entries)
	if err := b.join(ctx, w, entries); err != nil {
		return nil, err
	}
	return w, b.findCondensed(ctx, w)
}

// Limits of how many entries are read at once.
const (
	minPage = 32
	maxPage = 256
)

// page returns how many entries to read next. It assumes that they are as long as those read so
// far; an agent's entry takes about 400 characters.
func (x extent) page(entries, chars int) int {
	if x.messages > 0 {
		return 3 * x.messages
	}
	average := 400
	if entries > 0 {
		average = max(1, chars/entries)
	}
	return min(max((x.chars-chars)/average+4, minPage), maxPage)
}

// estimate guesses what an entry takes in the Markdown, rather low than high.
func estimate(e graph.Entry, piece int, old bool) int {
	switch {
	case e.Message != nil:
		return min(e.Message.Content.Chars, piece) + 16
	case e.Call != nil:
		return min(e.Call.Arguments.Chars, piece) + 14
	case old && e.Result.Result.Chars > summary.CondenseAbove:
		return min(summary.CondensedChars, piece) / 2
	}
	return min(e.Result.Result.Chars, piece) + 10
}

// joint is a place in the conversation: a turn, and a step within it.
type joint struct{ turn, step int }

// join makes steps of entries, which are oldest first. A call belongs to the assistant message that
// it names, otherwise to the one before it; a result belongs to its call.
//
// Whatever precedes the oldest user or assistant message read is part of a step that was not read,
// so it is left out, unless it is a call that has no assistant message before it in its turn. A result
// whose call was not read is left out with it.
func (b *builder) join(ctx context.Context, w *window, entries []graph.Entry) error {
	steps := map[joint]*step{}
	byID := map[graph.Ref]*step{}
	calls := map[graph.Ref]*graph.ToolCall{}
	begin, err := b.begin(ctx, w, entries)
	if err != nil {
		return err
	}
	var list []*step
	add := func(s step) *step {
		list = append(list, &s)
		return &s
	}
	for _, e := range entries {
		if m := e.Message; m != nil && m.Seq >= begin {
			s := add(step{message: m, turn: m.Turn, step: m.Step, seq: m.Seq})
			if m.Role == "assistant" {
				byID[graph.Ref{Depth: m.Depth, ID: m.MessageID}] = s
				steps[joint{m.Turn, m.Step}] = s
			}
		} else if e.Call != nil {
			calls[e.Call.Ref()] = e.Call
		}
	}
	// place finds the step of a call or result that names no message.
	place := func(p graph.Position) *step {
		if p.Seq < begin {
			return nil
		}
		at := joint{p.Turn, p.Step}
		if steps[at] == nil {
			steps[at] = add(step{turn: p.Turn, step: p.Step, seq: p.Seq})
		}
		return steps[at]
	}

	results, err := b.resultsOf(ctx, entries, calls)
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch {
		case e.Call != nil:
			s := graph.Find(byID, graph.Ref{Depth: e.Call.Depth, ID: e.Call.MessageID})
			if s == nil {
				s = place(e.Call.Position)
			}
			if s != nil {
				s.calls = append(s.calls, call{*e.Call, results.of[e.Call.Ref()]})
			}
		case e.Result != nil && results.alone[e.Result.Ref()]:
			if s := place(e.Result.Position); s != nil {
				s.results = append(s.results, *e.Result)
			}
		}
	}
	for _, s := range list {
		w.steps = append(w.steps, s.parts()...)
	}
	slices.SortFunc(w.steps, func(a, b step) int { return cmp.Compare(a.seq, b.seq) })
	return nil
}

// parts divides a step without a message into its calls and its results without a call.
func (s *step) parts() []step {
	if s.message != nil {
		return []step{*s}
	}
	parts := make([]step, 0, len(s.calls)+len(s.results))
	for _, c := range s.calls {
		parts = append(parts, step{calls: []call{c}, turn: s.turn, step: s.step, seq: c.Seq})
	}
	for _, r := range s.results {
		parts = append(parts, step{results: []graph.ToolResult{r}, turn: s.turn, step: s.step, seq: r.Seq})
	}
	return parts
}

// begin returns the sequence from which the entries, oldest first, make whole steps.
func (b *builder) begin(ctx context.Context, w *window, entries []graph.Entry) (uint64, error) {
	if w.complete || len(entries) == 0 {
		return 0, nil
	}
	var turn joint // in which the entries begin, as of its first message
	list, err := b.src.Graph.Messages(ctx, b.req.Conversation, graph.MessageQuery{Role: "user", Before: entries[0].Position().Seq, Limit: 1})
	if err != nil {
		return 0, err
	}
	if len(list) > 0 {
		turn = joint{list[0].Turn, list[0].Step}
	}
	first := graph.Latest
	for _, e := range entries {
		switch {
		case e.Call != nil && e.Call.MessageID == "" && joint{e.Call.Turn, e.Call.Step} == turn, e.Message != nil && e.Message.Role != "system":
			return e.Position().Seq, nil
		case e.Message != nil:
			first = min(first, e.Message.Seq)
		}
	}
	return first, nil
}

// resultsOfCalls holds results by the ids of their calls.
type resultsOfCalls struct {
	of    map[graph.Ref]*graph.ToolResult
	alone map[graph.Ref]bool // results whose call was never recorded
}

// resultsOf finds the results of calls among the entries or, for a result that came before its
// call, further back. It also finds whether results without a call among the entries have one
// further back.
func (b *builder) resultsOf(ctx context.Context, entries []graph.Entry, calls map[graph.Ref]*graph.ToolCall) (resultsOfCalls, error) {
	out := resultsOfCalls{map[graph.Ref]*graph.ToolResult{}, map[graph.Ref]bool{}}
	var without, early []graph.Ref
	for _, e := range entries {
		if e.Result == nil {
			continue
		}
		out.of[e.Result.Ref()] = e.Result
		if calls[e.Result.Ref()] == nil {
			without = append(without, e.Result.Ref())
		}
	}
	for _, e := range entries {
		if e.Call != nil && out.of[e.Call.Ref()] == nil {
			early = append(early, e.Call.Ref())
		}
	}
	if len(early) > 0 {
		found, err := b.src.Graph.Results(ctx, b.req.Conversation, early, b.end-1)
		if err != nil {
			return out, err
		}
		for ref, r := range found {
			out.of[ref] = &r
		}
	}
	if len(without) > 0 {
		found, err := b.src.Graph.Calls(ctx, b.req.Conversation, without, b.end-1)
		if err != nil {
			return out, err
		}
		for _, ref := range without {
			_, has := found[ref]
			out.alone[ref] = !has
		}
	}
	return out, nil
}

// findCondensed reads a model's condensations of the results that were read.
func (b *builder) findCondensed(ctx context.Context, w *window) (err error) {
	if w.mode != CondenseLLM {
		return nil
	}
	var refs []graph.Ref
	for _, s := range w.steps {
		for _, c := range s.calls {
			if c.result != nil && w.isCondensed(c.result.Result, c.result.Seq) {
				refs = append(refs, c.result.Ref())
			}
		}
	}
	if len(refs) > 0 {
		w.condensed, err = b.src.Graph.Condensations(ctx, b.req.Conversation, refs, b.end-1)
	}
	return err
}

// spoken returns the share of messages in the text of the window, 1 if it has no text.
func (w *window) spoken() float64 {
	messages, all := 0, 0
	for _, s := range w.steps {
		if s.message != nil {
			messages += s.message.Content.Chars
		}
		for _, c := range s.calls {
			all += c.Arguments.Chars
			if c.result != nil {
				all += c.result.Result.Chars
			}
		}
	}
	if all += messages; all == 0 {
		return 1
	}
	return float64(messages) / float64(all)
}

// items shows a step, each text at most piece characters long. Turns are tried with several rooms,
// so items that look the same for any larger piece are made once.
func (b *builder) items(w *window, s *step, piece int) []Item {
	if piece < w.settled(s) {
		return b.itemsOf(w, s, piece)
	}
	if s.whole == nil {
		s.whole = b.itemsOf(w, s, piece)
	}
	return s.whole
}

// settled is the piece from which on a step looks the same.
func (w *window) settled(s *step) int {
	n := 0
	body := func(body graph.Body) {
		if n = max(n, 2*body.Chars); !body.Whole() {
			n = math.MaxInt
		}
	}
	result := func(r *graph.ToolResult) {
		if r == nil {
			return
		}
		if w.isCondensed(r.Result, r.Seq) {
			n = max(n, summary.CondensedChars)
		} else {
			body(r.Result)
		}
		n = max(n, len(r.Error))
	}
	if s.message != nil {
		body(s.message.Content)
	}
	for i := range s.calls {
		body(s.calls[i].Arguments)
		result(s.calls[i].result)
	}
	for i := range s.results {
		result(&s.results[i])
	}
	return n
}

func (b *builder) itemsOf(w *window, s *step, piece int) []Item {
	n := len(s.calls) + len(s.results)
	if s.message != nil {
		n++
	}
	items := slices.Grow([]Item(nil), n) // an item takes some hundred bytes
	if s.message != nil && !saysNothing(s.message) {
		items = append(items, b.messageItem(s.message, b.messageText(s.message, piece)))
	}
	for i := range s.calls {
		items = append(items, callItem(&s.calls[i], piece, w))
	}
	for i := range s.results {
		items = append(items, resultItem(&s.results[i], piece, w))
	}
	return items
}

// saysNothing reports whether a message is one in which the agent's program showed the model a context of mneme's: its text
// is not recorded.
func saysNothing(m *graph.Message) bool {
	return m.Role == "system" && m.Via != "" && m.Content.Chars == 0
}

// itemsWithin shows a step in room characters, with each text at most piece characters long, or
// shorter if need be. It returns nil if nothing fits.
func (b *builder) itemsWithin(w *window, s *step, piece, room int) []Item {
	for ; piece >= shortestPiece; piece /= 2 {
		if items := b.items(w, s, piece); cost(items) <= room {
			return items
		}
	}
	return nil
}

func cost(items []Item) int {
	n := 0
	for i := range items {
		n += items[i].takes()
	}
	return n
}
