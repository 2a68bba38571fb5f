package window

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	"mneme.dev/mneme/pkg/plain"
	"mneme.dev/mneme/pkg/recall"
)

// Match says how well something matches the query.
type Match struct {
	Relevance  float64      `json:"relevance"`  // the score relative to the best one's, 0 to 1
	Confidence float64      `json:"confidence"` // how far an agent can rely on it: 1 for what was said
	Score      float64      `json:"score"`      // the sum of Parts; for code, also of how recently it was touched
	Parts      recall.Parts `json:"parts"`
	BM25       float64      `json:"bm25"`   // of its best passage
	Cosine     float64      `json:"cosine"` // of its best passage; 0 without embeddings
	// Rerank is what the order of a reranker adds to the sum of Parts; absent if it adds nothing.
	Rerank float64 `json:"rerank,omitempty"`
}

// relevantItem shows a message that was found, under a label if it has one.
func (b *builder) relevantItem(c *candidate, label string) Item {
	m := c.message
	it := b.messageItem(m, c.text)
	it.Kind, it.Label = KindRelevant, label
	it.Match = b.past.match(c.hit)
	return it.measured()
}

func (f *Found) match(h recall.Hit) *Match {
	m := match(h, f.Hits[0].Score)
	if f.Reranked != nil {
		m.Rerank = h.Score - h.Parts.Sum()
	}
	return m
}

// match says how well a message matches, once the best score is known.
func match(h recall.Hit, best float64) *Match {
	return &Match{
		Relevance: relevance(h.Score, best), Confidence: confidenceL0, Score: h.Score, Parts: h.Parts, BM25: h.BM25, Cosine: h.Cosine,
	}
}

func relevance(score, best float64) float64 {
	if best <= 0 {
		return 0
	}
	return hundredth(max(0, score/best))
}

// hundredth rounds to the precision of a label.
func hundredth(v float64) float64 { return math.Round(100*v) / 100 }

// maxLabel is the longest label, with its line end.
func (b *builder) maxLabel() int {
	turns := 2 * plain.Length(strconv.Itoa(b.conversation.TurnCount))
	return plain.Length("[Turns -, 0000-00-00, 100%]\n") + turns
}

// label precedes adjacent messages. It has their turns, their day if it differs from the previous
// label's, and the relevance of the best one.
func (b *builder) label(run []candidate, day *string) string {
	first, last := run[0].message, run[len(run)-1].message
	text := "[Turn " + strconv.Itoa(first.Turn)
	if last.Turn != first.Turn {
		text = "[Turns " + strconv.Itoa(first.Turn) + "-" + strconv.Itoa(last.Turn)
	}
	if d, _, ok := strings.Cut(first.Time, "T"); ok && d != *day {
		text, *day = text+", "+d, d
	}
	best := slices.MaxFunc(run, func(a, b candidate) int { return cmp.Compare(a.hit.Score, b.hit.Score) })
	return text + ", " + b.past.match(best.hit).percent() + "]"
}

// percent is the relevance as a label shows it.
func (m *Match) percent() string { return strconv.Itoa(int(math.Round(100*m.Relevance))) + "%" }

// follows reports whether a message comes right after another one.
func (c *candidate) follows(o *candidate) bool { return c.message.N == o.message.N+1 }

// showRelevant shows the best candidates that fit into room characters.
func (b *builder) showRelevant(list []candidate, room int) (items []Item) {
	if len(list) == 0 {
		return nil
	}
	allowed := room
	for range labelRounds { // a choice sets aside room for the longest labels
		more := b.relevantItems(b.chooseRelevant(list, allowed))
		if cost(more) > room {
			break
		}
		items, allowed = more, allowed+room-cost(more)
	}
	return items
}

// labelRounds is how many times the candidates are chosen: each time after the first with the room that
// shorter labels left.
const labelRounds = 3

// chooseRelevant takes the best candidates that fit into room characters, in the order of the log.
// A candidate that is too long does not keep out a shorter one.
func (b *builder) chooseRelevant(list []candidate, room int) []candidate {
	label := b.maxLabel()
	chosen := map[int]*candidate{} // by the number of the message
	for i := range list {
		c := &list[i]
		n := c.message.N
		need := c.cost
		switch before, after := chosen[n-1] != nil, chosen[n+1] != nil; {
		case before && after: // two runs become one
			need -= label
		case !before && !after:
			need += label
		}
		if need > room {
			continue
		}
		room -= need
		chosen[n] = c
	}
	out := make([]candidate, 0, len(chosen))
	for _, c := range chosen {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b candidate) int { return cmp.Compare(a.message.N, b.message.N) })
	return out
}

