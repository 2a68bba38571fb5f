package transcript

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"mneme.dev/mneme/events"
)

// MaxDocumentBytes is the largest recording that is one JSON value: 64 MiB. Unlike lines, it is read as a whole; [Read]
// then needs a few times as much memory.
const MaxDocumentBytes = 64 << 20

// isDocument reports whether a file's name says that it is one JSON value.
func isDocument(name string) bool {
	base := strings.TrimSuffix(strings.ToLower(folderOf(name, 0)), ".gz")
	return strings.HasSuffix(base, ".json") || strings.HasSuffix(base, ".traj")
}

// begins reports whether a line begins a JSON value without ending it.
func begins(text []byte) bool {
	if text[0] != '{' && text[0] != '[' {
		return false
	}
	var whole json.RawMessage
	return errors.Is(json.NewDecoder(bytes.NewReader(text)).Decode(&whole), io.ErrUnexpectedEOF)
}

// document returns the JSON value that lines form together, nil if they form none.
func document(list []line) []byte {
	var all bytes.Buffer
	for _, l := range list {
		if l.bad != nil {
			return nil
		}
		all.Write(l.text)
		all.WriteByte('\n')
	}
	doc := bytes.TrimSpace(all.Bytes())
	if !json.Valid(doc) {
		return nil
	}
	return bytes.ToValidUTF8(doc, []byte("\uFFFD"))
}

// immediate is the part of a converter that holds no items back.
type immediate struct{}

func (immediate) end(*batch)                   {}
func (immediate) refuse(out *batch, err error) { out.refuse(err) }

// talk adds the events of one conversation. Its start event comes first.
type talk struct {
	immediate
	id, source string
	began      string // when it started, RFC 3339; "" takes the time of the first event
	start      events.ConversationStarted
	// scoped means that ids of calls are unique only in the conversation: the ids of their events begin with its id.
	scoped  bool
	started bool
	last    string // the id of the last message
}

// event adds an event that happened at a time, RFC 3339 or "".
func (t *talk) event(out *batch, id, at string, p events.Payload) {
	t.open(out, at)
	out.event(t.id, t.source, id, at, p)
}

// open adds the start event if it is not there yet.
func (t *talk) open(out *batch, at string) {
	if t.started {
		return
	}
	t.started = true
	t.began = cmp.Or(t.began, at)
	out.event(t.id, t.source, t.id, t.began, new(t.start))
}

// say adds a message under its id.
func (t *talk) say(out *batch, id, at string, m *events.MessageCreated) {
	m.MessageID, t.last = id, id
	t.event(out, id, at, m)
}

// titled adds the title of a conversation. It has no place and no time of its own: it comes after the first answer, and
// can change. If what comes before it is open, the title is too.
func (t *talk) titled(out *batch, title string) {
	if title == "" || !t.started {
		return
	}
	open := len(out.items) > 0 && out.items[len(out.items)-1].Open
	sum := sha256.Sum256([]byte(title))
	t.event(out, t.id+":title:"+hex.EncodeToString(sum[:8]), "", &events.ConversationUpdated{Title: &title})
	out.items[len(out.items)-1].Open = open
}

// call adds a tool call. Arguments in a string are read as JSON.
func (t *talk) call(out *batch, id, at, message, tool string, arguments json.RawMessage) {
	t.event(out, t.scope(id), at, &events.ToolCalled{ToolCallID: id, MessageID: message, ToolName: tool, Arguments: plain(argumentsOf(or(arguments, "{}")))})
}

// shellArguments are the arguments of a call that runs a command.
func shellArguments(command string) json.RawMessage {
	return json.RawMessage(`{"command":` + string(quote(command)) + `}`)
}

// answer adds the result of a call as a text.
func (t *talk) answer(out *batch, call, at, result string, success *bool) {
	t.answerAfter(out, call, at, result, success, nil)
}

// answerAfter is answer for a call that took so many milliseconds, nil if that is unknown.
func (t *talk) answerAfter(out *batch, call, at, result string, success *bool, took *float64) {
	r := &events.ToolReturned{ToolCallID: call, Success: success, Result: events.JSONResult(quote(result)), DurationMS: took}
	if success != nil && !*success {
		r.Error = result
	}
	t.event(out, resultPrefix+t.scope(call), at, r)
}

// scope returns the id of the event of a call.
func (t *talk) scope(call string) string {
	if t.scoped && !strings.HasPrefix(call, t.id+":") {
		return t.id + ":" + call
	}
	return call
}

// elapsed returns the milliseconds from a time to another one, nil if one of them is unknown or the clock was set back.
func elapsed(from time.Time, to string) *float64 {
	end, err := parseTime(to)
	if err != nil || from.IsZero() || end.Before(from) {
		return nil
	}
	return new(float64(end.Sub(from).Milliseconds()))
}

// milliseconds returns a Unix time in milliseconds as RFC 3339, "" for 0.
func milliseconds(ms int64) string {
	if ms <= 0 || ms > maxMilliseconds {
		return ""
	}
	return time.UnixMilli(ms).UTC().Format(time.RFC3339Nano)
}

// maxMilliseconds is the end of the year 9999.
const maxMilliseconds = 253_402_300_799_999

// folderOf returns the name of the n-th folder above a file, "" if its path does not have that many.
func folderOf(name string, n int) string {
	parts := strings.Split(strings.Trim(path.Clean(strings.ReplaceAll(name, `\`, "/")), "/"), "/")
	if at := len(parts) - 1 - n; at >= 0 && parts[at] != ".." && parts[at] != "." {
		return parts[at]
	}
	return ""
}

// stemOfDocument returns a file's name without its folder and its suffixes.
func stemOfDocument(name string) string {
	base := folderOf(name, 0)
	for {
		stem := strings.TrimSuffix(base, path.Ext(base))
		switch strings.ToLower(path.Ext(base)) {
		case ".gz", ".zst", ".json", ".jsonl", ".ndjson", ".traj":
			if stem != "" {
				base = stem
				continue
			}
		}
		return base
	}
}

// eachPart decodes the parts of a document and passes them to take. It refuses those for which that fails.
func eachPart[T any](out *batch, name string, parts []json.RawMessage, take func(i int, part *T) error) {
	for i, raw := range parts {
		var part T
		err := json.Unmarshal(raw, &part)
		if err == nil {
			err = take(i, &part)
		}
		if err != nil {
			refuseAt(out, name, i, err)
		}
	}
}

// refuseAt refuses a part of a document.
func refuseAt(out *batch, part string, i int, err error) {
	out.refuse(&LineError{Line: out.line, Reason: fmt.Sprintf("%s[%d]: %s", part, i, reason(err)), Err: err})
}
