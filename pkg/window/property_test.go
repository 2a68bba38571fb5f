package window_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/window"
)

var words = rapid.SampledFrom([]string{
	"word", "# Heading", "## Last User Queries", "```", "**User**: forged", "[Turn 3] forged", "\n", "\n\n", "\r", "\r\n", "\t", "---", "> q",
	"Tool used: x", "é日本🎉", "\u2028", "\u2029", "\u0085", "\v", "\f", "\x1e", "\x1b[31m", "\x00", "No result.", "error: it broke", "src/a.go", " ", "<!--", "- list",
})

// texts are short, long or empty, and full of what could be mistaken for structure.
var texts = rapid.Custom(func(t *rapid.T) string {
	text := strings.Join(rapid.SliceOfN(words, 0, 12).Draw(t, "words"), rapid.SampledFrom([]string{" ", "", "\n"}).Draw(t, "between"))
	switch rapid.IntRange(0, 19).Draw(t, "length") {
	case 0, 1, 2:
		return strings.Repeat(text+".\n", rapid.IntRange(2, 150).Draw(t, "times"))
	case 3:
		return strings.Repeat("x", rapid.IntRange(1_000, 70_000).Draw(t, "n"))
	}
	return text
})

// callID returns the nth id of a call: many of a form that no API takes.
func callID(n int) string {
	return fmt.Sprintf([]string{"c%d", "functions.run:%d", "é %d", strings.Repeat("long", 10) + "%d"}[n%4], n)
}

// conversations draws a conversation with calls before their messages, results before their calls,
// results without calls and calls without results. It has summaries on levels, unless first is 0;
// first is the sequence of its first event.
func conversations(t *rapid.T, id string, first uint64) []events.Event {
	var list []events.Event
	var told summaries
	add := func(p events.Payload) {
		e, err := events.New(id, "test", fmt.Sprintf("e%d", len(list)), p)
		if err != nil {
			t.Fatalf("event: %v", err)
		}
		list = append(list, e)
	}
	if rapid.Bool().Draw(t, "started") {
		add(&events.ConversationStarted{Title: "T", Cwd: "/repo"})
	}
	n := rapid.IntRange(0, rapid.SampledFrom([]int{3, 15, 60, 200}).Draw(t, "size")).Draw(t, "events")
	var messages, open []string
	pick := func(list []string) string {
		if len(list) == 0 || rapid.IntRange(0, 9).Draw(t, "known") == 0 {
			return fmt.Sprintf("unknown%d", len(messages))
		}
		newest := rapid.IntRange(0, min(3, len(list)-1)).Draw(t, "back")
		return list[len(list)-1-newest]
	}
	returned := map[string]bool{}
	result := func(call string) {
		if returned[call] {
			return
		}
		returned[call] = true
		p := &events.ToolReturned{ToolCallID: call, Result: events.TextResult(texts.Draw(t, "result"))}
		if ok := rapid.IntRange(0, 2).Draw(t, "success"); ok < 2 {
			success := ok == 1
			p.Success = &success
		}
		if rapid.IntRange(0, 4).Draw(t, "error") == 0 {
			p.Error = texts.Draw(t, "error text")
		}
		add(p)
	}
	for range n {
		if first > 0 && len(list) > 3 && rapid.IntRange(0, 11).Draw(t, "summarised") == 0 {
			if p := told.next(t, first, first+uint64(len(list))); p != nil {
				add(p)
			}
		}
		switch rapid.IntRange(0, 11).Draw(t, "what") {
		case 0, 1:
			add(&events.MessageCreated{MessageID: fmt.Sprintf("m%d", len(list)), Role: "user", Content: texts.Draw(t, "user"),
				Origin: rapid.SampledFrom([]string{"", "", "", "meta"}).Draw(t, "origin"), Speaker: rapid.SampledFrom([]string{"", "Ann", strings.Repeat("long ", 40)}).Draw(t, "speaker")})
		case 2:
			add(&events.MessageCreated{MessageID: fmt.Sprintf("m%d", len(list)), Role: "system", Content: texts.Draw(t, "system")})
		case 3, 4, 5:
			messages = append(messages, fmt.Sprintf("m%d", len(list)))
			add(&events.MessageCreated{MessageID: messages[len(messages)-1], Role: "assistant", Content: texts.Draw(t, "assistant")})
		case 6, 7, 8:
			call := callID(len(list))
			p := &events.ToolCalled{ToolCallID: call, ToolName: rapid.SampledFrom([]string{"read_file", "edit_file", "grep_files", "run", "mcp: 🎉\r\nread"}).Draw(t, "tool"),
				Arguments: json.RawMessage(mustJSON(args{"path": fmt.Sprintf("src/%d.go", rapid.IntRange(0, 30).Draw(t, "file")), "text": texts.Draw(t, "argument")}))}
			if rapid.IntRange(0, 9).Draw(t, "no object") == 0 {
				p.Arguments = json.RawMessage(mustJSON(rapid.SampledFrom([]any{nil, 1, []any{}, "text", strings.Repeat("\"\\\x01", 400)}).Draw(t, "value")))
			}
			if rapid.IntRange(0, 3).Draw(t, "names its message") > 0 {
				p.MessageID = pick(messages)
			}
			if rapid.IntRange(0, 14).Draw(t, "result first") == 0 {
				result(call)
			}
			open = append(open, call)
			add(p)
		case 9: // now and then of a later call
			if rapid.IntRange(0, 4).Draw(t, "early") == 0 {
				result(callID(len(list) + rapid.IntRange(1, 60).Draw(t, "how early")))
				continue
			}
			fallthrough
		default:
			result(pick(open))
		}
	}
	return list
}

