package doctor

import (
	"context"
	"errors"

	"mneme.dev/mneme/internal/service"
	"mneme.dev/mneme/internal/worker"
	"mneme.dev/mneme/pkg/graph/readmodel"
	"mneme.dev/mneme/pkg/projection"
)

// neo4j checks a Neo4j server and the read models in it.
func (e *examination) neo4j(ctx context.Context) {
	models := service.NewModels(e.Data, e.stores())
	defer func() { _ = models.Close() }()
	graph, err := models.Graph(ctx)
	if err != nil {
		e.add("neo4j", neo4jLevel(err), err.Error(), neo4jRemedy(err))
		return
	}
	defer graph.Release()
	files, err := models.Files(ctx)
	if err != nil {
		e.add("neo4j", neo4jLevel(err), err.Error(), neo4jRemedy(err))
		return
	}
	defer files.Release()
	e.add("neo4j", OK, e.Models.URI+" answers; schema and version are correct", "")
	e.positions(ctx, "graph", graph.Model, "", worker.Neo4jRemedy(projection.ErrUnavailable))
	e.positions(ctx, "files", files.Model, "", worker.Neo4jRemedy(projection.ErrUnavailable))
	summaries, err := models.Summaries(ctx)
	switch {
	case errors.Is(err, worker.ErrNotThere):
		e.add("read model summaries", OK, "missing: "+readmodel.Find("summaries").Absent, "")
		return
	case err != nil:
		e.add("read model summaries", Failed, err.Error(), neo4jRemedy(err))
		return
	}
	defer summaries.Release()
	e.positions(ctx, "summaries", summaries.Model, "", worker.Neo4jRemedy(projection.ErrUnavailable))
}

// neo4jLevel returns how severe it is that a server can't be used.
func neo4jLevel(err error) Level {
	if errors.Is(err, worker.ErrNotThere) {
		return Warning
	}
	return Failed
}

// neo4jRemedy returns what to do about a server that can't be used.
func neo4jRemedy(err error) string {
	if remedy := worker.Neo4jRemedy(err); remedy != "" {
		return remedy
	}
	return "do what the message says"
}
