package importer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme/events"
	"mneme/internal/importer"
	"mneme/internal/service"
	"mneme/internal/transcript"
)

const window = 100 * time.Millisecond

// bundle is mneme in this process, with a short duplicate window, and what its
// importer was told about.
type bundle struct {
	*testing.T
	*service.Instance
	rejected []string
}

func setup(t *testing.T) *bundle {
	t.Helper()
	i, err := service.Up(t.Context(), service.Config{
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

// bring imports paths, then waits until all is applied and the duplicate window is
// over. It checks that the counts add up.
func (b *bundle) bring(paths ...string) (importer.Report, error) {
	b.Helper()
	files, err := transcript.Find(paths)
	require.NoError(b, err)
	report, err := importer.Import(b.Context(), b.Log, files, importer.Options{
		Tenant: "default", Format: transcript.Auto, Lookup: b.lookup,
		Rejected: func(file string, err *transcript.LineError) {
			b.rejected = append(b.rejected, fmt.Sprintf("%s: %v", filepath.Base(file), err))
		},
	})
	require.Equal(b, report.Read, report.Published+report.Duplicate+report.Rejected+report.HeldBack)
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
	}, 10*time.Second, 5*time.Millisecond)
	time.Sleep(3 * window)
}

func (b *bundle) head() uint64 {
	state, err := b.Log.State(b.Context())
	require.NoError(b, err)
	return state.Head
}

func write(t *testing.T, name string, lines ...string) string {
	t.Helper()
	require.NoError(t, os.WriteFile(name, []byte(strings.Join(lines, "\n")), 0o644))
	return name
}

func message(conversation, id, content string) string {
	return fmt.Sprintf(`{"kind":"message","conversation_id":%q,"id":%q,"role":"user","content":%q}`, conversation, id, content)
}

func TestAnImportAfterTheDuplicateWindowPublishesNothing(t *testing.T) {
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
	require.Equal(t, []string{`a.jsonl: line 2: the log has another content under the id "2" at sequence 2; the first one counts`}, b.rejected)
}

func TestADeletedConversationIsNotImportedAgain(t *testing.T) {
	b := setup(t)
	file := write(t, filepath.Join(t.TempDir(), "a.jsonl"), message("a:1", "1", "x"), message("a:1", "2", "y"), message("a:2", "1", "z"))
	_, err := b.bring(file)
	require.NoError(t, err)
	e, err := events.New("a:1", "test", "gone", &events.ConversationDeleted{})
	require.NoError(t, err)
	_, err = b.Log.Publish(t.Context(), "default", e)
	require.NoError(t, err)
	b.settle()

	write(t, file, message("a:1", "1", "x"), message("a:1", "2", "y"), message("a:2", "1", "z"), message("a:1", "3", "new"))
	report, err := b.bring(file)
	require.NoError(t, err)
	require.Equal(t, importer.Report{Read: 4, Duplicate: 1, Rejected: 3, Conversations: 2}, report)
	require.EqualValues(t, 4, b.head())
	require.Equal(t, []string{`a.jsonl: line 1: conversation "a:1" was deleted at sequence 4; its events are not imported again`}, b.rejected)
}

func TestAMessageThatIsStillWrittenIsImportedOnceItIsWhole(t *testing.T) {
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

func TestAFileThatIsNamedIsImportedAsItIs(t *testing.T) {
	b := setup(t)
	file := filepath.Join(t.TempDir(), "s.jsonl")
	write(t, file,
		`{"type":"user","uuid":"u","sessionId":"s","message":{"content":"hi"}}`,
		`{"type":"assistant","uuid":"a","sessionId":"s","message":{"id":"m","content":[{"type":"text","text":"One."}]}}`)
	report, err := b.bring(file)
	require.NoError(t, err)
	require.Equal(t, importer.Report{Read: 3, Published: 3, Conversations: 1, LastSeq: 3}, report)
}

func TestAFileThatCannotBeReadDoesNotEndTheImport(t *testing.T) {
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
