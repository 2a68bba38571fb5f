package window

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"mneme.dev/mneme/pkg/recall"
)

// Match says how well something fits what it was searched by.
type Match struct {
	Relevance  float64      `json:"relevance"`  // the score in relation to the best one's, 0 to 1
	Confidence float64      `json:"confidence"` // how sure an agent can be of what it reads: 1 for what was said
	Score      float64      `json:"score"`      // the sum of Parts; of code also of how lately it was touched
	Parts      recall.Parts `json:"parts"`
	BM25       float64      `json:"bm25"`   // of its best passage
	Cosine     float64      `json:"cosine"` // of its best passage; 0 without embeddings
}

// relevantItem shows a message that was found, under a label if it has one.
func (b *builder) relevantItem(c *candidate, label string) Item {
	m := c.message
	it := b.messageItem(m, c.text)
	it.Kind, it.Label = KindRelevant, label
	it.Match = b.past.match(c.hit)
	return it.measured()
}

func (f *Found) match(h recall.Hit) *Match { return match(h, f.Hits[0].Score) }

// match is how well a message fits where the best score is known.
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

// hundredth rounds to what a label shows.
func hundredth(v float64) float64 { return math.Round(100*v) / 100 }

// maxLabel is the most that a label takes, with the line end behind it.
func (b *builder) maxLabel() int {
	turns := 2 * length(itoa(b.conversation.TurnCount))
	return length("[Turns -, 0000-00-00, 100%]\n") + turns
}

// label stands above messages that follow each other: whose they are, from which day if
// that is another than above, and how relevant the best one is.
func (b *builder) label(run []candidate, day *string) string {
	first, last := run[0].message, run[len(run)-1].message
	text := "[Turn " + itoa(first.Turn)
	if last.Turn != first.Turn {
		text = "[Turns " + itoa(first.Turn) + "-" + itoa(last.Turn)
	}
	if d, _, ok := strings.Cut(first.Time, "T"); ok && d != *day {
		text, *day = text+", "+d, d
	}
	best := slices.MaxFunc(run, func(a, b candidate) int { return cmp.Compare(a.hit.Score, b.hit.Score) })
	return text + ", " + b.past.match(best.hit).percent() + "]"
}

// percent is the relevance as a label shows it.
func (m *Match) percent() string { return itoa(int(math.Round(100*m.Relevance))) + "%" }

// follows tells whether a message comes right behind another.
func (c *candidate) follows(o *candidate) bool { return c.message.N == o.message.N+1 }

// showRelevant shows the best candidates that fit into room characters.
func (b *builder) showRelevant(list []candidate, room int) (items []Item) {
	if len(list) == 0 {
		return nil
	}
	allowed := room
	for range labelRounds { // labels take less than they may
		more := b.relevantItems(b.chooseRelevant(list, allowed))
		if cost(more) > room {
			break
		}
		items, allowed = more, allowed+room-cost(more)
	}
	return items
}

// labelRounds is how often it is tried to fill what labels did not need.
const labelRounds = 3

// chooseRelevant takes the best candidates that fit into room characters, in the order of
// the log. One that does not fit does not keep a shorter one out.
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

// collectRelevant shows what was found before the recent turns and is not shown already:
// the best first while there is room, in the order of the log, and summaries among it.
func collectRelevant(ctx context.Context, b *builder, s section, room int) (f filled, err error) {
	if err := b.search(ctx); err != nil {
		return f, err
	}
	room -= headingCost(s.heading)
	if err := b.fillPast(ctx, b.rawFrom, room); err != nil || b.past == nil {
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
	return f, nil
}

// relevantItems shows what was chosen, in the order of the log, each run of messages that
// follow each other under a label.
func (b *builder) relevantItems(chosen []candidate) (items []Item) {
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

// turnsBeside is how much of a room the recent turns have if the relevant past and code
// get what they can use of it: their share at least. The past may use as much of it as
// messages make up of what was said and done of late (see pastShare), the code the rest: where tools do
// the work, what they showed is what is needed, and steps are long: there the turns have
// some more, so that what was said last is not cut. shown tells what the turns show in so
// much room.
func (b *builder) turnsBeside(ctx context.Context, s section, room int, shown func(room int) []Item) (int, error) {
	long := int((1 - b.spoken) * float64(min(longSteps, b.req.MaxChars/5)))
	turns := min(room, share(b.req.MaxChars, s.share)+reserveNewest(b)+long)
	for round := range besideRounds {
		items := shown(turns)
		before := b.rawBegins(items)
		forPast := int(float64(room-turns) * b.pastShare())
		if err := b.fillPast(ctx, before, forPast); err != nil {
			return room, err
		}
		need := 0
		if b.past != nil {
			need = sectionCost(relevant.heading, b.showRelevant(b.past.read, forPast-headingCost(relevant.heading)))
		}
		b.pastRoom = need
		if round == 0 { // with more turns there is hardly less of it
			if err := b.findCode(ctx, items); err != nil {
				return room, err
			}
		}
		own := needCode(b) // beside the room
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

// pastShare is the share of the relevant past in what it and the code divide.
func (b *builder) pastShare() float64 {
	if b.req.Query != "" {
		return max(b.spoken, askedPast)
	}
	return max(b.spoken, leastPast)
}

// The least that the past has: where tools do all the work, and if the request asks for
// something.
const (
	leastPast = 0.1
	askedPast = 0.5
)

// longSteps is how much more that is, in characters, where tools do all the work; at most
// a fifth of the budget.
const longSteps = 2_000

// besideRounds is how often the recent turns get what the past has no more need of, since
// they show it.
const besideRounds = 2
