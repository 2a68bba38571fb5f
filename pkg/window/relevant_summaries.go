package window

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/recall"
	"mneme.dev/mneme/pkg/summary"
)

// maxRanked is how many summaries are ranked by a query: the newest of the frontier, then the
// newest of the others.
const maxRanked = 64

// retold is a summary that matches the query.
type retold struct {
	item Item       // whole
	hit  recall.Hit // of its text, see storyText
	rank float64    // its score times its confidence: comparable with a message's
}

// storyText joins the parts of a summary, each after a newline.
func storyText(parts []summary.Part) string {
	var w strings.Builder
	for _, part := range parts {
		w.WriteString("\n" + part.Text)
	}
	return w.String()
}

// rankSummaries ranks summaries by their text as messages are ranked, best first.
func (b *builder) rankSummaries(ctx context.Context) (out []retold, err error) {
	if len(b.frontier) == 0 {
		return nil, nil
	}
	var newest []graph.Summary
	if slices.ContainsFunc(b.frontier, func(it Item) bool { return it.Summary.Level > 1 }) { // else all are on the frontier
		newest, err = b.src.Graph.Summaries(ctx, b.req.Conversation, graph.SummaryQuery{AsOf: b.end - 1, Limit: maxRanked})
		if err != nil {
			return nil, err
		}
	}
	list := slices.SortedFunc(slices.Values(b.frontier), func(a, b Item) int { return cmp.Compare(b.Seq, a.Seq) })
	for i := range newest {
		if !slices.ContainsFunc(list, func(it Item) bool { return it.Seq == newest[i].Seq }) {
			list = append(list, summaryItem(&newest[i]))
		}
	}
	list = list[:min(len(list), maxRanked)]
	texts := make([]string, len(list))
	for i := range list {
		texts[i] = storyText(list[i].Summary.Parts)
	}
	found := b.src.Recall.Rank(b.req.Conversation, recall.Query{Text: b.query(), AsOf: b.end - 1}, texts)
	hits := found.Hits
	most := max(bestBM25(b.past.Hits), b.past.Further.BM25)
	lexical := 1.0 // among few texts one is always the best, so compare with the best message
	if here := bestBM25(hits); here < most {
		lexical = here / most
	}
	best := 0.0
	if len(b.past.Hits) > 0 {
		best = b.past.Hits[0].Score
	}
	for _, h := range hits {
		meant := found.Model != "" && h.Cosine >= found.MinCosine
		worded := h.BM25 > 0 && h.BM25 >= most/2
		h.Parts = recall.Parts{Lexical: float64(lexical * h.Parts.Lexical), Dense: h.Parts.Dense}
		if h.Score = h.Parts.Sum(); h.Score <= 0 || !meant && !worded {
			continue // no better than a chance match
		}
		it := list[h.Seq-1]
		best = max(best, h.Score)
		out = append(out, retold{it, h, float64(h.Score * it.Summary.Confidence)})
	}
	for i := range out {
		h := &out[i].hit
		out[i].item.Match = &Match{
			Relevance: hundredth(h.Score / best), Confidence: out[i].item.Summary.Confidence, Score: h.Score, Parts: h.Parts, BM25: h.BM25, Cosine: h.Cosine,
		}
	}
	slices.SortStableFunc(out, func(a, b retold) int { return cmp.Compare(b.rank, a.rank) })
	return out, nil
}

func bestBM25(hits []recall.Hit) (most float64) {
	for i := range hits {
		most = max(most, hits[i].BM25)
	}
	return most
}

// above reports whether a summary ranks above a message. It compares only the part of the message's
// score that a summary can have too.
func (t *retold) above(c *candidate) bool {
	return t.rank > c.hit.Score-c.hit.Parts.Role-c.hit.Parts.Session
}

// notAbove counts the messages that a summary does not rank above.
func (t *retold) notAbove(list []candidate) (n int) {
	for i := range list {
		if !t.above(&list[i]) {
			n++
		}
	}
	return n
}

