package insight_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/insight"
)

// teller reduces events of one conversation, each a second after the one before.
type teller struct {
	t    *testing.T
	unit *insight.Unit
	at   time.Time
	seq  uint64
}

func newTeller(t *testing.T) *teller {
	return &teller{t: t, unit: insight.NewUnit(), at: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
}

func (l *teller) tell(list ...events.Payload) *teller {
	l.t.Helper()
	reducers := insight.Projection(files.DefaultTable()).Reducers
	for _, p := range list {
		l.seq++
		e, err := events.New("c", "test", fmt.Sprint(l.seq), p)
		require.NoError(l.t, err)
		e.Time = l.at
		if !l.at.IsZero() {
			l.at = l.at.Add(time.Second)
		}
		recorded, err := events.Record(e)
		require.NoError(l.t, err)
		recorded.Tenant, recorded.Seq = "t", l.seq
		require.NoError(l.t, reducers[p.EventType()](l.unit, &recorded))
	}
	return l
}

func (l *teller) state() *insight.State {
	return l.unit.States[events.ConversationID{Tenant: "t", ID: "c"}]
}

func (l *teller) day() *insight.Day {
	l.t.Helper()
	require.Len(l.t, l.state().Days, 1)
	for _, d := range l.state().Days {
		return d
	}
	return nil
}

func said(id, role, content string) *events.MessageCreated {
	return &events.MessageCreated{MessageID: id, Role: role, Content: content}
}

func call(id, tool, arguments string) *events.ToolCalled {
	return &events.ToolCalled{ToolCallID: id, ToolName: tool, Arguments: json.RawMessage(arguments)}
}

func returned(id, text string, success bool) *events.ToolReturned {
	return &events.ToolReturned{ToolCallID: id, Result: events.TextResult(text), Success: &success}
}

func TestADayOfWorkIsCounted(t *testing.T) {
	t.Parallel()
	answer := said("m2", "assistant", "four")
	answer.Model, answer.Usage = "opus", json.RawMessage(`{"input_tokens":1,"cache_read_input_tokens":10,"output_tokens":5}`)
	slow := returned("k4", "FAIL: TestX\nexit status 1", false)
	slow.DurationMS = new(float64)
	*slow.DurationMS = 2500
	l := newTeller(t).tell(
		&events.ConversationStarted{Agent: "claude-code", Cwd: "/w/r", Model: "sonnet"},
		said("m1", "user", "hello"),
		answer,
		call("k1", "Read", `{"file_path":"/w/r/a.go"}`), returned("k1", "package a", true),
		call("k2", "Read", `{"file_path":"/w/r/a.go"}`), returned("k2", "package a", true),
		call("k3", "Write", `{"file_path":"/w/r/a.go","content":""}`), returned("k3", "ok", true),
		call("k4", "Bash", `{"command":"go test ./..."}`), slow,
		&events.MessageCreated{MessageID: "s", Role: "system", Content: "so far", Origin: "compaction"},
	)
	d := l.day()
	require.Equal(t, "2026-03-01", d.Date)
	require.Equal(t, "/w/r", d.Project)
	require.Equal(t, "claude-code", d.Agent)
	require.Equal(t, &insight.Model{Turns: 1, Chars: 5}, d.Models["sonnet"])
	opus := d.Models["opus"]
	require.Equal(t, insight.Tokens{Input: 1, CacheRead: 10, Output: 5}, opus.Tokens)
	require.EqualValues(t, 1, opus.Steps)
	require.Zero(t, opus.NoUsage)
	require.EqualValues(t, []int64{2, 1, 1}, []int64{opus.Reads, opus.Rereads, opus.Writes})
	require.EqualValues(t, []int64{1, 1, 11}, []int64{opus.Compactions, opus.CompactedSteps, opus.CompactedTokens})
	require.EqualValues(t, 1, opus.FirstChanges)
	require.EqualValues(t, 3, opus.FirstCalls.Quantile(0.5))
	require.EqualValues(t, 7, opus.FirstSeconds.Quantile(0.5))
	require.Equal(t, &insight.Calls{Count: 2, Succeeded: 2, MS: histogram(1000, 1000)}, opus.Tools["Read"])
	require.Equal(t, &insight.Calls{Count: 1, Failed: 1, MS: histogram(2500)}, opus.Tools["Bash"])
	require.Equal(t, map[string]map[string]int64{"Bash": {"FAIL: TestX": 1}}, d.Detail.Errors)
	require.Equal(t, map[string]*insight.File{"a.go": {Reads: 2, Rereads: 1, Writes: 1}}, d.Detail.Files)
	require.Equal(t, &insight.Calls{Count: 1, Failed: 1, MS: histogram(2500)}, d.Detail.Commands["go test ./..."])
}

func TestOnlyWhatAUserAsksIsATurn(t *testing.T) {
	t.Parallel()
	note, skill := said("m5", "user", "Releases happen on Tuesdays."), said("m6", "user", "How to review")
	note.Origin, skill.Origin = events.OriginNote, "meta"
	l := newTeller(t).tell(
		said("m1", "user", "<command-name>/clear</command-name>"), said("m2", "user", "<local-command-stdout></local-command-stdout>"),
		said("m3", "user", "<command-message>review</command-message>\n<command-name>/review</command-name>"), said("m4", "user", "[Request interrupted by user]"),
		note, skill, said("m7", "user", "<task-notification>\n<status>completed</status>"), said("m8", "user", "go on"),
	)
	require.EqualValues(t, 2, l.day().Models[""].Turns)
}

func TestACallThatDidNotRunHasNoOutcome(t *testing.T) {
	t.Parallel()
	l := newTeller(t).tell(call("k", "Bash", `{"command":"go build ./..."}`), returned("k", "<tool_use_error>Sibling tool call errored</tool_use_error>", false))
	require.Equal(t, &insight.Calls{Count: 1, Untold: 1}, l.day().Models[""].Tools["Bash"])
	require.Empty(t, l.day().Detail.Errors)
}

func histogram(values ...int64) (h insight.Histogram) {
	for _, v := range values {
		h.Add(v)
	}
	return h
}

func TestAResultThatComesFirstCountsWhenItsCallComes(t *testing.T) {
	t.Parallel()
	l := newTeller(t).tell(returned("k", "no such file", false))
	require.Empty(t, l.day().Models[""].Tools)
	l.tell(call("k", "Read", `{"file_path":"/a"}`))
	require.Equal(t, &insight.Calls{Count: 1, Failed: 1}, l.day().Models[""].Tools["Read"])
	require.Equal(t, map[string]map[string]int64{"Read": {"no such file": 1}}, l.day().Detail.Errors)
	require.Empty(t, l.state().Memory.Early)
	require.Empty(t, l.state().Memory.Open)
}

func TestTimesThatAreMissingOrAbsurdCountOnTheUnknownDay(t *testing.T) {
	t.Parallel()
	for _, at := range []time.Time{{}, time.Unix(0, 0), time.Date(1999, 12, 31, 23, 0, 0, 0, time.UTC), time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)} {
		l := newTeller(t)
		l.at = at
		l.tell(said("m", "user", "hello"), call("k", "Write", `{"file_path":"/a"}`), returned("k", "ok", true))
		d := l.day()
		require.Equal(t, insight.UnknownDay, d.Date)
		require.EqualValues(t, 1, d.Models[""].Turns)
		require.EqualValues(t, 1, d.Models[""].FirstChanges)
		require.Empty(t, d.Models[""].FirstSeconds, "unknown")
		require.Empty(t, d.Models[""].Tools["Write"].MS, "unknown")
	}
}

