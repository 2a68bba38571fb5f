package events

import "encoding/json"

// Payload is the typed body of one event type.
type Payload interface {
	// EventType is the CloudEvents type that carries this payload.
	EventType() string
	// Validate returns an [*Invalid] that names the first field that breaks a rule.
	Validate() error
	// Key is the id by which the payload is unique within its conversation, with its noun
	// ("message/m1"), or "" if only the event's own identity counts.
	Key() string
}

// absent marks a required string that the JSON did not have, because "" is valid content. Decoded
// JSON is UTF-8 and never holds this byte.
const absent = "\xffabsent"

// The comments and jsonschema tags below become the schemas in schemas/ (run go generate after a
// change). Validate and the tags have the same rules; a test checks this.
//
//go:generate go run ./internal/schemagen

// ConversationStarted opens a conversation and describes it. It is optional: the
// first event of an unknown conversation creates it.
type ConversationStarted struct {
	Title   string   `json:"title,omitempty"`
	Tags    []string `json:"tags,omitempty"`
	Agent   string   `json:"agent,omitempty"` // The agent's program, such as claude-code.
	Model   string   `json:"model,omitempty"`
	Cwd     string   `json:"cwd,omitempty"` // The directory to which relative paths of tool calls refer.
	Project string   `json:"project,omitempty"`
	// The repository that the conversation works in, its root folder or its remote.
	Repository string `json:"repository,omitempty"`
	// The size of the agent's context in characters; the thresholds of summaries are shares of it.
	MaxContextChars int         `json:"max_context_chars,omitempty" jsonschema:"minimum=0"`
	Profile         string      `json:"profile,omitempty"` // The name of the settings that this conversation uses.
	BranchedFrom    *BranchedAt `json:"branched_from,omitempty"`
}

// BranchedAt names the message at which a conversation left another one.
type BranchedAt struct {
	ConversationID string `json:"conversation_id" jsonschema:"required,minLength=1,maxLength=512"`
	MessageID      string `json:"message_id" jsonschema:"required,minLength=1,maxLength=512"`
}

// ConversationUpdated changes the fields that it has; the others stay as they are.
type ConversationUpdated struct {
	Title  *string   `json:"title,omitempty"`
	Tags   *[]string `json:"tags,omitempty"`
	Status string    `json:"status,omitempty" jsonschema:"enum=active,enum=archived"`
}

// ConversationDeleted makes every projection drop the conversation and refuse its later events.
type ConversationDeleted struct {
	Reason string `json:"reason,omitempty"`
}

// MessageCreated is one message of the conversation. A user message begins a turn.
type MessageCreated struct {
	MessageID  string          `json:"message_id" jsonschema:"required,minLength=1,maxLength=512"` // Unique in the conversation.
	Role       string          `json:"role" jsonschema:"required,enum=user,enum=assistant,enum=system"`
	Content    string          `json:"content" jsonschema:"required"`
	Reasoning  string          `json:"reasoning,omitempty"` // What the model thought before it answered.
	Speaker    string          `json:"speaker,omitempty"`   // The speaker's name, if several share a role.
	Session    string          `json:"session,omitempty"`   // The run of the agent that the message belongs to.
	Model      string          `json:"model,omitempty"`
	Usage      json.RawMessage `json:"usage,omitempty"` // Token counts as the model's provider gives them, any JSON.
	References []Reference     `json:"references,omitempty"`
	Origin     string          `json:"origin,omitempty"` // The origin of a message that no user or model wrote, such as compaction.
}

// NotesPrefix begins the id of the conversation that holds the notes of a project, see [OriginNote].
const NotesPrefix = "notes:"

// Origins of messages that programs know.
const (
	// OriginNote is that of a message that an agent was asked to remember: nobody said it in a conversation.
	OriginNote = "note"
	// OriginCompaction is that of the message by which an agent replaces what it no longer sees.
	OriginCompaction = "compaction"
)

