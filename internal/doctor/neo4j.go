package doctor

import (
	"context"
	"errors"

	"mneme/internal/service"
	"mneme/pkg/graph/neo4jstore"
)

// neo4j looks at a Neo4j server and at the read models in it.
func (e *examination) neo4j(ctx context.Context) {
	models := service.NewModels(e.Data, e.stores())
	defer func() { _ = models.Close() }()
	graph, err := models.Graph()
	if err != nil {
		e.add("neo4j", neo4jLevel(err), err.Error(), neo4jRemedy(err))
		return
	}
	files, err := models.Files()
	if err != nil {
		e.add("neo4j", neo4jLevel(err), err.Error(), neo4jRemedy(err))
		return
	}
	e.add("neo4j", OK, e.Models.URI+" answers, schema and version are right", "")
	e.positions(ctx, "read model graph", graph, "", neo4jRemedy(nil))
	e.positions(ctx, "read model files", files, "", neo4jRemedy(nil))
}

// neo4jLevel is how grave it is that a server can't be used.
func neo4jLevel(err error) Level {
	if errors.Is(err, service.ErrNotThere) {
		return Warning
	}
	return Failed
}

// neo4jRemedy is what to do about a server that can't be used.
func neo4jRemedy(err error) string {
	switch {
	case errors.Is(err, service.ErrNotThere):
		return "start mneme up, or its programs, on it: the read models are made from the log"
	case errors.Is(err, neo4jstore.ErrUnauthorized):
		return "correct MNEME_NEO4J_USER and MNEME_NEO4J_PASSWORD"
	case errors.Is(err, neo4jstore.ErrVersion), errors.Is(err, neo4jstore.ErrForeign), errors.Is(err, neo4jstore.ErrSchema):
		return "do what the message says"
	}
	return "start Neo4j, or correct MNEME_NEO4J_URI"
}
