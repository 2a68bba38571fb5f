package service_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/instance"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/worker"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/projection"
)

// patience is how long a test waits for an expected event.
const patience = mnemetest.Patience

// retention is short, because tests can't wait minutes until a generation is removed.
var retention = worker.Retention{Kept: 300 * time.Millisecond, Rests: 100 * time.Millisecond}

// upOn starts mneme in this process on a directory that may have been used before.
func upOn(t *testing.T, data string, models settings.Models) running {
	t.Helper()
	i, err := instance.Start(t.Context(), instance.Config{
		Retention: retention,
		Data:      data, Models: models, Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, i.Close()) })
	return running{t, i}
}

// turns returns the events of a conversation's turns from..to: user messages, calls and
// results.
func turns(t *testing.T, conversation string, from, to int) (list []events.Event) {
	t.Helper()
	add := func(id string, payload events.Payload) {
		e, err := events.New(conversation, "test", id, payload)
		require.NoError(t, err)
		list = append(list, e)
	}
	for n := from; n < to; n++ {
		add(fmt.Sprintf("u%d", n), &events.MessageCreated{MessageID: fmt.Sprintf("u%d", n), Role: "user", Content: fmt.Sprintf("question %d of %s", n, conversation)})
		add(fmt.Sprintf("a%d", n), &events.MessageCreated{MessageID: fmt.Sprintf("a%d", n), Role: "assistant", Content: strings.Repeat("let me look ", 1+n%7)})
		add(fmt.Sprintf("c%d", n), &events.ToolCalled{ToolCallID: fmt.Sprintf("c%d", n), MessageID: fmt.Sprintf("a%d", n), ToolName: "Read", Arguments: json.RawMessage(fmt.Sprintf(`{"file_path":"/src/f%d.go"}`, n%20))})
		add(fmt.Sprintf("r%d", n), &events.ToolReturned{ToolCallID: fmt.Sprintf("c%d", n), Result: events.TextResult(strings.Repeat("line\n", 1+n%30))})
	}
	return list
}

// fill publishes conversations and returns the last sequence.
func (i running) fill(conversations, turnsOfEach int) (last uint64) {
	i.Helper()
	for c := range conversations {
		for all := range slices.Chunk(turns(i.T, fmt.Sprintf("c%d", c), 0, turnsOfEach), 200) {
			last = i.publish(all)
		}
	}
	return last
}

// publish publishes events, repeatedly if a busy machine does not store them in time. It
// returns the last sequence.
func (i running) publish(list []events.Event) (last uint64) {
	i.Helper()
	require.Eventually(i, func() bool {
		acks, err := i.Log.PublishAll(i.Context(), "default", list)
		if errors.Is(err, context.DeadlineExceeded) {
			return false
		}
		require.NoError(i, err)
		last = acks[len(acks)-1].Seq
		return true
	}, patience, time.Millisecond)
	return last
}

// ask sends a request and returns its status and body.
func (i running) ask(method, path, body string) (int, string) {
	i.Helper()
	request, err := http.NewRequestWithContext(i.Context(), method, i.HTTPURL()+path, strings.NewReader(body))
	require.NoError(i, err)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	require.NoError(i, err)
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	require.NoError(i, err)
	return response.StatusCode, string(raw)
}

func (i running) rebuild(name string) {
	i.Helper()
	status, body := i.ask(http.MethodPost, "/v1/rebuilds", fmt.Sprintf(`{"projection":%q}`, name))
	require.Equal(i, http.StatusAccepted, status, "%s", body)
}

// rebuilds lists the rebuilds by projection. On a busy machine the log may take too long to answer: then the API says
// to try again.
func (i running) rebuilds() map[string]httpapi.Rebuild {
	i.Helper()
	status, body := i.ask(http.MethodGet, "/v1/rebuilds", "")
	for end := time.Now().Add(patience); status == http.StatusServiceUnavailable && time.Now().Before(end); {
		time.Sleep(100 * time.Millisecond)
		status, body = i.ask(http.MethodGet, "/v1/rebuilds", "")
	}
	require.Equal(i, http.StatusOK, status, "%s", body)
	var answer struct{ Rebuilds []httpapi.Rebuild }
	require.NoError(i, json.Unmarshal([]byte(body), &answer))
	byName := map[string]httpapi.Rebuild{}
	for _, r := range answer.Rebuilds {
		byName[r.Projection] = r
	}
	return byName
}

