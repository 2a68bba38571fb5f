// Package cluster runs the topology of deploy/k8s with real processes: three NATS servers
// with three replicas of the log, Neo4j, and several processes of each program.
package cluster

import (
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/programs"
)

// root is the root of the repository.
const root = "../.."

// patience is the time limit for everything, on a busy machine.
const patience = mnemetest.Patience

// build builds mneme, and NATS at the version of go.mod.
var build = sync.OnceValues(func() (dir string, err error) {
	return programs.Build("mneme.dev/mneme/cmd/...", "github.com/nats-io/nats-server/v2")
})

func program(t *testing.T, name string) string {
	t.Helper()
	dir, err := build()
	require.NoError(t, err)
	return filepath.Join(dir, name)
}

// process is a running or ended program.
type process struct {
	t     *testing.T
	name  string
	cmd   *exec.Cmd
	log   lines
	ended chan struct{}
	url   string // base URL of its /healthz and other paths
}

// lines holds the log of a process.
type lines struct{ mnemetest.Log }

// last returns the last n lines.
func (l *lines) last(n int) string {
	all := strings.Split(strings.TrimSpace(l.String()), "\n")
	return strings.Join(all[max(0, len(all)-n):], "\n")
}

// start runs a command until it is stopped or the test ends.
func start(t *testing.T, name, url string, environment []string, command ...string) *process {
	t.Helper()
	p := &process{t: t, name: name, url: url, cmd: exec.Command(command[0], command[1:]...), ended: make(chan struct{})}
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = environment, &p.log, &p.log
	require.NoError(t, p.cmd.Start())
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s:\n%s", name, p.log.last(30))
		}
	})
	return p
}

// kill is kill -9.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// terminate sends SIGTERM, like Kubernetes. The process must end gracefully and in time.
func (p *process) terminate(within time.Duration) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(syscall.SIGTERM))
	p.awaitEnd(within)
}

func (p *process) awaitEnd(within time.Duration) {
	p.t.Helper()
	began := time.Now()
	select {
	case <-p.ended:
	case <-time.After(within):
		require.Fail(p.t, "it does not end", "%s after %s", p.name, within)
	}
	require.Zero(p.t, p.cmd.ProcessState.ExitCode(), p.name)
	p.t.Logf("%s ended within %s", p.name, time.Since(began).Round(time.Millisecond))
}

// answers returns the response to a path, "" unless the status is 200.
func (p *process) answers(path string) string {
	client := http.Client{Timeout: 5 * time.Second}
	response, err := client.Get(p.url + path)
	if err != nil {
		return ""
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return ""
	}
	return string(body) + "\n"
}

// await waits until a process answers 200 to a path.
func (p *process) await(path string) {
	p.t.Helper()
	eventually(p.t, p.name+path, func() bool {
		select {
		case <-p.ended:
			require.Fail(p.t, "it has ended", p.name)
		default:
		}
		return p.answers(path) != ""
	})
}

// eventually waits until a condition is true, and logs how long that took.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	began := time.Now()
	for !is() {
		require.Less(t, time.Since(began), patience, "not: %s", what)
		select {
		case <-time.After(50 * time.Millisecond):
		case <-t.Context().Done():
			require.NoError(t, t.Context().Err())
		}
	}
	t.Logf("%s: after %s", what, time.Since(began).Round(time.Millisecond))
}
