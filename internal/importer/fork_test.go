package importer_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	parentSession = "11111111-2222-4333-8444-555555555555"
	forkSession   = "22222222-2222-4333-8444-555555555555"
)

// claudeTurn is a prompt and its answer in a transcript of Claude Code. As copies they say of which session.
func claudeTurn(session, n, from string) string {
	copied := ""
	if from != "" {
		copied = `,"forkedFrom":{"sessionId":"` + from + `","messageUuid":"NAME` + n + `"},"requestSessionId":"` + from + `"`
	}
	line := func(kind, content string) string {
		return `{"type":"` + kind + `","uuid":"` + kind + n + `","sessionId":"` + session + `","timestamp":"2026-01-01T00:00:00Z","cwd":"/shop",` +
			`"message":{"id":"m` + n + `","content":` + content + `}` + strings.ReplaceAll(copied, "NAME", kind) + "}\n"
	}
	return line("user", `"prompt `+n+`"`) + line("assistant", `[{"type":"text","text":"answer `+n+`"}]`)
}

// messages returns what a conversation of Claude Code shows.
func (b *bundle) messages(session string) (said []string) {
	response, err := http.Get(b.HTTPURL() + "/v1/conversations/claude_code:" + session + "/messages")
	require.NoError(b, err)
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	require.NoError(b, err)
	require.Equal(b, http.StatusOK, response.StatusCode, "%s", raw)
	var answer struct {
		Messages []struct {
			Content string `json:"content"`
		} `json:"messages"`
	}
	require.NoError(b, json.Unmarshal(raw, &answer))
	for _, m := range slices.Backward(answer.Messages) { // the newest comes first
		said = append(said, m.Content)
	}
	return said
}

func TestWhatAForkRepeatsIsInTheLogOnceWhicheverRecordingComesFirst(t *testing.T) {
	for name, order := range map[string][]string{
		"its session first": {parentSession, forkSession},
		"the fork first":    {forkSession, parentSession},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, dir := setup(t), t.TempDir()
			write := func(session, lines string) string {
				path := filepath.Join(dir, session+".jsonl")
				require.NoError(t, os.WriteFile(path, []byte(lines), 0o600))
				return path
			}
			parent := write(parentSession, claudeTurn(parentSession, "1", "")+claudeTurn(parentSession, "2", ""))
			fork := write(forkSession, claudeTurn(forkSession, "1", parentSession)+claudeTurn(forkSession, "3", ""))
			published := 0
			for _, session := range order {
				report, err := b.bring(filepath.Join(dir, session+".jsonl"))
				require.NoError(t, err)
				published += report.Published
			}
			require.Equal(t, 8, published, "two starts and three turns")
			require.Equal(t, uint64(8), b.head())
			require.Equal(t, []string{"prompt 1", "answer 1", "prompt 2", "answer 2"}, b.messages(parentSession))
			require.Equal(t, []string{"prompt 1", "answer 1", "prompt 3", "answer 3"}, b.messages(forkSession))

			write(parentSession, claudeTurn(parentSession, "1", "")+claudeTurn(parentSession, "2", "")+claudeTurn(parentSession, "4", ""))
			write(forkSession, claudeTurn(forkSession, "1", parentSession)+claudeTurn(forkSession, "3", "")+claudeTurn(forkSession, "5", ""))
			report, err := b.bring(fork, parent)
			require.NoError(t, err)
			require.Equal(t, 4, report.Published, "both have grown")
			require.Empty(t, b.rejected)
			require.Equal(t, []string{"prompt 1", "answer 1", "prompt 3", "answer 3", "prompt 5", "answer 5"}, b.messages(forkSession))
		})
	}
}

func TestAForkWhoseSessionHasNoRecordingKeepsWhatItRepeats(t *testing.T) {
	b := setup(t)
	path := filepath.Join(t.TempDir(), forkSession+".jsonl")
	require.NoError(t, os.WriteFile(path, []byte(claudeTurn(forkSession, "1", parentSession)+claudeTurn(forkSession, "3", "")), 0o600))
	_, err := b.bring(path)
	require.NoError(t, err)
	require.Equal(t, []string{"prompt 1", "answer 1"}, b.messages(parentSession))
	require.Equal(t, []string{"prompt 1", "answer 1", "prompt 3", "answer 3"}, b.messages(forkSession))
}

// The SDK gives the last copy the time at which the fork was made, so the duration of a call differs.
func TestAFieldThatDiffersInACopyIsNotReported(t *testing.T) {
	b, dir := setup(t), t.TempDir()
	call := func(session, time, from string) string {
		copied := ""
		if from != "" {
			copied = `,"forkedFrom":{"sessionId":"` + from + `","messageUuid":"NAME"}`
		}
		line := func(kind, uuid, time, content string) string {
			return `{"type":"` + kind + `","uuid":"` + uuid + `","sessionId":"` + session + `","timestamp":"` + time + `","message":{"id":"m","content":[` + content + `]}` +
				strings.ReplaceAll(copied, "NAME", uuid) + "}\n"
		}
		return line("assistant", "a", "2026-01-01T00:00:00Z", `{"type":"tool_use","id":"toolu_1","name":"Read","input":{}}`) +
			line("user", "r", time, `{"type":"tool_result","tool_use_id":"toolu_1","content":"read"}`)
	}
	for session, lines := range map[string]string{
		parentSession: call(parentSession, "2026-01-01T00:00:01Z", "") + claudeTurn(parentSession, "2", ""),
		forkSession:   call(forkSession, "2026-01-01T00:09:00Z", parentSession) + claudeTurn(forkSession, "3", ""),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, session+".jsonl"), []byte(lines), 0o600))
	}
	for _, session := range []string{parentSession, forkSession} {
		_, err := b.bring(filepath.Join(dir, session+".jsonl"))
		require.NoError(t, err)
	}
	require.Empty(t, b.rejected)
}
