package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"mneme.dev/mneme/internal/console"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/pkg/summary"
)

// SummariesCmd lists summaries.
type SummariesCmd struct {
	conversationArg
	Summary    string `arg:"" optional:"" help:"Show only this summary, in full."`
	Level      int    `help:"Only summaries of this level; 0 means all." placeholder:"N"`
	Frontier   bool   `help:"Only summaries that no higher summary consolidates."`
	Superseded bool   `help:"Include older revisions."`
	listFlags
	pastFlags
	waitFlags
}

func (*SummariesCmd) Help() string {
	return `A summary of level 1 covers messages and tool calls. One of a higher level covers summaries of the level below: its children.

Examples:

    mneme summaries ID
    mneme summaries ID --frontier                  what tells the story so far
    mneme summaries ID L2-17-4021                  one of them, with its children
    mneme steps ID --turn 3                        what a summary of level 1 covers`
}

func (c *SummariesCmd) Run(ctx context.Context, g *Globals, t *terminal, api *client) error {
	reads := c.pastFlags.query().with(c.waitFlags.query())
	if c.Summary != "" {
		return showOne(ctx, g, t, api, conversation(c.ID, "/summaries/", segment(c.Summary)), reads, t.showSummary)
	}
	query := parameters{"frontier": c.Frontier, "superseded": c.Superseded}
	if c.Level > 0 {
		query["level"] = c.Level
	}
	return showList(ctx, g, t, api, conversation(c.ID, "/summaries"), "summaries", c.Limit, query.with(reads, c.listFlags.query()), func(list []httpapi.Summary) error {
		cells := make([][]any, len(list))
		for i, v := range list {
			cells[i] = []any{v.SummaryID, v.Level, fmt.Sprintf("%d-%d", v.FirstTurn, v.LastTurn), v.CharsIn, v.CharsOut, writtenBy(&v), firstLine(v.Conversation)}
		}
		return c.listFlags.table(t, api, []column{
			{Name: "SUMMARY", Min: 10, Whole: 40}, {Name: "LEVEL", Right: true}, {Name: "TURNS", Right: true}, {Name: "CHARS IN", Right: true, Drop: 2}, {Name: "OUT", Right: true, Drop: 3},
			{Name: "BY", Drop: 1}, {Name: "CONVERSATION", Min: 20},
		}, cells)
	})
}

// writtenBy returns the writer of a summary, and its source if that is not the summarizer.
func writtenBy(s *httpapi.Summary) string {
	if s.Source != summary.Source {
		return methodOf(s) + ", from " + s.Source
	}
	return methodOf(s)
}

func methodOf(s *httpapi.Summary) string {
	switch {
	case s.Fallback != "":
		return "extractive (fallback)"
	case s.Model != "":
		return s.Model
	}
	return s.Method
}

func (t *terminal) showSummary(s *httpapi.Summary) error {
	state := "on the frontier"
	if !s.Frontier {
		state = "consolidated"
	}
	if s.Superseded {
		state += ", superseded"
	}
	if err := t.card("summary", s.SummaryID, "level", s.Level, "turns", fmt.Sprintf("%d-%d", s.FirstTurn, s.LastTurn), "sequences", fmt.Sprintf("%d-%d", s.FirstSeq, s.LastSeq),
		"state", state, "written by", writtenBy(s), "why not by the model", s.Fallback, "characters", fmt.Sprintf("%d from %d", s.CharsOut, s.CharsIn), "seq", s.Seq, "time", when(s.Time)); err != nil {
		return err
	}
	var out strings.Builder
	part := func(name string, lines ...string) {
		if text := strings.TrimSpace(strings.Join(lines, "\n")); text != "" {
			out.WriteString("\n" + t.rule(name) + "\n" + console.Clean(text) + "\n")
		}
	}
	part("conversation", s.Conversation)
	part("actions", s.Actions)
	part("findings", s.Findings...)
	part("topics", strings.Join(s.Topics, ", "))
	part("files", s.Files...)
	part("tools", strings.Join(s.Tools, ", "))
	part("children", s.Children...)
	return t.painted(out.String())
}

// requestFlags are the flags of requests to the summarizer.
type requestFlags struct {
	conversationArg
	Wait time.Duration `help:"How long to wait for the result; the work continues after that." default:"2m"`
}

// ask sends a request to the summarizer and prints what it wrote.
func (f *requestFlags) ask(ctx context.Context, g *Globals, t *terminal, action string, query parameters) error {
	api, err := g.client()
	if err != nil {
		return err
	}
	body, err := api.raw(ctx, http.MethodPost, conversation(f.ID, "/"+action), query.with(parameters{"wait_ms": f.Wait.Milliseconds()}), "", nil)
	if err != nil {
		return err
	}
	var answer httpapi.Summarized
	if err := json.Unmarshal(body, &answer); err != nil {
		return err
	}
	if g.JSON {
		if err := t.rawJSON(body, false); err != nil {
			return err
		}
	}
	if answer.Pending {
		return &awayError{fmt.Errorf("not done after %s; the work continues: run \"mneme summaries %s\" later, or wait longer with --wait", f.Wait, f.ID)}
	}
	if g.JSON {
		return nil
	}
	if answer.Kept > 0 {
		t.say("%d stay as they are, because the model did not rewrite them", answer.Kept)
	}
	if len(answer.Written) == 0 {
		t.say("nothing to do")
		return nil
	}
	return t.text(strings.Join(answer.Written, "\n") + "\n")
}

// SummarizeCmd summarizes a conversation now.
type SummarizeCmd struct{ requestFlags }

func (*SummarizeCmd) Help() string {
	return `Writes the summaries that are due, and one for everything else that no summary covers, except the last turns. The summarizer writes due summaries without this command too.

Example:

    mneme summarize ID`
}

func (c *SummarizeCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	return c.ask(ctx, g, t, "summarize", nil)
}

// ResummarizeCmd writes summaries again.
type ResummarizeCmd struct {
	requestFlags
	Level     int  `help:"Only summaries of this level; 0 means all." placeholder:"N"`
	Fallbacks bool `help:"Only summaries that a model should have written but did not."`
}

func (*ResummarizeCmd) Help() string {
	return `A new revision replaces the older one, which stays in the log; summaries of higher levels keep what they consolidated.

Examples:

    mneme resummarize ID --fallbacks               now that the model is back
    mneme resummarize ID --level 1                 with another model or prompt`
}

func (c *ResummarizeCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	query := parameters{"fallbacks": c.Fallbacks}
	if c.Level > 0 {
		query["level"] = c.Level
	}
	return c.ask(ctx, g, t, "resummarize", query)
}

// CondenseCmd has tool results condensed.
type CondenseCmd struct{ requestFlags }

func (*CondenseCmd) Help() string {
	return `A model condenses large tool results, except those of the last messages. Contexts then show the shorter text; log and graph keep the results as they are.

Example:

    mneme condense ID`
}

func (c *CondenseCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	return c.ask(ctx, g, t, "condense", nil)
}
