package httpapi_test

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"mneme.dev/mneme/internal/doctor"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/graph"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/instance"
	"mneme.dev/mneme/internal/settings"
)

func TestSettingsAreListedWithoutSecrets(t *testing.T) {
	t.Setenv("MNEME_LISTEN", "127.0.0.1:0")
	t.Setenv("MNEME_LLM_KEY", "very secret")
	t.Setenv("MNEME_EMBEDDINGS_KEY", "very secret")
	spec := &settings.Up{}
	i, err := instance.Start(t.Context(), instance.Config{
		Data: t.TempDir(), Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler), Settings: settings.Effective(spec, nil),
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, i.Close()) }()
	var text string
	(&bundle{t, i}).get("/v1/settings", &text)
	require.Contains(t, text, `{"name":"MNEME_LISTEN","value":"127.0.0.1:0","source":"environment","meaning":`)
	require.NotContains(t, text, "very secret")
	require.Contains(t, text, "(set, not shown)")
}

func TestTheServerChecksItselfAsTheCommandDoes(t *testing.T) {
	t.Setenv("MNEME_LISTEM", "127.0.0.1:0")
	i, err := instance.Start(t.Context(), instance.Config{Data: t.TempDir(), Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler), Doctor: doctor.Serving})
	require.NoError(t, err)
	defer func() { require.NoError(t, i.Close()) }()
	var d httpapi.Diagnosis
	(&bundle{t, i}).get("/v1/doctor", &d)
	require.True(t, d.OK, "%v", d.Checks)
	levels := map[string]httpapi.Level{}
	for _, c := range d.Checks {
		levels[c.Check] = c.Level
		if c.Check == "settings" {
			require.Contains(t, c.Detail, "MNEME_LISTEM")
			require.Contains(t, c.Remedy, "correct the name")
		}
		if c.Check == "nats" {
			require.Contains(t, c.Detail, "in this process")
		}
	}
	require.Equal(t, httpapi.LevelWarning, levels["settings"])
	for _, check := range []string{"nats", "jetstream", "log", "producers"} {
		require.Equal(t, httpapi.LevelOK, levels[check], check)
	}
	require.Contains(t, levels, "disk")
	require.Contains(t, levels, "projection graph") // perhaps a warning, until it is driven
}

func TestTheServerChecksItselfWhileNATSIsAway(t *testing.T) {
	t.Parallel()
	i, err := instance.Start(t.Context(), instance.Config{Data: t.TempDir(), Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler), Doctor: doctor.Serving})
	require.NoError(t, err)
	defer func() { require.NoError(t, i.Close()) }()
	i.Log.Conn().Close()
	var d httpapi.Diagnosis
	(&bundle{t, i}).get("/v1/doctor", &d)
	require.False(t, d.OK)
	failed := map[string]string{}
	for _, c := range d.Checks {
		if c.Level == httpapi.LevelFailed {
			failed[c.Check] = c.Detail
		}
	}
	require.Contains(t, failed["nats"], "lost its connection")
	require.Contains(t, failed["status"], "NATS")
}

// deadlines are those that a read model is asked with.
type deadlines struct {
	httpapi.Models
	last atomic.Pointer[time.Time]
}

func (d *deadlines) Graph(ctx context.Context) (view.Pinned[graph.Reader], error) {
	if at, ok := ctx.Deadline(); ok {
		d.last.Store(&at)
	}
	return d.Models.Graph(ctx)
}

func TestAStoreThatDoesNotAnswerLeavesTimeToCheckTheRest(t *testing.T) {
	var models deadlines
	var rest time.Time
	f := setupFront(t, func(c *httpapi.Config) {
		models.Models, c.Models = c.Models, &models
		c.Doctor = func(ctx context.Context, _ httpapi.Status) []httpapi.Check {
			rest, _ = ctx.Deadline()
			return nil
		}
	})
	answer, err := http.Get(f.server.URL() + "/v1/doctor")
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode)
	require.Greater(t, rest.Sub(*models.last.Load()), time.Second)
}
