package importer_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/importer"
	"mneme.dev/mneme/internal/instance"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/transcript"
)

const window = 100 * time.Millisecond

// bundle is mneme in this process, with a short duplicate window, and what its importer
// reported.
type bundle struct {
	*testing.T
	*instance.Instance
	rejected []string
	deleted  []string
}

func setup(t *testing.T) *bundle {
	t.Helper()
	i, err := instance.Start(t.Context(), instance.Config{
		Data: t.TempDir(), Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0",
		DuplicateWindow: window, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, i.Close()) })
	return &bundle{T: t, Instance: i}
}

func (b *bundle) lookup(ctx context.Context, list []events.Event) ([]importer.Known, error) {
	asked := []map[string]string{}
	for _, e := range list {
		asked = append(asked, map[string]string{"conversation": e.Subject, "source": e.Source, "id": e.ID})
	}
	body, err := json.Marshal(map[string]any{"events": asked})
	require.NoError(b, err)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, b.HTTPURL()+"/v1/events/lookup", bytes.NewReader(body))
	require.NoError(b, err)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	require.NoError(b, err)
	require.Equal(b, http.StatusOK, response.StatusCode, "%s", raw)
	var answer struct{ Events []importer.Known }
	require.NoError(b, json.Unmarshal(raw, &answer))
	return answer.Events, nil
}

// bring imports paths, then waits until everything is applied and the duplicate window has
// passed. It checks that the counts add up.
func (b *bundle) bring(paths ...string) (importer.Report, error) {
	b.Helper()
	files, err := transcript.Find(paths)
	require.NoError(b, err)
	report, err := importer.Import(b.Context(), b.Log, files, importer.Options{
		Tenant: "default", Format: transcript.Auto, Lookup: b.lookup,
		Rejected: func(file string, err *transcript.LineError) {
			b.rejected = append(b.rejected, fmt.Sprintf("%s: %v", filepath.Base(file), err))
		},
		Deleted: func(file string, err *transcript.LineError) {
			b.deleted = append(b.deleted, fmt.Sprintf("%s: %v", filepath.Base(file), err))
		},
	})
	require.Equal(b, report.Read, report.Published+report.Duplicate+report.Rejected+report.Deleted+report.HeldBack)
	b.settle()
	return report, err
}

func (b *bundle) settle() {
	require.Eventually(b, func() bool {
		for _, s := range b.Status() {
			if s.Checkpoint.Seq < b.head() {
				return false
			}
		}
		return true
	}, mnemetest.Patience, 5*time.Millisecond)
	time.Sleep(3 * window)
}

func (b *bundle) head() uint64 {
	state, err := b.Log.State(mnemetest.Context(b))
	require.NoError(b, err)
	return state.Head
}

func write(t *testing.T, name string, lines ...string) string {
	t.Helper()
	require.NoError(t, os.WriteFile(name, []byte(strings.Join(lines, "\n")), 0o644))
	return name
}

// A batch is read while the one before it is published.
func TestALongImportKeepsTheOrderAndTheCountsOfItsBatches(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const count = 3500
	var lines []string
	for i := range count {
		lines = append(lines, message(fmt.Sprint("c", i%3), fmt.Sprint("m", i), "hello"))
	}
	lines = append(lines, message("c0", "m0", "other"), `{"kind":"message"}`, message("c1", "m1", "hello"))
	report, err := b.bring(write(t, filepath.Join(t.TempDir(), "long.jsonl"), lines...))
	require.NoError(t, err)
	require.Equal(t, importer.Report{Read: count + 3, Published: count, Duplicate: 1, Rejected: 2, Conversations: 3, LastSeq: report.LastSeq}, report)
	require.Len(t, b.rejected, 2)
	next := 0
	for seq := uint64(1); next < count; seq++ {
		m, err := b.Log.Get(mnemetest.Context(t), seq)
		require.NoError(t, err)
		e, _, err := m.Decode()
		require.NoError(t, err)
		if said, ok := e.Payload.(*events.MessageCreated); ok {
			require.Equal(t, fmt.Sprint("m", next), said.MessageID)
			next++
		}
	}
}

func message(conversation, id, content string) string {
	return fmt.Sprintf(`{"kind":"message","conversation_id":%q,"id":%q,"role":"user","content":%q}`, conversation, id, content)
}

