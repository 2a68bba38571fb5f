package tabular

import (
	"encoding/json"
	"time"
	"unicode/utf8"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/httpapi"
)

// Conversation is a row of the table conversations.
type Conversation struct {
	ID           string    `parquet:"conversation_id"`
	Project      string    `parquet:"project,dict"`
	Title        string    `parquet:"title"`
	Tags         []string  `parquet:"tags,list"`
	Status       string    `parquet:"status,dict"`
	Agent        string    `parquet:"agent,dict"`
	Model        string    `parquet:"model,dict"`
	Cwd          string    `parquet:"cwd,dict"`
	BranchedFrom string    `parquet:"branched_from"`
	CreatedAt    time.Time `parquet:"created_at,optional,timestamp(microsecond)"`
	UpdatedAt    time.Time `parquet:"updated_at,optional,timestamp(microsecond)"`
	Turns        int64     `parquet:"turns"`
	Steps        int64     `parquet:"steps"`
	Messages     int64     `parquet:"messages"`
	Calls        int64     `parquet:"calls"`
	Results      int64     `parquet:"results"`
	Chars        int64     `parquet:"chars"`
	FirstSeq     int64     `parquet:"first_seq"`
	LastSeq      int64     `parquet:"last_seq"`
}

// Turn is a row of the table turns.
type Turn struct {
	Conversation string    `parquet:"conversation_id,dict"`
	Project      string    `parquet:"project,dict"`
	Turn         int64     `parquet:"turn"`
	Time         time.Time `parquet:"time,optional,timestamp(microsecond)"`
	User         string    `parquet:"user_message"`
	UserChars    int64     `parquet:"user_chars"`
	Steps        int64     `parquet:"steps"`
	Messages     int64     `parquet:"messages"`
	Calls        int64     `parquet:"calls"`
	Results      int64     `parquet:"results"`
	Chars        int64     `parquet:"chars"`
	FirstSeq     int64     `parquet:"first_seq"`
	LastSeq      int64     `parquet:"last_seq"`
}

// Call is a row of the table calls.
type Call struct {
	Conversation string    `parquet:"conversation_id,dict"`
	Project      string    `parquet:"project,dict"`
	Turn         int64     `parquet:"turn"`
	Step         int64     `parquet:"step"`
	Seq          int64     `parquet:"seq"`
	Time         time.Time `parquet:"time,optional,timestamp(microsecond)"`
	ID           string    `parquet:"tool_call_id"`
	Tool         string    `parquet:"tool,dict"`
	Arguments    string    `parquet:"arguments"`
	Success      *bool     `parquet:"success,optional"`
	DurationMS   *float64  `parquet:"duration_ms,optional"`
	ResultSeq    *int64    `parquet:"result_seq,optional"`
	ResultChars  *int64    `parquet:"result_chars,optional"`
	Error        string    `parquet:"error"`
}

// File is a row of the table files.
type File struct {
	Conversation string `parquet:"conversation_id,dict"`
	Project      string `parquet:"project,dict"`
	Path         string `parquet:"path,dict"`
	Kind         string `parquet:"kind,dict"`
	Tool         string `parquet:"tool,dict"`
	Turn         int64  `parquet:"turn"`
	Seq          int64  `parquet:"seq"`
	Accesses     int64  `parquet:"accesses"`
}

// timeOf returns a time of a producer, zero if there is none or if it is not one that a timestamp in
// microseconds can hold.
func timeOf(text string) time.Time {
	at, err := events.ParseTime(text)
	if err != nil || at.Year() < 1 || at.Year() > 9999 {
		return time.Time{}
	}
	return at.UTC()
}

// ConversationRow returns the row of a conversation.
func ConversationRow(c *httpapi.Conversation) Conversation {
	row := Conversation{
		ID: c.ID, Project: c.Project, Title: c.Title, Tags: c.Tags, Status: c.Status, Agent: c.Agent, Model: c.Model, Cwd: c.Cwd,
		CreatedAt: timeOf(c.CreatedAt), UpdatedAt: timeOf(c.UpdatedAt), Turns: int64(c.TurnCount), Steps: int64(c.StepCount),
		Messages: int64(c.MessageCount), Calls: int64(c.ToolCallCount), Results: int64(c.ToolResultCount), Chars: int64(c.TotalChars),
		FirstSeq: int64(c.FirstSeq), LastSeq: int64(c.LastSeq),
	}
	if c.BranchedFrom != nil {
		row.BranchedFrom = c.BranchedFrom.ConversationID
	}
	return row
}

// TurnRow returns the row of a turn. own is false if a branch inherits it.
func TurnRow(c *httpapi.Conversation, t *httpapi.Turn) (row Turn, own bool) {
	row = Turn{
		Conversation: c.ID, Project: c.Project, Turn: int64(t.Number), Time: timeOf(t.Time), Steps: int64(t.StepCount), Messages: int64(t.MessageCount),
		Calls: int64(t.ToolCallCount), Results: int64(t.ToolResultCount), Chars: int64(t.TotalChars), FirstSeq: int64(t.FirstSeq), LastSeq: int64(t.LastSeq),
	}
	if m := t.UserMessage; m != nil {
		row.User, row.UserChars = m.Content, chars(m.Content, m.Extent)
		return row, m.InheritedFrom == ""
	}
	return row, t.FirstSeq >= c.FirstSeq
}

// CallRow returns the row of a call. own is false if a branch inherits it.
func CallRow(c *httpapi.Conversation, t *httpapi.ToolCall) (row Call, own bool) {
	row = Call{
		Conversation: c.ID, Project: c.Project, Turn: int64(t.Turn), Step: int64(t.Step), Seq: int64(t.Seq), Time: timeOf(t.Time),
		ID: t.ToolCallID, Tool: t.ToolName, Arguments: string(t.Arguments),
	}
	if t.Truncated {
		_ = json.Unmarshal(t.Arguments, &row.Arguments) // a string with its beginning
	}
	if r := t.Result; r != nil {
		seq, n := int64(r.Seq), chars(r.Result, r.Extent)
		row.Success, row.DurationMS, row.ResultSeq, row.ResultChars, row.Error = r.Success, r.DurationMS, &seq, &n, r.Error
	}
	return row, t.InheritedFrom == ""
}

// FileRow returns the row of a file.
func FileRow(c *httpapi.Conversation, f *httpapi.File) File {
	return File{Conversation: c.ID, Project: c.Project, Path: f.Path, Kind: f.Kind, Tool: f.Tool, Turn: int64(f.Turn), Seq: int64(f.Seq), Accesses: int64(f.Count)}
}

// chars returns how many code points a text has that may be shown in part.
func chars(text string, e httpapi.Extent) int64 {
	if e.Truncated {
		return int64(e.Chars)
	}
	return int64(utf8.RuneCountInString(text))
}
