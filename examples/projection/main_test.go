package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
	neo4jdeploy "mneme.dev/mneme/deploy/neo4j"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/examples/projection/costs"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph/neo4jstore"
)

func TestTheProgramOnSQLite(t *testing.T) {
	t.Parallel()
	exercise(t, "-dir", t.TempDir())
}

func TestTheProgramOnNeo4j(t *testing.T) {
	t.Parallel()
	exercise(t, "-neo4j", server(t))
}

// server returns the address of the Neo4j of all tests, without what an earlier run of this test left there, or of one
// for this test if the environment has one's jars.
func server(t *testing.T) string {
	if uri := os.Getenv("MNEME_TEST_NEO4J_URI"); uri != "" && os.Getenv("MNEME_TEST_NEO4J_PASSWORD") == "" {
		driver, err := neo4jstore.NewDriver(neo4jstore.Config{URI: uri})
		require.NoError(t, err)
		defer func() { require.NoError(t, driver.Close(t.Context())) }()
		for _, statement := range []string{
			"MATCH (n:CostConversation|TokenCostsCheckpoint|TokenCostsSettled) WHERE n.key =~ '[1-9]/.*' DETACH DELETE n",
			"MATCH (n:CostEvent) WHERE n.conversation =~ '[1-9]/.*' DETACH DELETE n",
			"MATCH (n:TokenCostsFailedEvent) WHERE n.generation < 10 DELETE n",
			"MATCH (n:TokenCostsServing) DELETE n",
		} {
			_, err := neo4j.ExecuteQuery(t.Context(), driver, statement, nil, neo4j.EagerResultTransformer)
			require.NoError(t, err)
		}
		return uri
	}
	jars := os.Getenv("MNEME_TEST_NEO4J_JARS")
	if jars == "" {
		t.Skip("MNEME_TEST_NEO4J_JARS names no folder of jars")
	}
	s, err := neo4jdeploy.Start(t.Context(), neo4jdeploy.Config{Jars: jars, Dir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(s.Kill)
	return s.URI()
}

// exercise publishes events to a log of its own and uses every command of the program.
func exercise(t *testing.T, place ...string) {
	server, err := embedded.Start(t.Context(), embedded.Config{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	require.NoError(t, err)
	t.Cleanup(server.Stop)
	_, err = server.Apply(t.Context(), natsdeploy.Settings{Partitions: 2})
	require.NoError(t, err)
	conn, err := eventlog.Connect(server.ClientURL(), "test", nil)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	log, err := eventlog.Open(t.Context(), conn)
	require.NoError(t, err)
	day := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	publish := func(conversation, id string, p events.Payload) {
		t.Helper()
		e, err := events.New(conversation, "test", id, p)
		require.NoError(t, err)
		e.Time = day
		_, err = log.Publish(t.Context(), "default", e)
		require.NoError(t, err)
	}
	command := func(ctx context.Context, args ...string) (string, error) {
		var out strings.Builder
		err := run(ctx, append(append([]string{"-nats", server.ClientURL()}, place...), args...), &out)
		return out.String(), err
	}
	for _, args := range [][]string{{"run", "-nats", "x"}, {"report", "-dir"}, {"status", "default"}} {
		_, err := command(t.Context(), args...)
		require.ErrorContains(t, err, "flags come before the command")
	}
	nothing, err := command(t.Context(), "report")
	require.True(t, err != nil || nothing == "" && place[0] == "-neo4j", "nothing has been written yet; a Neo4j may have the indexes of an earlier run")

	for n := range 20 {
		publish(fmt.Sprintf("c%d", n%4), fmt.Sprint(n), &events.MessageCreated{
			MessageID: fmt.Sprint(n), Role: "assistant", Content: "hello", Model: "claude-sonnet", Usage: json.RawMessage(`{"input_tokens": 1000, "output_tokens": 100}`),
		})
	}
	publish("c0", "invoice", &events.Foreign{Type: costs.TypeInvoiced, Data: []byte(`{"item": "gpu", "cost": 5000000}`)})
	publish("c0", "other", &events.Foreign{Type: "com.example.usage.unknown", Data: []byte(`{}`)})
	publish("c0", "bad", &events.MessageCreated{MessageID: "bad", Role: "assistant", Content: "hello", Usage: json.RawMessage(`"much"`)})

	running, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := command(running, "run")
		ended <- err
	}()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
	reports := func(want string) {
		t.Helper()
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			got, err := command(t.Context(), "report")
			require.NoError(c, err)
			require.Equal(c, want, got)
		}, 5*time.Minute, 100*time.Millisecond)
	}
	first := "2026-03-01  claude-sonnet    20000 in  2000 out  $0.090000\n2026-03-01  gpu              0 in      0 out     $0.005000\n"
	reports(first)
	failed, err := command(t.Context(), "failed")
	require.NoError(t, err)
	require.Contains(t, failed, "c0  invalid  invalid: usage: ")
	status, err := command(t.Context(), "status")
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(status, "live"), status)

	_, err = command(t.Context(), "rebuild")
	require.NoError(t, err)
	verified, err := command(t.Context(), "verify")
	require.NoError(t, err)
	require.Contains(t, verified, "4 conversations are equal")
	reports(first)
	// The program continues with the new generation.
	publish("c0", "deleted", &events.ConversationDeleted{})
	reports("2026-03-01  claude-sonnet    15000 in  1500 out  $0.067500\n")
	_, err = command(t.Context(), "verify")
	require.NoError(t, err)
	_, err = command(t.Context(), "nonsense")
	require.ErrorContains(t, err, `unknown command "nonsense"`)
}
