package costs

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"
	"github.com/stretchr/testify/require"

	neo4jdeploy "mneme.dev/mneme/deploy/neo4j"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph/neo4jstore"
	"mneme.dev/mneme/pkg/graph/readmodel"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/graph/storetest"
	"mneme.dev/mneme/pkg/projection"
)

var spec = Spec(Prices{"m": {Input: 2, Output: 10}})

func message(id, model string) *events.MessageCreated {
	return &events.MessageCreated{MessageID: id, Role: "assistant", Content: "hello", Model: model, Usage: json.RawMessage(`{"input_tokens": 100, "output_tokens": 7}`)}
}

// data tells the suite which payloads change the read model.
var data = storetest.Data{
	Nth:     func(n int) events.Payload { return message(fmt.Sprintf("m%d", n), "m") },
	Refused: func(text string) events.Payload { return message(text, text) },
	Again:   &events.ConversationStarted{Title: "again"},
}

func TestSQLiteConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, storetest.Backend[projection.Store[*Unit]]{
		Open: func(ctx context.Context, dir string) (projection.Store[*Unit], error) {
			return spec.Open(ctx, readmodel.Place{Dir: dir}, 1)
		},
		Refuse: func(ctx context.Context, dir, text string) (func() error, error) {
			run := func(script string) error {
				db, err := sql.Open("sqlite", sqlitestore.Path(dir, name, 1))
				if err != nil {
					return err
				}
				_, err = db.ExecContext(ctx, script)
				return errors.Join(err, db.Close())
			}
			err := run(fmt.Sprintf("CREATE TRIGGER refuse BEFORE INSERT ON used WHEN NEW.model = '%s' BEGIN SELECT RAISE(ABORT, 'refused'); END", text))
			return func() error { return run("DROP TRIGGER refuse") }, err
		},
	}, spec.Projection, data)
}