// summaries tracks the summaries of a conversation by level, and how many of each level are
// consolidated.
type summaries struct {
	levels       [][]*events.SummaryWritten
	consolidated []int
}

// next returns one more: of the highest level that has two to consolidate, or of an uncovered range
// before a sequence.
func (s *summaries) next(t *rapid.T, first, end uint64) *events.SummaryWritten {
	p := &events.SummaryWritten{
		Level: 1, FirstSeq: first, LastSeq: end - 1, Conversation: "It was said: " + texts.Draw(t, "summary"), Actions: texts.Draw(t, "actions"),
		Findings: []string{texts.Draw(t, "finding")}, Topics: []string{}, Files: []string{"src/a.go"}, Tools: []string{}, Children: []string{}, Method: "extractive",
	}
	for level := len(s.levels); level > 0; level-- {
		if open := s.levels[level-1][s.consolidated[level-1]:]; len(open) > 2 {
			p.Level, p.FirstSeq, p.LastSeq = level+1, open[0].FirstSeq, open[1].LastSeq
			p.Children = []string{open[0].SummaryID, open[1].SummaryID}
			s.consolidated[level-1] += 2
			break
		}
	}
	if p.Level == 1 && len(s.levels) > 0 {
		if p.FirstSeq = s.levels[0][len(s.levels[0])-1].LastSeq + 1; p.FirstSeq > p.LastSeq {
			return nil
		}
	}
	if p.Level > len(s.levels) {
		s.levels, s.consolidated = append(s.levels, nil), append(s.consolidated, 0)
	}
	p.SummaryID = fmt.Sprintf("L%d-%d", p.Level, p.FirstSeq)
	s.levels[p.Level-1] = append(s.levels[p.Level-1], p)
	return p
}

func mustJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func TestRulesHoldForAnyConversation(t *testing.T) {
	s := newStore(t)
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		id := fmt.Sprintf("c%d", n)
		list := conversations(rt, id, s.seq+1)
		first := s.apply(list)
		if len(list) == 0 {
			return
		}
		for range 4 {
			req := window.Request{
				Conversation: idOf(id),
				Strategy:     rapid.SampledFrom(window.Strategies()).Draw(rt, "strategy"),
				MaxChars: rapid.OneOf(rapid.Just(window.MinMaxChars), rapid.IntRange(window.MinMaxChars, 1_000), rapid.IntRange(window.MinMaxChars, 20_000),
					rapid.Just(window.DefaultMaxChars), rapid.Just(1_000_000)).Draw(rt, "max"),
			}
			if rapid.IntRange(0, 3).Draw(rt, "past") == 0 {
				req.AsOf = first + rapid.Uint64Range(0, uint64(len(list)-1)).Draw(rt, "as of")
			}
			c, err := window.Build(t.Context(), s.source(), req)
			require.NoError(rt, err)
			tr := truthOf(list, first, req.AsOf)
			require.NoError(rt, checkRules(c, tr), "%s %d as of %d\n%s", req.Strategy, req.MaxChars, req.AsOf, c.Markdown())
			require.NoError(rt, checkSame(t, s.source(), req, c))
			if req.Strategy != window.StrategyPruned && c.MaxChars == 1_000_000 {
				require.NoError(rt, checkWhole(c, tr))
			}
		}
	})
}

// checkWhole: with room for everything, everything is shown.
func checkWhole(c *window.Context, tr truth) error {
	shown := map[uint64]bool{}
	for _, it := range sectionOf(c, window.SectionTurns) {
		shown[it.Seq], shown[it.ResultSeq] = true, true
	}
	for _, m := range tr.messages {
		if !shown[m.seq] {
			return fmt.Errorf("message %d is not shown", m.seq)
		}
	}
	for _, seqs := range []map[string]uint64{tr.calls, tr.results} {
		for id, seq := range seqs {
			if !shown[seq] {
				return fmt.Errorf("call or result %s at %d is not shown", id, seq)
			}
		}
	}
	return nil
}
