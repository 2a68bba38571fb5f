package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/bench"
)

// aSession returns a transcript of Claude Code: a recorded one of middle size, else one that is made up.
func aSession(t *testing.T) []byte {
	t.Helper()
	data := os.Getenv("MNEME_TEST_DATA")
	if data == "" {
		var text bytes.Buffer
		for i := range 120 {
			line := `{"type":"user","uuid":"00000000-0000-4000-8000-#1","sessionId":"11111111-2222-4333-8444-555555555555","message":{"content":"prompt #"}}` + "\n" +
				`{"type":"assistant","uuid":"00000000-0000-4000-8000-#2","sessionId":"11111111-2222-4333-8444-555555555555","message":{"id":"msg_#","content":[{"type":"text","text":"Größe #"}]}}` + "\n"
			text.WriteString(strings.ReplaceAll(line, "#", fmt.Sprintf("%011d", i)))
		}
		return text.Bytes()
	}
	paths, err := filepath.Glob(filepath.Join(data, "native", "claude-code", "*.jsonl.gz"))
	require.NoError(t, err)
	for _, path := range paths {
		info, err := os.Stat(path)
		require.NoError(t, err)
		if info.Size() < 40_000 || info.Size() > 120_000 {
			continue
		}
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		unpacked, err := gzip.NewReader(bytes.NewReader(raw))
		require.NoError(t, err)
		text, err := io.ReadAll(unpacked)
		require.NoError(t, err)
		return text
	}
	t.Fatal("there is no recorded session of middle size")
	return nil
}

func TestAWatcherThatIsKilledTwentyTimesLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "11111111-2222-4333-8444-555555555555.jsonl")
	require.NoError(t, os.WriteFile(path, aSession(t), 0o600))
	out, stderr, code := mneme(t, "bench", "capture", path, "--kills", "20", "--factor", "1000", "--files", "3", "--idle-files", "3", "--idle-for", "1s", "--json")
	require.Zero(t, code, stderr)
	var r bench.Capture
	decoder := json.NewDecoder(strings.NewReader(out))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&r), out)

	require.Greater(t, r.Events, 50)
	require.Equal(t, 20, r.Kills)
	require.Positive(t, r.Working, "some had published")
	require.Zero(t, r.Killed)
	require.Zero(t, r.Replayed)
	require.Positive(t, r.Held, "the last message may be incomplete")
	require.Greater(t, r.Readable.Count, r.Events/2)
	require.LessOrEqual(t, r.Readable.Count+r.Held, r.Events)
	require.Equal(t, []int{3, 3 * r.Events}, []int{r.History.Files, r.History.Events}, "each copy is a session of its own")
	require.Positive(t, r.History.MBPS)
	require.Equal(t, 3, r.Idle.Files)
}

func TestMistakesInBenchCaptureSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	other := filepath.Join(empty, "other.jsonl")
	require.NoError(t, os.WriteFile(other, []byte(strings.Repeat(`{"kind":"message","conversation_id":"c","id":"i","role":"user","content":"x"}`+"\n", 50)), 0o600))
	nameless := filepath.Join(empty, "nameless.jsonl")
	line := `{"type":"user","uuid":"u#","sessionId":"s","message":{"content":"prompt #"}}` + "\n"
	var text strings.Builder
	for i := range 4 {
		text.WriteString(strings.ReplaceAll(line, "#", fmt.Sprint(i)))
	}
	require.NoError(t, os.WriteFile(nameless, []byte(text.String()), 0o600))
	for want, args := range map[string][]string{
		"no events":                {filepath.Join(empty, "none")},
		"copies of this session":   {nameless, "--kills", "2"},
		"is a session of Claude":   {other},
		"--factor 0":               {other, "--factor", "0"},
		"--kills 0":                {other, "--kills", "0"},
		"--idle-for 1ms: must be ": {other, "--idle-for", "1ms"},
	} {
		_, stderr, code := mneme(t, append([]string{"bench", "capture"}, args...)...)
		require.Equal(t, exitUsage, code, "%v: %s", args, stderr)
		require.Contains(t, stderr, want)
	}
}
