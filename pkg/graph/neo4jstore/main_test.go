package neo4jstore

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/neo4jtest"
)

func TestMain(m *testing.M) {
	mnemetest.TryLaws(2, 2, 20) // each case takes a hundred round trips
	code := m.Run()
	if err := forget(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "what the tests wrote stays:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// testConfig is the shared server.
func testConfig(t testing.TB) Config {
	t.Helper()
	return Config{URI: neo4jtest.URI(t), Password: neo4jtest.Password(), ConnectTimeout: mnemetest.Patience} // an overloaded server answers late
}

// The generations of this process. Their keys begin with the same digits, by which the rows
// are deleted after the tests.
const generationDigits = 9

var firstGeneration = (1_000_000_000 + rand.IntN(1_000_000_000)) * pow10(generationDigits)

func pow10(n int) int {
	p, _ := strconv.Atoi("1" + strings.Repeat("0", n))
	return p
}

// generationOf returns a separate generation for each name.
func generationOf(name string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return firstGeneration + int(h.Sum32())%pow10(generationDigits)
}

// forget deletes everything that this process's tests wrote.
func forget(ctx context.Context) error {
	uri := os.Getenv("MNEME_TEST_NEO4J_URI")
	if uri == "" {
		return nil
	}
	d, err := open(ctx, Config{URI: uri, Password: neo4jtest.Password(), ConnectTimeout: mnemetest.Patience})
	if err != nil {
		return err
	}
	defer func() { _ = d.close() }()
	params := map[string]any{"prefix": strconv.Itoa(firstGeneration / pow10(generationDigits)), "from": firstGeneration, "to": firstGeneration + pow10(generationDigits), "limit": 5000}
	for _, which := range written {
		for full := true; full; {
			rows, err := d.write(ctx, "MATCH "+which+" WITH n LIMIT $limit DETACH DELETE n RETURN count(*) = $limit", params)
			if err != nil {
				return err
			}
			full, _ = rows[0][0].(bool)
		}
	}
	return nil
}

// written selects all nodes that the stores make, each by an index.
var written = []string{
	"(n:Version) WHERE n.conversation STARTS WITH $prefix AND n.seq IS NOT NULL",
	"(n:Message) WHERE n.conversation STARTS WITH $prefix AND n.seq IS NOT NULL",
	"(n:ToolCall) WHERE n.conversation STARTS WITH $prefix AND n.seq IS NOT NULL",
	"(n:ToolResult) WHERE n.conversation STARTS WITH $prefix AND n.seq IS NOT NULL",
	"(n:Summary) WHERE n.conversation STARTS WITH $prefix AND n.seq IS NOT NULL",
	"(n:Condensed) WHERE n.conversation STARTS WITH $prefix AND n.seq IS NOT NULL",
	"(n:Scope) WHERE n.key STARTS WITH $prefix",
	"(n:Conversation) WHERE n.key STARTS WITH $prefix",
	"(n:GraphCheckpoint) WHERE n.key STARTS WITH $prefix",
	"(n:GraphSettled) WHERE n.key STARTS WITH $prefix",
	"(n:GraphFailedEvent) WHERE n.generation >= $from AND n.generation < $to AND n.seq IS NOT NULL",
	"(n:FilesEvent) WHERE n.conversation STARTS WITH $prefix AND n.seq IS NOT NULL",
	"(n:FileAccess) WHERE n.conversation STARTS WITH $prefix AND n.at IS NOT NULL",
	"(n:File) WHERE n.key STARTS WITH $prefix",
	"(n:TrackedCall) WHERE n.key STARTS WITH $prefix",
	"(n:EarlyResult) WHERE n.key STARTS WITH $prefix",
	"(n:FilesConversation) WHERE n.key STARTS WITH $prefix",
	"(n:FilesCheckpoint) WHERE n.key STARTS WITH $prefix",
	"(n:FilesSettled) WHERE n.key STARTS WITH $prefix",
	"(n:FilesFailedEvent) WHERE n.generation >= $from AND n.generation < $to AND n.seq IS NOT NULL",
	"(n:SummariesState) WHERE n.conversation STARTS WITH $prefix AND n.seq IS NOT NULL",
	"(n:SummariesEvent) WHERE n.conversation STARTS WITH $prefix AND n.seq IS NOT NULL",
	"(n:SummariesConversation) WHERE n.key STARTS WITH $prefix",
	"(n:SummariesCheckpoint) WHERE n.key STARTS WITH $prefix",
	"(n:SummariesSettled) WHERE n.key STARTS WITH $prefix",
	"(n:SummariesFailedEvent) WHERE n.generation >= $from AND n.generation < $to AND n.seq IS NOT NULL",
	"(n:Passage) WHERE n.conversation STARTS WITH $prefix AND n.seq IS NOT NULL AND n.part IS NOT NULL",
	"(n:EmbeddingsEvent) WHERE n.conversation STARTS WITH $prefix AND n.seq IS NOT NULL",
	"(n:EmbeddingsConversation) WHERE n.key STARTS WITH $prefix",
	"(n:EmbeddingsCheckpoint) WHERE n.key STARTS WITH $prefix",
	"(n:EmbeddingsSettled) WHERE n.key STARTS WITH $prefix",
	"(n:EmbeddingsFailedEvent) WHERE n.generation >= $from AND n.generation < $to AND n.seq IS NOT NULL",
	"(n:ProjectsEvent) WHERE n.conversation STARTS WITH $prefix AND n.seq IS NOT NULL",
	"(n:ProjectMember) WHERE n.conversation STARTS WITH $prefix AND n.seq IS NOT NULL",
	"(n:ProjectName) WHERE n.key STARTS WITH $prefix",
	"(n:ProjectsConversation) WHERE n.key STARTS WITH $prefix",
	"(n:ProjectsCheckpoint) WHERE n.key STARTS WITH $prefix",
	"(n:ProjectsSettled) WHERE n.key STARTS WITH $prefix",
	"(n:ProjectsFailedEvent) WHERE n.generation >= $from AND n.generation < $to AND n.seq IS NOT NULL",
	"(n:InsightEvent) WHERE n.conversation STARTS WITH $prefix AND n.seq IS NOT NULL",
	"(n:InsightDay) WHERE n.conversation STARTS WITH $prefix AND n.day IS NOT NULL",
	"(n:InsightConversation) WHERE n.key STARTS WITH $prefix",
	"(n:InsightCheckpoint) WHERE n.key STARTS WITH $prefix",
	"(n:InsightSettled) WHERE n.key STARTS WITH $prefix",
	"(n:InsightFailedEvent) WHERE n.generation >= $from AND n.generation < $to AND n.seq IS NOT NULL",
	"(n:CachedEmbedding) WHERE n.key STARTS WITH $prefix",
}

// openBoth opens a generation of both stores.
func openBoth(t *testing.T, c Config, generation int) (*Graph, *Files) {
	t.Helper()
	g, err := OpenGraph(t.Context(), c, generation)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	f, err := OpenFiles(t.Context(), c, generation)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return g, f
}
