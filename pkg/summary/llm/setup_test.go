package llm_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest/llmtest"
	"mneme.dev/mneme/pkg/summary"
	"mneme.dev/mneme/pkg/summary/llm"
)

// key must appear only in the header of a request.
const key = "sk-a-very-secret-key"

// never is for a breaker that does not open, or does not close again.
const never = 1 << 30

// setup makes an endpoint without a model, and a writer that asks it.
func setup(t *testing.T, change ...func(*llm.Profile)) (*llmtest.Endpoint, *llm.Writer) {
	t.Helper()
	e := llmtest.New(t)
	return e, on(t, llm.Fast(never, time.Hour), e, change...)
}

// on makes a writer that asks an endpoint.
func on(t *testing.T, s *llm.Endpoints, e *llmtest.Endpoint, change ...func(*llm.Profile)) *llm.Writer {
	t.Helper()
	p := llm.Profile{Provider: llm.OpenAI, URL: e.URL(), Model: "canned", Key: key, Timeout: time.Minute}
	for _, c := range change {
		c(&p)
	}
	w, err := s.New(p)
	require.NoError(t, err)
	return w
}

func anthropic(p *llm.Profile) {
	p.Provider = llm.Anthropic
	p.URL = strings.TrimSuffix(p.URL, "/v1")
}

func timeout(d time.Duration) func(*llm.Profile) {
	return func(p *llm.Profile) { p.Timeout = d }
}

// input has 4 turns that each read one file, with results of 600 characters.
func input() summary.Input {
	in := summary.Input{Files: []string{"cmd/main.go"}, Tools: []string{"read_file"}}
	for turn := 1; turn <= 4; turn++ {
		in.Entries = append(in.Entries,
			summary.Entry{Turn: turn, Kind: summary.KindUser, Name: "ana", Text: fmt.Sprintf("Please look for the reason of failure %d, which started after the last release.", turn)},
			summary.Entry{Turn: turn, Kind: summary.KindCall, Name: "read_file", Text: fmt.Sprintf(`{"path":"cmd/main.go","from":%d}`, turn)},
			summary.Entry{Turn: turn, Kind: summary.KindResult, Name: "read_file", Text: fmt.Sprintf("result %d ", turn) + strings.Repeat("of a file. ", 54), Failed: turn == 2},
			summary.Entry{Turn: turn, Kind: summary.KindAssistant, Text: fmt.Sprintf("The time-out of the connection pool is %d seconds, which is too short.", turn)})
	}
	for i := range in.Entries {
		in.Entries[i].Seq = uint64(i + 1)
	}
	return in
}

// draft is the canned model's answer when all is well.
func draft() summary.Draft {
	return summary.Draft{
		Conversation: "Ana wants the reason of four failures. The connection pool's time-out is too short.",
		Actions:      "Read cmd/main.go four times, once in vain.",
		Findings:     []string{"The time-out is 1 to 4 seconds."},
		Topics:       []string{"connection pool"},
	}
}

// written is a draft in the requested form.
func written(t testing.TB, d summary.Draft) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{"conversation": d.Conversation, "actions": d.Actions, "findings": d.Findings, "topics": d.Topics})
	require.NoError(t, err)
	return string(text)
}

func good(t testing.TB) llmtest.Reply { return llmtest.Chat(written(t, draft())) }

// failed checks err: its class, exactly one of the two sentinel errors, and a short reason without
// secrets.
func failed(t testing.TB, err error, class llm.Class, sentinel error) *llm.Error {
	t.Helper()
	e, ok := errors.AsType[*llm.Error](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, class, e.Class, "%v", err)
	require.ErrorIs(t, err, sentinel)
	require.NotEqual(t, errors.Is(err, summary.ErrUnavailable), errors.Is(err, summary.ErrUnusable))
	require.NotEmpty(t, e.Reason)
	require.Less(t, len(e.Reason), 250)
	for _, secret := range []string{key, "secret", "Please look", "connection pool"} {
		require.NotContains(t, fmt.Sprintf("%v %+v %q %s", err, e, e, e.Reason), secret)
	}
	return e
}
