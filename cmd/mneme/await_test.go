package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/pkg/projection"
)

// waits waits for sequence 9 on a server that reports first and, after enough polls for a
// message, then.
func waits(t *testing.T, first, then httpapi.ProjectionStatus) (said string, err error) {
	t.Helper()
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		p, number := first, asked.Add(1)
		if number > 6 {
			p = then
		}
		if number == 2 { // it restarts
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_ = json.NewEncoder(w).Encode(httpapi.Status{Projections: []httpapi.ProjectionStatus{p, {Name: "embeddings", State: "halted"}}})
	}))
	defer server.Close()
	before := sayWaiting
	sayWaiting = 2 * pollApplied
	defer func() { sayWaiting = before }()
	var out bytes.Buffer
	screen := newTerminal(&out, &out, "never")
	err = newClient(server.URL, "").awaitApplied(t.Context(), screen, screen.patient(screen.progress(1, "")), 9)
	return out.String(), err
}

func TestAWaitSaysWhatItWaitsFor(t *testing.T) {
	require.Equal(t, 10*time.Second, sayWaiting)
	done := httpapi.ProjectionStatus{Name: "graph", State: "live", Checkpoint: 9}
	said, err := waits(t, httpapi.ProjectionStatus{Name: "graph", State: "catching up", Checkpoint: 4, Lag: 5, Error: "no answer"}, done)
	require.NoError(t, err)
	require.Contains(t, said, "waiting for graph: catching up, at sequence 4 of 9: no answer\n")

	said, err = waits(t, httpapi.ProjectionStatus{Name: "graph", State: "absent"}, done)
	require.NoError(t, err)
	require.Contains(t, said, "waiting for graph: absent, at sequence 0 of 9")

	said, err = waits(t, done, done)
	require.NoError(t, err)
	require.Empty(t, said)
}

// A process that was killed counts as running until its lease ends.
func TestADataDirectoryThatAProcessHasJustLeftIsWaitedFor(t *testing.T) {
	left := httpapi.ProjectionStatus{Name: "graph", State: "idle", Lag: 5, Error: "p1 writes this read model in another data directory, and is at sequence 9"}
	require.False(t, needsPerson(left, false))
	require.True(t, needsPerson(left, true))
}

func TestAWaitFailsIfWaitingDoesNotHelp(t *testing.T) {
	full := fmt.Errorf("%w: database or disk is full (13)", projection.ErrDisk).Error()
	for name, p := range map[string]httpapi.ProjectionStatus{
		"mneme rebuild graph": {Name: "graph", State: "damaged", Error: "malformed"},
		"another log":         {Name: "graph", State: "halted", Error: "another log"},
		"make room":           {Name: "graph", State: "catching up", Lag: 5, Error: full},
	} {
		_, err := waits(t, p, p)
		require.ErrorContains(t, err, "the events are in the log, but graph has not applied them", name)
		require.ErrorContains(t, err, name)
	}
}

func TestAWaitSaysOneLineForEachProjection(t *testing.T) {
	t.Parallel()
	at := func(name string, partition int, checkpoint uint64, trouble string) httpapi.ProjectionStatus {
		return httpapi.ProjectionStatus{Name: name, Partition: partition, State: "catching up", Checkpoint: checkpoint, Lag: 5, Error: trouble}
	}
	slowest := slowestOf([]httpapi.ProjectionStatus{
		at("graph", 0, 7, ""), at("graph", 1, 3, ""), at("graph", 2, 5, ""),
		at("files", 0, 2, ""), at("files", 1, 6, "no answer"), at("files", 2, 4, ""),
	})
	require.Len(t, slowest, 2)
	require.Equal(t, 1, slowest["graph"].Partition)
	require.Equal(t, 1, slowest["files"].Partition, "it says what is wrong")
}
