package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/settings"
)

// config runs mneme config and returns each setting as "value from source".
func config(t *testing.T, env []string, args ...string) map[string]string {
	t.Helper()
	out, stderr, code := mnemeWith(t, env, append([]string{"config", "--json"}, args...)...)
	require.Zero(t, code, stderr)
	var list []settings.Setting
	require.NoError(t, json.Unmarshal([]byte(out), &list))
	all := map[string]string{}
	for _, s := range list {
		all[s.Name] = s.Value + " from " + s.Source
	}
	return all
}

func TestConfigShowsTheSourceOfEachSetting(t *testing.T) {
	t.Parallel()
	env := []string{"MNEME_DATA=/tmp/somewhere", "MNEME_LOG_LEVEL=info", "MNEME_TENANT=team"}
	got := config(t, env, "up", "--listen", "127.0.0.1:0", "--log-level", "debug")
	require.Equal(t, "/tmp/somewhere from environment", got["MNEME_DATA"])
	require.Equal(t, "127.0.0.1:0 from flag", got["MNEME_LISTEN"])
	require.Equal(t, "debug from flag", got["MNEME_LOG_LEVEL"], "a flag goes before the environment")
	require.Equal(t, "127.0.0.1:4222 from default", got["MNEME_NATS_LISTEN"])

	require.Equal(t, "team from environment", config(t, env)["MNEME_TENANT"])
	require.Equal(t, "other from flag", config(t, env, "--tenant", "other")["MNEME_TENANT"])
	require.Equal(t, "127.0.0.1:8421 from default", config(t, env, "ingestor")["MNEME_LISTEN"])
	require.Equal(t, "127.0.0.1:8422 from default", config(t, env, "file-tracker")["MNEME_LISTEN"])
	require.Equal(t, "127.0.0.1:8420 from default", config(t, env, "context-api")["MNEME_LISTEN"])

	writer := config(t, append(env, "MNEME_SUMMARY_WRITER=openai", "MNEME_LLM_MODEL=small", "MNEME_LLM_KEY=hush"), "summarizer")
	require.Equal(t, "127.0.0.1:8423 from default", writer["MNEME_LISTEN"])
	require.Equal(t, "openai from environment", writer["MNEME_SUMMARY_WRITER"])
	require.Equal(t, "10 from default", writer["MNEME_L1_THRESHOLD_PERCENT"])
	require.Equal(t, "(set, not shown) from environment", writer["MNEME_LLM_KEY"])
}

func TestConfigReportsInvalidSettings(t *testing.T) {
	t.Parallel()
	for says, c := range map[string]struct {
		env  string
		args []string
	}{
		`MNEME_PARTITIONS="many": not a whole number`:                 {"MNEME_PARTITIONS=many", []string{"config", "ingestor"}},
		`MNEME_LISTEN="0.0.0.0:1": it is reached from other machines`: {"MNEME_LISTEN=0.0.0.0:1", []string{"config", "context-api"}},
		`MNEME_LLM_MODEL is empty, but`:                               {"MNEME_SUMMARY_WRITER=anthropic", []string{"config", "summarizer"}},
		`--listen="0.0.0.0:1": it is reached from other machines`:     {"MNEME_LISTEN=127.0.0.1:1", []string{"config", "up", "--listen", "0.0.0.0:1"}},
		`MNEME_LOG_SIZE="big": not a number of bytes, such as`:        {"MNEME_LOG_SIZE=big", []string{"config", "up"}},
		`MNEME_URL="nowhere": not a URL`:                              {"MNEME_URL=nowhere", []string{"status"}},
		`--url="nowhere": not a URL`:                                  {"X=", []string{"status", "--url", "nowhere"}},
		`MNEME_COLOR="sometimes": not one of auto, always, never`:     {"MNEME_COLOR=sometimes", []string{"status"}},
	} {
		_, stderr, code := mnemeWith(t, []string{c.env}, c.args...)
		require.Equal(t, exitUsage, code, stderr)
		require.Contains(t, stderr, says)
	}
	_, stderr, code := mnemeWith(t, []string{"MNEME_LOG_SIZE=big", "MNEME_STORE=paper"}, "version", "--local")
	require.Zero(t, code, "a setting of another command does not matter: %s", stderr)
}

func TestEveryVariableThatCannotBeReadIsNamed(t *testing.T) {
	t.Parallel()
	env := []string{"MNEME_LOG_SIZE=x", "MNEME_STORY_AFTER=y", "MNEME_TITLES=perhaps", "MNEME_LOG_LEVEL=loud", "MNEME_MAX_TURNS_BEFORE_SUMMARIZE=few"}
	_, stderr, code := mnemeWith(t, env, "up", "--max-turns-before-summarize", "3", "--data", t.TempDir())
	require.Equal(t, exitUsage, code)
	require.Equal(t, `mneme: MNEME_TITLES="perhaps": not true or false
MNEME_STORY_AFTER="y": not a duration such as 5s
MNEME_LOG_SIZE="x": not a number of bytes, such as 5000000, 500MB or 20GiB
MNEME_LOG_LEVEL="loud": not one of debug, info, warn, error (mneme up --help says more)
`, stderr, "a flag overrides its variable")
	_, stderr, code = mneme(t, "up", "--data", "")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, `--data="": must not be empty: name a directory`)
}