func TestReimportingAfterTheDuplicateWindowPublishesNothing(t *testing.T) {
	b := setup(t)
	file := write(t, filepath.Join(t.TempDir(), "a.jsonl"), message("a:1", "1", "x"), message("a:1", "2", "y"), message("a:2", "1", "z"))
	first, err := b.bring(file)
	require.NoError(t, err)
	require.Equal(t, importer.Report{Read: 3, Published: 3, Conversations: 2, LastSeq: 3}, first)
	second, err := b.bring(file)
	require.NoError(t, err)
	require.Equal(t, importer.Report{Read: 3, Duplicate: 3, Conversations: 2}, second)
	require.EqualValues(t, 3, b.head())

	write(t, file, message("a:1", "1", "x"), message("a:1", "2", "another"))
	third, err := b.bring(file)
	require.NoError(t, err)
	require.Equal(t, importer.Report{Read: 2, Duplicate: 1, Rejected: 1, Conversations: 1}, third)
	require.Equal(t, []string{`a.jsonl: line 2: the log has different content under the id "2" at sequence 2; the first one counts`}, b.rejected)
}

func TestLinesOfUnknownTypesAreCountedAndDoNotFailTheImport(t *testing.T) {
	t.Parallel()
	b := setup(t)
	lines := []string{
		`{"type":"user","uuid":"u1","sessionId":"s","version":"2.1.330","message":{"content":"hello"}}`,
		`{"type":"horoscope","uuid":"h1","sessionId":"s","version":"2.1.330"}`,
		`{"type":"horoscope","uuid":"h2","sessionId":"s","version":"2.1.330"}`,
	}
	for i := range 3 * 100 {
		lines = append(lines, fmt.Sprintf(`{"type":"t%d","uuid":"u","sessionId":"s"}`, i))
	}
	report, err := b.bring(write(t, filepath.Join(t.TempDir(), "a.jsonl"), lines...))
	require.NoError(t, err)
	require.Empty(t, b.rejected)
	require.Equal(t, 2, report.Published)
	require.Equal(t, 2, report.Skipped["claude-code 2.1.330: horoscope"])
	require.Equal(t, 201, report.Skipped["others"])
	require.Len(t, report.Skipped, 101)
}

// Later versions read more of a recording: other titles, which messages an agent's program wrote, and how many tokens they took.
func TestWhatAnEarlierVersionReadOtherwiseIsKnown(t *testing.T) {
	t.Parallel()
	b := setup(t)
	started := func(title string) string {
		return fmt.Sprintf(`{"kind":"conversation","conversation_id":"a:1","id":"start","meta":{"titles":[%q]}}`, title)
	}
	meta := func(id, content string) string {
		return strings.Replace(message("a:1", id, content), "{", `{"meta":{"is_meta":true},`, 1)
	}
	used := func(id, content string) string {
		return strings.Replace(message("a:1", id, content), "{", `{"meta":{"usage":{"input":1}},`, 1)
	}
	dir := t.TempDir()
	before := write(t, filepath.Join(dir, "before.jsonl"), started("Of another session"), message("a:1", "1", "<task-notification>"), message("a:1", "2", "x"), meta("3", "y"), message("a:1", "4", "z"), used("5", "z"))
	_, err := b.bring(before)
	require.NoError(t, err)
	after := write(t, filepath.Join(dir, "after.jsonl"), started("Of its own"), meta("1", "<task-notification>"), meta("2", "another"), message("a:1", "3", "y"), used("4", "z"), message("a:1", "5", "z"))
	report, err := b.bring(after)
	require.NoError(t, err)
	require.Equal(t, importer.Report{Read: 6, Duplicate: 3, Rejected: 3, Conversations: 1}, report, "%q", b.rejected)
	require.Contains(t, b.rejected[0], `different content under the id "2"`)
	require.Contains(t, b.rejected[1], `different content under the id "3"`, "no version knows less than an earlier one")
	require.Contains(t, b.rejected[2], `different content under the id "5"`)
}

