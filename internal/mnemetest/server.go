// Package mnemetest runs the real program for tests: built once, run as a separate process on free
// ports, ended with the test. It also defines time limits for tests.
package mnemetest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest/programs"
)

// All says that tests may take minutes and use more, longer and complete recordings, as under `make
// test-all`.
var All = os.Getenv("MNEME_TEST_ALL") == "1"

// Patience is how long a test waits before it gives up on what must happen: far longer than it takes, even on a busy
// machine and with a Neo4j that plans each statement for the first time. It is not a limit that is tested.
const Patience = 5 * time.Minute

// Handshake is how long a connection to NATS may take to begin in a test. It is less than [Patience], so that one that
// hangs is tried again.
const Handshake = 20 * time.Second

// Binary builds the program once for all tests of a package, and returns its path.
var Binary = sync.OnceValues(func() (string, error) {
	dir, err := programs.Build("mneme.dev/mneme/cmd/mneme")
	return filepath.Join(dir, "mneme"), err
})

// Server is a running `mneme up`.
type Server struct {
	HTTP string   `json:"http"`
	NATS string   `json:"nats"`
	OTLP []string `json:"otlp"`
	Data string   `json:"data"`

	t      *testing.T
	cmd    *exec.Cmd
	stderr bytes.Buffer
	ended  chan struct{}
}

// Up starts the program on a directory and waits until it is ready.
func Up(t *testing.T, data string) *Server {
	t.Helper()
	return UpOn(t, data, "127.0.0.1:0")
}

// UpOn is [Up] with NATS on a given address.
func UpOn(t *testing.T, data, natsListen string) *Server {
	t.Helper()
	return UpWith(t, "--data", data, "--nats-listen", natsListen)
}

// UpWith is [Up] with flags, which must name the directory too. Because tests count events, the
// program writes no summaries and no titles unless a flag selects a writer. Because tests use few queries,
// Neo4j does not plan all of them at the start.
func UpWith(t *testing.T, flags ...string) *Server {
	t.Helper()
	return start(t, nil, flags)
}

// UpUnder is [UpWith] under limits that a shell sets, such as "ulimit -f 2000".
func UpUnder(t *testing.T, limits string, flags ...string) *Server {
	t.Helper()
	return start(t, []string{"bash", "-c", limits + `; exec "$0" "$@"`}, flags)
}

// start starts the program, preceded by the words before, if any.
func start(t *testing.T, by, flags []string) *Server {
	t.Helper()
	path, err := Binary()
	require.NoError(t, err)
	s := &Server{t: t, ended: make(chan struct{})}
	words := append(by, path, "up", "--json", "--listen", "127.0.0.1:0", "--nats-listen", "127.0.0.1:0", "--no-neo4j-warm")
	words = append(words, withWriter(flags)...)
	s.cmd = exec.Command(words[0], words[1:]...)
	s.cmd.Stderr = &s.stderr
	out, err := s.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, s.cmd.Start())
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(out).ReadString('\n')
		line <- text
	}()
	select {
	case text := <-line:
		require.NoError(t, json.Unmarshal([]byte(text), s), "up printed %q, and on stderr: %s", text, &s.stderr)
	case <-time.After(Patience):
		_ = s.cmd.Process.Kill()
		t.Fatalf("up is not ready after %s; stderr: %s", Patience, &s.stderr)
	}
	go func() {
		_ = s.cmd.Wait()
		close(s.ended)
	}()
	t.Cleanup(s.Kill)
	return s
}

// withWriter adds the flag for no summaries, unless the flags select a writer.
func withWriter(flags []string) []string {
	const flag = "--summary-writer"
	if slices.ContainsFunc(flags, func(f string) bool { return strings.HasPrefix(f, flag) }) {
		return flags
	}
	return append(flags[:len(flags):len(flags)], flag, "off")
}

// PID returns the id of the process.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Kill ends the program like kill -9.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill()
	<-s.ended
}

// Stop ends the program like Ctrl-C and returns its exit code.
func (s *Server) Stop() int {
	require.NoError(s.t, s.cmd.Process.Signal(os.Interrupt))
	select {
	case <-s.ended:
	case <-time.After(Patience):
		s.Kill()
		s.t.Fatalf("up did not end within %s of an interrupt", Patience)
	}
	return s.cmd.ProcessState.ExitCode()
}

// Stderr returns what an ended program wrote to stderr.
func (s *Server) Stderr() string {
	<-s.ended
	return s.stderr.String()
}

// Run runs a client command against the server.
func (s *Server) Run(args ...string) (stdout, stderr string, code int) {
	s.t.Helper()
	return Run(s.t, nil, append(args, "--url", s.HTTP, "--nats-url", s.NATS)...)
}

// Run runs a command of the program with variables added to the environment.
func Run(t *testing.T, env []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	path, err := Binary()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), env...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}
