// Package browser looks at the inspector page in a real Chromium, and uses it. make .cache/browser/installed
// fetches what drives it; MNEME_TEST_CHROMIUM names another one than chromium-headless-shell or chromium in PATH.
package browser

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/mnemetest"
)

// tools returns Node, the folder of its packages, and Chromium. Without one of them the test is skipped, or
// fails with MNEME_TEST_BROWSER=required.
func tools(t *testing.T) (node, installed, chromium string) {
	t.Helper()
	missing := t.Skip
	if os.Getenv("MNEME_TEST_BROWSER") == "required" {
		missing = t.Fatal
	}
	installed, err := filepath.Abs("../../.cache/browser")
	require.NoError(t, err)
	if _, err := os.Stat(filepath.Join(installed, "installed")); err != nil {
		missing("NOT RUN: make .cache/browser/installed fetches what drives the browser, and needs npm")
	}
	if node, err = exec.LookPath("node"); err != nil {
		missing("NOT RUN: Node is missing")
	}
	for _, name := range []string{os.Getenv("MNEME_TEST_CHROMIUM"), "chromium-headless-shell", "chromium"} {
		if chromium, err = exec.LookPath(name); err == nil {
			return node, installed, chromium
		}
	}
	missing("NOT RUN: chromium-headless-shell is missing; on Debian apt installs it")
	return "", "", ""
}

// run runs a script of this folder. It prints the figures that the script has measured, and fails if something was wrong.
func run(t *testing.T, script string, given map[string]any) {
	t.Helper()
	node, installed, chromium := tools(t)
	for _, name := range []string{"common.mjs", script} { // beside their packages, because Node looks for them there
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(installed, name), text, 0o644))
	}
	given["chromium"] = chromium
	argument, err := json.Marshal(given)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, filepath.Join(installed, script), string(argument))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	var result struct {
		Wrong   []string
		Figures map[string]string
	}
	require.NoError(t, json.Unmarshal(out, &result), "%s", out)
	var names []string
	for name := range result.Figures {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		t.Logf("%s: %s", name, result.Figures[name])
	}
	require.Empty(t, result.Wrong)
}

func TestThePageHasTheTypesThatItSays(t *testing.T) {
	node, installed, _ := tools(t)
	out, err := exec.CommandContext(t.Context(), node, filepath.Join(installed, "node_modules/typescript/bin/tsc"), "-p", ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func TestTheInspectorPage(t *testing.T) {
	tools(t)
	s := mnemetest.Up(t, filepath.Join(t.TempDir(), "data"))
	given := fill(t, s)
	t.Run("every view shows what is there, and no text becomes an element", func(t *testing.T) {
		given["pictures"] = os.Getenv("MNEME_TEST_PICTURES")
		run(t, "look.mjs", given)
	})
	t.Run("people can use it", func(t *testing.T) {
		guarded, token := guard(t)
		given["guarded"], given["token"] = guarded, token
		run(t, "use.mjs", given)
	})
}

// guard starts a server that demands tokens, and makes a token that may only read.
func guard(t *testing.T) (url, token string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tokens.jsonl")
	token, record, err := access.Issue(access.Rights{Tenant: "default", Role: access.Read}, "reader", time.Now(), time.Hour)
	require.NoError(t, err)
	require.NoError(t, access.NewFile(file).Add(t.Context(), record))
	s := mnemetest.UpWith(t, "--data", filepath.Join(t.TempDir(), "data"), "--tokens-file", file)
	publish(t, s.NATS, "test:short", texts([]string{"Where is the checkpoint?", "In the store."}))
	return s.HTTP, token
}

func TestAConversationOf85000MessagesScrolls(t *testing.T) {
	if !mnemetest.All {
		t.Skip("NOT RUN: takes half a minute; make test-all runs it")
	}
	tools(t)
	s := mnemetest.Up(t, filepath.Join(t.TempDir(), "data"))
	publish(t, s.NATS, "test:huge", texts(numbered(85_000)))
	applied(t, s, "test:huge")
	run(t, "long.mjs", map[string]any{"url": s.HTTP, "long": "test:huge"})
}
