package window_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/harness"
	"mneme.dev/mneme/pkg/window"
)

// truth is the content of a conversation as of a sequence, derived from its events alone.
type truth struct {
	messages []said
	calls    map[string]uint64 // sequence by tool_call_id
	asked    map[string]string // message_id by tool_call_id
	results  map[string]uint64
}

type said struct {
	*events.MessageCreated
	seq  uint64
	turn int
}

func truthOf(list []events.Event, first, asOf uint64) truth {
	tr := truth{calls: map[string]uint64{}, asked: map[string]string{}, results: map[string]uint64{}}
	turn := 0
	for i, e := range list {
		seq := first + uint64(i)
		if asOf != 0 && seq > asOf {
			break
		}
		r, err := events.Record(e)
		if err != nil {
			continue
		}
		switch p := r.Payload.(type) {
		case *events.MessageCreated:
			if p.Role == "user" {
				turn++
			}
			tr.messages = append(tr.messages, said{p, seq, turn})
		case *events.ToolCalled:
			tr.calls[p.ToolCallID] = seq
			tr.asked[p.ToolCallID] = p.MessageID
		case *events.ToolReturned:
			tr.results[p.ToolCallID] = seq
		}
	}
	return tr
}

func (tr truth) role(role string) (list []said) {
	for _, m := range tr.messages {
		if m.Role == role {
			list = append(list, m)
		}
	}
	return list
}

// lineEnds are the line ends of Python's str.splitlines and JavaScript's /^/m.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\x1c", "\n", "\x1d", "\n", "\x1e", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

// cleaned returns a text without what no context shows, in an independent implementation.
func cleaned(text string) string {
	text = regexp.MustCompile(`\x1b\[[0-9;]*m`).ReplaceAllString(text, "")
	text = regexp.MustCompile(`[\x00-\x08\x0e-\x1b\x1f\x7f\x{80}-\x{84}\x{86}-\x{9f}]`).ReplaceAllString(lineEnds.Replace(text), "")
	return strings.Trim(text, "\n")
}

// asShown returns a text as the Markdown shows it, in an independent implementation.
func asShown(text string) string {
	lines := strings.Split(cleaned(text), "\n")
	for i := range lines[1:] {
		if lines[i+1] != "" {
			lines[i+1] = "\t" + lines[i+1]
		}
	}
	return strings.Join(lines, "\n")
}

// ours matches the allowed beginnings of a line without a tab.
var ours = regexp.MustCompile(`^(## (Last User Queries|Recent Conversation \(Raw\)|Recently Accessed Files|Relevant Code Context \(confidence: 0\.5\)|Story So Far|Relevant Past Context \(relevance in %, confidence: 1\.0\)|Conversation)$|\[Turns? \d+(-\d+)?, level \d+(, \d+%)?, confidence: 0\.\d\]$|\*\*(Conversation|Actions|Key findings|Topics|Files|Tools)\*\*: |\[Turns? \d+(-\d+)?(, \d{4}-\d\d-\d\d)?, \d+%\]$|### .*$|(Lines \d+-\d+|Turn \d+) \(via .*\):$|\[Turn \d+\]( |$)|\*\*(User|Assistant|System)\*\*( \(.*\))?:|Tool used: |Result(:| \(failed\):)|No result\.$|Result without a call|Error: |\[… |\*\*(Read|Modified|Found in searches|Listed):\*\*$|- )`)

// checkRules checks every rule of the package comment on one context. It returns the violations.
func checkRules(c *window.Context, tr truth) error {
	text := c.Markdown()
	if n := utf8.RuneCountInString(text); n > c.MaxChars || n != c.Manifest.Used || n != c.Chars {
		return fmt.Errorf("%d characters, the budget is %d, the manifest says %d", n, c.MaxChars, c.Manifest.Used)
	}
	used := c.Manifest.Frame
	for _, s := range c.Manifest.Sections {
		used += s.Used
		if s.Used > s.Budget {
			return fmt.Errorf("section %s used %d of %d", s.Name, s.Used, s.Budget)
		}
	}
	if used != c.Manifest.Used {
		return fmt.Errorf("the sections used %d, the context %d", used, c.Manifest.Used)
	}
	for line := range strings.SplitSeq(text, "\n") {
		if line != "" && line != window.FirstLine && line[0] != '\t' && !ours.MatchString(line) {
			return fmt.Errorf("the line %q is not marked as a text's", line)
		}
	}
	if len(c.Sections) > 0 {
		if err := checkStructure(c); err != nil {
			return err
		}
	}
	for _, check := range []func(*window.Context, truth) error{checkAnchors, checkOnce, checkPairs, checkSteps, checkGapless, checkLeftOut, checkChat, checkFoundSummaries} {
		if err := check(c, tr); err != nil {
			return err
		}
	}
	return nil
}