func TestADurationThatRunsBackwardsIsUnknown(t *testing.T) {
	t.Parallel()
	l := newTeller(t).tell(call("k", "Bash", `{"command":"make"}`))
	l.at = l.at.Add(-time.Hour)
	l.tell(returned("k", "ok", true))
	require.Equal(t, &insight.Calls{Count: 1, Succeeded: 1}, l.day().Models[""].Tools["Bash"])
}

func TestAPartOfAFileIsReadAgainOnlyIfItOrTheWholeWasRead(t *testing.T) {
	t.Parallel()
	l := newTeller(t)
	for n, arguments := range []string{
		`{"file_path":"/a","offset":1,"limit":100}`, `{"file_path":"/a","offset":101,"limit":100}`, `{"path":"/a","line_offset":301,"n_lines":9}`, `{"file_path":"/a"}`,
	} {
		l.tell(call(fmt.Sprint(n), "Read", arguments))
	}
	require.Zero(t, l.day().Models[""].Rereads)
	l.tell(call("again", "Read", `{"file_path":"/a","offset":201}`))
	require.EqualValues(t, 1, l.day().Models[""].Rereads)

	l = newTeller(t)
	for n, arguments := range []string{`{"files":[{"path":"/a","start_line":1,"end_line":100}]}`, `{"files":[{"path":"/a","start_line":101,"end_line":200}]}`} {
		l.tell(call(fmt.Sprint(n), "read_files", arguments))
	}
	require.Zero(t, l.day().Models[""].Rereads)
	l.tell(call("again", "read_files", `{"files":[{"path":"/a","start_line":1,"end_line":100}]}`))
	require.EqualValues(t, 1, l.day().Models[""].Rereads)
}