// became waits until the rebuild of a projection is in a state.
func (i running) became(name, state string) (r httpapi.Rebuild) {
	i.Helper()
	require.Eventually(i, func() bool {
		r = i.rebuilds()[name]
		if state != "failed" {
			require.NotEqual(i, "failed", r.State, r.Error)
		}
		return r.State == state
	}, patience, 20*time.Millisecond)
	return r
}

// status returns the status of a projection's first partition.
func (i running) status(name string) httpapi.ProjectionStatus {
	i.Helper()
	_, body := i.ask(http.MethodGet, "/v1/status", "")
	var answer httpapi.Status
	require.NoError(i, json.Unmarshal([]byte(body), &answer))
	for _, p := range answer.Projections {
		if p.Name == name {
			return p
		}
	}
	i.Fatalf("no status of %s: %s", name, body)
	return httpapi.ProjectionStatus{}
}

// readings returns answers about conversations as of a sequence.
func (i running) readings(conversations int, seq uint64) (list []string) {
	i.Helper()
	for c := range conversations {
		one := "/v1/conversations/" + url.PathEscape(fmt.Sprintf("c%d", c))
		for _, path := range []string{"/context?format=markdown", "/context?explain=true", "/messages?limit=50", "/turns?limit=5", "/files"} {
			sep := "&"
			if !strings.Contains(path, "?") {
				sep = "?"
			}
			answer := i.get(one + path + sep + fmt.Sprintf("as_of=%d", seq))
			require.True(i, strings.HasPrefix(answer, "200 "), "%s", answer)
			list = append(list, answer)
		}
	}
	return list
}

// generations returns the generations in a SQLite directory.
func generations(data string) sqlitestore.Generations {
	return sqlitestore.NewGenerations(filepath.Join(data, "models"))
}

func builds(t *testing.T, g projection.Generations, name string) projection.Builds {
	t.Helper()
	b, err := g.Builds(t.Context(), name)
	require.NoError(t, err)
	return b
}

// only waits until the serving generation is the only one left.
func only(t *testing.T, g projection.Generations, name string, generation int) {
	t.Helper()
	require.Eventually(t, func() bool {
		b := builds(t, g, name)
		return b.Serving == generation && len(b.Others) == 0
	}, patience, 20*time.Millisecond)
}

// heldFile holds the write lock of a file, which stops its projector.
type heldFile struct {
	*testing.T
	db   *sql.DB
	conn *sql.Conn
}

// hold waits until a generation has applied something, and stops its projector there.
func hold(t *testing.T, data, name string, generation int) (heldFile, uint64) {
	t.Helper()
	path := sqlitestore.Path(filepath.Join(data, "models"), name, generation)
	require.Eventually(t, func() bool {
		cps, err := generations(data).Checkpoints(t.Context(), name, generation)
		return err == nil && len(cps) > 0
	}, patience, time.Millisecond)
	db, err := sql.Open("sqlite", sqlitestore.WriterDSN(path))
	require.NoError(t, err)
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	h := heldFile{t, db, conn}
	for {
		h.exec("BEGIN IMMEDIATE")
		var seq uint64
		require.NoError(t, conn.QueryRowContext(t.Context(), "SELECT max(seq) FROM checkpoint").Scan(&seq))
		if seq > 0 {
			t.Cleanup(h.letGo)
			return h, seq
		}
		h.exec("ROLLBACK")
		time.Sleep(time.Millisecond)
	}
}

func (h *heldFile) exec(statement string) {
	h.Helper()
	_, err := h.conn.ExecContext(h.Context(), statement)
	require.NoError(h, err)
}

// letGo lets the projector continue. A second letGo does nothing.
func (h *heldFile) letGo() {
	if h.conn != nil {
		_ = h.conn.Close()
		_ = h.db.Close()
		h.conn = nil
	}
}

// verifyGraph compares a read model "graph" with a replay of the log.
func verifyGraph(t *testing.T, log *eventlog.Log, model projection.ReadStore) (projection.Verification, error) {
	t.Helper()
	scratch, err := sqlitestore.OpenGraph(t.Context(), filepath.Join(t.TempDir(), "graph.db"))
	require.NoError(t, err)
	defer func() { require.NoError(t, scratch.Close()) }()
	return projection.Verify(t.Context(), graph.Projection(), log, model, scratch, nil)
}
