package main

import (
	"context"
	"errors"
	"fmt"

	"mneme.dev/mneme/internal/intake"
	"mneme.dev/mneme/internal/program"
	"mneme.dev/mneme/internal/redact"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/pkg/eventlog"
)

// redactRules returns the rules of what is redacted, nil for none.
func redactRules(s settings.Redacting) (*redact.Rules, error) {
	if s.Redact == "off" {
		return nil, nil
	}
	return loadRules(s.RedactRules)
}

func loadRules(s settings.RedactRules) (*redact.Rules, error) {
	if s.File == "" {
		return redact.Default(), nil
	}
	rules, err := redact.Load(s.File)
	if err != nil {
		return nil, &program.UsageError{Err: fmt.Errorf("--redact-rules: %w", err)}
	}
	return rules, nil
}

// RedactCmd groups what is done about secrets in the log.
type RedactCmd struct {
	Scan RedactScanCmd `cmd:"" group:"operate" help:"List the places in the log that hold secrets."`
}

// RedactScanCmd looks for secrets in the log.
type RedactScanCmd struct {
	Conversation string `help:"Only events of this conversation." placeholder:"ID" complete:"conversation"`
	logFlags
	settings.RedactRules
}

func (*RedactScanCmd) Help() string {
	return `Reads the log from its beginning, and prints the kind and the place of what the rules find, never the secret itself. Nothing is changed.

A secret in the log can be read by anyone who can read the log: replace it where it is used. "mneme erase" removes a conversation permanently.

Over HTTP the server leaves out the events of deleted conversations, which the log holds until they are erased.

The exit code is 0 if nothing was found, 3 if something was.

Examples:

    mneme redact scan
    mneme redact scan --conversation ID --json`
}

// secretPlace is an event with secrets.
type secretPlace struct {
	Seq          uint64 `json:"seq"`
	Tenant       string `json:"tenant"`
	Conversation string `json:"conversation"`
	Event        string `json:"event"`
	Type         string `json:"type"`
	intake.Finding
	Count int `json:"count"`
}

func (c *RedactScanCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	rules, err := loadRules(c.RedactRules)
	if err != nil {
		return err
	}
	log, tenant, done, err := c.reader(ctx, g)
	if err != nil {
		return err
	}
	defer done()
	if c.Conversation, err = c.named(ctx, g, log, tenant, c.Conversation); err != nil {
		return err
	}

	places, read, unreadable := []secretPlace{}, 0, 0
	filter := eventlog.Filter{Tenant: tenant, Conversation: c.Conversation}
	options := eventlog.TailOptions{From: 1, ToEnd: true, Trouble: func(err error) { t.say("waiting for the log: %v", err) }}
	err = log.Tail(ctx, filter, options, func(m eventlog.Message) error {
		read++
		r, address, err := m.Decode()
		if err != nil {
			unreadable++
			return nil
		}
		for _, f := range intake.Find(rules, r.Payload) {
			p := secretPlace{Seq: m.Seq, Tenant: address.Tenant, Conversation: r.Subject, Event: r.ID, Type: r.Type, Finding: f, Count: 1}
			at := len(places) - 1
			for at >= 0 && places[at].Seq == p.Seq && places[at].Finding != f {
				at--
			}
			if at >= 0 && places[at].Seq == p.Seq {
				places[at].Count++
				continue
			}
			places = append(places, p)
		}
		return nil
	})
	switch {
	case errors.Is(err, eventlog.ErrBeyondEnd): // the log is empty
	case err != nil:
		return err
	}
	if read == 0 && c.Conversation != "" { // misspelt, or of another tenant: nothing would be found in it either
		of := ""
		if tenant != "" {
			of = " of the tenant " + tenant
		}
		return fmt.Errorf("the log holds no event of the conversation %s%s: mneme conversations list shows the conversations", c.Conversation, of)
	}
	if unreadable > 0 {
		t.say("skipped: %s that can't be decoded; see mneme failed", counted(unreadable, "event"))
	}
	if _, remote := log.(remoteReader); remote {
		t.say("events of deleted conversations were not read, although the log may still hold them: the server shows them to nobody; operators read them with --over nats")
	}
	if g.JSON {
		err = t.json(places)
	} else {
		err = c.print(t, places, read)
	}
	if err == nil && len(places) > 0 {
		return errDifference
	}
	return err
}

func (c *RedactScanCmd) print(t *terminal, places []secretPlace, read int) error {
	if len(places) == 0 {
		return t.text(fmt.Sprintf("no secrets found in %s\n", counted(uint64(read), "event")))
	}
	rows := make([][]any, len(places))
	for i, p := range places {
		rows[i] = []any{p.Seq, p.Kind, p.Count, p.Field, p.Event, p.Conversation}
	}
	return t.table([]column{
		{Name: "SEQ", Right: true}, {Name: "KIND"}, {Name: "COUNT", Right: true, Drop: 2}, {Name: "FIELD", Drop: 1}, {Name: "EVENT", Min: 10, Drop: 3}, {Name: "CONVERSATION", Min: 20, End: true},
	}, rows)
}
