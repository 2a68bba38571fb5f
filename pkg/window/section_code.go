package window

import (
	"cmp"
	"context"
	"slices"

	"mneme.dev/mneme/pkg/recall"
	"mneme.dev/mneme/pkg/window/plain"
)

// confidenceCode is how far an agent can rely on code that it saw: the code may have changed since.
const confidenceCode = 0.5

// codeItem shows a passage, not measured yet.
func codeItem(p *passage, best float64) Item {
	return Item{
		Kind: KindCode, Turn: p.turn, Seq: p.seq, EventID: p.eventID, Path: p.path, ToolName: p.tool, StartLine: p.start(), EndLine: p.end(), Text: p.text(),
		Match: &Match{Relevance: relevance(p.score, best), Confidence: confidenceCode, Score: p.score, Parts: p.said},
	}
}

// writeCode writes a passage as an indented block, below the name of its file if that differs from
// the last one.
func (it *Item) writeCode(w output) {
	if it.Label != "" {
		w.WriteString(it.Label + "\n\n")
	}
	if it.StartLine > 0 {
		w.WriteString("Lines " + itoa(it.StartLine) + "-" + itoa(it.EndLine))
	} else {
		w.WriteString("Turn " + itoa(it.Turn))
	}
	w.WriteString(" (via " + plain.Line(it.ToolName) + "):\n\t")
	writeText(w, it.Text)
}

// codeLabel names the file of the following passages.
func codeLabel(path string) string { return "### " + plain.Line(path) }

// labelCost is the cost of a label above a passage in the Markdown.
func labelCost(label string) int { return plain.Length(label) + 2 }

// needCode returns the section's share if a tool was ever called and some lines fit.
func needCode(b *builder) int {
	room := share(b.req.MaxChars, codeShare)
	if b.conversation.ToolCallCount == 0 || b.src.Recall == nil || room < leastCode {
		return 0
	}
	return room
}

// codeShare is the smallest share of the relevant code, in percent of the budget. If that is less
// than leastCode characters, the section is left out.
const (
	codeShare = 10
	leastCode = 300
)

// collectCode shows pieces of files that tools showed or wrote and the recent turns do not show:
// the most relevant ones while there is room, by file.
func collectCode(ctx context.Context, b *builder, s section, room int) (f filled, err error) {
	if err := b.findCode(ctx, &b.recent, b.recent.items); err != nil || b.code == nil {
		return f, err
	}
	f.items, f.embedding = b.showCode(room-headingCost(s.heading)), b.code.model
	f.drop("passages", len(b.code.passages)-len(f.items), reasonBudget)
	return f, nil
}

// findCode ranks the code that turns, items of the recent turns, do not show.
func (b *builder) findCode(ctx context.Context, r *recent, turns []Item) (err error) {
	if needCode(b) == 0 || b.req.Strategy != StrategyHybrid || r.whole {
		return nil
	}
	if b.code == nil {
		b.code = &code{ranked: map[span]rankedText{}, joined: map[span]int{}}
		b.code.seen = b.src.Recall.SeenCode(b.req.Conversation).upTo(b.end, b.conversation.Cwd)
	}
	beside := make([]shownItem, len(turns))
	for i := range turns {
		beside[i] = shownItem{turns[i].Seq, turns[i].Chars}
	}
	if b.code.beside != nil && slices.Equal(beside, b.code.beside) {
		return nil
	}
	b.code.beside = beside
	if err := b.cutCode(ctx, turns); err != nil {
		return err
	}
	embed, model := b.src.Recall.Embedding()
	late := askedLate // it need not be about the current work, nor use the words of the code
	if b.req.Query == "" {
		embed, late = nil, doneLate
	}
	if b.code.query == nil {
		b.code.query = b.codeQuery(r.steps, embed)
	}
	if b.code.model = ""; b.code.rank(embed, late) {
		b.code.model = model
	}
	b.src.Recall.KeepCode(b.req.Conversation, b.code.kept())
	return nil
}

// The weight of how recently code was touched, against how well it matches the query: without a
// query in the request, and with one.
const (
	doneLate  = 0.5
	askedLate = 0.1
)

// codeQuery returns the request's query. Without one, it is the newest user message, what was said
// since, and the subject of the last calls.
func (b *builder) codeQuery(steps []step, embed func(text string) recall.Vector) *recall.Text {
	asked := plain.Prefix(b.query(), maxCodeQuery)
	query := recall.NewText(asked)
	if embed != nil {
		query.Vector = embed(asked)
	}
	if b.req.Query != "" {
		return &query
	}
	calls, said := 0, 0 // characters of said
	for i := len(steps) - 1; i >= 0 && calls < codeQueryCalls; i-- {
		s := &steps[i]
		for j := len(s.calls) - 1; j >= 0 && calls < codeQueryCalls; j-- {
			query.Terms = append(query.Terms, b.code.asked(&s.calls[j].ToolCall)...)
			calls++
		}
		if s.message != nil && said < maxCodeQuery {
			query.Terms = append(query.Terms, recall.NewText(plain.Prefix(s.message.Content.Text, maxCodeQuery)).Terms...)
			said += s.message.Content.Chars
		}
	}
	return &query
}

// showCode shows what fitCode chose.
func (b *builder) showCode(room int) []Item {
	list, _ := b.fitCode(room)
	items := make([]Item, len(list))
	for i, p := range list {
		items[i] = codeItem(p, b.code.passages[0].score)
		items[i].Chars = b.code.costOf(p)
		if i == 0 || list[i-1].path != p.path {
			items[i].Label = codeLabel(p.path)
			items[i].Chars += labelCost(items[i].Label)
		}
	}
	return items
}

// fitCode chooses the best passages that fit into room characters. Files come in the order of their
// best passage, passages of a file in line order; chars is their cost.
func (b *builder) fitCode(room int) (list []*passage, chars int) {
	if b.code == nil || len(b.code.passages) == 0 {
		return nil, 0
	}
	allowed := room
	for range labelRounds { // adjacent passages take less together than each alone
		more, taken := b.code.choose(allowed)
		if taken > room {
			break
		}
		list, chars, allowed = more, taken, allowed+room-taken
	}
	return list, chars
}

// choose takes the best passages that each fit into the remaining room, and joins adjacent ones.
func (c *code) choose(room int) (list []*passage, chars int) {
	place := map[string]int{}
	var chosen []*passage
	for i := range c.passages {
		p := &c.passages[i]
		need := p.cost
		if _, ok := place[p.path]; !ok {
			need += labelCost(codeLabel(p.path))
		}
		if need > room {
			continue
		}
		room -= need
		chosen = append(chosen, p)
		if _, ok := place[p.path]; !ok {
			place[p.path] = len(place)
		}
	}
	for _, p := range chosen {
		p.place = place[p.path]
	}
	slices.SortStableFunc(chosen, func(a, b *passage) int {
		return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.start(), b.start()), cmp.Compare(a.seq, b.seq), cmp.Compare(a.from, b.from))
	})
	list = joined(chosen)
	for i, p := range list {
		if chars += c.costOf(p); i == 0 || list[i-1].path != p.path {
			chars += labelCost(codeLabel(p.path))
		}
	}
	return list, chars
}

// joined merges passages that are adjacent in what one call showed.
func joined(list []*passage) (out []*passage) {
	for _, p := range list {
		if n := len(out) - 1; n >= 0 && out[n].seq == p.seq && out[n].path == p.path && out[n].to == p.from {
			whole := *out[n]
			whole.to, whole.score, whole.cost = p.to, max(whole.score, p.score), 0
			out[n] = &whole
			continue
		}
		out = append(out, p)
	}
	return out
}