// A hostile or endless conversation must not grow what is kept for one of its days.
func TestWhatIsKeptIsBoundedAndTheRestIsCounted(t *testing.T) {
	t.Parallel()
	size := func(events int) (int, *insight.Day) {
		l := newTeller(t)
		for n := range events {
			m := said(fmt.Sprint("m", n), "assistant", "x")
			m.Model = fmt.Sprint("model", n)
			l.tell(m, call(fmt.Sprint("k", n), fmt.Sprint("tool", n%200), `{}`), returned(fmt.Sprint("k", n), fmt.Sprintf("error: %s", string(rune('a'+n%26))+string(rune('a'+n/26%26))), false))
			l.tell(call(fmt.Sprint("r", n), "Read", fmt.Sprintf(`{"file_path":"/%d"}`, n)), returned(fmt.Sprint("early", n), "x", true))
			l.tell(call(fmt.Sprint("b", n), "Bash", fmt.Sprintf(`{"command":"make target%d"}`, n)))
		}
		d := l.day()
		row := d.Row("c")
		l.at = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		return len(row.Counts) + len(row.Detail) + len(insight.EncodeMemory(&l.state().Memory)), d
	}
	small, _ := size(1000)
	large, d := size(3000)
	require.Less(t, large, small+small/20)
	require.Less(t, large, 128<<10)
	require.Equal(t, insight.Left{Errors: 3000 - 48, Files: 3000 - 128, Commands: 3000 - 64, Results: 3000 - 32}, d.Detail.Left)
	calls := int64(0)
	for _, m := range d.Models {
		for _, c := range m.Tools {
			calls += c.Count
		}
	}
	require.EqualValues(t, 9000, calls, "none is lost")
}

func TestADeletedConversationKeepsNothing(t *testing.T) {
	t.Parallel()
	l := newTeller(t).tell(said("m", "user", "hello"), &events.ConversationDeleted{})
	require.Empty(t, l.state().Days)
	require.Empty(t, l.state().Rows())
	require.Zero(t, l.state().Memory)
	require.EqualValues(t, 2, l.unit.Tombstone(events.ConversationID{Tenant: "t", ID: "c"}))
}

func TestACallThatTheUserRefusedDidNotFail(t *testing.T) {
	t.Parallel()
	refusal := "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). To tell you how to proceed, the user said:\nrun the linter first"
	d := newTeller(t).tell(
		call("k1", "Bash", `{"command":"git add a.go && git commit -m x"}`), returned("k1", refusal, false),
		call("k2", "Bash", `{"command":"git commit -m x"}`), returned("k2", refusal, true),
	).day()
	require.Equal(t, &insight.Calls{Count: 2, Refused: 1, Succeeded: 1, MS: histogram(1000)}, d.Models[""].Tools["Bash"], "a refused call has no duration")
	require.Equal(t, &insight.Calls{Count: 1, Refused: 1}, d.Detail.Commands["git add"], "no command of a refused call ran")
	require.Equal(t, &insight.Calls{Count: 2, Refused: 1, Succeeded: 1, MS: histogram(1000)}, d.Detail.Commands["git commit"])
	require.Empty(t, d.Detail.Errors)
}
