package program

import (
	"context"
	"log/slog"
	"strings"
)

// clientsLeave makes net/http log at level debug what only means that a client left early: huma sets a status when it
// can no longer write its answer, and a port scan ends in the middle of a handshake.
type clientsLeave struct{ slog.Handler }

// Handle implements slog.Handler.
func (h clientsLeave) Handle(ctx context.Context, r slog.Record) error {
	superfluous := strings.HasPrefix(r.Message, "http: superfluous response.WriteHeader call")
	handshake := strings.HasPrefix(r.Message, "http: TLS handshake error") && (strings.HasSuffix(r.Message, ": EOF") || strings.HasSuffix(r.Message, "connection reset by peer"))
	if superfluous || handshake {
		if r.Level = slog.LevelDebug; !h.Enabled(ctx, r.Level) {
			return nil
		}
	}
	return h.Handler.Handle(ctx, r)
}
