package window

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/plain"
	"mneme.dev/mneme/pkg/summary"
)

// How far an agent can rely on what it reads: on the messages themselves, on their summaries, on
// summaries of summaries.
const (
	confidenceL0 = 1.0
	confidenceL1 = 0.7
	confidenceL2 = 0.5 // and above
)

// maxFrontier is how many summaries are read: on each level as many as make up a threshold, and the
// last one.
const maxFrontier = 500

// findFrontier reads the summaries that no other summary consolidates, oldest range first.
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

// wantStory returns what the whole frontier costs, with its heading.
func wantStory(b *builder, heading string) int {
	if len(b.frontier) == 0 {
		return 0
	}
	return headingCost(heading) + cost(b.frontier)
}

// collectStory shows what came before the recent turns: the frontier, oldest first. If it exceeds
// its room, the highest level goes first, then the newest; the first summary that does not fit is
// cut.
func collectStory(_ context.Context, b *builder, s section, room int) (f filled, err error) {
	list := b.before(b.recent.rawFrom)
	f.drop("summaries", len(b.frontier)-len(list), "shown raw")
	f.items = storyWithin(list, room-headingCost(s.heading))
	f.drop("summaries", len(list)-len(f.items), reasonBudget)
	f.dropParts(list)
	for _, it := range slices.Backward(b.frontier) {
		if it.Summary.FirstSeq >= b.recent.rawFrom {
			b.leave(&f, it, "shown raw")
		} else {
			b.leave(&f, it, reasonBudget)
		}
	}
	return f, nil
}

// dropParts notes which parts of the shown summaries are missing or cut.
func (f *filled) dropParts(list []Item) {
	whole := map[string][]summary.Part{}
	for _, it := range list {
		whole[it.EventID] = it.Summary.Parts
	}
	for _, it := range f.items {
		if it.Summary == nil || it.WholeChars == 0 {
			continue
		}
		for i, part := range whole[it.EventID] {
			if i >= len(it.Summary.Parts) || it.Summary.Parts[i] != part {
				f.drop("parts of summaries", 1, reasonBudget)
			}
		}
	}
}

// before returns the summaries that cover something below a sequence.
func (b *builder) before(seq uint64) (list []Item) {
	for _, it := range b.frontier {
		if it.Summary.FirstSeq < seq {
			list = append(list, it)
		}
	}
	return list
}

// storyWithin chooses the summaries that fit in room characters and keeps their order. It shortens
// at most one of them.
func storyWithin(list []Item, room int) (items []Item) {
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(list[b].Summary.Level, list[a].Summary.Level), cmp.Compare(b, a))
	})
	chosen := map[int]Item{}
	for _, i := range order {
		if list[i].Chars > room {
			if short, ok := shortSummary(list[i], room); ok {
				chosen[i] = short
			}
			break
		}
		room -= list[i].Chars
		chosen[i] = list[i]
	}
	for i := range list {
		if it, ok := chosen[i]; ok {
			items = append(items, it)
		}
	}
	return items
}

// The fewest characters worth showing of a summary's first part, and of any other.
const (
	leastStory = 60
	leastPart  = 20
)

// shortSummary shows the beginning of a summary in room characters: its parts in order while they
// fit, then the beginning of the next one. It fails if little more than the line above them would
// fit.
func shortSummary(it Item, room int) (Item, bool) {
	whole := it.Summary
	for n := len(whole.Parts) - 1; n >= 0; n-- {
		parts := whole.Parts[:n:n]
		left := room - it.withParts(append(parts, summary.Part{Name: whole.Parts[n].Name})).Chars - plain.Length(cutMark)
		if left >= leastStory || n > 0 && left >= leastPart {
			return it.withParts(append(parts, summary.Part{Name: whole.Parts[n].Name, Text: wholeWords(fitting(whole.Parts[n].Text, left)) + cutMark})), true
		}
		if shown := it.withParts(parts); n > 0 && shown.Chars <= room {
			return shown, true
		}
	}
	return it, false
}

// withParts returns the item of a summary with other parts.
func (it Item) withParts(parts []summary.Part) Item {
	short := *it.Summary
	short.Parts = parts
	it.Summary, it.WholeChars = &short, it.Chars
	return it.measured()
}

// cutMark ends a part that was cut.
const cutMark = " […]"

// wholeWords cuts a text at the end of a word, if one is near.
func wholeWords(text string) string {
	if i := strings.LastIndexAny(text, " \n"); i > len(text)-40 && i > 0 {
		text = text[:i]
	}
	return strings.TrimRight(text, " \n")
}

// maxPart limits one part of a summary as shown. Summaries that mneme writes stay below it.
const maxPart = summary.MaxText

// summaryItem shows a summary.
func summaryItem(s *graph.Summary) Item {
	parts := summary.Parts(s.Conversation, s.Actions, s.Findings, s.Topics, s.Files, s.Tools)
	for i := range parts {
		parts[i].Text = plain.Clip(plain.Text(parts[i].Text), maxPart)
	}
	confidence := confidenceL1
	if s.Level > 1 {
		confidence = confidenceL2
	}
	source := s.Source
	if source == summary.Source {
		source = ""
	}
	return Item{
		Kind: KindSummary, Turn: s.FirstTurn, Step: 0, Seq: s.Seq, EventID: s.EventID,
		Summary: &SummaryItem{
			SummaryID: s.SummaryID, Level: s.Level, FirstSeq: s.FirstSeq, LastSeq: s.LastSeq, FirstTurn: s.FirstTurn, LastTurn: s.LastTurn, Confidence: confidence, Source: source, Parts: parts,
		},
	}.measured()
}

// SummaryItem is a summary as a section shows it.
type SummaryItem struct {
	SummaryID string `json:"summary_id"`
	// Source is the event's source if another program than the summarizer wrote it.
	Source     string         `json:"source,omitempty"`
	Level      int            `json:"level"`
	FirstSeq   uint64         `json:"first_seq"`
	LastSeq    uint64         `json:"last_seq"`
	FirstTurn  int            `json:"first_turn"`
	LastTurn   int            `json:"last_turn"`
	Confidence float64        `json:"confidence"`
	Parts      []summary.Part `json:"parts"`
}

// write writes a summary under a line with its range and, if a search found it, its relevance.
func (s *SummaryItem) write(w output, match *Match) {
	w.WriteString("[" + s.turns() + ", level " + strconv.Itoa(s.Level))
	if match != nil {
		w.WriteString(", " + match.percent())
	}
	w.WriteString(", confidence: " + decimal(s.Confidence) + "]")
	for _, part := range s.Parts {
		w.WriteString("\n**" + part.Name + "**: ")
		writeText(w, part.Text)
	}
}

func (s *SummaryItem) turns() string {
	if s.FirstTurn >= s.LastTurn {
		return "Turn " + strconv.Itoa(s.LastTurn)
	}
	return "Turns " + strconv.Itoa(s.FirstTurn) + "-" + strconv.Itoa(s.LastTurn)
}
