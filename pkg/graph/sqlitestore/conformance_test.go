package sqlitestore

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/codebase"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/storetest"
	"mneme.dev/mneme/pkg/insight"
	"mneme.dev/mneme/pkg/project"
	"mneme.dev/mneme/pkg/summary"
)

var (
	graphBackend = storetest.Backend[graph.Store]{
		Open: func(ctx context.Context, dir string) (graph.Store, error) {
			return OpenGraph(ctx, Path(dir, "graph", 1))
		},
		Refuse: refuse("graph", "message", "message_id"),
	}
	filesBackend = storetest.Backend[graph.FilesStore]{
		Open: func(ctx context.Context, dir string) (graph.FilesStore, error) {
			return OpenFiles(ctx, Path(dir, "files", 1))
		},
		Refuse: refuse("files", "file_access", "path"),
	}
	summariesBackend = storetest.Backend[summary.Store]{
		Open: func(ctx context.Context, dir string) (summary.Store, error) {
			s, err := Open(ctx, Path(dir, "summaries", 1), SummariesCodec)
			return &Summaries{s}, err
		},
		Refuse: refuse("summaries", "conversation", "profile"),
	}
	embeddingsBackend = storetest.Backend[graph.EmbeddingsStore]{
		Open: func(ctx context.Context, dir string) (graph.EmbeddingsStore, error) {
			s, err := Open(ctx, Path(dir, "embeddings", 1), EmbeddingsCodec)
			return &Embeddings{s}, err
		},
		Refuse: refuse("embeddings", "embedding", "message_id"),
	}
	codeBackend = storetest.Backend[codebase.Store]{
		Open: func(ctx context.Context, dir string) (codebase.Store, error) {
			s, err := Open(ctx, Path(dir, "code", 1), CodebaseCodec)
			return &Codebase{s}, err
		},
		Refuse: refuse("code", "scan", "project"),
	}
)

func TestGraphConformance(t *testing.T) {
	t.Parallel()
	storetest.RunGraph(t, graphBackend)
}

func TestFilesConformance(t *testing.T) {
	t.Parallel()
	storetest.RunFiles(t, filesBackend)
}

func TestSummariesConformance(t *testing.T) {
	t.Parallel()
	storetest.RunSummaries(t, summariesBackend)
}

func TestProjectsConformance(t *testing.T) {
	t.Parallel()
	storetest.RunProjects(t, storetest.Backend[project.Store]{
		Open: func(ctx context.Context, dir string) (project.Store, error) {
			s, err := Open(ctx, Path(dir, "projects", 1), ProjectsCodec)
			return NewProjects(s), err
		},
		Refuse: func(ctx context.Context, dir, text string) (func() error, error) {
			return refuse("projects", "step", "change")(ctx, dir, project.Encode(&project.Change{Turn: true, Request: &project.Said{Text: text}}))
		},
	})
}

func TestInsightConformance(t *testing.T) {
	t.Parallel()
	storetest.RunInsight(t, storetest.Backend[insight.Store]{
		Open: func(ctx context.Context, dir string) (insight.Store, error) {
			s, err := Open(ctx, Path(dir, "insight", 1), InsightCodec)
			return &Insight{s}, err
		},
		Refuse: func(ctx context.Context, dir, _ string) (func() error, error) { // the message is refused for its length
			return refusing(ctx, dir, "insight", fmt.Sprintf(`day WHEN json_extract(NEW.counts, '$."".c') >= %d`, storetest.RefusedLength))
		},
	})
}

func TestCodebaseConformance(t *testing.T) {
	t.Parallel()
	storetest.RunCodebase(t, codeBackend)
}

func TestConversationsAboutAFunction(t *testing.T) {
	t.Parallel()
	storetest.RunNaming(t, graphBackend, codeBackend)
}

func TestEmbeddingsConformance(t *testing.T) {
	t.Parallel()
	storetest.RunEmbeddings(t, embeddingsBackend)
}

func TestEmbeddingsCacheConformance(t *testing.T) {
	t.Parallel()
	storetest.RunEmbeddingsCache(t, storetest.CacheBackend{Open: func(ctx context.Context, dir string) (graph.EmbeddingsCache, error) {
		return OpenEmbeddingsCache(ctx, filepath.Join(dir, "embeddings-cache.db"))
	}})
}

func TestACacheOfEmbeddingsAdmitsOneProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "embeddings-cache.db")
	first, err := OpenEmbeddingsCache(t.Context(), path)
	require.NoError(t, err)
	_, err = OpenEmbeddingsCache(t.Context(), path)
	require.ErrorIs(t, err, ErrLocked)
	require.NoError(t, first.Close())
	require.NoError(t, first.Close(), "twice")
}

func TestBranchConformance(t *testing.T) {
	t.Parallel()
	storetest.RunBranches(t, graphBackend, filesBackend)
}

func TestGenerationsConformance(t *testing.T) {
	t.Parallel()
	storetest.RunGenerations(t, newPlace)
}

func TestTheServingGenerationIsAlwaysComplete(t *testing.T) {
	mnemetest.Long(t)
	t.Parallel()
	storetest.RunGenerationsLaw(t, newPlace)
}

func newPlace(t *testing.T) storetest.Place {
	dir := t.TempDir()
	return storetest.Place{
		Generations: NewGenerations(dir),
		OpenGraph: func(ctx context.Context, n int) (graph.Store, error) {
			return OpenGraph(ctx, Path(dir, "graph", n))
		},
		OpenFiles: func(ctx context.Context, n int) (graph.FilesStore, error) {
			return OpenFiles(ctx, Path(dir, "files", n))
		},
	}
}

// refuse adds a trigger that refuses rows with a given text in a column.
func refuse(projection, table, column string) func(context.Context, string, string) (func() error, error) {
	return func(ctx context.Context, dir, text string) (func() error, error) {
		return refusing(ctx, dir, projection, fmt.Sprintf("%s WHEN NEW.%s = '%s'", table, column, strings.ReplaceAll(text, "'", "''")))
	}
}

// refusing makes a read model refuse inserts into a table when a condition holds, and returns the function that undoes
// that.
func refusing(ctx context.Context, dir, projection, intoWhen string) (undo func() error, err error) {
	run := func(s string) error {
		db, err := sql.Open("sqlite", filepath.Join(dir, projection+"-1.db"))
		if err != nil {
			return err
		}
		defer db.Close()
		_, err = db.ExecContext(ctx, s)
		return err
	}
	err = run("CREATE TRIGGER refuse BEFORE INSERT ON " + intoWhen + " BEGIN SELECT RAISE(ABORT, 'refused'); END")
	return func() error { return run("DROP TRIGGER refuse") }, err
}
