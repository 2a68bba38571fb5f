package neo4j_test

import (
	"io"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/importer"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/natstest"
	"mneme.dev/mneme/internal/mnemetest/neo4jtest"
	"mneme.dev/mneme/internal/testdata"
	"mneme.dev/mneme/internal/transcript"
	"mneme.dev/mneme/pkg/eventlog"
)

// recorded returns the events that an import makes from a recording.
func recorded(t *testing.T, name string) (list []events.Event) {
	t.Helper()
	_, conn := natstest.Alone(t, embedded.Config{MaxBytes: 1 << 30}, natsdeploy.Settings{MaxBytes: 1 << 30})
	log, err := eventlog.Open(mnemetest.Context(t), conn)
	require.NoError(t, err)
	files, err := transcript.Find([]string{filepath.Join(testdata.Dir(t), "events", name+".jsonl.gz")})
	require.NoError(t, err)
	_, err = importer.Import(t.Context(), log, files, importer.Options{Tenant: "default", Format: transcript.Auto})
	require.NoError(t, err)
	follower, err := log.Follow(t.Context(), 0, 1)
	require.NoError(t, err)
	defer follower.Stop()
	for range follower.Pending() {
		m := <-follower.C()
		r, _, err := m.Decode()
		require.NoError(t, err)
		list = append(list, r.Event)
	}
	return list
}

// portion returns the events that one of several rounds publishes.
func portion(list []events.Event, round, rounds int) []events.Event {
	return list[len(list)*round/rounds : len(list)*(round+1)/rounds]
}

// isKilledLikeMneme kills the program and the server in alternate rounds, while events are published
// and applied. The short test kills only the program: [isAbsent] has just killed the server, and each
// restart plans all statements again.
func isKilledLikeMneme(t *testing.T, o *own) {
	rounds, recording := 2, "openhands"
	if mnemetest.All { // 20 times each
		rounds, recording = 41, "claude_code"
	}
	list := recorded(t, recording)
	if mnemetest.All { // has events that need more memory
		o.server.Kill()
		o.dir = o.t.TempDir()
		o.start()
	}
	neo4jtest.Wipe(t, o.server)
	flags := []string{"--data", t.TempDir(), "--store", "neo4j", "--neo4j-uri", o.server.URI()}
	program := mnemetest.UpWith(t, flags...)
	for round := range rounds {
		conn, err := eventlog.Connect(program.NATS, "test", slog.New(slog.NewTextHandler(io.Discard, nil)))
		require.NoError(t, err)
		log, err := eventlog.Open(mnemetest.Context(t), conn)
		require.NoError(t, err)
		for more := portion(list, round, rounds); len(more) > 0; {
			n := min(len(more), 500)
			_, err := log.PublishAll(mnemetest.Context(t), "default", more[:n])
			require.NoError(t, err)
			more = more[n:]
		}
		conn.Close()
		if round == rounds-1 {
			break
		}
		<-pause(rand.IntN(400))
		if round%2 == 0 {
			program.Kill()
			program = mnemetest.UpWith(t, flags...)
		} else {
			o.server.Kill()
			<-pause(rand.IntN(100))
			o.restart()
		}
	}
	verified(t, program.HTTP, uint64(len(list)))
}
