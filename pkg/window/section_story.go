package window

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"mneme/pkg/graph"
	"mneme/pkg/summary"
)

// How sure an agent can be of what it reads: of the messages themselves, of their
// summaries, of summaries of summaries.
const (
	confidenceL1 = 0.7
	confidenceL2 = 0.5 // and above
)

// maxFrontier is how many summaries are looked at: of each level those that make up a
// threshold, and the last one.
const maxFrontier = 500

// findFrontier reads the summaries that no other one consolidates, oldest range first.
func (b *builder) findFrontier(ctx context.Context) error {
	list, err := b.src.Graph.Summaries(ctx, b.req.Conversation, graph.SummaryQuery{AsOf: b.end - 1, Frontier: true, Limit: maxFrontier})
	if err != nil {
		return err
	}
	slices.SortFunc(list, func(a, b graph.Summary) int { return cmp.Compare(a.FirstSeq, b.FirstSeq) })
	for i := range list {
		b.frontier = append(b.frontier, summaryItem(&list[i]))
	}
	return nil
}

// wantStory is what the whole frontier takes.
func wantStory(b *builder, heading string) int {
	if len(b.frontier) == 0 {
		return 0
	}
	return headingCost(heading) + cost(b.frontier)
}

// collectStory tells what came before the recent turns: the frontier, oldest first. Over
// its room the highest level goes first, then the newest.
func collectStory(_ context.Context, b *builder, s section, room int) (f filled, err error) {
	list := b.before(b.rawFrom)
	f.drop("summaries", len(b.frontier)-len(list), "shown raw")
	f.items = storyWithin(list, room-headingCost(s.heading))
	f.drop("summaries", len(list)-len(f.items), reasonBudget)
	return f, nil
}

// before are the summaries that cover something below a sequence.
func (b *builder) before(seq uint64) (list []Item) {
	for _, it := range b.frontier {
		if it.Summary.FirstSeq < seq {
			list = append(list, it)
		}
	}
	return list
}

// storyWithin chooses from summaries what fits in room characters, and leaves it in its
// order.
func storyWithin(list []Item, room int) []Item {
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(list[b].Summary.Level, list[a].Summary.Level), cmp.Compare(b, a))
	})
	var chosen []int
	for _, i := range order {
		if list[i].Chars > room {
			break
		}
		room -= list[i].Chars
		chosen = append(chosen, i)
	}
	slices.Sort(chosen)
	var items []Item
	for _, i := range chosen {
		items = append(items, list[i])
	}
	return items
}

// maxPart is how much of one part of a summary is shown. Those that mneme writes are
// shorter.
const maxPart = summary.MaxText

// summaryItem shows a summary.
func summaryItem(s *graph.Summary) Item {
	parts := summary.Parts(s.Conversation, s.Actions, s.Findings, s.Topics, s.Files, s.Tools)
	for i := range parts {
		parts[i].Text = clip(plain(parts[i].Text), maxPart)
	}
	confidence := confidenceL1
	if s.Level > 1 {
		confidence = confidenceL2
	}
	return Item{
		Kind: KindSummary, Turn: s.FirstTurn, Step: 0, Seq: s.Seq, EventID: s.EventID,
		Summary: &SummaryItem{
			SummaryID: s.SummaryID, Level: s.Level, FirstSeq: s.FirstSeq, LastSeq: s.LastSeq, FirstTurn: s.FirstTurn, LastTurn: s.LastTurn, Confidence: confidence, Parts: parts,
		},
	}.measured()
}

// SummaryItem is a summary as a section shows it.
type SummaryItem struct {
	SummaryID  string         `json:"summary_id"`
	Level      int            `json:"level"`
	FirstSeq   uint64         `json:"first_seq"`
	LastSeq    uint64         `json:"last_seq"`
	FirstTurn  int            `json:"first_turn"`
	LastTurn   int            `json:"last_turn"`
	Confidence float64        `json:"confidence"`
	Parts      []summary.Part `json:"parts"`
}

// write writes a summary under a line that says what it covers.
func (s *SummaryItem) write(w *strings.Builder) {
	w.WriteString("[" + s.turns() + ", level " + itoa(s.Level) + ", confidence: " + decimal(s.Confidence) + "]")
	for _, part := range s.Parts {
		w.WriteString("\n**" + part.Name + "**: ")
		writeText(w, part.Text)
	}
}

func (s *SummaryItem) turns() string {
	if s.FirstTurn >= s.LastTurn {
		return "Turn " + itoa(s.LastTurn)
	}
	return "Turns " + itoa(s.FirstTurn) + "-" + itoa(s.LastTurn)
}
