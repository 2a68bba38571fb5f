package hostile

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/programs"
)

// binaries builds the four programs once, and returns their folder.
var binaries = sync.OnceValues(func() (string, error) {
	return programs.Build("mneme.dev/mneme/cmd/context-api", "mneme.dev/mneme/cmd/ingestor", "mneme.dev/mneme/cmd/file-tracker", "mneme.dev/mneme/cmd/summarizer")
})

// rebound is a request from a page whose host name was made to resolve to this machine, so that the
// browser considers it same-origin.
func rebound(host string) func(*http.Request) {
	return func(r *http.Request) {
		r.Host = host
		r.Header.Set("Origin", "http://"+host)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		r.Header.Set("Content-Type", "application/json")
	}
}

func requireMisdirected(t *testing.T, method, url string) {
	t.Helper()
	for _, host := range []string{"evil.example", "evil.example:8420", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.5"} {
		got := do(t, method, url, []byte("{}"), rebound(host))
		require.Equal(t, http.StatusMisdirectedRequest, got.Status, "%s %s as %s: %s", method, url, host, got.Body)
		require.Contains(t, string(got.Body), "MNEME_ALLOWED_HOSTS")
	}
}

func TestAReboundPageNeitherReadsNorWrites(t *testing.T) {
	t.Parallel()
	s := up(t)
	require.Equal(t, http.StatusCreated, publish(t, s, "c", "1", "message.created", map[string]any{"message_id": "m", "role": "user", "content": "secret"}).Status)
	for _, request := range []string{
		"GET /v1/conversations", "GET /v1/conversations/c/context", "GET /v1/conversations/c/export", "GET /v1/status", "GET /", "GET /docs", "GET /openapi.json",
		"GET /metrics", "GET /readyz", "GET /healthz", "GET /nowhere", "OPTIONS /v1/conversations",
		"POST /v1/events", "POST /v1/import", "POST /v1/conversations", "PATCH /v1/conversations/c", "DELETE /v1/conversations/c",
	} {
		method, path, _ := strings.Cut(request, " ")
		requireMisdirected(t, method, s.HTTP+path)
	}
	require.Equal(t, http.StatusOK, do(t, http.MethodGet, s.HTTP+"/v1/conversations/c/context?at_least=1", nil, nil).Status, "nothing was deleted")

	port := s.HTTP[strings.LastIndex(s.HTTP, ":"):]
	out, errs, code := s.Run("doctor", "--url", "http://localhost"+port)
	require.Zero(t, code, out+errs)
}

func TestAPageOfAnotherSiteMayNotWrite(t *testing.T) {
	t.Parallel()
	s := up(t)
	for _, origin := range []string{"http://evil.example", "http://localhost:9999", "null"} {
		for _, site := range []string{"cross-site", "same-site", ""} {
			got := do(t, http.MethodPost, s.HTTP+"/v1/conversations", []byte("{}"), func(r *http.Request) {
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Origin", origin)
				if site != "" {
					r.Header.Set("Sec-Fetch-Site", site)
				}
			})
			require.Equal(t, http.StatusForbidden, got.Status, "%s %s: %s", origin, site, got.Body)
			require.Empty(t, got.Header.Get("Access-Control-Allow-Origin"))
		}
	}
}

func TestAnAllowedHostIsAnswered(t *testing.T) {
	t.Parallel()
	s := up(t, "--allowed-hosts", "mneme.example,other.example")
	for host, status := range map[string]int{"mneme.example": 200, "OTHER.example.:8420": 200, "evil.example": 421, "x.mneme.example": 421} {
		require.Equal(t, status, do(t, http.MethodGet, s.HTTP+"/v1/conversations", nil, rebound(host)).Status, host)
	}
}

func TestTheCommandLineRefusesSequenceZero(t *testing.T) {
	t.Parallel()
	s := up(t)
	require.Equal(t, http.StatusCreated, publish(t, s, "c", "1", "message.created", map[string]any{"message_id": "m", "role": "user", "content": "x"}).Status)
	_, stderr, code := s.Run("context", "c", "--as-of", "0")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "sequences begin at 1")
	_, stderr, code = s.Run("context", "c", "--as-of", "1")
	require.Zero(t, code, stderr)
}

// free returns a loopback address on which nobody listens.
func free(t *testing.T) string {
	t.Helper()
	return "127.0.0.1:" + mnemetest.FreePort(t)
}

// program starts one of the four programs, and returns its address.
func program(t *testing.T, name string, env ...string) string {
	t.Helper()
	dir, err := binaries()
	require.NoError(t, err)
	address := free(t)
	cmd := exec.Command(filepath.Join(dir, name))
	cmd.Env = append(os.Environ(), append([]string{"MNEME_LISTEN=" + address, "MNEME_SUMMARY_WRITER=off"}, env...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s: %s", name, &stderr)
		}
	})
	url := "http://" + address
	require.Eventually(t, func() bool { return statusOf(url+"/healthz") == http.StatusOK }, patience, tick)
	return url
}

// statusOf returns the status of a GET; 0 if there is no answer.
func statusOf(url string) int {
	response, err := http.Get(url)
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

func TestEveryProgramRefusesAReboundPage(t *testing.T) {
	t.Parallel()
	s := up(t)
	data := t.TempDir()
	for _, name := range []string{"ingestor", "file-tracker", "summarizer", "context-api"} {
		starting := program(t, name, "MNEME_NATS_URL=nats://"+free(t), "MNEME_DATA="+t.TempDir())
		require.Equal(t, http.StatusServiceUnavailable, statusOf(starting+"/readyz"), name)

		running := program(t, name, "MNEME_NATS_URL="+s.NATS, "MNEME_DATA="+data)
		require.Eventually(t, func() bool { return statusOf(running+"/readyz") == http.StatusOK }, patience, tick, name)

		for _, url := range []string{starting, running} {
			for _, path := range []string{"/metrics", "/readyz", "/healthz", "/"} {
				requireMisdirected(t, http.MethodGet, url+path)
			}
			requireMisdirected(t, http.MethodPost, url+"/v1/events")
		}
	}
}
