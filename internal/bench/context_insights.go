package bench

import (
	"context"
	"net/url"
	"time"

	"mneme.dev/mneme/pkg/insight"
)

// InsightReads are reads of the insights by one grouping.
type InsightReads struct {
	By   string    `json:"by"`
	Took Latencies `json:"insights"`
}

// insightReads is how often the insights are read in a round: single reads are soon done.
const insightReads = 20

// readInsights reads the insights of the tenant, by each grouping.
func (out *Context) readInsights(ctx context.Context, a *api, o ContextOptions, say Say) error {
	for _, by := range insight.By {
		say("reading insights by %s", by)
		var took []time.Duration
		for n := range (o.WarmUp + o.Rounds) * insightReads {
			began := time.Now()
			if _, err := a.get(ctx, "/v1/insights", url.Values{"by": {by}}); err != nil {
				return err
			}
			if n >= o.WarmUp*insightReads {
				took = append(took, time.Since(began))
			}
		}
		out.Insights = append(out.Insights, InsightReads{by, latencies(took)})
	}
	return nil
}
