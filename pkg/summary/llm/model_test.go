package llm_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest/llmtest"
	"mneme.dev/mneme/pkg/summary"
	"mneme.dev/mneme/pkg/summary/llm"
)

// real makes a writer that asks the real model through an endpoint that can be told to fail.
func real(t *testing.T, maxTokens int64, change ...func(*llm.Profile)) (*llmtest.Endpoint, *llm.Writer) {
	t.Helper()
	e := llmtest.InFrontOf(t, llmtest.Model(t))
	return e, on(t, llm.Fast(never, time.Hour), e, append([]func(*llm.Profile){func(p *llm.Profile) {
		p.Model, p.MaxTokens, p.Timeout = llmtest.ModelName, maxTokens, llmtest.Patience
	}}, change...)...)
}

// told is a conversation that a small model can read.
func told() summary.Input {
	return summary.Input{Files: []string{"cmd/main.go"}, Tools: []string{"read_file"}, Entries: []summary.Entry{
		{Seq: 1, Turn: 1, Kind: summary.KindUser, Name: "ana", Text: "The tests fail since the last release. Please find the reason and repair it."},
		{Seq: 2, Turn: 1, Kind: summary.KindCall, Name: "read_file", Text: `{"path":"cmd/main.go"}`},
		{Seq: 3, Turn: 1, Kind: summary.KindResult, Name: "read_file", Text: "package main // the time-out of the connection pool is 1 second"},
		{Seq: 4, Turn: 1, Kind: summary.KindAssistant, Text: "The time-out of the connection pool was too short. I set it to 30 seconds, and the tests pass."},
	}}
}

// A small model does not always complete its answer, so only one of several tries has to succeed. Anything that is not
// a draft must be one of the documented errors.
func TestARealModelWritesADraft(t *testing.T) {
	prompts := []string{
		"Summarise the record in one sentence.",
		`Write one short sentence for each field, and nothing else. For example:
{"conversation": "Bob asked for a page.", "actions": "Wrote the page.", "findings": ["The page is at /home."], "topics": ["page"]}`,
	}
	file := filepath.Join(t.TempDir(), "prompt.txt")
	for try := range 12 {
		require.NoError(t, os.WriteFile(file, []byte(prompts[try%2]), 0o600))
		e, w := real(t, 200, func(p *llm.Profile) {
			p.PromptFile, p.Temperature = file, float64(try/2)/5
		})
		got, usage, err := w.Write(t.Context(), told())
		require.Equal(t, 1, usage.Calls)
		require.Positive(t, usage.InputTokens)
		require.Positive(t, usage.OutputTokens)
		require.Equal(t, 1, e.Calls())
		if err != nil {
			require.ErrorIs(t, err, summary.ErrUnusable)
			t.Log(err)
			continue
		}
		require.NotEmpty(t, got.Conversation)
		require.LessOrEqual(t, len(got.Findings), 5)
		require.LessOrEqual(t, len(got.Topics), 4)
		return
	}
	t.Error("no draft in 12 tries")
}

// Whatever a small model says about a session must be an insight or one of the documented errors.
func TestARealModelAnalyses(t *testing.T) {
	_, w := real(t, 80)
	got, usage, err := w.Analyse(t.Context(), told())
	require.Positive(t, usage.OutputTokens)
	if err != nil {
		require.ErrorIs(t, err, summary.ErrUnusable)
		require.Equal(t, 2, usage.Calls)
		return
	}
	require.NotEmpty(t, got.MainTopic)
	require.LessOrEqual(t, len(got.KeyFindings), 6)
	require.LessOrEqual(t, len(got.ActionItems), 6)
}

func TestARealModelIsCutOff(t *testing.T) {
	_, w := real(t, 8)
	_, usage, err := w.Write(t.Context(), told())
	failed(t, err, llm.ClassCutOff, summary.ErrUnusable)
	require.EqualValues(t, 8, usage.OutputTokens)
}

func TestARealModelRejectsTooMuchInput(t *testing.T) {
	_, w := real(t, 8)
	in := told()
	in.Entries[3].Text = strings.Repeat("far more words than it can read ", 4_000)
	_, usage, err := w.Write(t.Context(), in)
	failed(t, err, llm.ClassTooLong, summary.ErrUnusable)
	require.Equal(t, 3, usage.Calls)
	require.Zero(t, usage.OutputTokens)
}

func TestARealModelIsHalvedUntilItFits(t *testing.T) {
	_, w := real(t, 8)
	in := told()
	in.Entries[2].Text = strings.Repeat("far more words than it can read ", 2_000) // fits whole
	_, usage, err := w.Write(t.Context(), in)
	failed(t, err, llm.ClassCutOff, summary.ErrUnusable)
	require.Equal(t, 2, usage.Calls)
}

func TestARealModelCondenses(t *testing.T) {
	e, w := real(t, 80)
	result := llm.ToolResult{Tool: "bash", Arguments: `{"command":"make test"}`, Result: strings.Repeat("ok  mneme/pkg/window 0.2s\n", 60) + "FAIL mneme/pkg/graph exit 1\n"}
	for name, first := range map[string]llmtest.Reply{
		"at once":         e.Pass(),
		"after a failure": llmtest.Failure(http.StatusInternalServerError, "", ""),
		"after a reset":   func(_ http.ResponseWriter, r *http.Request) { e.Reset(); <-r.Context().Done() },
	} {
		e.Reply(first, e.Pass())
		text, usage, err := w.Condense(t.Context(), result)
		require.Positive(t, usage.OutputTokens, name)
		if err != nil {
			require.ErrorIs(t, err, summary.ErrUnusable, name)
			continue
		}
		require.NotEmpty(t, text, name)
		require.LessOrEqual(t, len([]rune(text)), summary.CondensedChars, name)
	}
}

func TestARealModelIsLeftAlone(t *testing.T) {
	e, w := real(t, 2_000)
	ctx, cancel := context.WithCancel(t.Context())
	done := inBackground(ctx, w)
	require.Eventually(t, func() bool { return e.Calls() == 1 }, patience, time.Millisecond)
	cancel()
	require.ErrorIs(t, await(t, done).err, context.Canceled)

	_, w = real(t, 8)
	_, _, err := w.Write(t.Context(), told())
	failed(t, err, llm.ClassCutOff, summary.ErrUnusable)
}

func TestARealServerAnswersNotFound(t *testing.T) {
	_, w := real(t, 8, func(p *llm.Profile) { p.URL += "/nothing" })
	_, _, err := w.Write(t.Context(), told())
	require.Contains(t, failed(t, err, llm.ClassDenied, summary.ErrUnavailable).Reason, "HTTP 404, check the URL")
}
