package service

import (
	"context"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"mneme.dev/mneme/internal/audit"
	"mneme.dev/mneme/internal/erasure"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/telemetry"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/internal/worker"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/readmodel"
	"mneme.dev/mneme/pkg/project"
	"mneme.dev/mneme/pkg/projection"
)

// NewEraser returns the eraser of a process that serves the API. It cleans every read model that
// exists. Of embeddings that nothing writes any more, its report says so.
func NewEraser(log *eventlog.Log, leases *projection.Leases, stores worker.Stores, models *Models, trail *audit.Trail, s settings.Erasing, logger *slog.Logger) (*erasure.Eraser, error) {
	ages, err := s.Ages()
	if err != nil {
		return nil, err
	}
	return erasure.New(erasure.Config{
		Log: log, Leases: leases, Store: stores.Backend(), Generations: stores.Generations(), Projections: readmodel.Ours(), Retention: ages, Logger: logger,
		Graph: func(ctx context.Context, read func(graph.Reader) error) error {
			return view.Lend(ctx, models.Graph, read)
		},
		Projects: func(ctx context.Context, read func(project.Reader) error) error {
			return view.Lend(ctx, models.Projects, read)
		},
		Audited: func(ctx context.Context, s erasure.Scope, ask func() error) error {
			return trail.Around(ctx, ask, audit.Entry{
				Tenant: s.Tenant, Via: audit.ViaServer, Action: "erase", Target: "before:" + s.Before.Format(time.RFC3339), Request: audit.NewRequest(),
			})
		},
	})
}

// OpenAudit returns the audit log of a process that serves the API, which closes it before its connection.
func OpenAudit(ctx context.Context, conn *nats.Conn, s settings.Auditing, tell *telemetry.Telemetry, logger *slog.Logger) (*audit.Trail, error) {
	age, err := s.Age()
	if err != nil {
		return nil, err
	}
	return audit.Open(ctx, conn, audit.Config{Age: age, Count: tell.Metrics.Audited, Logger: logger})
}
