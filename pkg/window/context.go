package window

import (
	"mneme.dev/mneme/pkg/graph"

	"mneme.dev/mneme/pkg/plain"
	"mneme.dev/mneme/pkg/window/marks"
)

// Context is what an agent should see now. Sections hold it as data, [Context.Markdown]
// as text.
type Context struct {
	Tenant       string    `json:"tenant"`
	Conversation string    `json:"conversation_id,omitempty"` // absent from the context of a project
	Project      string    `json:"project,omitempty"`         // of the context of a project
	Title        string    `json:"title,omitempty"`           // cut to fit the room that other formats need around the sections
	Strategy     string    `json:"strategy"`
	MaxChars     int       `json:"max_chars"`
	Chars        int       `json:"chars"` // of the Markdown, in Unicode code points
	AsOf         uint64    `json:"as_of"` // read as of this sequence
	Sections     []Section `json:"sections"`
	Manifest     *Manifest `json:"manifest,omitempty"`

	mark string // see Mark
}

// Section is a section that has something to show.
type Section struct {
	Name    string `json:"name"`
	Heading string `json:"heading"`
	Items   []Item `json:"items"`
}

// Kinds of items.
const (
	KindQuery      = "query"       // a user message in the list of queries
	KindMessage    = "message"     // a message in the conversation
	KindToolCall   = "tool_call"   // a call with its result, if it has one
	KindToolResult = "tool_result" // a result that never had a call
	KindLeftOut    = "left_out"    // a mark where something was left out
	KindFile       = "file"        // a file with its access
	KindRelevant   = "relevant"    // a message that a search has found
	KindCode       = "code"        // a piece of a file that a tool showed or wrote
	KindSummary    = "summary"     // a summary of messages not shown themselves
	KindNote       = "note"        // what is known about another conversation of the project
	KindFolder     = "folder"      // files of a project in one folder
)

// Item is one thing that a section shows. Kind determines which fields are set. A shortened text
// contains a mark that says so; WholeChars or ResultWholeChars is then its original length.
type Item struct {
	Kind    string `json:"kind"`
	Turn    int    `json:"turn"`
	Step    int    `json:"step"`
	Seq     uint64 `json:"seq,omitempty"`
	EventID string `json:"event_id,omitempty"`

	MessageID string `json:"message_id,omitempty"` // of a message

	Label string `json:"label,omitempty"` // a line above this item and the following items without a label
	Match *Match `json:"match,omitempty"` // of anything found by search, summaries included

	Role    string `json:"role,omitempty"`
	Speaker string `json:"speaker,omitempty"`
	Origin  string `json:"origin,omitempty"` // the origin of a message that no user wrote
	Text    string `json:"text,omitempty"`

	ToolCallID       string  `json:"tool_call_id,omitempty"`
	ToolName         string  `json:"tool_name,omitempty"`
	Arguments        string  `json:"arguments,omitempty"` // JSON, unless it was shortened
	Result           *string `json:"result,omitempty"`    // absent if there is none yet
	ResultSeq        uint64  `json:"result_seq,omitempty"`
	ResultEventID    string  `json:"result_event_id,omitempty"`
	Success          *bool   `json:"success,omitempty"` // absent means unknown
	Error            string  `json:"error,omitempty"`
	ResultWholeChars int     `json:"result_whole_chars,omitempty"`

	Summary *SummaryItem `json:"summary,omitempty"`

	Path      string `json:"path,omitempty"`
	StartLine int    `json:"start_line,omitempty"` // of a piece of a file; absent if unknown
	EndLine   int    `json:"end_line,omitempty"`
	Access    string `json:"access,omitempty"` // read, write, search, list

	Session string   `json:"session,omitempty"` // for a note or a folder, the id of the conversation that Turn and Seq are of
	Notes   []Note   `json:"notes,omitempty"`   // lines below the label of a note
	Names   []string `json:"names,omitempty"`   // of files in the folder Path, the most relevant first

	WholeChars int `json:"whole_chars,omitempty"`
	Chars      int `json:"chars"` // what the item takes in the Markdown

	marks int // what it takes on top of that in messages, see package marks
}

// Note is a line of a note: a label of mneme, and a recorded text on one line.
type Note struct {
	Label string `json:"label"`
	Text  string `json:"text"`
}

// minCharsForNames is the budget below which speakers are not shown, to leave the room to what was
// said.
const minCharsForNames = 800

// messageItem shows a message, shortened if needed.
func (b *builder) messageItem(m *graph.Message, text string) Item {
	it := Item{
		Kind: KindMessage, Turn: m.Turn, Step: m.Step, Seq: m.Seq, EventID: m.EventID, MessageID: m.MessageID,
		Role: m.Role, Origin: m.Via, Text: text, WholeChars: wholeChars(m.Content, text),
	}
	if b.req.MaxChars >= minCharsForNames {
		it.Speaker = m.Speaker
	}
	return it.measured()
}

// queryItem shows a user message in the list of queries.
func (b *builder) queryItem(m *graph.Message, text string) Item {
	it := b.messageItem(m, text)
	it.Kind = KindQuery
	return it.measured()
}

// callItem shows a call with its result, each text at most piece characters long. It condenses an
// old result over summary.CondenseAbove.
func callItem(c *call, piece int, w *window) Item {
	arguments := onOneLine(c.Arguments)
	it := Item{
		Kind: KindToolCall, Turn: c.Turn, Step: c.Step, Seq: c.Seq, EventID: c.EventID,
		ToolCallID: c.ToolCallID, ToolName: c.ToolName, Arguments: cut(arguments, piece, c.Seq),
	}
	it.WholeChars = wholeChars(arguments, it.Arguments)
	if c.result != nil {
		it.setResult(c.result, piece, w)
	}
	return it.measured()
}

// resultItem shows a result that never had a call.
func resultItem(r *graph.ToolResult, piece int, w *window) Item {
	it := Item{
		Kind: KindToolResult, Turn: r.Turn, Step: r.Step, Seq: r.Seq, EventID: r.EventID, ToolCallID: r.ToolCallID,
	}
	it.setResult(r, piece, w)
	it.ResultSeq, it.ResultEventID = 0, "" // they are the item's own
	return it.measured()
}

func (it *Item) setResult(r *graph.ToolResult, piece int, w *window) {
	text := w.shortResult(r, piece)
	it.Result, it.Success = &text, r.Success
	it.ResultSeq, it.ResultEventID = r.Seq, r.EventID
	it.ResultWholeChars = wholeChars(r.Result, text)
	if r.Error != r.Result.Text {
		it.Error = w.short(graph.NewBody(r.Error), piece, r.Seq)
	}
}

// wholeChars returns the original length of a shortened text, 0 if it was not shortened.
func wholeChars(b graph.Body, shown string) int {
	if b.Whole() && (shown == b.Text || shown == plain.Text(b.Text)) { // the first is nearly always true, and cheap
		return 0
	}
	return b.Chars
}

func (it Item) measured() Item {
	it.Chars, it.marks = it.cost(), 0
	if it.Recorded() {
		it.marks = marks.Cost
	}
	return it
}

// takes returns the part of the budget that an item uses.
func (it *Item) takes() int { return it.Chars + it.marks }

// Recorded reports whether an item of the conversation goes between marks in messages for models. A
// summary does too, but needs no room for marks of its own, because it follows a bridge.
func (it *Item) Recorded() bool {
	switch it.Kind {
	case KindMessage:
		return it.Role != "assistant" && (it.Role != "user" || it.Origin != "")
	case KindToolResult, KindLeftOut:
		return true
	}
	return false
}
