package main

import (
	"os"
	"strings"

	"mneme.dev/mneme/internal/hook"
	"mneme.dev/mneme/internal/hook/ring"
)

// HookCmd is what a coding agent runs at its events. The function run starts it before flags are read, because it must not
// fail.
type HookCmd struct {
	Agent string `arg:"" help:"The agent: ${hooked}."`
}

// hookedNames lists the agents for the help.
func hookedNames() string {
	var names []string
	for _, a := range hook.Agents {
		names = append(names, a.Name)
	}
	return strings.Join(names, ", ")
}

func (*HookCmd) Help() string {
	return `Agents run this themselves. It reads the event on stdin and sends the names in it, and the beginning of the prompt, to the server at --url, which reads the session's transcript. At the start of a session it prints the context of the project, after a compaction and on resume together with what the session was about. At a prompt it prints at most 1,500 characters of earlier sessions, if they name a file or identifier that the prompt names. Otherwise it prints nothing.

It always exits with 0 within 300 ms. If the server does not answer, the event waits in a file in ~/.local/state/mneme for a later one. With MNEME_HOOK=off in the environment it does nothing.

The program mneme-hook does the same and starts faster: use it in settings of agents where it is installed.

Examples:

    mneme hook claude-code < event.json
    mneme-hook claude-code < event.json`
}

func (c *HookCmd) Run() error {
	ring.Main([]string{c.Agent}, os.Stdin, os.Stdout)
	return nil
}
