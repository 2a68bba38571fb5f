package service_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/importer"
	"mneme.dev/mneme/internal/instance"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/neo4jtest"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/testdata"
	"mneme.dev/mneme/internal/transcript"
	"mneme.dev/mneme/pkg/graph/readmodel"
)

// running is mneme in this process.
type running struct {
	*testing.T
	*instance.Instance
}

func up(t *testing.T, models settings.Models) running {
	t.Helper()
	i, err := instance.Start(t.Context(), instance.Config{
		Retention: retention,
		Data:      t.TempDir(), Models: models, Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, i.Close()) })
	return running{t, i}
}

// bring imports recordings and returns the last sequence published.
func (i running) bring(paths []string) uint64 {
	i.Helper()
	files, err := transcript.Find(paths)
	require.NoError(i, err)
	report, err := importer.Import(i.Context(), i.Log, files, importer.Options{Tenant: "default", Format: transcript.Auto})
	require.NoError(i, err)
	return report.LastSeq
}

// copy publishes all events of another instance's log, including summaries, and returns the
// last sequence.
func (i running) copy(from running) uint64 {
	i.Helper()
	state, err := from.Log.State(mnemetest.Context(i))
	require.NoError(i, err)
	var list []events.Event
	each(i.T, from.Log, state.Head, func(e events.Recorded) { list = append(list, e.Event) })
	acks, err := i.Log.PublishAll(mnemetest.Context(i), "default", list)
	require.NoError(i, err)
	require.Equal(i, state.Head, acks[len(acks)-1].Seq)
	return state.Head
}

