package program

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestClientsThatLeaveAreNoWarning(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line  string
		level slog.Level
	}{
		{"http: superfluous response.WriteHeader call from huma.go:1", slog.LevelDebug},
		{"http: TLS handshake error from 127.0.0.1:1: EOF", slog.LevelDebug},
		{"http: TLS handshake error from 127.0.0.1:1: remote error: tls: bad certificate", slog.LevelWarn},
		{"http: panic serving 127.0.0.1:1: oh", slog.LevelWarn},
	} {
		for _, shown := range []slog.Level{slog.LevelDebug, slog.LevelWarn} {
			var out bytes.Buffer
			slog.NewLogLogger(clientsLeave{slog.NewTextHandler(&out, &slog.HandlerOptions{Level: shown})}, slog.LevelWarn).Println(c.line)
			require.Equal(t, c.level >= shown, out.Len() > 0, c.line)
			if out.Len() > 0 {
				require.Contains(t, out.String(), "level="+c.level.String())
			}
		}
	}
}
