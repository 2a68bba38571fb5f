// Command serve runs a real Neo4j until Ctrl-C, or for the duration of a command:
//
//	go run ./deploy/neo4j/serve -dir .mneme/neo4j -listen 127.0.0.1:7687
//	go run ./deploy/neo4j/serve go test ./pkg/graph/...
//
// It fetches Neo4j first if necessary. The command finds the server in MNEME_NEO4J_URI,
// tests find it in MNEME_TEST_NEO4J_URI and MNEME_TEST_NEO4J_JARS. The exit code is that
// of the command.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	neo4jdeploy "mneme.dev/mneme/deploy/neo4j"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	s := serve{stdout: stdout, stderr: stderr}
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	flags.SetOutput(stderr)
	line := flags.String("line", string(neo4jdeploy.LTS), "of Neo4j: lts or current")
	flags.StringVar(&s.cache, "cache", neo4jdeploy.DefaultCache, "`folder` of fetched versions")
	flags.StringVar(&s.cfg.Dir, "dir", "", "data `folder`; without one the data is gone afterwards")
	flags.StringVar(&s.cfg.Listen, "listen", "", "loopback `address`; without one it is a free port")
	flags.IntVar(&s.cfg.HeapMiB, "heap", 0, "memory for statements, in `MiB` (384)")
	flags.IntVar(&s.cfg.PageCacheMiB, "page-cache", 0, "memory for the store's files, in `MiB` (64)")
	flags.BoolVar(&s.tests, "tests", false, "the command is all tests: they use the server of MNEME_TEST_NEO4J_URI if that is set, and if there can be none they run without, unless MNEME_TEST_NEO4J=required")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	s.line, s.command = neo4jdeploy.Line(*line), flags.Args()
	if s.tests && len(s.command) == 0 {
		fmt.Fprintln(stderr, "-tests is for a command, and there is none")
		return 2
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code, err := s.run(ctx)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return max(code, 1)
	}
	return code
}
