// Command mneme is the tool of users and operators, and everything in one process:
// mneme up.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

//go:generate go run . reference ../../docs

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
