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
	var report []func()
	for _, m := range readmodel.Ours() {
		if m.Computed {
			continue
		}
		pinned, err := models.Open(ctx, m.Name)
		switch {
		case err == nil:
			defer pinned.Release()
			report = append(report, func() { e.positions(ctx, m, pinned.Model, "", worker.Neo4jRemedy(projection.ErrUnavailable)) })
		case m.Absent == "":
			e.add("neo4j", neo4jLevel(err), err.Error(), neo4jRemedy(err))
			return
		case errors.Is(err, worker.ErrNotThere):
			report = append(report, func() { e.add("read model "+m.Name, OK, "missing: "+m.Absent, "") })
		default:
			report = append(report, func() { e.add("read model "+m.Name, Failed, err.Error(), neo4jRemedy(err)) })
		}
	}
	e.add("neo4j", OK, e.Models.URI+" answers; schema and version are correct", "")
	for _, model := range report {
		model()
	}
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
