// Command mneme-hook is what coding agents run at each of their events, see docs/agents.md. It does what
// `mneme hook` does, but starts in a few milliseconds.
//
// It reads the event on standard input, tells the server that the session's transcript has grown, and
// prints what the server says the agent should see, in the agent's own format. It never fails: without a server it
// prints nothing. With MNEME_HOOK=off in the environment it does nothing.
//
//	mneme-hook [--url URL] [--tenant NAME] [--token-file PATH] AGENT
package main

import (
	"os"

	"mneme.dev/mneme/internal/hook/ring"
)

func main() { ring.Main(os.Args[1:], os.Stdin, os.Stdout) }
