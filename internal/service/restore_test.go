package service_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/instance"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/graph/readmodel"
)

// one is mneme in one process, with its data directory.
type one struct {
	*instance.Instance
	t   *testing.T
	seq int
}

func (o *one) up(data string) {
	o.t.Helper()
	var err error
	o.Instance, err = instance.Start(o.t.Context(), instance.Config{
		Retention: retention,
		Data:      data, Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0", MaxBytes: 64 << 20, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(o.t, err)
	o.t.Cleanup(func() { _ = o.Close() })
}

// publish publishes n messages and calls to some conversations.
func (o *one) publish(n int) {
	o.t.Helper()
	list := make([]events.Event, n)
	for i := range list {
		o.seq++
		var p events.Payload = &events.MessageCreated{MessageID: fmt.Sprint("m", o.seq), Role: "user", Content: fmt.Sprint("text ", o.seq)}
		if i%3 == 0 {
			p = &events.ToolCalled{ToolCallID: fmt.Sprint("t", o.seq), ToolName: "Read", Arguments: json.RawMessage(fmt.Sprintf(`{"file_path":"/src/%d.go"}`, i%7))}
		}
		var err error
		list[i], err = events.New(fmt.Sprint("c", i%5), "test", fmt.Sprint("e", o.seq), p)
		require.NoError(o.t, err)
	}
	_, err := o.Log.PublishAll(mnemetest.Context(o.t), "default", list)
	require.NoError(o.t, err)
}

func (o *one) get(path string) string {
	o.t.Helper()
	request, err := http.NewRequestWithContext(o.t.Context(), http.MethodGet, o.HTTPURL()+path, nil)
	require.NoError(o.t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(o.t, err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	require.NoError(o.t, err)
	require.Equal(o.t, http.StatusOK, response.StatusCode, "%s", body)
	return string(body)
}

// await waits until ok accepts every projection.
func (o *one) await(what string, ok func(s httpapi.Status, p httpapi.ProjectionStatus) bool) (s httpapi.Status) {
	o.t.Helper()
	deadline := time.Now().Add(mnemetest.Patience)
	for {
		s = httpapi.Status{}
		require.NoError(o.t, json.Unmarshal([]byte(o.get("/v1/status")), &s))
		n := 0
		for _, p := range s.Projections {
			if ok(s, p) {
				n++
			}
		}
		if n == len(readmodel.Always()) {
			return s
		}
		require.True(o.t, time.Now().Before(deadline), "timed out waiting until each projection %s: %+v", what, s)
		time.Sleep(time.Millisecond)
	}
}

func (o *one) awaitApplied() {
	o.t.Helper()
	o.await("has applied the log", func(s httpapi.Status, p httpapi.ProjectionStatus) bool {
		return p.State == "live" && p.Checkpoint == s.Stream.Head
	})
}

// put replaces a directory with a copy of another one.
func put(t *testing.T, from, to string) {
	t.Helper()
	require.NoError(t, os.RemoveAll(to))
	require.NoError(t, os.CopyFS(to, os.DirFS(from)))
}

func TestRestoredReadModelsCatchUp(t *testing.T) {
	t.Parallel()
	data, backup := t.TempDir(), filepath.Join(t.TempDir(), "models")
	o := &one{t: t}
	o.up(data)
	o.publish(200)
	o.awaitApplied()
	require.NoError(t, o.Close())
	put(t, filepath.Join(data, "models"), backup)
	o.up(data)
	o.publish(300)
	o.awaitApplied()
	require.NoError(t, o.Close())
	put(t, backup, filepath.Join(data, "models"))

	o.up(data)
	o.publish(100)
	o.awaitApplied()
	response, err := http.Post(o.HTTPURL()+"/v1/verify", "", nil)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	var v httpapi.Verification
	require.NoError(t, json.NewDecoder(response.Body).Decode(&v))
	require.True(t, v.Equal, "%+v", v)
	for _, p := range v.Projections {
		require.EqualValues(t, 600, p.UpTo)
	}
}

func TestAnOlderRestoredLogHaltsItsProjections(t *testing.T) {
	t.Parallel()
	data, backup := t.TempDir(), filepath.Join(t.TempDir(), "nats")
	o := &one{t: t}
	o.up(data)
	o.publish(50)
	o.awaitApplied()
	require.NoError(t, o.Close())
	put(t, filepath.Join(data, "nats"), backup)
	o.up(data)
	o.publish(50)
	o.awaitApplied()
	require.NoError(t, o.Close())
	put(t, backup, filepath.Join(data, "nats"))

	for _, c := range []struct {
		publish int // number of events to publish while the projections are halted, in place of the lost ones
		reason  string
	}{{60, "the log ends before the last event"}, {0, "the log holds another event"}} {
		o.up(data)
		halted := o.await("is halted", func(_ httpapi.Status, p httpapi.ProjectionStatus) bool { return p.State == "halted" })
		ready := o.get("/readyz")
		for _, p := range halted.Projections {
			require.Contains(t, p.Error, c.reason)
			require.Contains(t, p.Error, "mneme rebuild "+p.Name)
			require.EqualValues(t, 100, p.Checkpoint)
			require.Contains(t, ready, p.Name+" partition 0: halted")
			require.Contains(t, ready, p.Error)
		}
		require.Len(t, halted.Processes, 1)
		require.Equal(t, "halted", halted.Processes[0].State)
		require.Contains(t, halted.Processes[0].Error, c.reason)
		require.Contains(t, o.get("/v1/conversations/c1/messages?limit=1"), `"text 9`, "what was applied stays readable")
		o.publish(c.publish)
		require.NoError(t, o.Close())
	}
}
