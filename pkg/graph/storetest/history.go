package storetest

import (
	"encoding/json"
	"fmt"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
)

// History is a list of messages as the log would deliver them: one partition, in
// order, with or without gaps between the sequences.
type History struct {
	Messages []eventlog.Message
	Tenant   string    // of the next events
	Next     uint64    // sequence of the next event
	Time     time.Time // of the next event, none if zero; each event advances it by a second
}

// NewHistory starts a history of the tenant "t" at sequence 1.
func NewHistory() *History { return &History{Tenant: "t", Next: 1} }

// Add appends an event with a new id and returns its sequence.
func (h *History) Add(conversation string, p events.Payload) uint64 {
	return h.AddAs(conversation, fmt.Sprintf("e%d", h.Next), p)
}

// AddAs appends an event with this id. It panics if the event is invalid.
func (h *History) AddAs(conversation, id string, p events.Payload) uint64 {
	e, err := events.New(conversation, "storetest", id, p)
	if err != nil {
		panic(err)
	}
	return h.AddEvent(e)
}

// AddEvent appends an event as it is.
func (h *History) AddEvent(e events.Event) uint64 {
	if !h.Time.IsZero() {
		e.Time = h.Time
		h.Time = h.Time.Add(time.Second)
	}
	header, data := events.EncodeMessage(e)
	h.AddRaw(fmt.Sprintf("ev.0.%s.%s.%s", events.Escape(h.Tenant), events.Escape(e.Subject), events.Kind(e.Type)), header, data)
	return h.Next - 1
}

// AddRaw appends a message that need not be an event.
func (h *History) AddRaw(subject string, header map[string][]string, data []byte) {
	h.Messages = append(h.Messages, eventlog.Message{Seq: h.Next, Subject: subject, Header: header, Data: data})
	h.Next++
}

// Since returns the part of the history from a sequence on.
func (h *History) Since(seq uint64) []eventlog.Message {
	for i, m := range h.Messages {
		if m.Seq >= seq {
			return h.Messages[i:]
		}
	}
	return nil
}

func message(id, role, content string) *events.MessageCreated {
	return &events.MessageCreated{MessageID: id, Role: role, Content: content}
}

func call(id, tool, arguments string) *events.ToolCalled {
	return &events.ToolCalled{ToolCallID: id, ToolName: tool, Arguments: json.RawMessage(arguments)}
}

func result(id, text string, success bool) *events.ToolReturned {
	return &events.ToolReturned{ToolCallID: id, Result: events.TextResult(text), Success: &success}
}

// read, write and grep are calls of file tools as Claude Code names them.
func read(id, path string) *events.ToolCalled {
	return call(id, "Read", fmt.Sprintf(`{"file_path":%q}`, path))
}

func write(id, path string) *events.ToolCalled {
	return call(id, "Write", fmt.Sprintf(`{"file_path":%q,"content":"x"}`, path))
}

func grep(id, path string) *events.ToolCalled {
	return call(id, "Grep", fmt.Sprintf(`{"pattern":"x","path":%q}`, path))
}

// written returns a summary of a range of sequences.
func written(id string, level int, first, last uint64, children ...string) *events.SummaryWritten {
	return &events.SummaryWritten{
		SummaryID: id, Level: level, FirstSeq: first, LastSeq: last, Children: children, Conversation: "what " + id + " says", Method: "extractive",
	}
}

// condensed returns a shorter text for the result of a call.
func condensed(callID, text string) *events.ToolCondensed {
	return &events.ToolCondensed{ToolCallID: callID, Content: text, Model: "model"}
}

// id returns a conversation of the tenant "t".
func id(conversation string) events.ConversationID {
	return events.ConversationID{Tenant: "t", ID: conversation}
}
