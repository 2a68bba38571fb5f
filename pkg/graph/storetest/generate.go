package storetest

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"mneme.dev/mneme/events"
)

// The alphabet of generated histories. It is small, so that duplicates, conflicts,
// deletions, early results and accesses of one file by several calls happen often.
var (
	tenants       = []string{"t", "u"}
	conversations = []string{"c", "d"}
	eventIDs      = []string{"e1", "e2", "e3", "e4", "e5", "e6", "e7", "e8", "e9"}
	messageIDs    = []string{"m1", "m2", "m3", "m4"}
	callIDs       = []string{"k1", "k2", "k3", "k4"}
	paths         = []string{"/a.go", "/b.go"}
	texts         = []string{"", "x", "é€😀"}
)

// generated draws a history over the tenants, with events of all kinds, messages that are
// not events, repeats and gaps between the sequences.
func generated(tenants []string) *rapid.Generator[*History] {
	return rapid.Custom(func(r *rapid.T) *History {
		h, known := NewHistory(), mirror{}
		if rapid.Bool().Draw(r, "timed") {
			h.Time = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		}
		for range rapid.IntRange(1, 40).Draw(r, "events") {
			h.Tenant = rapid.SampledFrom(tenants).Draw(r, "tenant")
			if rapid.IntRange(0, 9).Draw(r, "gap") == 0 {
				h.Next += 3
			}
			conversation := rapid.SampledFrom(conversations).Draw(r, "conversation")
			switch rapid.IntRange(0, 19).Draw(r, "what") {
			case 0:
				h.AddRaw("ev.0."+h.Tenant+"."+conversation+".message_created", nil, []byte("no event"))
			case 1: // exactly as before
				if n := len(h.Messages); n > 0 {
					m := h.Messages[rapid.IntRange(0, n-1).Draw(r, "repeated")]
					h.AddRaw(m.Subject, m.Header, m.Data)
				}
			case 2, 3, 4: // an id that may be taken, with the same content or another
				known.add(h, conversation, rapid.SampledFrom(eventIDs).Draw(r, "id"), payload(r, known.of(h, conversation)))
			default:
				known.add(h, conversation, fmt.Sprintf("e%d", h.Next), payload(r, known.of(h, conversation)))
			}
		}
		return h
	})
}

func payload(r *rapid.T, c *mirrored) events.Payload {
	text := rapid.SampledFrom(texts).Draw(r, "text")
	callID := rapid.SampledFrom(callIDs).Draw(r, "call")
	path := rapid.SampledFrom(paths).Draw(r, "path")
	switch rapid.IntRange(0, 30).Draw(r, "type") {
	case 0, 1:
		return &events.ConversationStarted{Title: text, Cwd: "/" + text, Tags: []string{"a", text}}
	case 2:
		return &events.ConversationUpdated{Title: &text}
	case 3:
		return &events.ConversationUpdated{Status: "archived", Tags: &[]string{text}}
	case 4:
		return &events.ConversationDeleted{}
	case 25, 26, 27, 28:
		return c.summary(r)
	case 5, 29, 30:
		return condensed(callID, text)
	case 6, 7, 8, 9, 10:
		m := message(rapid.SampledFrom(messageIDs).Draw(r, "message"), rapid.SampledFrom([]string{"user", "assistant", "system"}).Draw(r, "role"), text)
		m.References = []events.Reference{{File: path, StartLine: 1}}[:rapid.IntRange(0, 1).Draw(r, "references")]
		return m
	case 11, 12, 13:
		return read(callID, path)
	case 14, 15:
		return write(callID, path)
	case 16, 17, 18:
		return grep(callID, path)
	default:
		p := result(callID, path+":1: hit\n/c.go:2: hit\n", rapid.Bool().Draw(r, "success"))
		if rapid.IntRange(0, 3).Draw(r, "unknown success") == 0 {
			p.Success = nil
		}
		p.Files = []events.FileOp{{Path: path, Op: "edit"}}[:rapid.IntRange(0, 1).Draw(r, "files")]
		return p
	}
}

// realistic adds turns as agents make them: a user message and some steps, each an
// assistant message with a call and its result.
func realistic(h *History, conversation string, turns int) {
	for range turns {
		h.Add(conversation, message(fmt.Sprintf("u%d", h.Next), "user", "Please look into the failing test and fix it."))
		for step := range 4 {
			h.Add(conversation, message(fmt.Sprintf("a%d", h.Next), "assistant", "I will read the file first, then change what is wrong in it."))
			callID := fmt.Sprintf("k%d", h.Next)
			path := fmt.Sprintf("/src/pkg/file%d.go", h.Next%23)
			switch step {
			case 0:
				h.Add(conversation, grep(callID, "/src"))
			case 1:
				h.Add(conversation, write(callID, path))
			default:
				h.Add(conversation, read(callID, path))
			}
			text := make([]byte, 0, 2000)
			for line := range 30 {
				text = fmt.Appendf(text, "%s:%d: func example(ctx context.Context) error {\n", path, line)
			}
			h.Add(conversation, result(callID, string(text), step != 3))
		}
	}
}

// Realistic is a history of interleaved conversations, for benchmarks.
func Realistic(conversations, turns int) *History {
	h := NewHistory()
	h.Time = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for range turns {
		for c := range conversations {
			realistic(h, fmt.Sprintf("conversation-%d", c), 1)
		}
	}
	return h
}
