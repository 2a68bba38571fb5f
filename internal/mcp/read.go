package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/plain"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/window"
)

type readArguments struct {
	Ref      string `json:"ref"`
	MaxChars int    `json:"max_chars"`
	Cursor   string `json:"cursor"`
}

// stepsEach is how many steps of a turn are read at once.
const stepsEach = 20

// record is the rendered part of what a ref names.
type record struct {
	about string // what it is, for the first line
	asOf  uint64
	text  string
	next  uint64 // where the next part begins, 0 at the end
}

// read answers with a page of what a ref names. A cursor consists of the rendered part of the record and the number of
// its characters that were shown: "18421.8000".
func (c *call) read(ctx context.Context, in readArguments) (answer, error) {
	conversation, kind, n, err := parseRef(in.Ref)
	if err != nil {
		return answer{}, err
	}
	if conversation, err = c.named(ctx, conversation); err != nil {
		return answer{}, err
	}
	part, shown, err := parseCursor(in.Cursor)
	if err != nil {
		return answer{}, err
	}
	id := events.ConversationID{Tenant: c.tenant, ID: conversation}
	if err := c.permit(ctx, id); err != nil {
		return answer{}, err
	}
	v, err := c.pins.Open(ctx, id, view.At{})
	if errors.Is(err, graph.ErrNotFound) {
		return answer{}, c.noConversation(id)
	}
	if err != nil {
		return answer{}, err
	}
	if err := v.Begin(ctx); err != nil {
		return answer{}, err
	}
	defer v.Release()
	var r record
	if kind == "turn" {
		r, err = c.turn(ctx, v, int(n), part)
	} else {
		r, err = c.event(ctx, v, n)
	}
	if err != nil {
		return answer{}, err
	}
	name, err := c.projectOf(ctx, id)
	if err != nil {
		return answer{}, err
	}
	return page(name, conversation, r, part, shown, in.MaxChars), nil
}

// page shows as much of a record as fits.
func page(project, conversation string, r record, part uint64, shown, most int) answer {
	const roomForNext = 100
	text := []rune(r.text)
	rest := text[min(shown, len(text)):]
	room := most - headRoom - len(window.FirstLine) - 2 - roomForNext
	piece := rest[:min(room, len(rest))]
	for len(piece) < len(rest) && len(piece) > 1 && piece[len(piece)-1] == '\n' {
		piece = piece[:len(piece)-1] // the end of a page shows no blank lines: they begin the next one
	}
	next := ""
	switch {
	case len(piece) < len(rest):
		next = fmt.Sprintf("%d.%d", part, shown+len(piece))
	case r.next != 0:
		next = fmt.Sprintf("%d.0", r.next)
	}
	body := string(piece)
	if shown > 0 {
		body = "\t" + body // the page continues in the middle of a record
	}
	out := head(project, conversation+" "+r.about, r.asOf, len(piece), most) + window.FirstLine + "\n\n" + strings.TrimRight(body, "\n") + "\n"
	if next != "" {
		out += "\nThere is more: the same ref with cursor " + next + "\n"
	}
	return answer{text: out, seq: r.asOf}
}

var errRef = refusal("ref is not one that an answer of mneme showed: ID#turn=7, ID#seq=18414 or [ID, turn 7]")

// cited matches the form in which contexts name a turn.
var cited = regexp.MustCompile(`^\[?(.+), turn ([0-9]+)\]?$`)

func parseRef(ref string) (conversation, kind string, n uint64, err error) {
	if m := cited.FindStringSubmatch(ref); m != nil {
		ref = m[1] + "#turn=" + m[2]
	}
	at := strings.LastIndexByte(ref, '#')
	if at <= 0 || at > conversationBytes {
		return "", "", 0, errRef
	}
	kind, value, _ := strings.Cut(ref[at+1:], "=")
	n, bad := strconv.ParseUint(value, 10, 63)
	if bad != nil || kind != "turn" && kind != "seq" || kind == "turn" && n > 1<<31 {
		return "", "", 0, errRef
	}
	return ref[:at], kind, n, nil
}

func parseCursor(cursor string) (part uint64, shown int, err error) {
	if cursor == "" {
		return 0, 0, nil
	}
	first, second, _ := strings.Cut(cursor, ".")
	part, bad := strconv.ParseUint(first, 10, 63)
	shown, worse := strconv.Atoi(second)
	if bad != nil || worse != nil || shown < 0 {
		return 0, 0, refuse("the cursor is not one of this ref: leave it out to begin again")
	}
	return part, shown, nil
}

