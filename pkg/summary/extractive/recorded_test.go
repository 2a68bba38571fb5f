package extractive

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mneme.dev/mneme/internal/testdata"
	"mneme.dev/mneme/pkg/summary"
)

// entriesOf turns recorded events into entries as the summarizer reads them: in order, with
// their turn, results cut at summary.MaxResult.
func entriesOf(events []testdata.Event) []summary.Entry {
	slices.SortStableFunc(events, func(a, b testdata.Event) int { return a.Seq - b.Seq })
	tools := map[string]string{}
	var entries []summary.Entry
	turn := 0
	for _, e := range events {
		entry := summary.Entry{Seq: uint64(e.Seq + 1), Text: e.Content, Name: e.MetaText("speaker")}
		switch e.Kind {
		case "message":
			entry.Kind = summary.Kind(e.Role)
			if e.Role == "user" {
				turn++
			}
		case "tool_call":
			entry.Kind, entry.Name, entry.Text = summary.KindCall, e.ToolName, string(e.Arguments)
			tools[e.ID] = e.ToolName
		case "tool_result":
			entry.Kind, entry.Text = summary.KindResult, e.Text()
			if len(e.ParentIDs) > 0 {
				entry.Name = tools[e.ParentIDs[0]]
			}
			entry.Failed = e.Success != nil && !*e.Success
			if length(entry.Text) > summary.MaxResult {
				entry.Text = string([]rune(entry.Text)[:summary.MaxResult])
			}
		default:
			continue
		}
		entry.Turn = turn
		if strings.TrimSpace(entry.Text) != "" {
			entries = append(entries, entry)
		}
	}
	return entries
}

// recordedRanges returns the ranges of level 1 summaries in recorded sessions: whole
// entries, about 10,000 characters each.
func recordedRanges(t testing.TB, name string, sessions int) [][]summary.Entry {
	const size = 10_000
	byConversation := map[string][]testdata.Event{}
	var order []string
	for e := range testdata.Events(t, name) {
		if byConversation[e.ConversationID] == nil {
			if len(order) == sessions {
				break
			}
			order = append(order, e.ConversationID)
		}
		byConversation[e.ConversationID] = append(byConversation[e.ConversationID], e)
	}
	var ranges [][]summary.Entry
	for _, id := range order {
		var current []summary.Entry
		chars := 0
		for _, e := range entriesOf(byConversation[id]) {
			current = append(current, e)
			if chars += length(e.Text); chars >= size {
				ranges = append(ranges, current)
				current, chars = nil, 0
			}
		}
	}
	return ranges
}

// observed is a session of LoCoMo with what people wrote about it.
type observed struct {
	entries  []summary.Entry
	ids      []string        // ids of the entries
	summary  string          // of the whole session
	evidence map[string]bool // ids of the turns that observations cite
}

func observedSessions(t testing.TB) []observed {
	type key struct {
		conversation string
		session      float64
	}
	sessions := map[key]*observed{}
	var order []key
	turns := map[key][]testdata.Event{}
	for e := range testdata.Events(t, "locomo") {
		session, _ := e.Meta["session"].(float64)
		k := key{e.ConversationID, session}
		if e.Kind != "message" {
			continue
		}
		if sessions[k] == nil {
			sessions[k] = &observed{evidence: map[string]bool{}}
			order = append(order, k)
		}
		turns[k] = append(turns[k], e)
	}
	path := filepath.Join(testdata.Dir(t), "events", "locomo_summaries.jsonl.gz")
	for e := range testdata.Lines[testdata.Event](t, path) {
		session, _ := e.Meta["session"].(float64)
		o := sessions[key{e.ConversationID, session}]
		switch {
		case o == nil:
		case e.MetaText("level") == "session":
			o.summary = e.Content
		case e.MetaText("level") == "observation":
			for _, id := range e.ParentIDs {
				o.evidence[id] = true
			}
		}
	}
	var all []observed
	for _, k := range order {
		o := sessions[k]
		for _, e := range turns[k] {
			o.ids = append(o.ids, e.ID)
		}
		if o.entries = entriesOf(turns[k]); o.summary != "" && len(o.entries) == len(o.ids) {
			all = append(all, *o)
		}
	}
	return all
}

// rendered returns a draft as one text, for measuring.
func rendered(d summary.Draft) string {
	text := d.Conversation + "\n" + d.Actions
	for _, line := range append(slices.Clone(d.Findings), d.Topics...) {
		text += "\n" + line
	}
	return strings.TrimSpace(text)
}