// Reference is a piece of code that a message refers to. Lines count from 1; 0 means unknown.
type Reference struct {
	File      string `json:"file" jsonschema:"required,minLength=1"`
	StartLine int    `json:"start_line,omitempty" jsonschema:"minimum=0"`
	EndLine   int    `json:"end_line,omitempty" jsonschema:"minimum=0"`
	Name      string `json:"name,omitempty"`
}

// ToolCalled says that the agent called a tool. MessageID is the assistant
// message that asked for it, if the runtime knows.
type ToolCalled struct {
	ToolCallID string          `json:"tool_call_id" jsonschema:"required,minLength=1,maxLength=512"` // Unique in the conversation.
	MessageID  string          `json:"message_id,omitempty" jsonschema:"maxLength=512"`
	ToolName   string          `json:"tool_name" jsonschema:"required,minLength=1,maxLength=512"`
	Arguments  json.RawMessage `json:"arguments" jsonschema:"required"` // Any JSON, usually an object.
	Iteration  int             `json:"iteration,omitempty" jsonschema:"minimum=0"`
}

// ToolReturned is the result of a tool call. It may come before its call.
// Success nil means that the runtime does not know.
type ToolReturned struct {
	ToolCallID string   `json:"tool_call_id" jsonschema:"required,minLength=1,maxLength=512"`
	Success    *bool    `json:"success,omitempty"`
	Result     Result   `json:"result,omitzero" jsonschema:"required"` // A string, or any JSON.
	Error      string   `json:"error,omitempty"`
	DurationMS *float64 `json:"duration_ms,omitempty" jsonschema:"minimum=0"`
	Files      []FileOp `json:"files,omitempty"` // The files that the call touched, if the runtime knows.
}

// FileOp is a file that a tool touched, as reported by the runtime.
type FileOp struct {
	Path string `json:"path" jsonschema:"required,minLength=1"`
	Op   string `json:"op" jsonschema:"required,enum=read,enum=write,enum=edit,enum=search,enum=list"`
}

// SummaryWritten is a summary of a range of the conversation. Sequences are those of the log.
type SummaryWritten struct {
	SummaryID string `json:"summary_id" jsonschema:"required,minLength=1,maxLength=512"`
	// 1 summarizes turns; each higher level summarizes the summaries of the level below.
	Level          int      `json:"level" jsonschema:"required,minimum=1"`
	FirstSeq       uint64   `json:"first_seq" jsonschema:"required,minimum=1"`
	LastSeq        uint64   `json:"last_seq" jsonschema:"required,minimum=1"` // Not below first_seq.
	FirstTurn      int      `json:"first_turn"`
	LastTurn       int      `json:"last_turn"`                          // Not below first_turn.
	Children       []string `json:"children"`                           // The summary_ids that this one consolidates.
	Supersedes     string   `json:"supersedes,omitempty"`               // The summary_id that this one replaces.
	Conversation   string   `json:"conversation" jsonschema:"required"` // What was said.
	Actions        string   `json:"actions"`                            // What was done.
	Findings       []string `json:"findings"`
	Topics         []string `json:"topics"`
	Files          []string `json:"files"`
	Tools          []string `json:"tools"`
	TurnCount      int      `json:"turn_count" jsonschema:"minimum=0"`
	Method         string   `json:"method" jsonschema:"required,enum=llm,enum=extractive"`
	FallbackReason string   `json:"fallback_reason,omitempty"` // Why the configured model did not write it.
	Model          string   `json:"model,omitempty"`
	PromptHash     string   `json:"prompt_hash,omitempty"`
	CharsIn        int      `json:"chars_in" jsonschema:"minimum=0"`
	CharsOut       int      `json:"chars_out" jsonschema:"minimum=0"`
}

// ToolCondensed is a shorter text for a large tool result, written by a model.
type ToolCondensed struct {
	ToolCallID string `json:"tool_call_id" jsonschema:"required,minLength=1,maxLength=512"`
	Content    string `json:"content" jsonschema:"required"`
	Model      string `json:"model" jsonschema:"required,minLength=1"`
	PromptHash string `json:"prompt_hash"`
	CharsIn    int    `json:"chars_in" jsonschema:"minimum=0"`
	CharsOut   int    `json:"chars_out" jsonschema:"minimum=0"`
}