// checkAnchors: the first instruction and the newest user message are there, uncut unless they
// alone exceed the budget.
func checkAnchors(c *window.Context, tr truth) error {
	users := slices.DeleteFunc(tr.role("user"), func(m said) bool { return m.Origin != "" })
	if len(users) == 0 {
		return nil
	}
	newest := users[len(users)-1]
	first := newest
	if i := slices.IndexFunc(users, func(m said) bool { return harness.Asks(m.Role, m.Origin, m.Content) }); i >= 0 && newest.turn > 1 {
		first = users[i]
	}
	// their headings, labels and marks, and the frame of the sections
	alone := utf8.RuneCountInString(asShown(newest.Content)) + shownName(newest.Speaker) + 600
	if first.seq != newest.seq {
		alone += utf8.RuneCountInString(asShown(first.Content)) + shownName(first.Speaker)
	}
	for _, m := range []said{first, newest} {
		i := slices.IndexFunc(itemsOf(c), func(it window.Item) bool { return it.Seq == m.seq })
		if i < 0 {
			return fmt.Errorf("the user message at %d is not shown", m.seq)
		}
		it := itemsOf(c)[i]
		if !strings.Contains(c.Markdown(), asShown(it.Text)) {
			return fmt.Errorf("the text of item %d is not in the Markdown", m.seq)
		}
		if it.Text != cleaned(m.Content) && (alone <= c.MaxChars || !strings.Contains(it.Text, "…")) && len(m.Content) <= 64<<10 {
			return fmt.Errorf("the user message at %d is cut to %q, but both take %d of %d", m.seq, it.Text, alone, c.MaxChars)
		}
	}
	return nil
}

// shownName is the most space that a speaker's name can take.
func shownName(name string) int { return min(utf8.RuneCountInString(name), 61) + len(" ()") }

// checkOnce: no event and no file is shown twice, no code of an event that is shown uncut, and no
// three adjacent lines of code from two sources.
func checkOnce(c *window.Context, _ truth) error {
	seen, whole := map[string]bool{}, map[string]bool{}
	sources := map[[3]string]uint64{}
	for _, it := range itemsOf(c) {
		if it.Kind == window.KindToolCall {
			whole[it.EventID] = it.WholeChars == 0
			whole[it.ResultEventID] = it.ResultWholeChars == 0
		}
	}
	for _, it := range itemsOf(c) {
		if it.Kind == window.KindCode {
			if whole[it.EventID] {
				return fmt.Errorf("the complete code of %s is shown", it.EventID)
			}
			var last [3]string
			for line := range strings.SplitSeq(it.Text, "\n") {
				if line = strings.TrimSpace(line); utf8.RuneCountInString(line) < 20 {
					continue
				}
				if last = [3]string{last[1], last[2], line}; last[0] == "" {
					continue
				}
				if other := sources[last]; other != 0 && other != it.Seq {
					return fmt.Errorf("the lines of code %q are shown twice, of %d and %d", last, other, it.Seq)
				}
				sources[last] = it.Seq
			}
			continue // of an event that the recent turns may show condensed, of a file that may be listed
		}
		for _, key := range []string{"event " + it.EventID, "event " + it.ResultEventID, "file " + it.Path} {
			if key != "event " && key != "file " && seen[key] {
				return fmt.Errorf("%s is shown twice", key)
			}
			seen[key] = true
		}
	}
	return nil
}

// checkPairs: a call is shown with its result if it has one, and a result alone
// only if it never had a call.
func checkPairs(c *window.Context, tr truth) error {
	for _, it := range itemsOf(c) {
		switch it.Kind {
		case window.KindToolCall:
			if seq := tr.results[it.ToolCallID]; seq != it.ResultSeq || (seq != 0) != (it.Result != nil) {
				return fmt.Errorf("the result of call %s is at %d, shown at %d", it.ToolCallID, seq, it.ResultSeq)
			}
		case window.KindToolResult:
			if seq := tr.calls[it.ToolCallID]; seq != 0 {
				return fmt.Errorf("the result of call %s is shown without it", it.ToolCallID)
			}
		}
	}
	return nil
}

