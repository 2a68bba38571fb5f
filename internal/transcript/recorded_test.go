package transcript

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/testdata"
)

// kindOfLine returns the event that a line of the neutral form must become.
func kindOfLine(row map[string]any) string {
	switch row["kind"] {
	case "conversation":
		return events.TypeConversationStarted
	case "message":
		return events.TypeMessageCreated + " " + row["role"].(string)
	case "summary":
		return events.TypeMessageCreated + " system compaction"
	case "tool_call":
		return events.TypeToolCalled
	case "tool_result":
		return events.TypeToolReturned
	}
	return "unknown"
}

func kindOfEvent(e events.Recorded) string {
	if m, ok := e.Payload.(*events.MessageCreated); ok {
		kind := e.Type + " " + m.Role
		if m.Origin == originCompaction {
			kind += " " + m.Origin
		}
		return kind
	}
	return e.Type
}

var alreadyRead = map[string][]events.Recorded{}

// recorded returns the events of a recording, which is read once for all tests of this file. They do not run in parallel, and
// do not change the events.
func recorded(t *testing.T, path string) []events.Recorded {
	t.Helper()
	if alreadyRead[path] == nil {
		alreadyRead[path] = good(t, readFile(t, path, Auto))
	}
	return alreadyRead[path]
}

func TestRecordedNeutralLinesAllBecomeEvents(t *testing.T) {
	mnemetest.Long(t)
	paths, err := filepath.Glob(filepath.Join(testdata.Dir(t), "events", "*.jsonl.gz"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			rows := slices.Collect(testdata.Lines[map[string]any](t, path))
			want, got := map[string]int{}, map[string]int{}
			conversations, types := map[string]int{}, map[string]int{}
			for _, row := range rows {
				want[kindOfLine(row)]++
				want[row["conversation_id"].(string)]++
				conversations[row["conversation_id"].(string)]++
			}
			list := recorded(t, path)
			require.Len(t, list, len(rows))
			for i, e := range list {
				types[e.Type]++
				got[kindOfEvent(e)]++
				got[e.Subject]++
				assert.Equal(t, rows[i]["id"], e.ID, "line %d", i+1)
			}
			assert.Empty(t, cmp.Diff(want, got))
			if filepath.Base(path) == "claude_code.jsonl.gz" {
				assert.Len(t, conversations, 198)
				assert.Equal(t, map[string]int{
					events.TypeConversationStarted: 198, events.TypeMessageCreated: 14_987 + 58,
					events.TypeToolCalled: 13_590, events.TypeToolReturned: 13_574,
				}, types)
			}
			t.Logf("%d events of %d conversations", len(list), len(conversations))
		})
	}
}

var (
	repeated = regexp.MustCompile(`~\d+"`)
	address  = regexp.MustCompile(`[A-Za-z0-9._%+\-]+@[A-Za-z0-9.\-]+`)
)

// Differences between the recorded neutral file and the native transcripts. Each is undone
// in both before they are compared.
var differences = []struct {
	name string
	undo func(neutral, native events.Recorded, a, b string) (string, string)
}{
	// An id that occurs in two sessions of the file has ~2 appended there, to keep ids
	// unique.
	{"~2", func(_, _ events.Recorded, a, b string) (string, string) {
		return repeated.ReplaceAllString(a, `"`), b
	}},
	// E-mail addresses are masked in the native transcripts.
	{"address", func(_, _ events.Recorded, a, b string) (string, string) {
		return address.ReplaceAllString(a, "@"), address.ReplaceAllString(b, "@")
	}},
	// A title after the first message becomes an update in the native form, and that of another session is left out.
	{"title", func(neutral, _ events.Recorded, a, b string) (string, string) {
		if p, ok := neutral.Payload.(*events.ConversationStarted); ok {
			title := string(quote(p.Title))
			a = strings.Replace(a, `"title":`+title+`,`, "", 1)
		}
		return a, b
	}},
	// What an editor told beside a prompt is a message of its own in the native form.
	{"editor", func(neutral, native events.Recorded, a, b string) (string, string) {
		p, ok := neutral.Payload.(*events.MessageCreated)
		said, isMessage := native.Payload.(*events.MessageCreated)
		if ok && isMessage && strings.HasPrefix(p.Content, "<ide_") && strings.HasSuffix(p.Content, "\n"+said.Content) {
			a = strings.Replace(a, string(quote(p.Content)), string(quote(said.Content)), 1)
		}
		return a, b
	}},
}

