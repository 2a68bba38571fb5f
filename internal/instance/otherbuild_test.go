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
)

// What the log has lost may be in a read model only. Asking again and again whether it is still so reads the whole log
// each time.
func TestAReadModelThatHoldsMoreThanTheLogIsLeftToTheOperator(t *testing.T) {
	t.Parallel()
	data, logged := t.TempDir(), &mnemetest.Log{}
	up := func() *running {
		i, err := instance.Start(t.Context(), instance.Config{Data: data, Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0", Logger: slog.New(slog.NewTextHandler(logged, nil))})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, i.Close()) })
		return &running{T: t, Instance: i}
	}
	r := up()
	for n := range 3 {
		event := fmt.Sprintf(`{"specversion":"1.0","type":"dev.mneme.message.created.v1","source":"test","id":"m%d","subject":"c","data":{"message_id":"m%d","role":"user","content":"Hello"}}`, n, n)
		answer, err := http.Post(r.HTTPURL()+"/v1/events", "application/cloudevents+json", strings.NewReader(event))
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusCreated, answer.StatusCode)
	}
	status, body := r.get("/v1/conversations/c?at_least=3")
	require.Equal(t, http.StatusOK, status, body)
	conn, err := nats.Connect(r.NATSURL(), nats.Timeout(mnemetest.Handshake))
	require.NoError(t, err)
	defer conn.Close()
	js, err := jetstream.New(conn)
	require.NoError(t, err)
	stream, err := js.Stream(t.Context(), natsdeploy.Stream)
	require.NoError(t, err)
	require.NoError(t, stream.DeleteMsg(t.Context(), 2))
	require.NoError(t, r.Close())
	for _, name := range []string{"files", "graph"} {
		db, err := sql.Open("sqlite", sqlitestore.WriterDSN(sqlitestore.Path(filepath.Join(data, "models"), name, 1)))
		require.NoError(t, err)
		_, err = db.ExecContext(t.Context(), "UPDATE checkpoint SET fingerprint = 'older'")
		require.NoError(t, err)
		require.NoError(t, db.Close())
	}

	r = up()
	require.Eventually(t, func() bool {
		return strings.Count(logged.String(), "needs a rebuild") == 2
	}, mnemetest.Patience, 10*time.Millisecond, "%s", logged)
	require.Equal(t, 2, strings.Count(logged.String(), "write them back with mneme repair log"), logged)
	require.NotContains(t, logged.String(), "can't begin", "it is not tried again")
	_, body = r.get("/v1/rebuilds")
	require.NotContains(t, body, "building")
	status, body = r.get("/v1/conversations/c")
	require.Equal(t, http.StatusOK, status, body)
	require.Contains(t, body, `"message_count":3`)
}
