package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"mneme/internal/service"
	"mneme/internal/transcript"
)

const description = `Event-sourced memory for AI agents.

Agents publish what they do as CloudEvents; mneme keeps the log and answers what an agent should see now.
Begin with: mneme up`

// variables are what tags of commands name by ${}.
var variables = kong.Vars{"formats": strings.Join(append([]string{transcript.Auto}, transcript.Formats()...), ",")}

// Globals are flags that every command has.
type Globals struct {
	URL     string `help:"The HTTP API." default:"http://127.0.0.1:8420" env:"MNEME_URL"`
	NATSURL string `help:"The NATS server, for commands that publish." name:"nats-url" default:"nats://127.0.0.1:4222" env:"MNEME_NATS_URL"`
	Tenant  string `help:"The tenant." default:"default" env:"MNEME_TENANT"`
	JSON    bool   `help:"Print JSON, for scripts." name:"json"`
}

// CLI is the tree of commands.
type CLI struct {
	Globals

	Up            UpCmd            `cmd:"" help:"Run everything in this process: NATS, the projections and the HTTP API."`
	Import        ImportCmd        `cmd:"" help:"Bring recorded transcripts into the log. Importing again changes nothing."`
	Publish       PublishCmd       `cmd:"" help:"Publish CloudEvents from a file or standard input."`
	Status        StatusCmd        `cmd:"" help:"Show the log and how far each projection is."`
	Conversations ConversationsCmd `cmd:"" help:"List conversations, or show one."`
	Files         FilesCmd         `cmd:"" help:"List the files that a conversation touched, the newest access first."`
	Context       ContextCmd       `cmd:"" help:"Print what an agent should see now of a conversation."`
	Verify        VerifyCmd        `cmd:"" help:"Replay the log and compare it with the read models. Exit code 3 if they differ."`
	Failed        FailedCmd        `cmd:"" help:"Events that a projection skipped, of all tenants."`
	Bench         BenchCmd         `cmd:"" help:"Measure on this machine."`
}

// FailedCmd groups what can be done about failed events.
type FailedCmd struct {
	List FailedListCmd `cmd:"" help:"List them with the reason, of all tenants."`
}

// ConversationsCmd groups what can be asked about conversations.
type ConversationsCmd struct {
	List ConversationsListCmd `cmd:"" help:"List conversations, the one with the newest event first."`
	Show ConversationsShowCmd `cmd:"" help:"Show one conversation."`
}

// exitCode prints an error, if there is something to print, and maps it.
func exitCode(err error, stderr io.Writer) int {
	var usage *service.UsageError
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errDifference):
		return exitDifference
	case errors.As(err, &usage):
		fmt.Fprintln(stderr, "mneme:", err)
		return exitUsage
	}
	fmt.Fprintln(stderr, "mneme:", strings.TrimSpace(err.Error()))
	return exitFailed
}
