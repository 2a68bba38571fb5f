package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	neo4jdeploy "mneme.dev/mneme/deploy/neo4j"
)

// serve holds the command line's options.
type serve struct {
	line    neo4jdeploy.Line
	cache   string
	cfg     neo4jdeploy.Config
	tests   bool
	command []string

	stdout, stderr io.Writer
}

// The environment of tests.
const (
	envURI  = "MNEME_TEST_NEO4J_URI"
	envJars = "MNEME_TEST_NEO4J_JARS"
	envTest = "MNEME_TEST_NEO4J" // "required": a test that needs Neo4j does not skip
)

// run returns the exit code, and an error to print.
func (s *serve) run(ctx context.Context) (int, error) {
	if uri := os.Getenv(envURI); s.tests && uri != "" {
		fmt.Fprintln(s.stdout, "Neo4j: tested on", uri)
		if jars, err := neo4jdeploy.Fetched(s.cache, s.line); err == nil && os.Getenv(envJars) == "" {
			return s.execute(envJars + "=" + jars)
		}
		return s.execute()
	}
	server, remove, err := s.start(ctx)
	if err != nil && s.tests && ctx.Err() == nil && os.Getenv(envTest) != "required" {
		why, _, _ := strings.Cut(err.Error(), "\n")
		fmt.Fprintln(s.stdout, "Neo4j: not tested,", why)
		return s.execute()
	}
	if err != nil {
		return 1, err
	}
	defer remove()

	if len(s.command) == 0 {
		fmt.Fprintf(s.stdout, "Neo4j %s: %s\n", server.Version(), server.URI())
		select {
		case <-ctx.Done():
		case <-server.Ended():
			return 1, fmt.Errorf("Neo4j has ended; its log ends:\n%s", server.Log())
		}
		return 0, server.Stop()
	}
	env := []string{envURI + "=" + server.URI(), envJars + "=" + s.cfg.Jars}
	if s.tests {
		fmt.Fprintf(s.stdout, "Neo4j: tested, version %s\n", server.Version())
	} else { // tests must see a program without settings
		env = append(env, "MNEME_NEO4J_URI="+server.URI())
	}
	code, err := s.execute(env...)
	select {
	case <-server.Ended():
		return 1, fmt.Errorf("Neo4j ended before the command; its log ends:\n%s", server.Log())
	default:
		return code, errors.Join(err, server.Stop())
	}
}

// start starts a server. Call remove after the server has ended.
func (s *serve) start(ctx context.Context) (server *neo4jdeploy.Server, remove func(), err error) {
	if s.cfg.Jars, err = neo4jdeploy.Fetch(ctx, s.cache, s.line, s.stderr); err != nil {
		return nil, nil, err
	}
	remove = func() {}
	if s.cfg.Dir == "" {
		if s.cfg.Dir, err = os.MkdirTemp("", "mneme-neo4j-"); err != nil {
			return nil, nil, err
		}
		remove = func() { _ = os.RemoveAll(s.cfg.Dir) }
	}
	if server, err = neo4jdeploy.Start(ctx, s.cfg); err != nil {
		remove()
	}
	return server, remove, err
}

// execute runs the command and passes a SIGTERM on to it. A Ctrl-C in the terminal
// reaches both this program and the command.
func (s *serve) execute(env ...string) (int, error) {
	cmd := exec.Command(s.command[0], s.command[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, s.stdout, s.stderr
	if err := cmd.Start(); err != nil {
		return 1, err
	}
	terminate := make(chan os.Signal, 1)
	signal.Notify(terminate, syscall.SIGTERM)
	defer signal.Stop(terminate)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case <-terminate:
			_ = cmd.Process.Signal(syscall.SIGTERM) // fails if the command has ended
		case err := <-ended:
			if failed, ok := errors.AsType[*exec.ExitError](err); ok {
				return max(failed.ExitCode(), 1), nil // -1: ended by a signal
			}
			return 0, err
		}
	}
}