func TestDifferentContentUnderAnIDIsRejected(t *testing.T) {
	i, err := instance.Start(t.Context(), instance.Config{Data: t.TempDir(), Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, i.Close()) })
	file := write(t, filepath.Join(t.TempDir(), "a.jsonl"),
		message("a:1", "1", "x"), message("a:1", "2", "y"), message("a:1", "2", "another"), message("a:1", "3", "z"))
	files, err := transcript.Find([]string{file})
	require.NoError(t, err)
	var rejected []string
	report, err := importer.Import(t.Context(), i.Log, files, importer.Options{ // no lookup in the read model
		Tenant: "default", Format: transcript.Auto, Rejected: func(_ string, err *transcript.LineError) { rejected = append(rejected, err.Error()) },
	})
	require.NoError(t, err)
	require.Equal(t, importer.Report{Read: 4, Published: 3, Rejected: 1, Conversations: 1, LastSeq: 3}, report)
	require.Equal(t, []string{`line 3: the log has different content under the id "2" at sequence 2; the first one counts`}, rejected)
}

func TestADeletedConversationIsNotImportedAgain(t *testing.T) {
	b := setup(t)
	file := write(t, filepath.Join(t.TempDir(), "a.jsonl"), message("a:1", "1", "x"), message("a:1", "2", "y"), message("a:2", "1", "z"))
	_, err := b.bring(file)
	require.NoError(t, err)
	e, err := events.New("a:1", "test", "gone", &events.ConversationDeleted{})
	require.NoError(t, err)
	_, err = b.Log.Publish(mnemetest.Context(t), "default", e)
	require.NoError(t, err)
	b.settle()

	write(t, file, message("a:1", "1", "x"), message("a:1", "2", "y"), message("a:2", "1", "z"), message("a:1", "3", "new"))
	report, err := b.bring(file)
	require.NoError(t, err)
	require.Equal(t, importer.Report{Read: 4, Duplicate: 1, Deleted: 3, Conversations: 2}, report)
	require.EqualValues(t, 4, b.head())
	require.Equal(t, []string{`a.jsonl: line 1: conversation "a:1" was deleted at sequence 4, so its events are not imported`}, b.deleted)
	require.Empty(t, b.rejected)
}

func TestAnUnfinishedMessageIsImportedOnceComplete(t *testing.T) {
	b := setup(t)
	lines := []string{
		`{"type":"user","uuid":"u","sessionId":"s","message":{"content":"hi"}}`,
		`{"type":"assistant","uuid":"a","sessionId":"s","message":{"id":"m","content":[{"type":"text","text":"One."}]}}`,
		`{"type":"assistant","uuid":"b","sessionId":"s","message":{"id":"m","content":[{"type":"tool_use","id":"t","name":"X","input":{}}]}}`,
		`{"type":"user","uuid":"r","sessionId":"s","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"x"}]}}`,
		`{"type":"assistant","uuid":"c","sessionId":"s","message":{"id":"m","content":[{"type":"text","text":"Two."}]}}`,
		`{"type":"assistant","uuid":"d","sessionId":"s","message":{"id":"n","content":[{"type":"text","text":"Three."}]}}`,
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "s.jsonl")
	write(t, file, append(lines[:4:4], lines[4][:40])...)
	report, err := b.bring(dir)
	require.NoError(t, err)
	require.Equal(t, importer.Report{Read: 6, Published: 2, HeldBack: 4, Conversations: 1, LastSeq: 2}, report)

	write(t, file, lines...)
	report, err = b.bring(dir)
	require.NoError(t, err)
	require.Equal(t, importer.Report{Read: 6, Published: 3, Duplicate: 2, HeldBack: 1, Conversations: 1, LastSeq: 5}, report)

	old := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(file, old, old))
	report, err = b.bring(dir)
	require.NoError(t, err)
	require.Equal(t, importer.Report{Read: 6, Published: 1, Duplicate: 5, Conversations: 1, LastSeq: 6}, report)
	require.Empty(t, b.rejected)

	response, err := http.Get(b.HTTPURL() + "/v1/conversations/claude_code:s/context?format=markdown")
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Regexp(t, `(?s)One\.\s+Two\..*Three\.`, string(text))
}

