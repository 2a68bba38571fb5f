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

	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/testdata"
)

// grace is the time that Kubernetes gives a program to stop.
const grace = 30 * time.Second

func TestNothingIsLostWhileServersAndProgramsRestart(t *testing.T) {
	if !mnemetest.All {
		t.Skip("takes two minutes: make test-all")
	}
	c := setup(t)
	imported := c.imports()
	l := c.startLoad()
	l.goesOn()

	// Programs start, stop gracefully, and are killed.
	c.add("ingestor")
	c.add("file-tracker")
	c.add("summarizer")
	c.awaitShared()
	c.first("ingestor").terminate(grace)
	c.first("file-tracker").terminate(grace)
	c.first("summarizer").terminate(grace)
	c.awaitShared()
	c.first("ingestor").kill()
	c.first("summarizer").kill()
	c.add("ingestor")
	c.add("summarizer")
	c.awaitShared()
	l.goesOn()

	// The server that leads the stream is killed and restarted.
	killed := c.leader()
	killed.kill()
	l.goesOn()
	c.awaitShared()
	killed.again()
	require.NotEqual(t, killed, c.leader())
	l.goesOn()

	// The new leader is restarted as in an upgrade.
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
	c.awaitSummarized(l.acked)
	c.summarizedOnce()
	for _, api := range c.apis {
		c.reads(api, l.acked)
		c.verifies(api)
	}
	require.Equal(t, c.conversations(c.apis[0]), c.conversations(c.apis[1]))
}

// imports imports recorded conversations, or the repository's samples if there are none,
// and returns the number of their events.
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

// awaitApplied waits until the whole log is applied. The log has at least the acknowledged
// events; an event whose acknowledgement was lost can be in it twice.
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
			return rows >= 3*partitions
		})
	}
}

// verifies that the read models match the whole log. It repeats the comparison if the
// summarizer has written more events.
func (c *topology) verifies(api *process) {
	c.t.Helper()
	eventually(c.t, api.name+" finds every read model equal", func() bool {
		var v httpapi.Verification
		require.NoError(c.t, json.Unmarshal([]byte(c.mneme(api, "verify")), &v))
		require.True(c.t, v.Equal)
		require.Len(c.t, v.Projections, 4)
		behind := uint64(0)
		for _, p := range v.Projections {
			require.NotZero(c.t, p.Events)
			behind += p.Behind
		}
		return behind == 0
	})
}

// Summaries of conversations of this length leave at most this many characters uncovered:
// less than the threshold, the share of the last turns, and one message that does not fit.
const leave = 3_000 + 1_500 + 100

// awaitSummarized waits until nothing is due in any published conversation, and checks that
// the summaries of a level follow each other.
func (c *topology) awaitSummarized(acked map[string][]string) {
	c.t.Helper()
	for conversation := range acked {
		path := "/v1/conversations/" + url.PathEscape(conversation)
		messages := all[httpapi.Message](c.t, c.apis[0], path+"/messages?order=oldest", "messages")
		var list []httpapi.Summary
		eventually(c.t, conversation+" is summarised", func() bool {
			list = all[httpapi.Summary](c.t, c.apis[0], path+"/summaries?order=oldest", "summaries")
			last := uint64(0)
			for _, s := range list {
				if s.Level == 1 {
					last = max(last, s.LastSeq)
				}
			}
			left := 0
			for _, m := range messages {
				if m.Seq > last {
					left += len(m.Content)
				}
			}
			return left <= leave
		})
		next := map[int]uint64{}
		for _, s := range list {
			if next[s.Level] == 0 {
				next[s.Level] = messages[0].Seq
			}
			require.Equal(c.t, next[s.Level], s.FirstSeq, "%s of %s begins where the one before it ends", s.SummaryID, conversation)
			next[s.Level] = s.LastSeq + 1
		}
		require.GreaterOrEqual(c.t, len(list), 3, conversation)
		c.t.Logf("%s: %d summaries, of %d levels", conversation, len(list), len(next))
	}
}

// summarizedOnce checks that the log holds no summary twice, although several summarizers
// wrote them.
func (c *topology) summarizedOnce() {
	c.t.Helper()
	type key struct{ conversation, id string }
	seen := map[key]uint64{}
	for line := range strings.Lines(c.mneme(c.apis[0], "tail", "--from", "1", "--until-end", "--kind", "summary_written")) {
		var e struct {
			Subject string
			Seq     uint64
			Data    struct {
				ID string `json:"summary_id"`
			}
		}
		require.NoError(c.t, json.Unmarshal([]byte(line), &e), line)
		require.NotEmpty(c.t, e.Data.ID, line)
		require.Zero(c.t, seen[key{e.Subject, e.Data.ID}], "%s is written twice", line)
		seen[key{e.Subject, e.Data.ID}] = e.Seq
	}
	c.t.Logf("%d summaries were written", len(seen))
}

// reads checks that every conversation can be read and holds the acknowledged messages once
// and in order.
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

// get makes a request that must succeed.
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
