// Package httpapi serves the HTTP API: it publishes events, and reads conversations,
// files and contexts. Errors are problem documents (RFC 9457).
//
// The OpenAPI 3.1 document is generated from the code in this package and served
// at /openapi.json.
package httpapi

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/capture"
	"mneme.dev/mneme/internal/hook"
	"mneme.dev/mneme/internal/mcp"
	"mneme.dev/mneme/internal/otlp"
	"mneme.dev/mneme/internal/quota"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/telemetry"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/insight"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/summary/llm"
)

// Config is what the API needs.
type Config struct {
	Log      *eventlog.Log
	Models   Models
	Rebuilds Rebuilds // nil if this process cannot start rebuilds
	Erasures Erasures // nil if this process cannot erase
	Audit    Audit
	Logger   *slog.Logger
	// Store is the name of the backend, for status.
	Store string
	// LogHealth, if not nil, returns why the log accepts no writes, or nil if it does or this process does not know:
	// it can't ask a separate server.
	LogHealth func() error
	// States reports what the projectors in this process are doing. It is nil in a
	// process without projectors; states are then derived from the checkpoints.
	States func() []projection.Status
	// Self returns what this process announces about itself to others, for status.
	Self func() projection.Member
	// Condense returns how contexts of conversations with this profile show large tool
	// results. Nil means extractive.
	Condense func(profile string) string
	// Cache has the indexes with which contexts search the past; nil disables the search.
	Cache *view.Cache
	// ProjectMemoryOff leaves earlier sessions out of contexts that do not ask for them.
	ProjectMemoryOff bool
	// Prices are what tokens cost; nil if that is unknown.
	Prices *insight.Prices
	// Gate finds out who sends a request. Nil means that anyone who reaches the API may use all of it, which is for
	// loopback and trusted networks.
	Gate *access.Gate
	// Model does analyses; nil if none is configured.
	Model *llm.Writer
	// Quotas bound what each tenant may take; nil for no bounds.
	Quotas *quota.Quotas
	// Stall is how long a client may neither send nor take anything before it is cut
	// off; 0 means 30 s.
	Stall time.Duration
	// Doorbell hears of transcripts that have grown; nil for nobody.
	Doorbell hook.Doorbell
	// Captured says what was read of transcripts; nil if this process reads none.
	Captured func() capture.Status
	// Exported says what exporters of OpenTelemetry sent; nil if this process answers none.
	Exported func() otlp.Status
	// Settings are those of this process, without secrets; nil if they are not known.
	Settings []settings.Setting
	// Doctor checks what this process needs, starting from its status; nil if nothing can check it.
	Doctor func(context.Context, Status) []Check
	// Tools answers agents at [mcp.Path]; nil for mneme's own tools.
	Tools http.Handler
	// NotReady is the error that means "not available yet"; it is answered with 503.
	NotReady error
	// Telemetry records traces and the metrics that /metrics serves.
	Telemetry *telemetry.Telemetry
}

type api struct {
	Config
	limits  *limits
	edition string // see the function of this name
	views   *view.Views
	hooks   *hook.Desk
	sums    *insight.Cache

	deletions deletions
	outage    outage

	watchStop sync.Once
	stopped   chan struct{} // see stopping
}

// TenantParam is part of every input that reads or changes one tenant. With a token of one
// tenant it is that tenant, see [api.authorize].
type TenantParam struct {
	Tenant string `query:"tenant" default:"default" maxLength:"128" minLength:"1" doc:"the tenant; a token of one tenant names it already, and no other is allowed"`
}

// Like the answers, the document promises lists, never null. Member names are
// case-sensitive, because otherwise title and Title in one body would be the same member.
func init() { huma.DefaultArrayNullable, huma.ValidateStrictCasing = false, true }