// server returns the Neo4j of all tests, or one for this test if the environment has one's jars.
func server(t *testing.T) *neo4jstore.Config {
	if uri := os.Getenv("MNEME_TEST_NEO4J_URI"); uri != "" {
		return &neo4jstore.Config{URI: uri, Password: os.Getenv("MNEME_TEST_NEO4J_PASSWORD"), ConnectTimeout: time.Minute}
	}
	jars := os.Getenv("MNEME_TEST_NEO4J_JARS")
	if jars == "" {
		if os.Getenv("MNEME_TEST_NEO4J") == "required" {
			t.Fatal("MNEME_TEST_NEO4J_JARS names no folder of jars")
		}
		t.Skip("MNEME_TEST_NEO4J_JARS names no folder of jars")
	}
	s, err := neo4jdeploy.Start(t.Context(), neo4jdeploy.Config{Jars: jars, Dir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(s.Kill)
	return &neo4jstore.Config{URI: s.URI(), ConnectTimeout: time.Minute}
}

func TestNeo4j(t *testing.T) {
	t.Parallel()
	at := readmodel.Place{Neo4j: server(t)}
	driver, err := neo4jstore.NewDriver(*at.Neo4j)
	require.NoError(t, err)
	t.Cleanup(func() { _ = driver.Close(context.Background()) })
	generation := func(dir string) int { // the suite takes a directory for each store
		h := fnv.New32a()
		_, _ = h.Write([]byte(dir))
		return 1<<32 + int(h.Sum32())
	}
	// A parallel subtest of the suite ends after this function, but before the test does.
	t.Run("conformance", func(t *testing.T) {
		storetest.Run(t, storetest.Backend[projection.Store[*Unit]]{
			Open: func(ctx context.Context, dir string) (projection.Store[*Unit], error) {
				return spec.Open(ctx, at, generation(dir))
			},
			Refuse: func(ctx context.Context, dir, text string) (func() error, error) {
				run := func(statement string) error {
					session := driver.NewSession(ctx, neo4j.SessionConfig{})
					defer func() { _ = session.Close(ctx) }()
					key := projection.PayloadKey(events.ConversationID{Tenant: "t", ID: "c"}, "message/"+text)
					result, err := session.Run(ctx, statement, map[string]any{"key": fmt.Sprintf("%d/%s", generation(dir), key)})
					if err == nil {
						_, err = result.Consume(ctx)
					}
					return err
				}
				err := run("CREATE (:CostEvent {payload_key: $key})")
				return func() error { return run("MATCH (e:CostEvent {payload_key: $key}) DELETE e") }, err
			},
		}, spec.Projection, data)
	})
	t.Run("equals SQLite", func(t *testing.T) { sameInBoth(t, at, generation(t.TempDir())) })
}

// sameInBoth applies one history to both backends and compares hashes and totals. The generation must be one that nothing
// else on the server uses.
func sameInBoth(t *testing.T, at readmodel.Place, generation int) {
	h := storetest.NewHistory()
	h.Add("c", &events.ConversationStarted{Project: "p"})
	h.Add("c", message("m1", "m"))
	h.Add("c", &events.ConversationStarted{Title: "resumed"})
	h.Add("c", message("m2", "other"))
	h.Add("d", &events.Foreign{Type: TypeInvoiced, Data: []byte(`{"item": "gpu", "cost": 5}`)})
	h.Add("e", message("m1", "m"))
	h.Add("e", &events.ConversationDeleted{})
	var hashes [2][]projection.ConversationHash
	var totals [2][]Total
	for i, place := range []readmodel.Place{{Dir: t.TempDir()}, at} {
		s, err := spec.Open(t.Context(), place, generation)
		require.NoError(t, err)
		cp, err := s.Acquire(t.Context(), 0, spec.Fingerprint())
		require.NoError(t, err)
		_, err = spec.Projection.Apply(t.Context(), s, cp, h.Messages)
		require.NoError(t, err)
		require.NoError(t, s.Hashes(t.Context(), func(h projection.ConversationHash) error {
			hashes[i] = append(hashes[i], h)
			return nil
		}))
		totals[i], err = Totals(t.Context(), s, "t")
		require.NoError(t, err)
		require.NoError(t, s.Close())
	}
	require.Len(t, hashes[0], 3)
	require.Equal(t, hashes[0], hashes[1])
	require.Equal(t, totals[0], totals[1])
	require.Equal(t, []Total{{Model: "gpu", Cost: 5}, {Model: "m", Project: "p", Input: 100, Output: 7, Cost: 270}, {Model: "other", Project: "p", Input: 100, Output: 7}}, totals[0])
}

func TestAPriceIsForAllModelsWhoseNamesBeginWithItsName(t *testing.T) {
	t.Parallel()
	prices := Prices{"claude-opus": {Input: 2}, "claude-opus-4-6": {Input: 1}}
	for model, want := range map[string]int64{"claude-opus-4-5-20251101": 2, "claude-opus-4-6": 1, "claude": 0, "": 0} {
		require.Equal(t, want, prices.of(model).Input, model)
	}
}

func TestABadUsageAndABadInvoiceAreFailedEvents(t *testing.T) {
	t.Parallel()
	s, err := spec.Open(t.Context(), readmodel.Place{Dir: filepath.Join(t.TempDir(), "new")}, 1)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	cp, err := s.Acquire(t.Context(), 0, spec.Fingerprint())
	require.NoError(t, err)
	h := storetest.NewHistory()
	h.Add("c", &events.MessageCreated{MessageID: "m1", Role: "user", Content: "hello", Usage: json.RawMessage(`"much"`)})
	h.Add("c", &events.Foreign{Type: TypeInvoiced, Data: []byte(`{"cost": "much"}`)})
	h.Add("c", message("m2", "m"))
	cp, err = spec.Projection.Apply(t.Context(), s, cp, h.Messages)
	require.NoError(t, err)
	require.EqualValues(t, 1, cp.Applied)
	failed, err := s.Failed(t.Context(), projection.FailedQuery{Limit: 10})
	require.NoError(t, err)
	require.Len(t, failed, 2)
	require.Contains(t, failed[0].Reason, "invalid: usage: ")
	require.Contains(t, failed[1].Reason, "invalid: invoice: ")
}