// within shows a summary in room characters: whole, or an excerpt around its best passage. It fails
// if hardly anything would fit.
func (t *retold) within(room int) (Item, bool) {
	it := t.item.measured()
	if it.Chars <= room {
		return it, true
	}
	var parts []summary.Part
	at := 0
	for _, part := range it.Summary.Parts {
		start := at + 1 // after the newline
		at = start + len(part.Text)
		if t.hit.Start >= at || t.hit.End <= start {
			continue
		}
		left := room - it.withParts(append(parts, summary.Part{Name: part.Name})).Chars
		if left < leastStory {
			break
		}
		text := excerptOf(graph.NewBody(part.Text), max(0, t.hit.Start-start), min(t.hit.End-start, len(part.Text)), left)
		parts = append(parts, summary.Part{Name: part.Name, Text: text})
	}
	it = it.withParts(parts)
	return it, len(parts) > 0 && it.Chars <= room
}

// addSummaries adds the summaries that rank with the messages shown in room characters, in the
// order of the log. A summary takes room that messages leave, or that of messages ranked below it.
// It is shown only if none of what it covers is already there or in the recent turns, if it splits
// no run of messages, and if the story so far does not contain it.
func (b *builder) addSummaries(ctx context.Context, f *filled, room int) error {
	ranked, err := b.rankSummaries(ctx)
	if err != nil || len(ranked) == 0 {
		return err
	}
	messages := shownOf(b.past.read, f.items)
	var chosen []Item
	for i := range ranked {
		t := &ranked[i]
		if reason := b.unfit(t.item, messages, chosen); reason != "" {
			b.leave(f, t.item, reason)
			continue
		}
		free := room - cost(f.items)
		for j := range messages {
			if t.above(&messages[j]) {
				free += messages[j].cost
			}
		}
		it, ok := t.within(min(max(b.past.excerpt, leastExcerpt), free))
		left, items := messages, f.items
		if ok && cost(items) > room-it.Chars {
			items = b.showRelevant(messages, room-it.Chars)
			left = shownOf(messages, items)
			ok = t.notAbove(left) == t.notAbove(messages)
		}
		if !ok {
			f.drop("summaries", 1, reasonBudget)
			b.leave(f, t.item, reasonBudget)
			continue
		}
		messages, f.items, chosen = left, items, append(chosen, it)
		room -= it.Chars
	}
	b.past.retold = len(chosen)
	slices.SortFunc(chosen, func(a, b Item) int { return cmp.Compare(a.Summary.FirstSeq, b.Summary.FirstSeq) })
	f.items = interleaved(f.items, chosen)
	return nil
}

// unfit returns why a summary is not shown together with messages and other summaries, "" if it may be.
func (b *builder) unfit(it Item, messages []candidate, others []Item) string {
	switch s := it.Summary; {
	case b.shown[it.Seq]:
		return "shown elsewhere"
	case s.LastSeq >= b.recent.rawFrom:
		return "shown raw"
	case covered(s, messages, others):
		return "what it covers is shown"
	case partsRun(s, messages):
		return "it would split adjacent messages"
	}
	return ""
}

// shownOf returns the candidates that items show.
func shownOf(list []candidate, items []Item) (out []candidate) {
	shown := map[uint64]bool{}
	for i := range items {
		shown[items[i].Seq] = true
	}
	for _, c := range list {
		if shown[c.message.Seq] {
			out = append(out, c)
		}
	}
	return out
}

// covered reports whether a summary covers any of the messages, or anything that another summary
// covers.
func covered(s *SummaryItem, messages []candidate, others []Item) bool {
	return slices.ContainsFunc(messages, func(c candidate) bool { return s.FirstSeq <= c.message.Seq && c.message.Seq <= s.LastSeq }) ||
		slices.ContainsFunc(others, func(o Item) bool { return s.FirstSeq <= o.Summary.LastSeq && o.Summary.FirstSeq <= s.LastSeq })
}

// partsRun reports whether a summary that covers none of the messages falls between two adjacent
// ones. Such a summary describes what tools did there.
func partsRun(s *SummaryItem, messages []candidate) bool {
	before, behind := math.MinInt, math.MaxInt // numbers of the messages next to it
	for i := range messages {
		if m := messages[i].message; m.Seq < s.FirstSeq {
			before = max(before, m.N)
		} else {
			behind = min(behind, m.N)
		}
	}
	return before == behind-1
}

// interleaved puts summaries among runs of messages in the order of the log: before the first run
// that begins after them.
func interleaved(messages, summaries []Item) (out []Item) {
	for _, it := range messages {
		for it.Label != "" && len(summaries) > 0 && summaries[0].Summary.FirstSeq < it.Seq {
			out, summaries = append(out, summaries[0]), summaries[1:]
		}
		out = append(out, it)
	}
	return append(out, summaries...)
}
