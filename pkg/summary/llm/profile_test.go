package llm_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest/llmtest"
	"mneme.dev/mneme/pkg/summary/llm"
)

func valid() llm.Profile {
	return llm.Profile{Provider: llm.OpenAI, URL: "http://127.0.0.1:1/v1", Model: "m", Key: key, Timeout: time.Second}
}

func TestAnInvalidProfileListsItsProblems(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	for name, c := range map[string]struct {
		change func(*llm.Profile)
		want   string
	}{
		"no provider":      {func(p *llm.Profile) { p.Provider = "" }, "Provider="},
		"other provider":   {func(p *llm.Profile) { p.Provider = "acme" }, `Provider="acme": neither openai nor anthropic`},
		"no URL":           {func(p *llm.Profile) { p.URL = "127.0.0.1:8080" }, "URL="},
		"no host":          {func(p *llm.Profile) { p.URL = "http:///v1" }, `URL="http:///v1": not a URL`},
		"other scheme":     {func(p *llm.Profile) { p.URL = "ftp://a/v1" }, `URL="ftp://a/v1"`},
		"key in the URL":   {func(p *llm.Profile) { p.URL = "http://me:" + key + "@a/v1" }, `URL="http://me:xxxxx@a/v1": must not hold`},
		"no model":         {func(p *llm.Profile) { p.Model = "" }, "Model="},
		"two lines of key": {func(p *llm.Profile) { p.Key += "\n" }, `Key="(not shown)"`},
		"no time-out":      {func(p *llm.Profile) { p.Timeout = 0 }, "Timeout=0s"},
		"negative timeout": {func(p *llm.Profile) { p.Timeout = -time.Second }, "Timeout=-1s"},
		"too hot":          {func(p *llm.Profile) { p.Temperature = 2.1 }, "Temperature=2.1"},
		"no number":        {func(p *llm.Profile) { p.Temperature = math.NaN() }, "Temperature=NaN"},
		"negative tokens":  {func(p *llm.Profile) { p.MaxTokens = -1 }, "MaxTokens=-1"},
		"negative calls":   {func(p *llm.Profile) { p.MaxCallsPerHour = -1 }, "MaxCallsPerHour=-1"},
		"negative cost":    {func(p *llm.Profile) { p.MaxCostPerHour = -1 }, "MaxCostPerHour=-1"},
		"negative prices":  {func(p *llm.Profile) { p.InputPrice, p.OutputPrice = -1, -2 }, "InputPrice=-1: must not be negative\nOutputPrice=-2"},
		"cost of nothing":  {func(p *llm.Profile) { p.MaxCostPerHour = 1 }, "MaxCostPerHour=1: needs InputPrice"},
		"missing prompt":   {func(p *llm.Profile) { p.PromptFile = filepath.Join(dir, "none") }, `PromptFile="` + filepath.Join(dir, "none") + `": can't be read`},
		"a directory":      {func(p *llm.Profile) { p.CondensePromptFile = dir }, "CondensePromptFile="},
		"empty prompt":     {func(p *llm.Profile) { p.PromptFile = file("empty", " \n") }, "is empty"},
		"binary prompt":    {func(p *llm.Profile) { p.PromptFile = file("binary", "\xff\xfe") }, "is not text"},
		"large prompt":     {func(p *llm.Profile) { p.CondensePromptFile = file("large", strings.Repeat("x", 65<<10)) }, "has more than 64 KiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := valid()
			c.change(&p)
			_, err := llm.New(p)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), key)
		})
	}
}

func TestDefaultsOfAProfile(t *testing.T) {
	t.Parallel()
	for _, provider := range []string{llm.OpenAI, llm.Anthropic} {
		_, err := llm.New(llm.Profile{Provider: provider, Model: "m", Timeout: time.Second})
		require.NoError(t, err)
	}
}

func TestCustomPrompts(t *testing.T) {
	t.Parallel()
	standard, err := llm.New(valid())
	require.NoError(t, err)
	require.Regexp(t, "^[0-9a-f]{16}$", standard.PromptHash())
	require.Regexp(t, "^[0-9a-f]{16}$", standard.CondensePromptHash())
	require.NotEqual(t, standard.PromptHash(), standard.CondensePromptHash())

	file := filepath.Join(t.TempDir(), "prompt.txt")
	require.NoError(t, os.WriteFile(file, []byte("Write it as a haiku.\n"), 0o600))
	e, w := setup(t, func(p *llm.Profile) { p.PromptFile = file })
	require.NotEqual(t, standard.PromptHash(), w.PromptHash())
	require.Equal(t, standard.CondensePromptHash(), w.CondensePromptHash())

	require.NoError(t, os.Remove(file), "it is read only once")
	e.Reply(good(t), llmtest.Chat("less"))
	_, _, err = w.Write(t.Context(), input())
	require.NoError(t, err)
	_, _, err = w.Condense(t.Context(), llm.ToolResult{Result: "more than that"})
	require.NoError(t, err)
	system := func(call int) string {
		return e.Requests()[call].Body["messages"].([]any)[0].(map[string]any)["content"].(string)
	}
	require.True(t, strings.HasPrefix(system(0), "Write it as a haiku.\n\nWhatever stands between <record>"), system(0))
	require.NotContains(t, system(1), "haiku")
}