// ProjectsConversation is the conversation that holds a tenant's [ProjectAliased] events, so that
// they are in order. It has no messages, and no list of conversations shows it.
const ProjectsConversation = "mneme:projects"

// ProjectAliased says that two names mean the same project, or takes that back. It belongs to the
// conversation mneme:projects.
type ProjectAliased struct {
	Project string `json:"project" jsonschema:"required,minLength=1"` // The name to give up.
	Into    string `json:"into,omitempty"`                            // The project that it belongs to from now on; without it, project is a project of its own again.
}

// ContextServed says which context of the conversation somebody was shown. It has what it takes to
// make the same context again, not its text. Nothing is derived from it, so it changes no context.
type ContextServed struct {
	AsOf     uint64 `json:"as_of" jsonschema:"required,minimum=1"`             // The sequence as of which the context was made.
	Hash     string `json:"hash" jsonschema:"required,pattern=^[0-9a-f]{64}$"` // SHA-256 of its Markdown.
	Chars    int    `json:"chars" jsonschema:"minimum=0"`                      // Unicode code points of its Markdown.
	MaxChars int    `json:"max_chars" jsonschema:"required,minimum=1"`         // The budget, without the room of a frame.
	Strategy string `json:"strategy" jsonschema:"required,minLength=1"`
	Query    string `json:"query,omitempty"` // The part of the request's query that counts.
	Condense string `json:"condense,omitempty"`
	Format   string `json:"format,omitempty"` // The format in which it was shown.
	// Whether earlier sessions of the project might be shown.
	ProjectMemory bool `json:"project_memory,omitempty"`
	// The sequence of the last message whose vectors from an embedding endpoint were used.
	EmbeddedUpTo uint64 `json:"embedded_up_to,omitempty" jsonschema:"minimum=0"`
	// The sequences of the best messages in the order that a reranker gave them, best first.
	Reranked []uint64 `json:"reranked,omitempty" jsonschema:"maxItems=100,minimum=0"`
}

// MemoryPrefix begins the id of the conversation that holds the files of a project's memory.
const MemoryPrefix = "memory:"

// MemoryChanged says that a file of a project's memory was written, moved or deleted. It belongs to a
// conversation whose id begins with memory:.
type MemoryChanged struct {
	// The file, or also a folder if it is moved or deleted: components separated by slashes, such as notes/api.md.
	Path string `json:"path" jsonschema:"required,minLength=1,maxLength=256"`
	// The whole text of the file from now on, at most 65,536 bytes.
	Content *string `json:"content,omitempty" jsonschema:"maxLength=65536"`
	// The path that the file or folder has from now on. Without content and moved_to it is deleted.
	MovedTo string `json:"moved_to,omitempty" jsonschema:"maxLength=256"`
}

// InsightWritten is what a model says about a conversation as a whole.
type InsightWritten struct {
	// What the model was asked. The task session asks for main_topic (a string), key_findings and action_items (lists of strings).
	Task string `json:"task" jsonschema:"required,minLength=1,maxLength=512"`
	// The answer, an object in the form of the task.
	Answer     map[string]json.RawMessage `json:"answer" jsonschema:"required"`
	Turns      int                        `json:"turns" jsonschema:"minimum=0"` // User messages that the conversation had when the model read it.
	Chars      int                        `json:"chars" jsonschema:"minimum=0"` // Characters that it had, as summaries count them.
	Model      string                     `json:"model" jsonschema:"required,minLength=1"`
	PromptHash string                     `json:"prompt_hash"`
}

// LessonWithdrawn says that what an event of the same conversation taught is wrong or outdated: the context of the project
// no longer shows it among what was learnt. It names the event by its source and id, which are the same in every log.
type LessonWithdrawn struct {
	EventSource string `json:"event_source" jsonschema:"required,minLength=1,maxLength=1024"`
	EventID     string `json:"event_id" jsonschema:"required,minLength=1,maxLength=512"`
	Reason      string `json:"reason,omitempty"`
}