func TestAnAnswerIsImportedSoonAfterItsTurnHasEnded(t *testing.T) {
	b := setup(t)
	const (
		prompt = `{"type":"user","uuid":"u","sessionId":"s","message":{"content":"hi"}}`
		answer = `{"type":"assistant","uuid":"a","sessionId":"s","message":{"id":"m","content":[{"type":"text","text":"One."}]}}`
		call   = `{"type":"assistant","uuid":"b","sessionId":"s","message":{"id":"m","content":[{"type":"tool_use","id":"t","name":"X","input":{}}]}}`
	)
	for name, c := range map[string]struct {
		lines []string
		age   time.Duration
		ended bool
		held  int
	}{
		"answered":            {[]string{prompt, answer}, importer.TurnWritten, true, 0},
		"just written":        {[]string{prompt, answer}, 0, true, 1},
		"the turn goes on":    {[]string{prompt, answer}, importer.TurnWritten, false, 1},
		"a call, no answer":   {[]string{prompt, answer, call}, importer.TurnWritten, true, 2},
		"a part of a line":    {[]string{prompt, answer, call[:50]}, importer.TurnWritten, true, 2},
		"only a part of line": {[]string{prompt, call[:50]}, importer.TurnWritten, true, 1},
	} {
		file := write(t, filepath.Join(t.TempDir(), "s.jsonl"), c.lines...)
		at := time.Now().Add(-c.age)
		require.NoError(t, os.Chtimes(file, at, at))
		report, err := importer.Import(t.Context(), b.Log, []transcript.File{{Path: file}}, importer.Options{Tenant: "default", Format: "claude-code", TurnEnded: c.ended})
		require.NoError(t, err)
		require.Equal(t, c.held, report.HeldBack, name)
		require.Zero(t, report.Rejected, name)
	}
}

// A program that copies a file writes the last bytes, then sets the time of the original.
func TestAFileThatBecomesOldWhileItIsReadIsNotTakenForComplete(t *testing.T) {
	b := setup(t)
	dir := t.TempDir()
	const turn = `{"type":"assistant","uuid":"%[1]s","sessionId":"%[2]s","message":{"id":"m%[1]s","content":[{"type":"text","text":"x"}]}}` + "\n"
	old := time.Now().Add(-time.Hour)
	for i := range 400 {
		session := fmt.Sprintf("s%03d", i)
		file := filepath.Join(dir, session+".jsonl")
		require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, turn, "a", session), 0o644))
		f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
		require.NoError(t, err)
		var copied sync.WaitGroup
		copied.Go(func() {
			for began := time.Now(); time.Since(began) < time.Duration(i)*time.Microsecond; {
				runtime.Gosched()
			}
			_, _ = fmt.Fprintf(f, turn, "b", session)
			_ = os.Chtimes(file, old, old)
		})
		report, err := importer.Import(t.Context(), b.Log, []transcript.File{{Path: file}}, importer.Options{Tenant: "default", Format: "claude-code"})
		copied.Wait()
		require.NoError(t, err)
		require.NoError(t, f.Close())
		if report.HeldBack == 0 {
			require.Equal(t, 3, report.Published, "an unfinished message was published in round %d", i)
		}
	}
}

func TestANamedFileIsImportedAsItIs(t *testing.T) {
	b := setup(t)
	file := filepath.Join(t.TempDir(), "s.jsonl")
	write(t, file,
		`{"type":"user","uuid":"u","sessionId":"s","message":{"content":"hi"}}`,
		`{"type":"assistant","uuid":"a","sessionId":"s","message":{"id":"m","content":[{"type":"text","text":"One."}]}}`)
	report, err := b.bring(file)
	require.NoError(t, err)
	require.Equal(t, importer.Report{Read: 3, Published: 3, Conversations: 1, LastSeq: 3}, report)
}

