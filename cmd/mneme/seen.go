package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/program"
	"mneme.dev/mneme/internal/transcript"
)

// seenContexts lists the contexts that mneme showed to the agent in an event.
type seenContexts struct {
	Seq      uint64   `json:"seq"`
	Event    string   `json:"event"`
	What     string   `json:"what"` // the role of a message, or result
	Contexts []string `json:"contexts"`
}

// seen prints which contexts mneme had shown to the agent: in the whole conversation, or in the turn of a message up to it.
func (c *MessagesCmd) seen(ctx context.Context, g *Globals, t *terminal, api *client) error {
	if c.AsOf != 0 || c.AtLeast != 0 || c.Role != "" {
		return &program.UsageError{Err: errors.New("--seen reads the whole conversation as it is now: give no --as-of, --at-least or --role")}
	}
	response, err := api.open(ctx, http.MethodGet, conversation(c.ID, "/export"), nil, "", nil)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	list, found, err := seenIn(response.Body, c.Message)
	if err != nil {
		return err
	}
	if c.Message != "" && !found {
		return fmt.Errorf("conversation %q has no message %q", c.ID, c.Message)
	}
	if g.JSON {
		return t.json(list)
	}
	if len(list) == 0 {
		return t.text("mneme showed nothing here\n")
	}
	rows := make([][]any, len(list))
	for i, s := range list {
		rows[i] = []any{s.Seq, s.What, s.Event, strings.Join(s.Contexts, ", ")}
	}
	return t.table([]column{{Name: "SEQ", Right: true}, {Name: "IN"}, {Name: "EVENT", Min: 10, Drop: 1}, {Name: "CONTEXTS", Min: 16}}, rows)
}

// seenIn reads an export. With a message, it returns what was shown since the turn of that message began, and whether there is such a message.
func seenIn(export io.Reader, message string) (list []seenContexts, found bool, err error) {
	list = []seenContexts{}
	lines := bufio.NewReader(export)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return nil, false, err
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			e, bad := events.DecodeStructured(line)
			if bad != nil {
				return nil, false, bad
			}
			r, bad := events.Record(e)
			if bad != nil {
				return nil, false, bad
			}
			s := seenContexts{Event: r.ID, What: "result"}
			s.Seq, _ = strconv.ParseUint(r.Extension(transcript.SequenceExtension), 10, 64) // 0 if the export has none
			said, isMessage := r.Payload.(*events.MessageCreated)
			if isMessage {
				s.What = said.Role
				if message != "" && said.Role == "user" {
					list = list[:0]
				}
			}
			if ids := r.Extension(events.ExtensionContexts); ids != "" {
				s.Contexts = strings.Split(ids, ",")
				list = append(list, s)
			}
			if message != "" && isMessage && said.MessageID == message {
				return list, true, nil
			}
		}
		if err == io.EOF {
			return list, false, nil
		}
	}
}
