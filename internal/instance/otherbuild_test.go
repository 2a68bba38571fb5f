package instance_test

import (
	"database/sql"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/internal/instance"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/projection"
)

// pretendOlder makes a read model one that an older version built.
func pretendOlder(t *testing.T, data, name string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", sqlitestore.WriterDSN(sqlitestore.Path(filepath.Join(data, "models"), name, 1)))
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), "UPDATE checkpoint SET fingerprint = 'older'")
	require.NoError(t, err)
	return db
}

// status returns the status of a read model's projector.
func (r *running) status(name string) (status projection.Status) {
	for _, s := range r.Status() {
		if s.Projection == name {
			status = s
		}
	}
	return status
}

// lose deletes a message of the log as a disk would, without a record.
func (r *running) lose(seq uint64) {
	r.Helper()
	conn, err := nats.Connect(r.NATSURL(), nats.Timeout(mnemetest.Handshake))
	require.NoError(r, err)
	defer conn.Close()
	js, err := jetstream.New(conn)
	require.NoError(r, err)
	stream, err := js.Stream(mnemetest.Context(r), natsdeploy.Stream)
	require.NoError(r, err)
	require.NoError(r, stream.DeleteMsg(mnemetest.Context(r), seq))
}

// live waits until a generation of a read model serves the newest events.
func (r *running) live(name string, generation int) {
	r.Helper()
	require.Eventually(r, func() bool {
		s := r.status(name)
		return s.Generation == generation && s.State == projection.StateLive
	}, mnemetest.Patience, 10*time.Millisecond)
}

// logged returns what instances log, and what starts one on a data directory.
func logged(t *testing.T) (*mnemetest.Log, func(data string) *running) {
	t.Helper()
	log := &mnemetest.Log{}
	return log, func(data string) *running {
		i, err := instance.Start(t.Context(), instance.Config{Data: data, Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0", Logger: slog.New(slog.NewTextHandler(log, nil))})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, i.Close()) })
		return &running{T: t, Instance: i}
	}
}

// What the log has lost may be in a read model only. Asking again and again whether it is still so reads the whole log
// each time.
func TestAReadModelThatHoldsMoreThanTheLogIsLeftToTheOperator(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	log, up := logged(t)
	r := up(data)
	for n := range 3 {
		event := fmt.Sprintf(`{"specversion":"1.0","type":"dev.mneme.message.created.v1","source":"test","id":"m%d","subject":"c","data":{"message_id":"m%d","role":"user","content":"Hello"}}`, n, n)
		answer, err := http.Post(r.HTTPURL()+"/v1/events", "application/cloudevents+json", strings.NewReader(event))
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusCreated, answer.StatusCode)
	}
	status, body := r.get("/v1/conversations/c?at_least=3")
	require.Equal(t, http.StatusOK, status, body)
	r.lose(2)
	r.live("files", 1)
	require.NoError(t, r.Close())
	for _, name := range []string{"files", "graph"} {
		db := pretendOlder(t, data, name)
		require.NoError(t, db.Close())
	}

	r = up(data)
	require.Eventually(t, func() bool {
		return strings.Count(log.String(), "needs a rebuild") == 2
	}, mnemetest.Patience, 10*time.Millisecond, "%s", log)
	require.Equal(t, 2, strings.Count(log.String(), "write them back with mneme repair log"), log)
	require.NotContains(t, log.String(), "can't begin", "it is not tried again")
	require.NotContains(t, log.String(), "level=ERROR", "one line says what to do")
	_, body = r.get("/v1/rebuilds")
	require.NotContains(t, body, "building")
	status, body = r.get("/v1/conversations/c")
	require.Equal(t, http.StatusOK, status, body)
	require.Contains(t, body, `"message_count":3`)
}

// A busy disk, or a program that copies the file, may keep a read model from starting for a while.
func TestAReadModelThatStartsLateIsRebuiltToo(t *testing.T) {
	mnemetest.Long(t)
	t.Parallel()
	data := t.TempDir()
	log, up := logged(t)
	r := up(data)
	r.live("files", 1)
	require.NoError(t, r.Close())
	db := pretendOlder(t, data, "files")
	held, err := db.Conn(t.Context())
	require.NoError(t, err)
	_, err = held.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	require.NoError(t, err)

	r = up(data)
	require.Eventually(t, func() bool { return strings.Contains(r.status("files").Error, "locked") }, mnemetest.Patience, 10*time.Millisecond)
	time.Sleep(time.Second) // it is looked at meanwhile
	_, err = held.ExecContext(t.Context(), "ROLLBACK")
	require.NoError(t, err)
	require.NoError(t, held.Close())
	require.NoError(t, db.Close())
	r.live("files", 2)
	require.NotContains(t, log.String(), "level=ERROR", "nobody has to do anything")
}
