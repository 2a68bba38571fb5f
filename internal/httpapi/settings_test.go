package httpapi_test

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

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