// get returns the status and body of the answer to a path.
func (i running) get(path string) string {
	i.Helper()
	request, err := http.NewRequestWithContext(i.Context(), http.MethodGet, i.HTTPURL()+path, nil)
	require.NoError(i, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(i, err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	require.NoError(i, err)
	return response.Status + "\n" + string(body)
}

// applied waits until all read models have applied a sequence.
func (i running) applied(seq uint64) {
	i.Helper()
	// A read waits only for the read models that it needs. That of code has nothing to apply in these tests.
	for _, path := range []string{"/v1/conversations?limit=1", "/v1/projects?limit=1", "/v1/insights?by=day&limit=1"} {
		path += fmt.Sprintf("&at_least=%d", seq)
		require.Eventually(i, func() bool { return strings.HasPrefix(i.get(path), "200 ") }, 5*time.Minute, 10*time.Millisecond)
	}
}

// excerpt returns the text around a byte.
func excerpt(text string, at int) string {
	return text[max(0, min(at, len(text))-100):min(len(text), at+100)]
}

// hashes verifies the read models and returns their hashes.
func (i running) hashes() map[string]string {
	i.Helper()
	var body []byte
	require.Eventually(i, func() bool { // a busy server may not answer at once
		response, err := http.Post(i.HTTPURL()+"/v1/verify", "application/json", nil)
		require.NoError(i, err)
		defer func() { _ = response.Body.Close() }()
		body, err = io.ReadAll(response.Body)
		require.NoError(i, err)
		return response.StatusCode != http.StatusServiceUnavailable
	}, 5*time.Minute, time.Second)
	lines := strings.Split(strings.TrimSpace(string(body)), "\n")
	var answer struct {
		Equal       bool
		Projections []struct{ Name, Hash string }
	}
	require.NoError(i, json.Unmarshal([]byte(lines[len(lines)-1]), &answer), "%s", body)
	require.True(i, answer.Equal, "%s", body)
	hashes := map[string]string{}
	for _, p := range answer.Projections {
		hashes[p.Name] = p.Hash
	}
	require.Len(i, hashes, len(readmodel.Names())-1, "without embeddings")
	return hashes
}

// recordings returns the recordings on which both backends are compared: a few of each
// agent, or all of them with [mnemetest.All].
func recordings(t *testing.T) (paths []string) {
	names := []string{"codex", "gemini_cli", "openhands", "swe_agent", "locomo"}
	if mnemetest.All {
		names = append(names, "claude_code", "pi", "longmemeval_s3", "beam_100k")
	}
	for _, name := range names {
		paths = append(paths, testdata.Recording(t, name, 400))
	}
	return paths
}

// TestOnNeo4j runs the tests that need their own database, one by one on a shared server,
// which then starts once and plans each statement once.
func TestOnNeo4j(t *testing.T) {
	server := neo4jtest.Own(t)
	for _, one := range []struct {
		name string
		test func(t *testing.T, uri string)
	}{
		{"both backends answer the same bytes on recorded sessions", bothBackendsAnswerTheSameBytes},
		{"messages are embedded by an endpoint", messagesAreEmbeddedInNeo4j},
		{"a rebuild is seen by nobody", aRebuildInNeo4jIsSeenByNobody},
		{"processes that share it rebuild together", processesThatShareANeo4jRebuildTogether},
		{"a log is split twice at once", aLogIsSplitTwiceAtOnce},
		{"status shows every process and a retry reaches the owner", statusShowsEveryProcessAndARetryReachesTheOwner},
	} {
		t.Run(one.name, func(t *testing.T) { one.test(t, server.URI()) })
		neo4jtest.Wipe(t, server)
	}
}

// bothBackendsAnswerTheSameBytes compares the API's answers about recorded sessions, with
// summaries.
func bothBackendsAnswerTheSameBytes(t *testing.T, uri string) {
	paths := recordings(t)
	sqlite := summarizing(t, t.TempDir(), func(s *settings.Summaries) { s.MaxContextChars = 20_000 })
	neo4j := up(t, settings.Models{Store: "neo4j", Neo4j: settings.Neo4j{URI: uri}})
	sqlite.bring(paths)
	sqlite.settled()
	last := neo4j.copy(sqlite)
	neo4j.applied(last)

	same := func(path string) string {
		t.Helper()
		want, got := sqlite.get(path), neo4j.get(path)
		for i := range want {
			if i >= len(got) || want[i] != got[i] {
				t.Fatalf("%s differs at byte %d: %q, on Neo4j %q", path, i, excerpt(want, i), excerpt(got, i))
			}
		}
		require.Len(t, got, len(want), path)
		if young := strings.HasPrefix(want, "404 ") && strings.Contains(path, "as_of="); !young && !strings.HasPrefix(want, "200 ") {
			t.Fatalf("%s: %s", path, excerpt(want, 0))
		}
		return want
	}
	var list struct {
		Conversations []struct {
			ID       string
			FirstSeq uint64 `json:"first_seq"`
			LastSeq  uint64 `json:"last_seq"`
		}
	}
	sqlite.applied(last)
	_, body, _ := strings.Cut(same("/v1/conversations?limit=200"), "\n")
	require.NoError(t, json.Unmarshal([]byte(body), &list))
	require.NotEmpty(t, list.Conversations)
	same("/v1/conversations?limit=3&order=created")
	same("/v1/failed")
	levels := false
	for n, c := range list.Conversations {
		if n%5 != 0 && !mnemetest.All { // one fifth includes sessions of each agent
			continue
		}
		one := "/v1/conversations/" + url.PathEscape(c.ID)
		then := fmt.Sprintf("as_of=%d", max(c.FirstSeq, c.LastSeq-uint64(n)%20))
		for _, path := range []string{
			"", "?" + then, "/context?format=markdown", "/context?explain=true&" + then, "/context?strategy=pruned&format=markdown&max_chars=5000", "/context?strategy=recent&max_chars=20000",
			"/context?strategy=levels&format=markdown&max_chars=30000", "/context?format=openai&max_chars=20000", "/context?format=anthropic&explain=true&" + then,
			"/summaries?limit=50", "/summaries?limit=50&order=oldest&" + then,
			"/messages?limit=20", "/messages?limit=20&role=user&order=oldest&" + then, "/turns?limit=5", "/steps?limit=5&" + then, "/tool-calls?limit=20", "/files", "/files?" + then,
		} {
			answer := same(one + path)
			if !strings.HasPrefix(answer, "200 ") {
				t.Fatalf("%s%s: %s", one, path, excerpt(answer, 0))
			}
			levels = levels || strings.Contains(answer, `"level":2,`)
		}
	}
	require.True(t, levels, "there are summaries of summaries")

	var found struct{ Projects []struct{ Name string } }
	_, body, _ = strings.Cut(same("/v1/projects?limit=200"), "\n")
	require.NoError(t, json.Unmarshal([]byte(body), &found))
	require.NotEmpty(t, found.Projects)
	for n, p := range found.Projects {
		if n%5 != 0 && !mnemetest.All {
			continue
		}
		one := "/v1/projects/" + url.PathEscape(p.Name)
		for _, path := range []string{"", "/context?explain=true", "/context?format=markdown&max_chars=8000&query=fix+the+failing+test", fmt.Sprintf("/context?explain=true&as_of=%d", last/2)} {
			same(one + path)
		}
	}
	require.Equal(t, sqlite.hashes(), neo4j.hashes())
}
