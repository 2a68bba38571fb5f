package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest"
)

// bash runs the script in a real bash and returns what Tab would offer at the end of
// a line.
func bash(t *testing.T, env []string, line string) []string {
	t.Helper()
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	path, err := mnemetest.Binary()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), mnemetest.Patience)
	defer cancel()
	// readline splits COMP_WORDS differently; the script does not use them.
	cmd := exec.CommandContext(ctx, shell, "--norc", "-c", `
source <(mneme completion bash) || exit 9
COMP_LINE=$1 COMP_POINT=${#1}
_mneme
printf '%s\n' "${COMPREPLY[@]}"`, "bash", line)
	cmd.Env = append(os.Environ(), append([]string{"PATH=" + filepath.Dir(path) + ":" + os.Getenv("PATH"), "LC_ALL=C"}, env...)...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	require.NoError(t, err, errs.String())
	require.Empty(t, errs.String())
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

func TestBashCompletesCommandsFlagsAndConversations(t *testing.T) {
	t.Parallel()
	s := up(t, filepath.Join(t.TempDir(), "data"))
	for _, id := range []string{"agent:one", "agent:two", "other three", "evil" + evil} {
		s.publish(id, userMessage("m1", "hello"))
		_, stderr, code := s.mneme("context", id, "--at-least", "1")
		require.Zero(t, code, stderr)
	}
	env := []string{"MNEME_URL=" + s.ready.HTTP}

	require.Subset(t, bash(t, env, "mneme "), []string{"up", "conversations", "tail", "doctor"})
	require.NotContains(t, bash(t, env, "mneme "), "reference")
	require.Equal(t, []string{"connect", "connected", "completion", "conversations", "context", "contexts", "code", "condense", "config"}, bash(t, env, "mneme co"))
	require.Equal(t, []string{"unarchive", "update"}, sorted(bash(t, env, "mneme conversations u")))
	require.Equal(t, []string{"--as-of", "--at-least"}, sorted(bash(t, env, "mneme context x --a")))
	require.Equal(t, []string{"hybrid"}, bash(t, env, "mneme context x --strategy h"))
	require.Equal(t, []string{"hybrid"}, bash(t, env, "mneme context x --strategy=h"), "bash replaces the text after =")
	require.Equal(t, []string{"bash", "fish", "zsh"}, sorted(bash(t, env, "mneme completion ")))
	require.Contains(t, bash(t, env, "mneme tail --kind tool_"), "tool_called")

	offered := func(line string) (words []string) {
		for range 100 { // a busy server may not answer in the time that a completion gives it
			if words = sorted(bash(t, env, line)); !slices.Equal(words, []string{""}) {
				break
			}
		}
		return words
	}
	require.Equal(t, []string{"agent:one", "agent:two", `other\ three`}, offered("mneme context "))
	require.Equal(t, []string{"one", "two"}, offered("mneme messages agent:"), "bash replaces the text after :")
	require.Equal(t, []string{"one"}, offered("mneme --json messages --limit 3 agent:o"))
	require.Equal(t, []string{""}, bash(t, env, "mneme context --tenant nobody "))
	require.Equal(t, []string{""}, bash(t, env, "mneme conversations list "), "it takes no argument")
	require.Equal(t, []string{""}, bash(t, env, "mneme nonsense "))
}

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}

func TestCompletionIsQuietAndQuickWithoutAServer(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections and never answers
	require.NoError(t, err)
	defer func() { _ = silent.Close() }()
	for _, url := range []string{"http://127.0.0.1:1", "http://" + silent.Addr().String(), "no url"} {
		began := time.Now()
		stdout, stderr, code := mnemeWith(t, []string{"MNEME_URL=" + url}, completeCommand, "context", "")
		require.Zero(t, code)
		require.Empty(t, stderr)
		require.Equal(t, "words\n", stdout)
		require.Less(t, time.Since(began), usualPatience.silence, "nobody waits so long for a word")
	}
}

func TestScriptsOfEveryShellArePrinted(t *testing.T) {
	t.Parallel()
	for shell, part := range map[string]string{"bash": "complete -F", "zsh": "#compdef mneme", "fish": "complete -c mneme"} {
		stdout, stderr, code := mneme(t, "completion", shell)
		require.Zero(t, code, stderr)
		require.Contains(t, stdout, part)
		if path, err := exec.LookPath(shell); err == nil {
			cmd := exec.Command(path, "-n")
			cmd.Stdin = strings.NewReader(stdout)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s: %s", shell, out)
		}
	}
	_, stderr, code := mneme(t, "completion", "dos")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "bash")
}