// compare lists the differences apart from which two events are equal.
func compare(neutral, native events.Recorded) (names []string) {
	form := func(e events.Recorded) string {
		return fmt.Sprint(e.Subject, " ", e.Source, ` "`, e.ID, `" `, e.Time.UTC(), " ", e.Type, " ", string(e.Data))
	}
	a, b := form(neutral), form(native)
	for _, d := range differences {
		if a == b {
			return names
		}
		if x, y := d.undo(neutral, native, a, b); x != a || y != b {
			a, b, names = x, y, append(names, d.name)
		}
	}
	if a != b {
		names = append(names, "another: "+cmp.Diff(a, b))
	}
	return names
}

func TestNativeSessionGivesTheEventsOfItsNeutralForm(t *testing.T) {
	dir := testdata.Dir(t)
	neutral := map[string][]events.Recorded{}
	for _, e := range recorded(t, filepath.Join(dir, "events", "claude_code.jsonl.gz")) {
		neutral[e.Subject] = append(neutral[e.Subject], e)
	}
	paths, err := filepath.Glob(filepath.Join(dir, "native", "claude-code", "*.jsonl.gz"))
	require.NoError(t, err)

	conversations, same := map[string]int{}, map[string]int{}
	queued, edited := 0, 0
	for _, path := range paths {
		native := slices.DeleteFunc(slices.Clone(recorded(t, path)), func(e events.Recorded) bool {
			if strings.HasPrefix(e.ID, "ide:") {
				edited++
				return true
			}
			if strings.HasPrefix(e.ID, "msg:queued:") { // the neutral form leaves out what the user said while the agent worked
				queued++
				return true
			}
			return e.Type == events.TypeConversationUpdated
		})
		want := neutral[native[0].Subject]
		require.Len(t, native, len(want), path)
		var names []string
		for i := range want {
			same["events"]++
			if want[i].ID == native[i].ID {
				same["identity"]++
				if want[i].Content() == native[i].Content() {
					same["content"]++
				}
			}
			names = append(names, compare(want[i], native[i])...)
		}
		slices.Sort(names)
		conversations[strings.Join(slices.Compact(names), ", ")]++
	}
	assert.Equal(t, 12, queued)
	assert.Equal(t, 3, edited)
	assert.Equal(t, map[string]int{"events": 10_067, "identity": 9_466, "content": 9_386}, same)
	assert.Equal(t, map[string]int{
		"":                   29,
		"address":            14,
		"address, editor":    1,
		"address, title":     4,
		"address, title, ~2": 2,
		"title":              10,
	}, conversations)
}

// A message that continued after a prompt would become two.
func TestEachMessageOfClaudeCodeIsOneEvent(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(testdata.Dir(t), "native", "claude-code", "*.jsonl.gz"))
	require.NoError(t, err)
	messages := 0
	for _, path := range paths {
		ids := map[string]bool{}
		for l := range testdata.Lines[claudeLine](t, path) {
			if l.Type == "assistant" && !l.IsSidechain {
				ids[l.Message.ID] = true
			}
		}
		told := 0
		for _, e := range recorded(t, path) {
			if m, ok := e.Payload.(*events.MessageCreated); ok && m.Role == "assistant" {
				told++
			}
		}
		assert.Len(t, ids, told, path)
		messages += told
	}
	assert.Equal(t, 3_134, messages)
}

