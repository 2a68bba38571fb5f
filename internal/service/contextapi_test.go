package service_test

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/service"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/worker"
)

// context-api serves before its store answers, so only its log can say that the address is wrong.
func TestTheLogSaysAtTheStartThatTheStoreDoesNotAnswer(t *testing.T) {
	t.Parallel()
	warned := func(of settings.Models) string {
		data := t.TempDir()
		models := service.NewModels(data, worker.NewStores(data, of))
		var out bytes.Buffer
		service.WarnOfStore(t.Context(), models, slog.New(slog.NewTextHandler(&out, nil)))
		require.NoError(t, models.Close())
		return out.String()
	}
	neo4j := settings.ForContextAPI().Models
	neo4j.Store, neo4j.Neo4j.URI = "neo4j", "bolt://127.0.0.1:1"
	require.Contains(t, warned(neo4j), "MNEME_NEO4J_URI")
	sqlite := settings.ForContextAPI().Models
	sqlite.Store = "sqlite"
	require.Empty(t, warned(sqlite), "no program has written yet")
}
