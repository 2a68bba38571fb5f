package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest"
)

// logged returns the events of a tenant as the log has them, doubled ones too, without what differs between
// tenants and logs.
func logged(t *testing.T, s *server, tenant string) (list []map[string]any) {
	t.Helper()
	out, stderr, code := s.mneme("tail", "--from", "1", "--until-end", "--json", "--tenant", tenant)
	require.Zero(t, code, stderr)
	for decoder := json.NewDecoder(strings.NewReader(out)); ; {
		var e map[string]any
		err := decoder.Decode(&e)
		if err == io.EOF {
			return list
		}
		require.NoError(t, err)
		delete(e, "seq")
		delete(e, "tenant")
		list = append(list, e)
	}
}

// aSession returns a transcript of Claude Code: a recorded one of middle size, else one that is made up.
func aSession(t *testing.T) []byte {
	t.Helper()
	data := os.Getenv("MNEME_TEST_DATA")
	if data == "" {
		var text bytes.Buffer
		for i := range 120 {
			line := `{"type":"user","uuid":"u#","sessionId":"s","message":{"content":"prompt #"}}` + "\n" +
				`{"type":"assistant","uuid":"a#","sessionId":"s","message":{"id":"m#","content":[{"type":"text","text":"Größe #"}]}}` + "\n"
			text.WriteString(strings.ReplaceAll(line, "#", string(rune('A'+i/26))+string(rune('a'+i%26))))
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
	s, home, text := up(t, t.TempDir()), t.TempDir(), aSession(t)
	folder := filepath.Join(home, ".claude", "projects", "p")
	require.NoError(t, os.MkdirAll(folder, 0o700))
	path := filepath.Join(folder, "11111111-2222-4333-8444-555555555555.jsonl")
	program, err := mnemetest.Binary()
	require.NoError(t, err)
	env := []string{"HOME=" + home, "XDG_STATE_HOME=", "CLAUDE_CONFIG_DIR="}
	head := func() uint64 { return read[statusAnswer](s, "status").Stream.Head }

	f, err := os.Create(path)
	require.NoError(t, err)
	lines := bytes.SplitAfter(text, []byte("\n"))
	const kills = 20
	for i := range kills {
		before := head()
		cmd := exec.Command(program, "watch", "--agent", "claude-code", "--url", s.ready.HTTP)
		cmd.Env = append(os.Environ(), env...)
		require.NoError(t, cmd.Start())
		for _, line := range lines[i*len(lines)/kills : (i+1)*len(lines)/kills] {
			_, err := f.Write(line)
			require.NoError(t, err)
		}
		for began := time.Now(); head() == before && time.Since(began) < 500*time.Millisecond; {
			time.Sleep(time.Millisecond) // it may be killed before it has published anything, too
		}
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait()
	}
	require.NoError(t, f.Close())
	old := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(path, old, old))
	for range 2 {
		_, stderr, code := mnemeWith(t, env, "watch", "--agent", "claude-code", "--once", "--url", s.ready.HTTP)
		require.Zero(t, code, stderr)
	}

	_, stderr, code := s.mneme("import", path, "--tenant", "finished")
	require.Zero(t, code, stderr)
	want := logged(t, s, "finished")
	require.Greater(t, len(want), 50)
	require.Equal(t, want, logged(t, s, "default"))
}

// statusAnswer is the part of status --json that the test reads.
type statusAnswer struct {
	Stream struct {
		Head uint64 `json:"head"`
	} `json:"stream"`
}

func TestMistakesInWatchSayWhatToDo(t *testing.T) {
	t.Parallel()
	_, env := agentHome(t)
	_, stderr, code := mnemeWith(t, env, "watch", "--once")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "mneme connect")
	_, stderr, code = mnemeWith(t, env, "watch", "--agent", "emacs")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "claude-code")
}