func TestAnUnreadableFileDoesNotEndTheImport(t *testing.T) {
	b := setup(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.jsonl"), "hello")
	write(t, filepath.Join(dir, "b.jsonl"), message("a:1", "1", "x"))
	gone := filepath.Join(dir, "c.jsonl")
	files, err := transcript.Find([]string{dir, write(t, gone, message("a:1", "2", "y"))})
	require.NoError(t, err)
	require.NoError(t, os.Remove(gone))
	report, err := importer.Import(t.Context(), b.Log, files, importer.Options{Tenant: "default"})
	require.ErrorIs(t, err, importer.ErrUnread)
	require.ErrorIs(t, err, transcript.ErrUnknownFormat)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.Equal(t, 1, strings.Count(err.Error(), filepath.Join(dir, "a.jsonl")))
	require.Equal(t, 1, strings.Count(err.Error(), gone))
	require.Equal(t, 1, report.Published)
}

// exported is a line of an export: an event with the sequence that it had.
func exported(t *testing.T, seq int, id string, p events.Payload) string {
	t.Helper()
	e, err := events.New("c", "runtime", id, p)
	require.NoError(t, err)
	e.Extensions[transcript.SequenceExtension] = fmt.Sprint(seq)
	line, err := events.EncodeStructured(e)
	require.NoError(t, err)
	return string(line)
}

func TestAnImportedSummaryGetsItsRangeInThisLog(t *testing.T) {
	b := setup(t)
	dir := t.TempDir()
	_, err := b.bring(write(t, filepath.Join(dir, "other.jsonl"), message("a:1", "1", "x"), message("a:1", "2", "y")))
	require.NoError(t, err)
	say := func(seq int, id string) string {
		return exported(t, seq, id, &events.MessageCreated{MessageID: id, Role: "user", Content: id})
	}
	sum := func(seq int, id string, level int, first, last uint64, children ...string) string {
		return exported(t, seq, id, &events.SummaryWritten{
			SummaryID: id, Level: level, FirstSeq: first, LastSeq: last, FirstTurn: 1, LastTurn: 2, Children: children, Conversation: "said", Method: "extractive", TurnCount: 2,
		})
	}
	file := write(t, filepath.Join(dir, "export.ndjson"),
		say(10, "m1"), say(12, "m2"), sum(13, "s1", 1, 10, 12),
		// 16, the last sequence of the range, is missing, because that event was only a duplicate.
		say(15, "m3"), sum(17, "s2", 1, 13, 16), sum(18, "s3", 2, 10, 16, "s1", "s2"),
		sum(40, "s4", 1, 30, 31), say(41, "m4"))
	first, err := b.bring(file)
	require.NoError(t, err)
	require.Equal(t, importer.Report{Read: 8, Published: 7, Rejected: 1, Conversations: 1, LastSeq: 9}, first)
	require.Equal(t, []string{`export.ndjson: line 7: summary "s4" covers sequences 30 to 31 of the exported log, but none of their events was imported`}, b.rejected)

	response, err := http.Get(b.HTTPURL() + "/v1/conversations/c/summaries")
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	var got struct {
		Summaries []struct {
			SummaryID string `json:"summary_id"`
			FirstSeq  int    `json:"first_seq"`
			LastSeq   int    `json:"last_seq"`
		}
	}
	require.NoError(t, json.NewDecoder(response.Body).Decode(&got))
	ranges := map[string][2]int{}
	for _, s := range got.Summaries {
		ranges[s.SummaryID] = [2]int{s.FirstSeq, s.LastSeq}
	}
	require.Equal(t, map[string][2]int{"s1": {3, 4}, "s2": {5, 6}, "s3": {3, 6}}, ranges)

	again, err := b.bring(file)
	require.NoError(t, err)
	require.Equal(t, importer.Report{Read: 8, Duplicate: 7, Rejected: 1, Conversations: 1}, again, "a summary gets the same range again")
}

func TestASummaryReimportedIntoItsLogKeepsItsRange(t *testing.T) {
	b := setup(t)
	publish := func(e events.Event) uint64 {
		ack, err := b.Log.Publish(mnemetest.Context(t), "default", e)
		require.NoError(t, err)
		return ack.Seq
	}
	var lines []string
	send := func(id string, p events.Payload) {
		e, err := events.New("c", "runtime", id, p)
		require.NoError(t, err)
		lines = append(lines, exported(t, int(publish(e)), id, p))
	}
	say := func(id string) { send(id, &events.MessageCreated{MessageID: id, Role: "user", Content: id}) }
	between := func(id string) {
		e, err := events.New("other", "runtime", id, &events.MessageCreated{MessageID: id, Role: "user", Content: id})
		require.NoError(t, err)
		publish(e)
	}
	sum := func(id string, first, last uint64) {
		send(id, &events.SummaryWritten{SummaryID: id, Level: 1, FirstSeq: first, LastSeq: last, Conversation: "said", Method: "extractive"})
	}
	say("m1")       // 1
	between("o1")   // 2
	say("m2")       // 3
	between("o2")   // 4, where the first range ends
	say("m3")       // 5
	sum("s1", 1, 4) // 6
	between("o3")   // 7
	say("m4")       // 8
	sum("s2", 5, 7) // 9
	require.EqualValues(t, 9, b.head())
	b.settle()
	file := write(t, filepath.Join(t.TempDir(), "export.ndjson"), lines...)
	report, err := b.bring(file)
	require.NoError(t, err)
	require.Equal(t, importer.Report{Read: 6, Duplicate: 6, Conversations: 1}, report)

	// A restored copy lacks the end, which is imported after other events were published to it.
	restored := setup(t)
	part := write(t, filepath.Join(t.TempDir(), "part.ndjson"), lines[:4]...)
	_, err = restored.bring(part)
	require.NoError(t, err)
	_, err = restored.bring(write(t, filepath.Join(t.TempDir(), "other.jsonl"), message("a:1", "1", "x")))
	require.NoError(t, err)
	report, err = restored.bring(file)
	require.NoError(t, err)
	require.Equal(t, importer.Report{Read: 6, Published: 2, Duplicate: 4, Conversations: 1, LastSeq: 7}, report)
	for _, of := range []*bundle{b, restored} {
		response, err := http.Get(of.HTTPURL() + "/v1/failed")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, response.StatusCode)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, errors.Join(err, response.Body.Close()))
		require.NotContains(t, string(body), events.TypeSummaryWritten, "no summary is refused")
	}
}

