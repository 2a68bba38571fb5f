package httpapi_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/importer"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/service"
	"mneme.dev/mneme/internal/testdata"
	"mneme.dev/mneme/pkg/projection"
)

// lines returns n messages of each conversation, in the form of an export.
func lines(n int, conversations ...string) []byte {
	var out bytes.Buffer
	for i := range n {
		for _, c := range conversations {
			out.Write(append(structured(c, fmt.Sprint(i), message(fmt.Sprint("m", i), "user", fmt.Sprintf("message %d of %s", i, c))), '\n'))
		}
	}
	return out.Bytes()
}

// settled waits until the whole log is applied.
func (b *bundle) settled() {
	b.t.Helper()
	head := b.head()
	for _, s := range b.Status() {
		require.NoError(b.t, b.Log.AwaitProgress(b.t.Context(), s.Projection, 0, 50*time.Millisecond, func() (bool, error) {
			for _, now := range b.Status() {
				if now.Projection == s.Projection && now.Checkpoint.Seq < head {
					return false, nil
				}
			}
			return true, nil
		}))
	}
}

func TestImportingTwicePublishesOnce(t *testing.T) {
	b := setup(t)
	body := lines(750, "a/1", "b")
	answer := b.importLines("default", body)
	// What the log took without confirming it in time, as on a busy machine, is published again, and then known.
	answer.Published, answer.Duplicate = answer.Published+answer.Duplicate, 0
	require.Equal(t, imported{Read: 1500, Published: 1500, Conversations: 2, Seq: 1500, Problems: []httpapi.LineProblem{}}, answer)
	require.EqualValues(t, 1500, b.head())
	var c struct {
		MessageCount int `json:"message_count"`
	}
	b.get(fmt.Sprintf("/v1/conversations/a%%2F1?at_least=%d", answer.Seq), &c)
	require.Equal(t, 750, c.MessageCount)
	b.settled()
	again := b.importLines("default", body)
	require.Equal(t, 1500, again.Duplicate)
	require.Zero(t, again.Published)
	require.EqualValues(t, 1500, b.head())
	var packedAnswer imported
	b.do(http.StatusOK, http.MethodPost, "/v1/import", map[string]string{"Content-Type": "application/x-ndjson", "Content-Encoding": "gzip"}, packed(body), &packedAnswer)
	require.Equal(t, 1500, packedAnswer.Duplicate)
}

func TestBadImportLinesAreListedAndSkipped(t *testing.T) {
	b := setup(t)
	gone := b.publish(structured("gone", "1", &events.ConversationDeleted{})).Seq
	known := b.publish(structured("c1", "0", message("m0", "user", "another text"))).Seq
	b.settled()
	var body bytes.Buffer
	for i := range 150 {
		fmt.Fprintf(&body, "bad line %d\n", i)
	}
	body.WriteString("\n") // a blank line, which does not count
	body.Write(lines(3, "gone", "c1"))
	big := structured("c1", "big", message("big", "user", strings.Repeat("x", 7<<20)))
	body.Write(append(big, '\n'))
	tooBig := strings.Replace(string(big), `"content":"`, `"content":"`+strings.Repeat("y", 2<<20), 1)
	body.WriteString(tooBig + "\n")
	answer := b.importLines("default", body.Bytes())
	require.Equal(t, 158, answer.Read)
	require.Equal(t, 3, answer.Published+answer.Duplicate, "two of c1, and the big one; a busy log may have taken them without confirming it in time")
	require.EqualValues(t, known+3, b.head())
	require.Equal(t, 155, answer.Rejected)
	require.Len(t, answer.Problems, 100)
	require.Equal(t, 1, answer.Problems[0].Line)
	require.Contains(t, answer.Problems[0].Reason, "body: is")

	rest := body.Bytes()[bytes.Index(body.Bytes(), []byte("\n\n")):]
	answer = b.importLines("default", rest)
	require.Equal(t, 3, answer.Duplicate)
	require.Len(t, answer.Problems, 3)
	require.Equal(t, fmt.Sprintf(`conversation "gone" was deleted at sequence %d, so its events are not imported`, gone), answer.Problems[0].Reason)
	require.Equal(t, fmt.Sprintf(`the log has different content under the id "0" at sequence %d; the first one counts`, known), answer.Problems[1].Reason)
	require.Contains(t, answer.Problems[2].Reason, "the limit is")

	require.Equal(t, imported{Problems: []httpapi.LineProblem{}}, b.importLines("default", []byte("\n")), "nothing is imported from nothing")
	b.refused(http.StatusBadRequest, http.MethodPost, "/v1/import", map[string]string{"Content-Type": "application/x-ndjson"}, "")
}