func TestASessionOfPiGivesTheEventsOfItsNeutralForm(t *testing.T) {
	dir := testdata.Dir(t)
	neutral := map[string][]events.Recorded{}
	for _, e := range good(t, readFile(t, filepath.Join(dir, "events", "pi.jsonl.gz"), "neutral")) {
		neutral[e.Subject] = append(neutral[e.Subject], e)
	}
	for _, name := range []string{"before-compaction", "large-session"} {
		native := good(t, readFile(t, filepath.Join(dir, "native", "pi", name+".jsonl.gz"), Auto))
		want := neutral[native[0].Subject]
		require.Len(t, native, len(want))
		for i := range want {
			assert.Equal(t, want[i].Event, native[i].Event, "event %d", i)
		}
	}
}

// sweDifferences are those between the recorded neutral file of SWE-agent's trajectories and the native ones. The neutral
// ids hold the path that a file had in its repository. Which actions succeeded is not in a trajectory: the neutral file
// guesses it from what they printed.
func sweDifferences(neutral, native events.Recorded) (names []string) {
	a, b := neutral.Payload, native.Payload
	switch a := a.(type) {
	case *events.ToolReturned:
		b, ok := b.(*events.ToolReturned)
		if ok && ((a.Success == nil) != (b.Success == nil) || a.Error != b.Error) {
			a.Success, a.Error, b.Success, b.Error = nil, "", nil, ""
			names = append(names, "success")
		}
	case *events.MessageCreated:
		b, ok := b.(*events.MessageCreated)
		if ok && a.Origin != b.Origin {
			a.Role, a.Origin = b.Role, b.Origin
			names = append(names, "demonstration")
		}
	}
	return names
}

func TestATrajectoryOfSWEAgentGivesTheEventsOfItsNeutralForm(t *testing.T) {
	dir := testdata.Dir(t)
	neutral := map[string][]events.Recorded{}
	for _, e := range good(t, readFile(t, filepath.Join(dir, "events", "swe_agent.jsonl.gz"), "neutral")) {
		neutral[e.Subject] = append(neutral[e.Subject], e)
	}
	paths, err := filepath.Glob(filepath.Join(dir, "native", "swe-agent", "*.traj.gz"))
	require.NoError(t, err)
	require.Len(t, paths, 15)
	found := map[string]int{}
	for _, path := range paths {
		native := good(t, readFile(t, path, Auto))
		same := 0
		for conversation, want := range neutral {
			if len(want) != len(native) || !sameTrajectory(want, native) {
				continue
			}
			same++
			for i := range want {
				cut := func(id, prefix string) string { return strings.TrimPrefix(id, prefix) }
				require.Equal(t, cut(want[i].ID, conversation), cut(native[i].ID, native[0].Subject), path)
				require.Equal(t, want[i].Source, native[i].Source)
				found["events"]++
				for _, name := range sweDifferences(want[i], native[i]) {
					found[name]++
				}
				form := func(e events.Recorded, prefix string) string {
					data, err := json.Marshal(e.Payload)
					require.NoError(t, err)
					return strings.ReplaceAll(string(data), string(quote(prefix)[1:len(prefix)+1]), "")
				}
				assert.Equal(t, form(want[i], conversation), form(native[i], native[0].Subject), "%s: event %d", path, i)
			}
		}
		if same == 0 {
			found["without a neutral form"]++
		}
	}
	assert.Equal(t, map[string]int{"events": 473, "demonstration": 2, "success": 141, "without a neutral form": 1}, found)
}

// sameTrajectory reports whether two conversations have the same messages and results.
func sameTrajectory(a, b []events.Recorded) bool {
	said := func(e events.Recorded) string {
		switch p := e.Payload.(type) {
		case *events.ToolReturned:
			return p.Text()
		case *events.MessageCreated:
			return strings.TrimSpace(p.Content)
		}
		return ""
	}
	return slices.EqualFunc(a, b, func(x, y events.Recorded) bool { return said(x) == said(y) })
}

func BenchmarkReadRecordedNeutralFile(b *testing.B) {
	data, err := os.ReadFile(filepath.Join(testdata.Dir(b), "events", "claude_code.jsonl.gz"))
	require.NoError(b, err)
	b.ReportAllocs()
	events := 0
	for b.Loop() {
		events += len(readAll(b, data, "claude_code.jsonl.gz", "neutral"))
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
}
