package window

import (
	"context"
	"slices"

	"mneme.dev/mneme/pkg/plain"
)

// Candidate is something that a section considered and left out.
type Candidate struct {
	Kind      string `json:"kind"` // as in Item
	Turn      int    `json:"turn"`
	Step      int    `json:"step"`
	Seq       uint64 `json:"seq"`
	EventID   string `json:"event_id,omitempty"`
	MessageID string `json:"message_id,omitempty"`
	Role      string `json:"role,omitempty"`
	ToolName  string `json:"tool_name,omitempty"`
	SummaryID string `json:"summary_id,omitempty"`
	Level     int    `json:"level,omitempty"` // of a summary
	Path      string `json:"path,omitempty"`
	StartLine int    `json:"start_line,omitempty"` // of a piece of a file; absent if unknown
	EndLine   int    `json:"end_line,omitempty"`

	Text   string `json:"text"`            // the beginning of what would be shown, on one line
	Chars  int    `json:"chars"`           // what it would take, without a label
	Match  *Match `json:"match,omitempty"` // of anything found by search
	Reason string `json:"reason"`
	// FitsAt is the smallest tried budget with which the same request shows it in some section; absent if no tried
	// budget does.
	FitsAt int `json:"fits_at,omitempty"`
}

const (
	maxCandidates    = 50                // of a section
	maxLeft          = 4 * maxCandidates // candidates to note, before dropping those that another section shows
	maxCandidateText = 160               // characters of a candidate's text
)

// leave notes an item that a section considered, if the request asks for candidates. Those that are
// shown after all are dropped at the end.
func (b *builder) leave(f *filled, it Item, reason string) {
	if !b.req.Candidates || len(f.candidates) >= maxLeft || it.Kind == KindLeftOut {
		return
	}
	c := Candidate{
		Kind: it.Kind, Turn: it.Turn, Step: it.Step, Seq: it.Seq, EventID: it.EventID, MessageID: it.MessageID, Role: it.Role, ToolName: it.ToolName,
		Path: it.Path, StartLine: it.StartLine, EndLine: it.EndLine, Chars: it.takes(), Match: it.Match, Reason: reason,
	}
	text := it.Text
	switch {
	case it.Summary != nil:
		c.SummaryID, c.Level = it.Summary.SummaryID, it.Summary.Level
		text = storyText(it.Summary.Parts)
	case it.Kind == KindToolCall:
		text = it.Arguments
	case it.Kind == KindToolResult:
		text = *it.Result
	}
	c.Text = plain.Clip(plain.Flat(text), maxCandidateText)
	f.candidates = append(f.candidates, c)
}

// keepLeftOut drops the candidates that some section shows, and those beyond the limit.
func (c *Context) keepLeftOut() {
	for i := range c.Manifest.Sections {
		s := &c.Manifest.Sections[i]
		s.Candidates = slices.DeleteFunc(s.Candidates, c.shows)
		s.Candidates = s.Candidates[:min(len(s.Candidates), maxCandidates)]
	}
}

// shows reports whether any section shows a candidate.
func (c *Context) shows(left Candidate) bool {
	return slices.ContainsFunc(c.Sections, func(s Section) bool {
		return slices.ContainsFunc(s.Items, func(it Item) bool { return it.shows(&left) })
	})
}

// shows reports whether an item shows a candidate. Recent turns show the code of their calls.
func (it *Item) shows(c *Candidate) bool {
	switch {
	case it.Kind == KindFile || c.Kind == KindFile:
		return it.Kind == c.Kind && it.Path == c.Path
	case it.Kind == KindCode && c.Kind == KindCode:
		return it.Seq == c.Seq && it.Path == c.Path && it.StartLine <= c.StartLine && c.EndLine <= it.EndLine
	case it.Kind == KindCode:
		return false // a piece of a result is not the call
	}
	return it.Seq != 0 && it.Seq == c.Seq
}

// follow finds the section that shows an event.
func (c *Context) follow(seq uint64) {
	if seq > 0 {
		c.Manifest.Followed = &FollowedEvent{Seq: seq, Section: c.showing(seq)}
	}
}

// showing returns the first section that shows an event, or a piece of it, "" if none does.
func (c *Context) showing(seq uint64) string {
	for _, s := range c.Sections {
		if slices.ContainsFunc(s.Items, func(it Item) bool { return it.Seq == seq || it.ResultSeq == seq }) {
			return s.Name
		}
	}
	return ""
}

// growth lists the budgets that are tried, in percent of the request's.
var growth = []int{105, 110, 120, 135, 150, 175, 200, 250, 300, 400, 600, 800}

// maxTried bounds the characters of the contexts that are built to try budgets.
const maxTried = 4_000_000

// tryBudgets finds out with which larger budgets the candidates are shown. It builds the context with each, because a
// budget moves the limits between sections: no shortcut is certain.
func (c *Context) tryBudgets(ctx context.Context, src Source, req Request, g *gathered) error {
	req.Candidates = false
	if s := c.Manifest.Search; s != nil && s.Reranked != nil {
		req.Rerank = Reranking{Order: s.Reranked.Order} // all budgets use the same order
	}
	left := 0 // candidates that none of the budgets tried so far would show
	for i := range c.Manifest.Sections {
		left += len(c.Manifest.Sections[i].Candidates)
	}
	followed := c.Manifest.Followed
	if followed != nil && followed.Section == "" {
		left++
	}
	asked, room := req.MaxChars, maxTried
	for _, percent := range growth {
		req.MaxChars = asked * percent / 100
		if room -= req.MaxChars; left == 0 || room < 0 || req.MaxChars > MaxMaxChars {
			return nil
		}
		larger, err := build(ctx, src, req, g)
		if err != nil {
			return err
		}
		c.Manifest.Tried = append(c.Manifest.Tried, req.MaxChars)
		if followed != nil && followed.Section == "" && followed.FitsAt == 0 && larger.showing(followed.Seq) != "" {
			followed.FitsAt = req.MaxChars
			left--
		}
		for i := range c.Manifest.Sections {
			for j := range c.Manifest.Sections[i].Candidates {
				if d := &c.Manifest.Sections[i].Candidates[j]; d.FitsAt == 0 && larger.shows(*d) {
					d.FitsAt = req.MaxChars
					left--
				}
			}
		}
	}
	return nil
}