// collectRelevant shows what was found before the recent turns and is not shown already: the best
// first while there is room, in the order of the log, with summaries among it.
func collectRelevant(ctx context.Context, b *builder, s section, room int) (f filled, err error) {
	if err := b.search(ctx); err != nil {
		return f, err
	}
	room -= headingCost(s.heading)
	if err := b.fillPast(ctx, b.recent.rawFrom, room); err != nil || b.past == nil {
		return f, err
	}
	f.items = b.showRelevant(b.past.read, room)
	if err := b.addSummaries(ctx, &f, room); err != nil {
		return f, err
	}
	left := len(b.past.read) + b.past.left()
	for i := range f.items {
		if f.items[i].Kind == KindRelevant {
			left--
		}
	}
	f.drop("messages", left, reasonBudget)
	return f, b.leaveHits(ctx, &f)
}

// leaveHits notes the best hits that are not shown.
func (b *builder) leaveHits(ctx context.Context, f *filled) error {
	if !b.req.Candidates || len(b.past.Hits) == 0 {
		return nil
	}
	list := b.past.read
	if free := maxLeft - len(list); free > 0 {
		hits, err := b.nextHits(ctx, free)
		if err != nil {
			return err
		}
		more, err := readHits(ctx, b.src.Graph, b.req.Conversation, hits, max(b.past.excerpt, leastExcerpt), nil)
		if err != nil {
			return err
		}
		list = append(slices.Clip(list), more...)
	}
	for i := range list {
		b.leave(f, b.relevantItem(&list[i], ""), reasonBudget)
	}
	return nil
}

// relevantItems shows the chosen messages in the order of the log, with a label above each run of
// adjacent ones.
func (b *builder) relevantItems(chosen []candidate) (items []Item) {
	items = slices.Grow(items, len(chosen))
	day := ""
	for len(chosen) > 0 {
		n := 1
		for n < len(chosen) && chosen[n].follows(&chosen[n-1]) {
			n++
		}
		run := chosen[:n]
		above := b.label(run, &day)
		for i := range run {
			items = append(items, b.relevantItem(&run[i], above))
			above = ""
		}
		chosen = chosen[n:]
	}
	return items
}

// turnsBeside returns how much of a room the recent turns get after the relevant past and code take
// what they can use; never less than their share. The past may use a part proportional to the
// messages in recent work (see pastShare), the code the rest. Where tools do most of the work,
// their output is what the agent needs, and steps are long: the turns then get some more, so that
// what was said last is not cut. shown says what the turns show in a given room.
func (b *builder) turnsBeside(ctx context.Context, s section, room int, r *recent, shown func(room int) []Item) (int, error) {
	long := int((1 - r.spoken) * float64(min(longSteps, b.req.MaxChars/5)))
	turns := min(room, share(b.req.MaxChars, s.share)+reserveNewest(b)+long+r.awaited)
	for round := range besideRounds {
		items := shown(turns)
		before := b.rawBegins(items)
		forPast := int(float64(room-turns) * b.pastShare(r))
		if err := b.fillPast(ctx, before, forPast); err != nil {
			return room, err
		}
		need := 0
		if b.past != nil {
			need = sectionCost(relevant.heading, b.showRelevant(b.past.read, forPast-headingCost(relevant.heading)))
		}
		b.pastRoom = need
		if round == 0 { // more turns hardly change which code is left to show
			if err := b.findCode(ctx, r, items); err != nil {
				return room, err
			}
		}
		own := needCode(b) // in addition to the room
		if b.code == nil {
			own = 0
		}
		_, code := b.fitCode(room - turns - forPast + own - headingCost(relevantCode.heading))
		if code > 0 {
			code += headingCost(relevantCode.heading)
		}
		need += max(0, code-own)
		if room-need <= turns {
			break
		}
		turns = room - need
	}
	return turns, nil
}

// pastShare is the past's part of the room that it shares with the code.
func (b *builder) pastShare(r *recent) float64 {
	if b.req.Query != "" {
		return max(r.spoken, askedPast)
	}
	return max(r.spoken, leastPast)
}

// The smallest share of the past: if tools do all the work, and if the request has a query.
const (
	leastPast = 0.1
	askedPast = 0.5
)

// longSteps is the extra room, in characters, where tools do all the work; at most a fifth of the
// budget.
const longSteps = 2_000

// besideRounds is how often the recent turns get room that the past no longer needs because they
// now show its messages.
const besideRounds = 2
