package main

import (
	"context"
	"fmt"

	"mneme.dev/mneme/examples/scout/agent"
	"mneme.dev/mneme/internal/instance"
)

// The question that the example agent answers about the current folder.
const exampleQuestion = "where is the checkpoint written?"

// exampleChars is the budget of the displayed context: one or two screens.
const exampleChars = 8000

// example runs the agent of examples/scout once if the log is empty, and prints the
// context that mneme would show it next.
func example(ctx context.Context, g *Globals, i *instance.Instance, t *terminal) error {
	conversationID := "scout-question"
	state, err := i.Log.State(ctx)
	if err != nil {
		return err
	}
	if state.Head == 0 {
		fmt.Fprintf(t.out, "\nThe log is empty, so the example agent answers a question about this folder:\n%s\n\n", t.paint(bold, exampleQuestion))
		answer, err := agent.Run(ctx, agent.Options{
			Dir: ".", Question: exampleQuestion, Recorder: agent.NewRecorder(i.Log, "default", conversationID),
			Progress: func(line string) { _ = t.text("  " + line + "\n") },
		})
		if err != nil {
			return fmt.Errorf("the example agent: %w", err)
		}
		state.Head = answer.Seq
	}
	last, _, err := i.Log.Last(ctx, "default", conversationID)
	if err != nil || last == 0 {
		return err // the log holds other conversations, so there is no example to show
	}
	api := newClient(i.HTTPURL(), "default")
	body, err := api.raw(ctx, "GET", conversation(conversationID, "/context"), parameters{"format": "markdown", "max_chars": exampleChars, "at_least": last}, "", nil)
	if err != nil {
		return err
	}
	fmt.Fprintf(t.out, "\n%s\n\n", t.paint(bold, "What the agent should see now, in 8,000 characters"))
	if err := t.text(string(body) + "\n"); err != nil {
		return err
	}
	view := i.HTTPURL() + "/?c=" + conversationID + "&view=context"
	elsewhere := "" // what makes the commands reach this server
	if i.HTTPURL() != g.URL || i.NATSURL() != g.NATSURL {
		elsewhere = fmt.Sprintf("  export MNEME_URL=%s MNEME_NATS_URL=%s\n", i.HTTPURL(), i.NATSURL())
	}
	fmt.Fprintf(t.out, `%s
%[7]s  bin/mneme conversations list
  bin/mneme files %[2]s
  bin/mneme context %[2]s --max-chars 2000
  bin/scout "how does a projector find out that it was fenced?"
  bin/mneme import ~/.claude/projects
  bin/mneme verify
  curl '%[3]s/v1/conversations/%[2]s/context?format=markdown'
  curl %[3]s/openapi.json

%[4]s
  %[5]s   all conversations
  %[6]s   this context, each line beside its reason, and what was left out
`, t.paint(bold, "Try next, in another terminal"), conversationID, i.HTTPURL(), t.paint(bold, "Or look, in a browser"),
		fmt.Sprintf("%-*s", len(view), i.HTTPURL()+"/"), view, elsewhere)
	return nil
}
