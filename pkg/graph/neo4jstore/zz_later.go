package neo4jstore

import (
	"context"

	"mneme/pkg/summary"
)

type Summaries struct{ summary.Store }

func (Summaries) Close() error               { return nil }
func (Summaries) Warm(context.Context) error { return nil }

func OpenSummaries(context.Context, Config, int) (Summaries, error) { panic("later") }

func OpenSummariesReader(context.Context, Config, int) (Summaries, error) { panic("later") }
