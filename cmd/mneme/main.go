// Command mneme is the tool for users and operators. mneme up runs everything in one
// process.
package main

import (
	"io"
	"log"
	"os"

	"mneme.dev/mneme/internal/program"
)

//go:generate go run . reference ../../docs

func main() {
	log.SetOutput(io.Discard) // net/http logs unsolicited server responses there; the error says enough
	ctx, stop := program.Interruptible(func() { newTerminal(os.Stdout, os.Stderr, "auto").say("mneme: %s", program.Stopping) })
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
