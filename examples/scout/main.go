// Scout answers a question about the current folder, and records in mneme what it does. It
// is an example: see README.md.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"

	"mneme.dev/mneme/examples/scout/agent"
)

type flags struct {
	Question     string `arg:"" help:"What you want to know, in plain words: \"where is the checkpoint written?\""`
	Dir          string `type:"existingdir" default:"." help:"The folder that the question is about."`
	NATSURL      string `name:"nats-url" env:"MNEME_NATS_URL" default:"nats://127.0.0.1:4222" help:"The address of mneme's NATS server."`
	Tenant       string `default:"default" help:"The owner of the conversation."`
	Conversation string `help:"Continue this conversation. Default: a new one."`
	JSON         bool   `name:"json" help:"Print one JSON object."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run returns the exit code: 0 done, 1 failed, 2 wrong usage.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	f, code, ok := parse(args, stdout, stderr)
	if !ok {
		return code
	}
	answer, err := ask(ctx, f, progress(stderr))
	if err != nil {
		fmt.Fprintln(stderr, "scout:", err)
		return 1
	}
	return show(stdout, answer, f.JSON)
}

// ask runs the agent.
func ask(ctx context.Context, f flags, progress func(string)) (agent.Answer, error) {
	log, err := agent.Connect(ctx, f.NATSURL)
	if err != nil {
		return agent.Answer{}, err
	}
	defer log.Conn().Close()
	recorder := agent.NewRecorder(log, f.Tenant, f.Conversation)
	return agent.Run(ctx, agent.Options{Dir: f.Dir, Question: f.Question, Recorder: recorder, Progress: progress})
}