// StoryPrefix begins the id of a conversation that holds a chapter of a project's story.
const StoryPrefix = "story:"

// StoryWritten is a chapter of a project's story. It belongs to a conversation of its own, whose id
// begins with story: and says what it covers.
type StoryWritten struct {
	Project string `json:"project" jsonschema:"required,minLength=1"`
	// The names of projects to which its conversations belonged. If one of them is no longer a name of the project, the
	// chapter is not shown.
	Names []string `json:"names" jsonschema:"required,minItems=1"`
	// 1 covers conversations; each higher level consolidates chapters of the level below.
	Level    int      `json:"level" jsonschema:"required,minimum=1"`
	Told     []Told   `json:"told" jsonschema:"required,minItems=1,maxItems=1024"` // The conversations it covers, also by its children.
	Children []string `json:"children"`                                            // The conversations of the chapters that it consolidates.
	Began    string   `json:"began,omitempty"`                                     // The time of the first event that it covers, by its producer.
	Ended    string   `json:"ended,omitempty"`                                     // The time of the last one.

	Conversation   string   `json:"conversation" jsonschema:"required"` // What was wanted, said and decided.
	Actions        string   `json:"actions"`                            // What was done.
	Findings       []string `json:"findings"`
	Topics         []string `json:"topics"`
	Method         string   `json:"method" jsonschema:"required,enum=llm,enum=extractive"`
	FallbackReason string   `json:"fallback_reason,omitempty"` // Why the model did not write it.
	Model          string   `json:"model,omitempty"`
	PromptHash     string   `json:"prompt_hash,omitempty"`
	CharsIn        int      `json:"chars_in" jsonschema:"minimum=0"`
	CharsOut       int      `json:"chars_out" jsonschema:"minimum=0"`
}

// StoryWithdrawn takes a chapter back, because what it covers was deleted or another one covers it too. It belongs to
// the conversation of the chapter, which is then no longer shown.
type StoryWithdrawn struct {
	Reason string `json:"reason,omitempty"`
}

// CodePrefix begins the id of the conversation that holds the index of a project's code.
const CodePrefix = "code:"

// CodeIndexed is what a file of a project's code holds from now on. It belongs to a conversation whose id begins with code:.
type CodeIndexed struct {
	Project string `json:"project" jsonschema:"required,minLength=1"`
	// The file as seen from the root of the project: components separated by slashes, such as pkg/store/store.go.
	Path     string `json:"path" jsonschema:"required,minLength=1,maxLength=1024"`
	Hash     string `json:"hash" jsonschema:"required,pattern=^[0-9a-f]{64}$"` // SHA-256 of the file's bytes; for a removed file, of those that it had.
	Removed  bool   `json:"removed,omitempty"`                                 // Whether the file is gone. Then the fields below say nothing.
	Language string `json:"language,omitempty"`
	Lines    int    `json:"lines,omitempty" jsonschema:"minimum=0"`
	// Functions, types and other pieces, ordered by their first lines. A piece may be inside another one.
	Scopes []CodeScope `json:"scopes,omitempty" jsonschema:"maxItems=1000"`
	Left   int         `json:"left_out,omitempty" jsonschema:"minimum=0"` // Scopes over a limit.
}

// CodeScope is a piece of a file. Lines count from 1.
type CodeScope struct {
	Name      string `json:"name,omitempty" jsonschema:"maxLength=256"` // As in Store.Close.
	Kind      string `json:"kind" jsonschema:"required,enum=function,enum=type,enum=value,enum=section,enum=block"`
	StartLine int    `json:"start_line" jsonschema:"required,minimum=1"`
	EndLine   int    `json:"end_line" jsonschema:"required,minimum=1"`              // Not below start_line.
	Text      string `json:"text" jsonschema:"required,minLength=1,maxLength=8192"` // Its beginning; at most 8,192 bytes.
}

