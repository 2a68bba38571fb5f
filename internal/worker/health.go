package worker

import (
	"context"
	"fmt"
	"net/http"

	"mneme.dev/mneme/internal/program"
	"mneme.dev/mneme/internal/telemetry"
	"mneme.dev/mneme/pkg/projection"
)

// Health serves /healthz (the process runs), /readyz (its store answers) and /metrics.
// State and lag appear in the body of /readyz but don't affect its status.
func Health(c Worker, t *telemetry.Telemetry) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", t.Metrics.Handler())
	mux.HandleFunc("GET /healthz", program.Alive)
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), program.ReadyWithin)
		defer cancel()
		if err := c.Ready(ctx); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		for _, s := range c.Status() {
			if s.State == projection.StateIdle && s.Holder != "" {
				fmt.Fprintf(w, "%s partition %d: %s, %s holds it\n", s.Projection, s.Partition, s.State, s.Holder)
				continue
			}
			fmt.Fprintf(w, "%s partition %d: %s, checkpoint %d, lag %d %s\n", s.Projection, s.Partition, s.State, s.Checkpoint.Seq, s.Lag, s.Error)
		}
	})
	return t.HTTP(mux, mux)
}
