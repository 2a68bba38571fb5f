package window

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"

	"mneme.dev/mneme/pkg/plain"
	"mneme.dev/mneme/pkg/recall"
	"mneme.dev/mneme/pkg/window/code"
)

// confidenceCode is how far an agent can rely on code that it saw: the code may have changed since.
const confidenceCode = 0.5

// codeItem shows a passage, not measured yet.
func codeItem(p *code.Passage, best float64) Item {
	return Item{
		Kind: KindCode, Turn: p.Turn, Seq: p.Seq, EventID: p.EventID, Path: p.Path, ToolName: p.Tool, StartLine: p.Start(), EndLine: p.End(), Text: p.Text(),
		Match: &Match{Relevance: relevance(p.Score, best), Confidence: confidenceCode, Score: p.Score, Parts: p.Said},
	}
}

// writeCode writes a passage as an indented block, below the name of its file if that differs from
// the last one.
func (it *Item) writeCode(w output) {
	if it.Label != "" {
		w.WriteString(it.Label + "\n\n")
	}
	if it.StartLine > 0 {
		w.WriteString("Lines " + strconv.Itoa(it.StartLine) + "-" + strconv.Itoa(it.EndLine))
	} else {
		w.WriteString("Turn " + strconv.Itoa(it.Turn))
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
	if b.conversation.ToolCallCount == 0 && b.src.Project == nil || b.src.Recall == nil || room < leastCode {
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
	b.src.Recall.KeepCode(b.req.Conversation, b.code.Kept())
	f.items, f.embedding = b.showCode(room-headingCost(s.heading)), b.code.model
	f.indexed = b.indexedManifest(f.items)
	f.drop("passages", len(b.code.Passages)-len(f.items), reasonBudget)
	for i := range b.code.Passages {
		it := codeItem(&b.code.Passages[i], b.code.Passages[0].Score)
		b.leave(&f, it.measured(), reasonBudget)
	}
	b.leaveScopes(&f)
	return f, nil
}

// leaveScopes notes the scopes of an index that are not shown as passages. It only counts those that are not among the
// best, because they were never read.
func (b *builder) leaveScopes(f *filled) {
	for i := range b.code.Left {
		left := &b.code.Left[i]
		it := codeItem(&left.Passage, 0)
		it.Match = nil // it was not ranked
		f.drop("scopes", 1, left.Reason)
		b.leave(f, it.measured(), left.Reason)
	}
	if x := b.code.indexed; x != nil {
		f.drop("scopes", x.Found-len(x.Scopes), fmt.Sprintf("not among the best %d of the index", code.MaxScopes))
	}
}

// findCode ranks the code that turns, the items of the recent turns, do not show.
func (b *builder) findCode(ctx context.Context, r *recent, turns []Item) (err error) {
	if needCode(b) == 0 || b.req.Strategy != StrategyHybrid || r.whole && b.src.Project == nil {
		return nil
	}
	if b.code == nil {
		b.code = &codeSearch{Search: code.New(code.Source{
			Graph: b.src.Graph, Conversation: b.req.Conversation, Cwd: b.conversation.Cwd, End: b.end, Excluded: b.excluded,
			Cost:      func(p *code.Passage) int { return codeItem(p, 0).measured().Chars },
			LabelCost: func(path string) int { return labelCost(codeLabel(path)) },
		}, b.src.Recall.SeenCode(b.req.Conversation))}
		if err := b.findIndexed(ctx); err != nil {
			return err
		}
	}
	beside := make([]shownItem, len(turns))
	for i := range turns {
		beside[i] = shownItem{turns[i].Seq, turns[i].Chars}
	}
	if b.code.beside != nil && slices.Equal(beside, b.code.beside) {
		return nil
	}
	b.code.beside = beside
	if err := b.code.Cut(ctx, shownTo(turns)); err != nil {
		return err
	}
	embed, model := b.src.Recall.Embedding()
	late := askedLate // the request's query need not be about the current work, nor use the words of the code
	if b.req.Query == "" {
		embed, late = nil, doneLate
	}
	if b.code.query == nil {
		b.code.query = b.codeQuery(r.steps, embed)
	}
	if b.code.model = ""; b.code.Rank(*b.code.query, embed, late) {
		b.code.model = model
	}
	return nil
}

// findIndexed searches the code of the project, in parallel with the first read of the code that tools showed.
func (b *builder) findIndexed(ctx context.Context) error {
	if b.src.Project == nil {
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		b.code.indexed, err = b.src.Project.Search(ctx, plain.Prefix(b.query(), maxCodeQuery), b.end-1)
		return err
	})
	group.Go(func() error { return b.code.Load(ctx) })
	if err := group.Wait(); err != nil {
		return err
	}
	if b.code.indexed != nil {
		b.code.SetIndexed(b.code.indexed)
	}
	return nil
}

// indexedManifest says what an index contributed.
func (b *builder) indexedManifest(shown []Item) *IndexedManifest {
	x := b.code.indexed
	if x == nil {
		return nil
	}
	m := &IndexedManifest{Project: x.Project, Root: x.Root, Seq: x.Seq, Found: x.Found, ByMeaning: x.ByMeaning}
	for i := range shown {
		if shown[i].ToolName == code.Tool {
			m.Shown++
		}
	}
	return m
}

// codeSearch is the search for relevant code, repeated when the recent turns show something else.
type codeSearch struct {
	*code.Search
	indexed *code.Indexed // nil if no index of the project counts
	query   *recall.Text  // the ranking query; nil until it is made
	model   string        // name of the embeddings used, "" for none
	beside  []shownItem   // what the recent turns show
}

// shownItem is an event in the recent turns. The more characters the turns have, the more of the event they show.
type shownItem struct {
	seq   uint64
	chars int
}

// shownTo tells the search for code what items show.
func shownTo(items []Item) []code.Shown {
	out := make([]code.Shown, len(items))
	for i := range items {
		it := &items[i]
		out[i] = code.Shown{
			Seq: it.Seq, Text: it.Text, Arguments: it.Arguments, Cut: it.WholeChars > 0,
			ResultSeq: it.ResultSeq, Result: it.Result, ResultCut: it.ResultWholeChars > 0,
		}
	}
	return out
}

// The weight of how recently code was touched, against how well it matches the query: without a
// query in the request, and with one.
const (
	doneLate  = 0.5
	askedLate = 0.1
)

// What code is ranked by without a query in the request.
const (
	codeQueryCalls = 20    // the last calls
	maxCodeQuery   = 1_000 // characters of the query, and approximately of what was said last
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
			query.Terms = append(query.Terms, b.code.Terms(&s.calls[j].ToolCall)...)
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
		items[i] = codeItem(p, b.code.Passages[0].Score)
		items[i].Chars = b.code.Cost(p)
		if i == 0 || list[i-1].Path != p.Path {
			items[i].Label = codeLabel(p.Path)
			items[i].Chars += labelCost(items[i].Label)
		}
	}
	return items
}

// fitCode chooses the best passages that fit into room characters. Files come in the order of their
// best passage, passages of a file in line order; chars is their cost.
func (b *builder) fitCode(room int) (list []*code.Passage, chars int) {
	if b.code == nil || len(b.code.Passages) == 0 {
		return nil, 0
	}
	allowed := room
	for range labelRounds { // adjacent passages take less together than each alone
		more, taken := b.code.Choose(allowed)
		if taken > room {
			break
		}
		list, chars, allowed = more, taken, allowed+room-taken
	}
	return list, chars
}
