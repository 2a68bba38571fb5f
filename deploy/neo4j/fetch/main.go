// Command fetch gets a line of Neo4j, "lts" or "current", from Maven Central:
//
//	go run ./deploy/neo4j/fetch lts
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	neo4jdeploy "mneme.dev/mneme/deploy/neo4j"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: fetch lts|current")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	jars, err := neo4jdeploy.Fetch(ctx, neo4jdeploy.DefaultCache, neo4jdeploy.Line(os.Args[1]), os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(jars)
}