func TestATooLargeEventDoesNotEndTheImport(t *testing.T) {
	b := setup(t)
	e, err := events.New("c1", "test", "wide", message("wide", "user", "x"))
	require.NoError(t, err)
	for i := range 20 { // more headers than the server accepts
		e.Extensions[fmt.Sprint("x", i)] = strings.Repeat("y", events.MaxExtensionBytes)
	}
	wide, err := events.EncodeStructured(e)
	require.NoError(t, err)
	all := lines(20, "c1")
	half := bytes.Index(all[len(all)/2:], []byte("\n")) + len(all)/2 + 1
	answer := b.importLines("default", bytes.Join([][]byte{all[:half], append(wide, '\n'), all[half:]}, nil))
	require.Equal(t, 20, answer.Published)
	require.Equal(t, 1, answer.Rejected)
	require.Contains(t, answer.Problems[0].Reason, "too large")
}

func TestAnAbortedUploadCanBeRepeated(t *testing.T) {
	t.Parallel()
	b, models := up(t)
	body := lines(1200, "c1")
	calm, calmModels := up(t)
	calm.importLines("default", body)
	for i, cut := range []int{0, 100, len(body) / 3, len(body) - 10} {
		conn := dial(t, b.HTTPURL(), fmt.Sprintf("POST /v1/import HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", len(body)))
		_, err := conn.Write(body[:cut])
		require.NoError(t, err)
		if i%2 == 0 {
			require.NoError(t, conn.Close())
			continue
		}
		require.NoError(t, conn.CloseWrite())
		response, text := answer(t, conn, http.MethodPost)
		require.Equal(t, http.StatusBadRequest, response.StatusCode, text)
		require.Contains(t, text, "send all of it again")
	}
	whole := b.importLines("default", body)
	require.Equal(t, 1200, whole.Read)
	require.Zero(t, whole.Rejected)
	b.settled() // on a slow machine the window in which the server itself knows a repeat may be over
	again := b.importLines("default", body)
	require.Equal(t, 1200, again.Duplicate)
	calm.settled()
	require.Equal(t, hashes(t, calmModels), hashes(t, models))
}

// hashes returns the hashes of the conversations in both read models.
func hashes(t *testing.T, models *service.Models) map[string]events.Digest {
	t.Helper()
	g, err := models.Graph(t.Context())
	require.NoError(t, err)
	defer g.Release()
	f, err := models.Files(t.Context())
	require.NoError(t, err)
	defer f.Release()
	found := map[string]events.Digest{}
	for name, store := range map[string]projection.ReadStore{"graph": g.Model, "files": f.Model} {
		require.NoError(t, store.Hashes(t.Context(), func(h projection.ConversationHash) error {
			found[name+" "+h.Conversation.Tenant+" "+h.Conversation.ID] = h.Hash
			return nil
		}))
	}
	require.NotEmpty(t, found)
	return found
}

// recorded opens a recording of real sessions.
func recorded(t *testing.T, name string) io.Reader {
	t.Helper()
	file, err := os.Open(filepath.Join(testdata.Dir(t), "events", name+".jsonl.gz"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = file.Close() })
	return file
}

// withoutSeqs removes sequences from a text, because they differ between logs.
func withoutSeqs(text string) string { return seqs.ReplaceAllString(text, "") }

