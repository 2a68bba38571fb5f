package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/console"
	"mneme.dev/mneme/internal/program"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/plain"
)

// TailCmd follows the log.
type TailCmd struct {
	Conversation string   `help:"Only events of this conversation." placeholder:"ID" complete:"conversation"`
	Kind         []string `help:"Only events of this kind: ${kinds}; may be given more than once." enum:"${kinds}" placeholder:"KIND"`
	From         uint64   `help:"Start at this sequence." placeholder:"SEQ" xor:"begin"`
	Last         *int     `help:"Start with the newest N events; 0 shows only new ones. Defaults to 10." placeholder:"N" xor:"begin"`
	UntilEnd     bool     `help:"Stop at the end of the log instead of following it." aliases:"no-follow"`
	logFlags
}

func (*TailCmd) Help() string {
	return `Shows acknowledged events before any projection has applied them. Over HTTP the server leaves out the events of deleted conversations. Ctrl-C ends it. If the server goes down, it waits.

Examples:

    mneme tail                                     the newest 10 events and what comes
    mneme tail --conversation ID --kind tool_called --kind tool_returned
    mneme tail --from 1 --until-end --json | gzip > log.ndjson.gz`
}

// tailKinds returns the kinds that --kind accepts.
func tailKinds() []string {
	list := []string{}
	for _, t := range events.Types() {
		list = append(list, events.Kind(t))
	}
	return append(list, "other")
}

// Run follows the log until it is interrupted or the reader of its output is gone.
func (c *TailCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	log, tenant, done, err := c.reader(ctx, g)
	if err != nil {
		return err
	}
	defer done()
	if c.Conversation, err = c.named(ctx, g, log, tenant, c.Conversation); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go whenNobodyReads(ctx, t.out, cancel)

	filter := eventlog.Filter{Tenant: tenant, Conversation: c.Conversation, Kinds: c.Kind}
	options := eventlog.TailOptions{From: c.From, Last: 10, ToEnd: c.UntilEnd, Trouble: func(err error) { t.say("waiting for the log: %v", err) }}
	if c.Last != nil {
		options.Last = *c.Last
	}
	show := c.line
	if g.JSON {
		show = c.jsonLine
	}
	err = log.Tail(ctx, filter, options, func(m eventlog.Message) error { return show(t, &m) })
	if errors.Is(err, eventlog.ErrBeyondEnd) {
		return &program.UsageError{Err: fmt.Errorf("--from: %w", err)}
	}
	if ctx.Err() != nil { // Ctrl-C, or the reader is gone
		return nil
	}
	return err
}

// jsonLine prints an event as a CloudEvent with its sequence and tenant as additional
// attributes. For one that can't be decoded it prints the subject and the reason.
func (c *TailCmd) jsonLine(t *terminal, m *eventlog.Message) error {
	r, address, err := m.Decode()
	if err != nil {
		return t.json(undecodable{m.Seq, address.Tenant, address.Conversation, m.Subject, err.Error()})
	}
	e := r.Event
	e.Extensions = maps.Clone(e.Extensions)
	delete(e.Extensions, "seq")
	delete(e.Extensions, "tenant")
	body, err := events.EncodeStructured(e)
	if err != nil {
		return t.json(undecodable{m.Seq, address.Tenant, address.Conversation, m.Subject, err.Error()})
	}
	beside, err := json.Marshal(struct {
		Seq    uint64 `json:"seq"`
		Tenant string `json:"tenant"`
	}{m.Seq, address.Tenant})
	if err != nil {
		return err
	}
	body = append(bytes.TrimSuffix(bytes.TrimSpace(body), []byte("}")), ',')
	body = append(append(body, beside[1:]...), '\n')
	_, err = escapeControls{t.out, t.isPerson()}.Write(body)
	return err
}

// undecodable is a message of the log that is not a valid event.
type undecodable struct {
	Seq          uint64 `json:"seq"`
	Tenant       string `json:"tenant,omitempty"`
	Conversation string `json:"conversation,omitempty"`
	Subject      string `json:"log_subject"`
	Error        string `json:"error"`
}

