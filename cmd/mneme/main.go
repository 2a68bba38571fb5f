// Command mneme is the tool of users and operators, and everything in one process:
// mneme up.
package main

import (
	"context"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"
)

//go:generate go run . reference ../../docs

func main() {
	log.SetOutput(io.Discard) // where net/http complains of a server that speaks unasked; the answer says it
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