func TestLinesWithAnInvalidSequenceAreRejected(t *testing.T) {
	b := setup(t)
	line := strings.Replace(exported(t, 7, "1", &events.MessageCreated{MessageID: "1", Role: "user", Content: "x"}), `"7"`, `"-7"`, 1)
	report, err := b.bring(write(t, filepath.Join(t.TempDir(), "a.ndjson"), line))
	require.NoError(t, err)
	require.Equal(t, importer.Report{Read: 1, Rejected: 1}, report)
	require.Equal(t, []string{`a.ndjson: line 1: mnemesequence: "-7" is not a sequence`}, b.rejected)
}

const agents = "../transcript/testdata/agents"

// opencodeDatabase makes a database in dir, and keeps it open as its agent would.
func opencodeDatabase(t *testing.T, dir string) (path string, db *sql.DB) {
	t.Helper()
	statements, err := os.ReadFile(filepath.Join(agents, "opencode", "opencode.sql"))
	require.NoError(t, err)
	path = filepath.Join(dir, "opencode.db")
	db, err = sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(wal)")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	_, err = db.Exec(string(statements))
	require.NoError(t, err)
	return path, db
}

func TestRecordingsOfAllAgentsInAFolderAreImportedOnce(t *testing.T) {
	b := setup(t)
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(agents)))
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if strings.Contains(path, ".golden") {
			return os.Remove(path)
		}
		return err
	}))
	path, _ := opencodeDatabase(t, dir)
	old := time.Now().Add(-time.Hour)
	for _, name := range []string{path, path + "-wal"} {
		require.NoError(t, os.Chtimes(name, old, old))
	}
	first, err := b.bring(dir)
	require.NoError(t, err)
	require.Greater(t, first.Published, 60)
	again, err := b.bring(dir)
	require.NoError(t, err)
	require.Zero(t, again.Published, "%v", b.rejected)
	require.Equal(t, first.Rejected, again.Rejected, "only what can't be read: %v", b.rejected)
	require.Equal(t, first.Published+first.HeldBack+first.Duplicate, again.Duplicate+again.HeldBack)
}

func TestAnUnfinishedMessageOfADatabaseIsLeftForTheNextImport(t *testing.T) {
	b := setup(t)
	path, db := opencodeDatabase(t, t.TempDir())
	bring := func() (importer.Report, []string) {
		var rejected []string
		report, err := importer.Import(t.Context(), b.Log, []transcript.File{{Path: path}}, importer.Options{
			Tenant: "default", Format: transcript.Auto, Lookup: b.lookup,
			Rejected: func(_ string, err *transcript.LineError) { rejected = append(rejected, err.Error()) },
		})
		require.NoError(t, err)
		b.settle()
		return report, rejected
	}
	first, rejected := bring()
	require.Equal(t, 2, first.HeldBack, "the message and its call")
	require.Len(t, rejected, 2, "a part and a message that are no JSON")
	_, err := db.Exec(`UPDATE message SET data = json_set(data, '$.time.completed', 1767225619000) WHERE id = 'msg_5';
		UPDATE part SET data = '{"type":"tool","tool":"bash","state":{"status":"completed","input":{"command":"sleep 9"},"output":"","time":{"start":1767225611500,"end":1767225619000}}}' WHERE id = 'prt_6'`)
	require.NoError(t, err)
	second, _ := bring()
	require.Zero(t, second.HeldBack)
	require.Equal(t, 3, second.Published, "the message, its call and the result")
	require.Equal(t, first.Published, second.Duplicate)
}
