// Package httpapi is the HTTP API: events in, and conversations, files and the
// context out. Errors are problem documents (RFC 9457).
//
// The OpenAPI 3.1 document is generated from the code in this package and served
// at /openapi.json.
package httpapi

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"mneme/internal/telemetry"
	"mneme/pkg/eventlog"
	"mneme/pkg/graph"
	"mneme/pkg/projection"
)

// Models gives the read models, or an error while one is not there yet.
type Models interface {
	Graph() (graph.Reader, error)
	Files() (graph.FilesReader, error)
	// Verify replays the log beside the read models and compares.
	Verify(ctx context.Context, log *eventlog.Log, progress func(projection string, done, total uint64)) ([]projection.Verification, error)
}

// Config is what the API needs.
type Config struct {
	Log    *eventlog.Log
	Models Models
	Logger *slog.Logger
	// Store is the name of the backend, Generation the build of the read models that
	// it serves; for status.
	Store      string
	Generation int
	// States reports what projectors in this process are doing. Nil in a process
	// without projectors: states are then derived from the checkpoints.
	States func() []projection.Status
	// NotReady is the class of errors that mean "not there yet", answered with 503.
	NotReady error
	// Telemetry observes the API; /metrics shows what it counts.
	Telemetry *telemetry.Telemetry
}

type api struct{ Config }

// TenantParam is part of every input until tokens name the tenant.
type TenantParam struct {
	Tenant string `query:"tenant" default:"default" maxLength:"128" minLength:"1" doc:"the tenant; tokens will name it later"`
}

// New makes the handler of the whole API.
func New(c Config) http.Handler {
	a := &api{c}
	mux := http.NewServeMux()
	config := huma.DefaultConfig("mneme", "1")
	config.Info.Description = "Event-sourced memory for AI agents: publish what an agent does as CloudEvents, read back what it should see now."
	config.CreateHooks = nil // no $schema member in answers
	config.RejectUnknownQueryParameters = true
	config.Transformers = append(config.Transformers, a.logFailure)
	h := humago.New(mux, config)
	a.registerEvents(h)
	a.registerConversations(h)
	a.registerMessages(h)
	a.registerTurns(h)
	a.registerToolCalls(h)
	a.registerFiles(h)
	a.registerContext(h)
	a.registerOperations(h)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", a.ready)
	mux.Handle("GET /metrics", c.Telemetry.Metrics.Handler())
	return c.Telemetry.HTTP(mux, mux)
}

func operation(id, method, path, summary, tag string, errors ...int) huma.Operation {
	return huma.Operation{OperationID: id, Method: method, Path: path, Summary: summary, Tags: []string{tag}, Errors: errors}
}
