package cluster

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme/internal/httpapi"
	"mneme/internal/testdata"
)

// grace is the time that Kubernetes gives a program to stop.
const grace = 30 * time.Second

func TestNothingIsLostWhileServersAndProgramsComeAndGo(t *testing.T) {
	if os.Getenv("MNEME_TEST_ALL") == "" {
		t.Skip("takes two minutes: make test-all")
	}
	c := setup(t)
	imported := c.imports()
	l := c.startLoad()
	l.goesOn()

	// Programs come, go in order, and are killed.
	c.add("ingestor")
	c.add("file-tracker")
	c.awaitShared()
	c.first("ingestor").terminate(grace)
	c.first("file-tracker").terminate(grace)
	c.awaitShared()
	c.first("ingestor").kill()
	c.add("ingestor")
	c.awaitShared()
	l.goesOn()

	// The server that leads the stream is killed, and comes back.
	killed := c.leader()
	killed.kill()
	l.goesOn()
	c.awaitShared()
	killed.again()
	require.NotEqual(t, killed, c.leader())
	l.goesOn()

	// The one that leads it now is restarted as in an upgrade.
	upgraded := c.leader()
	upgraded.handOver()
	l.goesOn()
	upgraded.again()
	c.leader()
	c.awaitShared()
	l.goesOn()

	l.end()
	acked, refused := l.counts()
	t.Logf("imported %d events, published %d, of %d attempts", imported, acked, acked+refused)
	c.awaitApplied(uint64(imported + acked))
	c.awaitShared()
	for _, api := range c.apis {
		c.reads(api, l.acked)
		var v httpapi.Verification
		require.NoError(t, json.Unmarshal([]byte(c.mneme(api, "verify")), &v))
		require.True(t, v.Equal)
		for _, p := range v.Projections {
			require.Zero(t, p.Behind)
			require.NotZero(t, p.Events)
		}
	}
	require.Equal(t, c.conversations(c.apis[0]), c.conversations(c.apis[1]))
}

// imports brings in recorded conversations, or where there are none the samples of the
// repository, and returns how many events these are.
func (c *topology) imports() int {
	c.t.Helper()
	from := filepath.Join(root, "internal/transcript/testdata")
	dir := os.Getenv(testdata.Variable)
	if dir == "" {
		dir = filepath.Join(root, "../shared/data")
	}
	if recorded := filepath.Join(dir, "events/openhands.jsonl.gz"); exists(recorded) {
		from = recorded
	}
	began := time.Now()
	out := c.mneme(c.apis[0], "import", from, "--wait")
	var imported struct{ Published, Rejected int }
	require.NoError(c.t, json.Unmarshal([]byte(out[strings.LastIndex(out, "\n")+1:]), &imported), out)
	require.NotZero(c.t, imported.Published)
	c.t.Logf("imported %d events, readable after %s", imported.Published, time.Since(began).Round(time.Millisecond))
	return imported.Published
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// awaitApplied waits until all of the log is applied. It holds at least what was
// acknowledged; an event whose acknowledgement was lost can be in it twice.
func (c *topology) awaitApplied(events uint64) {
	c.t.Helper()
	for _, api := range c.apis {
		eventually(c.t, api.name+" shows everything applied", func() bool {
			var s httpapi.Status
			if json.Unmarshal([]byte(api.answers("/v1/status")), &s) != nil {
				return false
			}
			require.GreaterOrEqual(c.t, s.Stream.Messages, events, "the log holds what was acknowledged")
			rows := 0
			for _, p := range s.Projections {
				require.Zero(c.t, p.Failed)
				require.Equal(c.t, "neo4j", p.Store)
				if p.State != "live" || p.Lag > 0 {
					return false
				}
				rows++
			}
			return rows >= 2*partitions
		})
	}
}

// reads looks that every conversation can be read, and holds what was acknowledged, in
// order and once.
func (c *topology) reads(api *process, acked map[string][]string) {
	c.t.Helper()
	list := c.conversations(api)
	require.Greater(c.t, len(list), len(acked))
	for _, conversation := range list {
		path := "/v1/conversations/" + url.PathEscape(conversation.ID)
		require.NotEmpty(c.t, get[map[string]any](c.t, api, path+"/context?format=json&max_chars=20000"), conversation.ID)
		want, published := acked[conversation.ID]
		if !published {
			continue
		}
		var got []string
		for _, m := range all[httpapi.Message](c.t, api, path+"/messages?order=oldest", "messages") {
			got = append(got, m.MessageID)
		}
		// The last message may be stored without its acknowledgement.
		require.LessOrEqual(c.t, len(got), len(want)+1, conversation.ID)
		require.GreaterOrEqual(c.t, len(got), len(want), conversation.ID)
		require.Equal(c.t, want, got[:len(want)], conversation.ID)
	}
}

func (c *topology) conversations(api *process) []httpapi.Conversation {
	c.t.Helper()
	return all[httpapi.Conversation](c.t, api, "/v1/conversations?order=created", "conversations")
}

// all reads every page of a list.
func all[T any](t *testing.T, api *process, path, member string) (list []T) {
	t.Helper()
	for cursor := ""; ; {
		page := get[map[string]json.RawMessage](t, api, path+"&limit=1000&cursor="+cursor)
		var rows []T
		require.NoError(t, json.Unmarshal(page[member], &rows))
		list, cursor = append(list, rows...), ""
		if page["next_cursor"] != nil {
			require.NoError(t, json.Unmarshal(page["next_cursor"], &cursor))
		}
		if cursor == "" {
			return list
		}
	}
}

// get reads what must be there.
func get[T any](t *testing.T, api *process, path string) (v T) {
	t.Helper()
	response, err := http.Get(api.url + path)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, "%s%s: %s", api.name, path, body)
	require.NoError(t, json.Unmarshal(body, &v), "%s", body)
	return v
}