// line prints an event on one line.
func (c *TailCmd) line(t *terminal, m *eventlog.Message) error {
	r, address, err := m.Decode()
	who, text, color := "undecodable", "", red
	if err != nil {
		text = err.Error()
	} else {
		who, text, color = gist(r.Payload)
	}
	if !t.isPerson() {
		at := ""
		if !r.Time.IsZero() {
			at = r.Time.UTC().Format(time.RFC3339Nano)
		}
		cells := []string{at, strconv.FormatUint(m.Seq, 10), address.Tenant, address.Conversation, address.Kind, who, firstLine(text)}
		for i := range cells {
			cells[i] = console.OneLine(cells[i])
		}
		return t.painted(strings.Join(cells, "\t") + "\n")
	}
	width := t.width()
	parts := []string{}
	if width == 0 || width >= 60 {
		at := strings.Repeat(" ", len("15:04:05"))
		if !r.Time.IsZero() {
			at = r.Time.Local().Format("15:04:05")
		}
		parts = append(parts, t.paint(dim, at))
	}
	parts = append(parts, t.paint(dim, fmt.Sprintf("%6d", m.Seq)))
	if c.AllTenants {
		parts = append(parts, pad(address.Tenant, 10))
	}
	if c.Conversation == "" && (width == 0 || width >= 50) {
		parts = append(parts, pad(address.Conversation, min(max(18, width-72), 50))) // a wide terminal has room for the whole id
	}
	parts = append(parts, t.paint(color, pad(who, 12)), console.OneLine(firstLine(text)))
	text = strings.Join(parts, "  ")
	if width > 0 {
		text = console.Cut(text, width)
	}
	return t.painted(text + "\n")
}

// pad pads or cuts a cell to a fixed width.
func pad(s string, width int) string {
	s = console.Cut(console.OneLine(s), width)
	return s + strings.Repeat(" ", width-console.Width(s))
}

// gist says in short who did what in an event.
func gist(payload events.Payload) (who, text string, color style) {
	defer func() { text = plain.NameData(text) }()
	switch p := payload.(type) {
	case *events.MessageCreated:
		if p.Role == "user" {
			return p.Role, p.Content, cyan
		}
		return p.Role, p.Content, green
	case *events.ToolCalled:
		return "→ " + p.ToolName, string(p.Arguments), yellow
	case *events.ToolReturned:
		outcome, color := "← ok", dim
		switch {
		case p.Success == nil:
			outcome = "← result"
		case !*p.Success:
			outcome, color = "← failed", red
		}
		if p.Error != "" {
			return outcome, p.Error, color
		}
		return outcome, p.Result.Text(), color
	case *events.ConversationStarted:
		return "started", p.Title, bold
	case *events.ConversationUpdated:
		text := ""
		if p.Title != nil {
			text = *p.Title
		}
		return "updated", text, bold
	case *events.ConversationDeleted:
		return "deleted", p.Reason, red
	case *events.SummaryWritten:
		return fmt.Sprintf("summary L%d", p.Level), p.Conversation, bold
	case *events.ToolCondensed:
		return "condensed", p.Content, dim
	}
	return gistOfOthers(payload)
}

// gistOfOthers is gist of what is not about the conversation itself.
func gistOfOthers(payload events.Payload) (who, text string, color style) {
	switch p := payload.(type) {
	case *events.ProjectAliased:
		if p.Into == "" {
			return "project", p.Project + " on its own", bold
		}
		return "project", p.Project + " → " + p.Into, bold
	case *events.ContextServed:
		return "shown", counted(p.Chars, "character") + " " + p.Query, dim
	case *events.MemoryChanged:
		switch {
		case p.MovedTo != "":
			return "moved", p.Path + " → " + p.MovedTo, bold
		case p.Content == nil:
			return "removed", p.Path, red
		}
		return "noted", p.Path + ": " + *p.Content, bold
	case *events.InsightWritten:
		return "insight", p.Task, bold
	case *events.StoryWritten:
		return fmt.Sprintf("story L%d", p.Level), p.Conversation, bold
	case *events.StoryWithdrawn:
		return "withdrawn", p.Reason, red
	case *events.LessonWithdrawn:
		return "forgotten", p.Reason, red
	case *events.CodeIndexed:
		if p.Removed {
			return "removed", p.Path, red
		}
		return "indexed", p.Path, dim
	case *events.CodeScanned:
		return "scanned", p.Project, dim
	}
	return "other", "", dim
}
