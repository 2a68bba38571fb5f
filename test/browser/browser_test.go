// Package browser looks at the inspector page in a real Chromium. make .cache/browser/installed fetches
// what drives it; MNEME_TEST_CHROMIUM names another one than chromium-headless-shell or chromium in PATH.
package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/eventlog"
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

// hostile are texts that a page would take for something else if it made HTML of them.
var hostile = []string{
	"<img src=x onerror=alert(1)>", `</script><script>alert(1)</script>`, `"><iframe src="javascript:alert(1)">`,
	"[click](javascript:alert(1)) ![](http://example.com/x.png)", "\u202Edesrever \u2028 \x1b[31mred", "{{constructor.constructor('alert(1)')()}}",
}

func publish(t *testing.T, log *eventlog.Log, conversation string, texts []string) {
	t.Helper()
	var list []events.Event
	for n, text := range texts {
		role := []string{"user", "assistant"}[n%2]
		id := fmt.Sprintf("m%d", n)
		e, err := events.New(conversation, "test", id, &events.MessageCreated{MessageID: id, Role: role, Content: text})
		require.NoError(t, err)
		list = append(list, e)
	}
	_, err := log.PublishAll(t.Context(), "default", list)
	require.NoError(t, err)
}

func TestEveryViewShowsWhatIsThereAndNoTextBecomesAnElement(t *testing.T) {
	node, installed, chromium := tools(t)
	s := mnemetest.Up(t, filepath.Join(t.TempDir(), "data"))
	conn, err := eventlog.Connect(s.NATS, "test", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer conn.Close()
	log, err := eventlog.Open(t.Context(), conn)
	require.NoError(t, err)
	var long []string
	for n := range 1000 {
		long = append(long, fmt.Sprintf("Message %d says where the checkpoint of shard %d is written.", n, n%13))
	}
	publish(t, log, "test:long", long)
	publish(t, log, "test:hostile", append([]string{"What does alert do?"}, hostile...))

	script, err := os.ReadFile("look.mjs") // beside its packages, because Node looks for them there
	require.NoError(t, err)
	look := filepath.Join(installed, "look.mjs")
	require.NoError(t, os.WriteFile(look, script, 0o644))
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	args := []string{look, chromium, s.HTTP, "test:long", "test:hostile"}
	if pictures := os.Getenv("MNEME_TEST_PICTURES"); pictures != "" {
		args = append(args, pictures)
	}
	cmd := exec.CommandContext(ctx, node, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	var wrong []string
	require.NoError(t, json.Unmarshal(out, &wrong), "%s", out)
	require.Empty(t, wrong)
}
