// Command mneme is the tool for users and operators. mneme up runs everything in one
// process.
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
	log.SetOutput(io.Discard) // net/http logs unsolicited server responses there; the error says enough
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
