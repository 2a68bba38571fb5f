package doctor

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/connect"
	"mneme.dev/mneme/internal/hook"
)

func TestWhetherWhatAHookShowedHasArrivedIsSeenInTheTranscript(t *testing.T) {
	now := time.Now()
	transcript := filepath.Join(t.TempDir(), "t.jsonl")
	claude := &connect.State{Agent: connect.ClaudeCode, Keeps: true}
	fired := hook.Fired{Agent: connect.ClaudeCode, Session: "s", Transcript: transcript, At: now.Add(-time.Hour), Context: "hook-0123"}
	look := func(f hook.Fired) (seen, wrong string) { return delivered(t.Context(), claude, []hook.Fired{f}, now) }

	seen, wrong := look(fired)
	require.Contains(t, seen, "can't be read")
	require.Empty(t, wrong)

	require.NoError(t, os.WriteFile(transcript, []byte(`{"hookOutput": ""}`), 0o600))
	_, wrong = look(fired)
	require.Contains(t, wrong, "was shown hook-0123, but its transcript "+transcript+" does not hold it")
	late := fired
	late.At = now
	seen, wrong = look(late)
	require.Contains(t, seen, "not in its transcript yet")
	require.Empty(t, wrong)

	for _, mark := range []string{`<mneme-context id=\"hook-0123\"`, `&lt;mneme-context id=&quot;hook-0123&quot;`} {
		// The mark begins in one piece of the file that is read at a time and ends in the next.
		require.NoError(t, os.WriteFile(transcript, append(bytes.Repeat([]byte("x"), 1<<20-len(mark)/2-8), mark...), 0o600))
		seen, wrong = look(fired)
		require.Contains(t, seen, transcript+" holds hook-0123")
		require.Empty(t, wrong)
	}

	silent := fired
	silent.Context = ""
	seen, _ = look(silent)
	require.Contains(t, seen, "none of its sessions was shown anything")
	seen, wrong = delivered(t.Context(), &connect.State{Agent: connect.ClaudeCode}, []hook.Fired{fired}, now)
	require.Contains(t, seen, "can't be seen")
	require.Empty(t, wrong)
}

func TestAConversationOfOpenHandsIsFoundByItsFolder(t *testing.T) {
	home := t.TempDir()
	t.Setenv("OPENHANDS_PERSISTENCE_DIR", home)
	folder := filepath.Join(home, "conversations", "0123abcd", "events")
	require.NoError(t, os.MkdirAll(folder, 0o700))
	for name, text := range map[string]string{"event-00000-a.json": "{}", "event-00001-b.json": `{"text": "<mneme-context id=\"hook-77\">"}`} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	s := &connect.State{Agent: connect.OpenHands, Keeps: true}
	fired := hook.Fired{Agent: connect.OpenHands, Session: "0123-abcd", Context: "hook-77"}
	seen, wrong := delivered(t.Context(), s, []hook.Fired{fired}, time.Now())
	require.Contains(t, seen, "event-00001-b.json holds hook-77")
	require.Empty(t, wrong)
	fired.Session = "../0123abcd"
	seen, _ = delivered(t.Context(), s, []hook.Fired{fired}, time.Now())
	require.Contains(t, seen, "can't be read")
}

func TestASessionOfKimiCodeIsFoundInTheFolderOfItsProject(t *testing.T) {
	home := t.TempDir()
	t.Setenv("KIMI_CODE_HOME", home)
	folder := filepath.Join(home, "sessions", "wd_shop_1", "session_0123", "agents", "main")
	require.NoError(t, os.MkdirAll(folder, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "wire.jsonl"), []byte(`{"text": "<mneme-context id=\"hook-77\">"}`), 0o600))
	s := &connect.State{Agent: connect.KimiCode, Keeps: true}
	seen, wrong := delivered(t.Context(), s, []hook.Fired{{Agent: connect.KimiCode, Session: "session_0123", Context: "hook-77"}}, time.Now())
	require.Contains(t, seen, "wire.jsonl holds hook-77")
	require.Empty(t, wrong)
}