// turn renders a part of a turn: what the user said, and some steps.
func (c *call) turn(ctx context.Context, v *view.View, n int, part uint64) (record, error) {
	g := v.Graph()
	own := v.Lineage().Conversation()
	r := record{about: fmt.Sprintf("turn %d of %d", n, own.TurnCount), asOf: own.LastSeq}
	if n > own.TurnCount || n == 0 && own.MessageCount == 0 {
		return r, refuse("the conversation has %d turns", own.TurnCount)
	}
	var w strings.Builder
	if part == 0 && n > 0 {
		said, err := g.Messages(ctx, v.ID, graph.MessageQuery{Turn: n, Limit: 1})
		if err != nil {
			return r, err
		}
		for i := range said {
			writeMessage(&w, v.ID.ID, &said[i])
		}
	}
	steps, err := graph.Steps(ctx, g, v.ID, graph.StepQuery{ListQuery: graph.ListQuery{Start: part, Limit: stepsEach, OldestFirst: true}, Turn: &n})
	if err != nil {
		return r, err
	}
	for _, s := range steps.Rows {
		if s.Message != nil && s.Message.Role != "user" {
			writeMessage(&w, v.ID.ID, s.Message)
		}
		for i := range s.Calls {
			writeCall(&w, v.ID.ID, &s.Calls[i])
		}
		for i := range s.Results {
			writeResult(&w, v.ID.ID, &s.Results[i])
		}
	}
	r.text, r.next = w.String(), steps.Next
	return r, nil
}

// event renders one event of the log: whole, unlike the rows of the read model.
func (c *call) event(ctx context.Context, v *view.View, seq uint64) (record, error) {
	missing := refuse("the conversation has nothing at sequence %d", seq)
	stored, err := c.Log.Get(ctx, seq)
	if errors.Is(err, eventlog.ErrNotFound) {
		return record{}, missing
	}
	if err != nil {
		return record{}, err
	}
	recorded, address, invalid := stored.Decode()
	at := events.ConversationID{Tenant: address.Tenant, ID: address.Conversation}
	if invalid != nil || !v.Lineage().Shows(at, seq) {
		return record{}, missing
	}
	g, _, err := c.pins.Graph(ctx)
	if err != nil {
		return record{}, err
	}
	held, err := g.Holders(ctx, []projection.Claim{{Conversation: at}})
	if err != nil {
		return record{}, err
	}
	if tombstone, ok := held[0]; ok && tombstone.Content.IsZero() {
		return record{}, missing
	}
	var w strings.Builder
	switch p := recorded.Payload.(type) {
	case *events.MessageCreated:
		label(&w, named(p.Role, p.Speaker), v.ID.ID, seq, plain.NameData(p.Content))
	case *events.ToolCalled:
		label(&w, "call of "+plain.Line(p.ToolName), v.ID.ID, seq, plain.JSON(plain.NameData(string(p.Arguments))))
		ref := graph.Ref{ID: p.ToolCallID}
		results, err := v.Graph().Results(ctx, v.ID, []graph.Ref{ref}, graph.Latest)
		if err != nil {
			return record{}, err
		}
		if found, ok := results[ref]; ok {
			writeResult(&w, v.ID.ID, &found)
		}
	case *events.ToolReturned:
		label(&w, "result", v.ID.ID, seq, plain.NameData(p.Text()))
		if p.Error != "" {
			label(&w, "error", v.ID.ID, seq, plain.NameData(p.Error))
		}
	default:
		raw, err := json.Marshal(p)
		if err != nil {
			return record{}, err
		}
		label(&w, recorded.Type, v.ID.ID, seq, plain.JSON(plain.NameData(string(raw))))
	}
	return record{about: fmt.Sprintf("sequence %d", seq), asOf: v.Lineage().Conversation().LastSeq, text: w.String()}, nil
}

// label writes a recorded text after a label of ours. Each of its lines after the first begins with a tab.
func label(w *strings.Builder, what, conversation string, seq uint64, text string) {
	fmt.Fprintf(w, "**%s** (%s): %s\n\n", what, plain.Line(refTo(conversation, seq)), strings.ReplaceAll(plain.Text(text), "\n", "\n\t"))
}

func named(role, speaker string) string {
	if speaker == "" {
		return role
	}
	return role + " " + plain.Speaker(speaker)
}

// kept writes a stored text, and where to find the rest of it.
func kept(b graph.Body, seq uint64) string {
	if b.Whole() {
		return b.Text
	}
	return b.Text + plain.CutMark(b.Chars-plain.Length(b.Text), b.Chars, seq)
}

func writeMessage(w *strings.Builder, conversation string, m *graph.Message) {
	label(w, named(m.Role, m.Speaker), conversation, m.Seq, kept(m.Content, m.Seq))
}

func writeCall(w *strings.Builder, conversation string, u *graph.ToolUse) {
	label(w, "call of "+plain.Line(u.Call.ToolName), conversation, u.Call.Seq, kept(u.Call.Arguments, u.Call.Seq))
	if u.Result != nil {
		writeResult(w, conversation, u.Result)
	}
}

func writeResult(w *strings.Builder, conversation string, r *graph.ToolResult) {
	label(w, "result", conversation, r.Seq, kept(r.Result, r.Seq))
	if r.Error != "" {
		label(w, "error", conversation, r.Seq, r.Error)
	}
}