// checkSteps: a message in recent turns has all its calls, and a call has the message that it names
// or the previous one in its turn.
func checkSteps(c *window.Context, tr truth) error {
	shown := map[uint64]bool{}
	for _, it := range sectionOf(c, window.SectionTurns) {
		shown[it.Seq] = true
	}
	byID := map[string]uint64{}
	for _, m := range tr.role("assistant") {
		byID[m.MessageID] = m.seq
	}
	for id, seq := range tr.calls {
		var before uint64
		for _, m := range tr.messages {
			if m.seq > seq {
				break
			}
			if m.Role == "user" {
				before = 0
			} else if m.Role == "assistant" {
				before = m.seq
			}
		}
		named := byID[tr.asked[id]]
		if named != 0 && shown[named] && !shown[seq] {
			return fmt.Errorf("message %d is shown without its call %s at %d", named, id, seq)
		}
		if shown[seq] && (named == 0 || !shown[named]) && before != 0 && !shown[before] {
			return fmt.Errorf("call %s at %d is shown without message %d or %d", id, seq, named, before)
		}
	}
	return nil
}

// checkGapless: recent turns end with the newest message, are in order, and leave out nothing in
// between.
func checkGapless(c *window.Context, tr truth) error {
	var shown []uint64
	for _, it := range sectionOf(c, window.SectionTurns) {
		if it.Kind == window.KindMessage {
			shown = append(shown, it.Seq)
		}
	}
	if !slices.IsSorted(shown) {
		return fmt.Errorf("messages out of order: %v", shown)
	}
	// after a mark or the oldest user message everything is there
	list := sectionOf(c, window.SectionTurns)
	from := 0
	for i, it := range list {
		if it.Kind == window.KindLeftOut {
			from = i + 1
		}
	}
	if from == len(list) { // only the newest user message and a mark
		return nil
	}
	i := slices.IndexFunc(list[from:], func(it window.Item) bool { return it.Kind == window.KindMessage })
	if i < 0 {
		return nil
	}
	at := slices.IndexFunc(tr.messages, func(m said) bool { return m.seq == list[from+i].Seq })
	for _, m := range tr.messages[at:] {
		if !slices.Contains(shown, m.seq) {
			return fmt.Errorf("message %d is missing between others", m.seq)
		}
	}
	return nil
}

var leftOut = regexp.MustCompile(`\[… (\d+) earlier steps? of this turn left out\]`)

// checkLeftOut: a turn's mark states the number of missing steps.
func checkLeftOut(c *window.Context, tr truth) error {
	shown, turn, count := map[uint64]bool{}, -1, ""
	for _, it := range sectionOf(c, window.SectionTurns) {
		shown[it.Seq] = true
		if m := leftOut.FindStringSubmatch(it.Text); it.Kind == window.KindLeftOut && m != nil {
			turn, count = it.Turn, m[1]
		}
	}
	missing, head := 0, 0 // head is the newest turn so far that a user began
	for _, m := range tr.messages {
		if m.Role == "user" && m.Origin == "" {
			head = m.turn
		}
		if head == turn && m.Role == "assistant" && !shown[m.seq] {
			missing++
		}
	}
	if turn >= 0 && fmt.Sprint(missing) != count {
		return fmt.Errorf("%d steps of turn %d are left out, the mark says %s", missing, turn, count)
	}
	return nil
}

// checkSame: the same request gives the same bytes.
func checkSame(t testing.TB, s window.Source, req window.Request, c *window.Context) error {
	again, err := window.Build(t.Context(), s, req)
	require.NoError(t, err)
	a, err := json.Marshal(c)
	require.NoError(t, err)
	b, err := json.Marshal(again)
	require.NoError(t, err)
	if string(a) != string(b) || c.Markdown() != again.Markdown() {
		return fmt.Errorf("two builds of one request differ")
	}
	return nil
}

func itemsOf(c *window.Context) (list []window.Item) {
	for _, s := range c.Sections {
		list = append(list, s.Items...)
	}
	return list
}

func sectionOf(c *window.Context, name string) []window.Item {
	for _, s := range c.Sections {
		if s.Name == name {
			return s.Items
		}
	}
	return nil
}

// manifestOf returns the manifest of a section.
func manifestOf(c *window.Context, name string) window.SectionManifest {
	for _, s := range c.Manifest.Sections {
		if s.Name == name {
			return s
		}
	}
	return window.SectionManifest{}
}