var seqs = regexp.MustCompile(`,?"(seq|first_seq|last_seq)":\d+|whole: sequence \d+|,?"mnemesequence":"\d+"`)

func TestExportAndImportRoundTrip(t *testing.T) {
	t.Parallel()
	testdata.Dir(t)
	b, models := up(t)
	other, otherModels := up(t)
	names, least := []string{"codex", "gemini_cli", "openhands"}, 1000
	if !testing.Short() {
		names, least = append(names, "pi", "swe_agent", "locomo"), 10_000
	}
	if mnemetest.All {
		names = append(names, "claude_code")
	}
	// A context names the sequences of omissions, whose length counts against the budget, so
	// they must have the same number of digits in both logs.
	b.importLines("before", lines(least/2, "1", "2"))
	for _, name := range names {
		ctx, cancel := context.WithTimeout(t.Context(), 5*mnemetest.Patience) // without a deadline, the log has seconds
		defer cancel()
		report, err := importer.ImportFrom(ctx, b.Log, name, recorded(t, name), importer.Options{Tenant: "default", Format: "neutral"})
		require.NoError(t, err)
		require.Zero(t, report.Rejected)
		t.Logf("%s: %d events", name, report.Published)
	}
	b.settled()
	var ids []string
	seen := 0
	for cursor := ""; ; {
		var page struct {
			Conversations []struct{ ID string }
			NextCursor    string `json:"next_cursor"`
		}
		b.get("/v1/conversations?cursor="+cursor, &page)
		for _, c := range page.Conversations {
			seen++
			if agent, _, _ := strings.Cut(c.ID, ":"); agent != "claude_code" || seen%3 == 0 {
				ids = append(ids, url.PathEscape(c.ID))
			}
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	for _, id := range ids[:3] {
		var c struct {
			FirstSeq uint64 `json:"first_seq"`
			LastSeq  uint64 `json:"last_seq"`
		}
		b.get("/v1/conversations/"+id, &c)
		id, err := url.PathUnescape(id)
		require.NoError(t, err)
		b.publish(structured(id, "summary", &events.SummaryWritten{SummaryID: "s", Level: 1, FirstSeq: c.FirstSeq, LastSeq: c.LastSeq, Conversation: "said", Method: "extractive"}))
	}
	b.settled()
	var all bytes.Buffer
	for _, id := range ids {
		all.WriteString(b.export(id, ""))
	}
	require.Equal(t, 3, strings.Count(all.String(), events.TypeSummaryWritten))
	first := b.importLines("copy", all.Bytes())
	require.Equal(t, imported{Read: first.Read, Published: first.Read, Conversations: len(ids), Seq: first.Seq, Problems: []httpapi.LineProblem{}}, first)
	b.settled()
	second := b.importLines("copy", all.Bytes())
	require.Equal(t, first.Read, second.Duplicate)
	elsewhere := other.importLines("default", all.Bytes())
	require.Equal(t, first.Read, elsewhere.Published)
	b.settled()
	other.settled()
	t.Logf("%d events of %d conversations, %d MiB exported", first.Read, len(ids), all.Len()>>20)

	want, got := hashes(t, models), hashes(t, otherModels)
	for key, hash := range got {
		require.Equal(t, want[key], hash, key)
	}
	require.Len(t, got, 2*len(ids))
	require.Less(t, b.head(), uint64(10*least))
	for _, id := range ids {
		for _, path := range []string{"?", "/context?format=markdown", "/context?format=markdown&max_chars=3000", "/files?limit=10000&all=true"} {
			var one, copied string
			b.get("/v1/conversations/"+id+path, &one)
			b.get("/v1/conversations/"+id+path+"&tenant=copy", &copied)
			require.Empty(t, cmp.Diff(withoutSeqs(one), withoutSeqs(copied)), id+path)
		}
		require.True(t, withoutSeqs(b.export(id, "tenant=default")) == withoutSeqs(b.export(id, "tenant=copy")), "an export of an import is the export: %s", id)
	}
}