// New returns the handler of the whole API.
func New(c Config) http.Handler {
	c.Stall = cmp.Or(c.Stall, defaultStall)
	a := &api{Config: c, limits: newLimits(), edition: edition(c), hooks: hook.NewDesk(c.Doorbell), sums: insight.NewCache(), stopped: make(chan struct{})}
	a.views = view.New(view.Config{Log: c.Log, Models: c.Models, Cache: c.Cache, Awaiting: a.awaiting, Waits: c.Store == "neo4j" || c.Cache.Remote() || c.Cache != nil && c.Cache.Reranker != nil})
	if a.Tools == nil {
		a.Tools = a.agents()
	}
	mux := http.NewServeMux()
	plainProblems()
	a.register(mux)
	public(mux, "/healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	public(mux, "/readyz", a.ready)
	public(mux, "/metrics", a.Telemetry.Metrics.Handler().ServeHTTP)
	serveDocs(mux)
	servePage(mux)
	serveHelp(mux)
	a.serveSessions(mux)
	mux.Handle(mcp.Path, a.Tools)
	a.serveResource(mux)
	return a.Telemetry.HTTP(mux, a.around(mux))
}

// register registers all operations on a mux.
func (a *api) register(mux *http.ServeMux) *huma.OpenAPI {
	config := huma.DefaultConfig("mneme", "1")
	config.Info.Description = description
	config.Tags = tags
	config.CreateHooks = nil // no $schema member in answers
	config.Formats = jsonBodies
	config.RejectUnknownQueryParameters = true
	config.Transformers = append(config.Transformers, a.logFailure)
	config.DocsPath = ""    // huma's page loads its viewer from another host; see serveDocs
	config.SchemasPath = "" // the document holds them, and nothing links to single ones
	h := humago.New(mux, config)
	h.UseMiddleware(a.exchange(h), a.name(h), a.authorize(h), a.share(h), strict(h), a.audited(h))
	a.registerEvents(h)
	a.registerConversations(h)
	a.registerMessages(h)
	a.registerEmbedding(h)
	a.registerTurns(h)
	a.registerOutline(h)
	a.registerHealth(h)
	a.registerToolCalls(h)
	a.registerSummaries(h)
	a.registerFiles(h)
	a.registerCode(h)
	a.registerManage(h)
	a.registerBranches(h)
	a.registerContext(h)
	a.registerServed(h)
	a.registerAnalyses(h)
	a.registerAnalyze(h)
	a.registerProjects(h)
	a.registerInsights(h)
	a.registerHooks(h)
	if a.Cache != nil {
		a.registerSearch(h)
	}
	a.registerExport(h)
	a.registerImport(h)
	a.registerOperations(h)
	a.registerAccess(h)
	a.registerAudit(h)
	a.registerQuotas(h)
	a.registerStream(h)
	a.registerFailed(h)
	if a.Rebuilds != nil {
		a.registerRebuilds(h)
	}
	if a.Erasures != nil {
		a.registerErasures(h)
	}
	declareCommon(h.OpenAPI())
	return h.OpenAPI()
}

// serve registers an operation. Errors of its handler are answered as problem documents, see [api.problem].
func serve[In, Out any](a *api, h huma.API, op huma.Operation, handle func(context.Context, *In) (*Out, error)) {
	huma.Register(h, op, func(ctx context.Context, in *In) (*Out, error) {
		out, err := handle(ctx, in)
		if err != nil {
			return nil, a.problem(err)
		}
		return out, nil
	})
}

// output is an answer with a body and no headers of its own.
type output[T any] struct{ Body T }

// declareAnswer declares the answer of an operation whose body has no type of its own.
func declareAnswer(description, contentType string, schema *huma.Schema) map[string]*huma.Response {
	return map[string]*huma.Response{"200": {Description: description, Content: map[string]*huma.MediaType{contentType: {Schema: schema}}}}
}

// operation declares an operation. It panics if the table of the package access does not
// say what the operation needs.
func operation(id, method, path, summary, tag string, errors ...int) huma.Operation {
	return huma.Operation{OperationID: id, Method: method, Path: path, Summary: summary, Tags: []string{tag}, Errors: append(errors, http.StatusTooManyRequests), Extensions: declareAccess(id), Security: security}
}