// CodeScanned says that the files of a project are being read, or were read to the end. It belongs to the same
// conversation as their [CodeIndexed].
type CodeScanned struct {
	Project string `json:"project" jsonschema:"required,minLength=1"`
	// The folder on the machine that reads it, from which the paths of files start.
	Root string `json:"root" jsonschema:"required,minLength=1"`
	// Whether everything in the folder is indexed. If not, reading has begun.
	Done  bool `json:"done,omitempty"`
	Files int  `json:"files,omitempty" jsonschema:"minimum=0"` // Files of the index, once it is done.
}

// Told is a conversation that a chapter covers.
type Told struct {
	ID    string `json:"id" jsonschema:"required,minLength=1,maxLength=512"`
	Chars int    `json:"chars" jsonschema:"minimum=0"` // Those of the insight that the chapter was written from.
}

func (*ConversationStarted) EventType() string { return TypeConversationStarted }
func (*ConversationUpdated) EventType() string { return TypeConversationUpdated }
func (*ConversationDeleted) EventType() string { return TypeConversationDeleted }
func (*MessageCreated) EventType() string      { return TypeMessageCreated }
func (*ToolCalled) EventType() string          { return TypeToolCalled }
func (*ToolReturned) EventType() string        { return TypeToolReturned }
func (*SummaryWritten) EventType() string      { return TypeSummaryWritten }
func (*ToolCondensed) EventType() string       { return TypeToolCondensed }
func (*ProjectAliased) EventType() string      { return TypeProjectAliased }
func (*ContextServed) EventType() string       { return TypeContextServed }
func (*MemoryChanged) EventType() string       { return TypeMemoryChanged }
func (*InsightWritten) EventType() string      { return TypeInsightWritten }
func (*LessonWithdrawn) EventType() string     { return TypeLessonWithdrawn }
func (*StoryWritten) EventType() string        { return TypeStoryWritten }
func (*StoryWithdrawn) EventType() string      { return TypeStoryWithdrawn }
func (*CodeIndexed) EventType() string         { return TypeCodeIndexed }
func (*CodeScanned) EventType() string         { return TypeCodeScanned }

func (*ConversationStarted) Key() string { return "" }
func (*ConversationUpdated) Key() string { return "" }
func (*ConversationDeleted) Key() string { return "" }
func (p *MessageCreated) Key() string    { return MessageKey(p.MessageID) }
func (p *ToolCalled) Key() string        { return ToolCallKey(p.ToolCallID) }
func (p *ToolReturned) Key() string      { return ToolResultKey(p.ToolCallID) }
func (p *SummaryWritten) Key() string    { return SummaryKey(p.SummaryID) }
func (*ToolCondensed) Key() string       { return "" }
func (*ProjectAliased) Key() string      { return "" }
func (*ContextServed) Key() string       { return "" }
func (*MemoryChanged) Key() string       { return "" }
func (*InsightWritten) Key() string      { return "" }
func (*LessonWithdrawn) Key() string     { return "" }
func (*StoryWritten) Key() string        { return "" }
func (*StoryWithdrawn) Key() string      { return "" }
func (*CodeIndexed) Key() string         { return "" }
func (*CodeScanned) Key() string         { return "" }

// MessageKey, ToolCallKey, ToolResultKey and SummaryKey return the payload keys for looking up a
// message, a call, the result of a call and a summary in their conversation.
func MessageKey(id string) string        { return "message/" + id }
func ToolCallKey(id string) string       { return "tool_call/" + id }
func ToolResultKey(callID string) string { return "tool_result/" + callID }
func SummaryKey(id string) string        { return "summary/" + id }

// Text returns the arguments as the agent wrote them: JSON without white space and escaped letters.
func (p *ToolCalled) Text() string { return string(compact(p.Arguments)) }

// Text returns the result as the agent read it, see [Result.Text].
func (p *ToolReturned) Text() string { return p.Result.Text() }
