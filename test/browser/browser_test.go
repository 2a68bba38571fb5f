// Package browser looks at the inspector page in a real Chromium, and uses it. make .cache/browser/installed
// fetches what drives it; MNEME_TEST_CHROMIUM names another one than chromium-headless-shell or chromium in PATH.
package browser

import (
	"encoding/json"
	"flag"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/oidctest"
)

var update = flag.Bool("update", false, "make the pictures of the documentation anew")

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
	cmd := exec.CommandContext(t.Context(), node, filepath.Join(installed, script), string(argument))
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
	guard(t, given)
	t.Run("every view shows what is there, and no text becomes an element", func(t *testing.T) {
		given["pictures"] = os.Getenv("MNEME_TEST_PICTURES")
		docs, made := "../../docs/images", t.TempDir()
		given["docs"] = made
		run(t, "look.mjs", given)
		list, err := filepath.Glob(filepath.Join(made, "*.png"))
		require.NoError(t, err)
		require.Len(t, list, 3)
		for _, path := range list {
			committed := filepath.Join(docs, filepath.Base(path))
			if given["pictures"] != "" { // then they are in another theme
				continue
			}
			if *update {
				text, err := os.ReadFile(path)
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(committed, text, 0o644))
			}
			require.Less(t, differing(t, committed, path), 0.12, "%s shows another page than this one: go test ./test/browser -run TestTheInspectorPage -update", committed)
		}
	})
	t.Run("people can use it", func(t *testing.T) {
		run(t, "use.mjs", given)
	})
	t.Run("it recovers from trouble", func(t *testing.T) {
		run(t, "trouble.mjs", given)
	})
}

// differing returns the share of the squares of two pictures that are not alike; it is 0.2 if the page is scrolled. The
// squares are so large that another rendering of the same fonts makes none of them differ, and other fonts only a few.
func differing(t *testing.T, a, b string) float64 {
	t.Helper()
	const side, unlike = 16, 0.1
	one, other := open(t, a), open(t, b)
	require.Equal(t, one.Bounds(), other.Bounds())
	differ, all := 0, 0
	for y := one.Bounds().Min.Y; y < one.Bounds().Max.Y; y += side {
		for x := one.Bounds().Min.X; x < one.Bounds().Max.X; x += side {
			if all++; math.Abs(brightness(one, x, y, side)-brightness(other, x, y, side)) > unlike {
				differ++
			}
		}
	}
	return float64(differ) / float64(all)
}

func open(t *testing.T, path string) image.Image {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	picture, err := png.Decode(file)
	require.NoError(t, err)
	return picture
}

// brightness returns that of a square, from 0 to 1.
func brightness(of image.Image, left, top, side int) (sum float64) {
	for y := top; y < top+side; y++ {
		for x := left; x < left+side; x++ {
			sum += float64(color.Gray16Model.Convert(of.At(x, y)).(color.Gray16).Y) / math.MaxUint16
		}
	}
	return sum / float64(side*side)
}

// guard starts a server that demands a token, and makes one that may only read, and one for a project alone. People can
// also sign in at an identity provider, and may then write.
func guard(t *testing.T, given map[string]any) {
	t.Helper()
	file, claims := filepath.Join(t.TempDir(), "tokens.jsonl"), filepath.Join(t.TempDir(), "claims.yaml")
	issue := func(project string) string {
		token, record, err := access.Issue(access.Rights{Tenant: "default", Role: access.Read, Project: project}, "reader", time.Now(), time.Hour)
		require.NoError(t, err)
		require.NoError(t, access.NewFile(file).Add(t.Context(), record))
		return token
	}
	given["token"], given["projectToken"] = issue(""), issue("shop")
	require.NoError(t, os.WriteFile(claims, []byte("rules: [{claims: {org: a}, tenant: default, role: write}]\n"), 0o600))
	provider := oidctest.New(t)
	t.Setenv("MNEME_OIDC_CLIENT_SECRET", provider.Client.Secret)
	s := mnemetest.UpWith(t, "--data", filepath.Join(t.TempDir(), "data"), "--tokens-file", file,
		"--oidc-issuer", provider.URL, "--oidc-client-id", provider.Client.ID, "--oidc-claims-file", claims)
	publish(t, s.NATS, "test:shop", append([]events.Payload{&events.ConversationStarted{Title: "The voucher", Project: "shop"}}, texts([]string{"Where is the voucher?", "In the cart."})...))
	publish(t, s.NATS, "test:short", texts([]string{"Where is the checkpoint?", "In the store."}))
	given["guarded"], given["provider"] = s.HTTP, provider.URL
}

func TestAConversationOf85000MessagesScrollsAndNeverLoadsWhole(t *testing.T) {
	tools(t)
	mnemetest.Long(t)
	s := mnemetest.Up(t, filepath.Join(t.TempDir(), "data"))
	list := texts(numbered(85_000))
	whole := 0
	for _, p := range list {
		whole += len(p.(*events.MessageCreated).Content)
	}
	publish(t, s.NATS, "test:huge", list)
	applied(t, s, "test:huge")
	run(t, "long.mjs", map[string]any{"url": s.HTTP, "long": "test:huge", "most": whole / 2})
}

func TestTheLiveViewForgetsAnHourOfEvents(t *testing.T) {
	tools(t)
	hour := 3_600
	if mnemetest.All {
		hour = 36_000
	}
	s := mnemetest.Up(t, filepath.Join(t.TempDir(), "data"))
	run(t, "tail.mjs", map[string]any{"url": s.HTTP, "hour": hour})
}
