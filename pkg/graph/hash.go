package graph

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"math"
	"slices"

	"mneme.dev/mneme/events"
)

// Hasher computes the hash of one conversation from its rows. A backend feeds it the
// conversation first, then the rows of each kind in order of sequence. The sequences
// themselves are not hashed, so equal events in equal order give equal hashes in every
// backend and after every import.
type Hasher struct {
	h       hash.Hash
	id      events.ConversationID
	scratch [8]byte
	seqs    []uint64 // of messages, calls and results; sorted at the first summary
	sorted  bool
}

// NewHasher starts the hash of a conversation.
func NewHasher(id events.ConversationID) *Hasher {
	h := &Hasher{h: sha256.New(), id: id}
	h.text(id.Tenant, id.ID)
	return h
}

// Sum returns the hash of everything fed so far.
func (h *Hasher) Sum() events.Digest { return events.Digest(h.h.Sum(nil)[:16]) }

// Conversation feeds the counts and whether the conversation is deleted.
func (h *Hasher) Conversation(c Conversation) {
	h.text("conversation", c.CreatedAt, c.UpdatedAt)
	h.num(c.MessageCount, c.TurnCount, c.StepCount, c.ToolCallCount, c.ToolResultCount, c.SummaryCount, c.CondensedCount, c.TotalChars)
	h.flag(c.DeletedSeq != 0)
}

// Version feeds a description.
func (h *Hasher) Version(v Version) {
	h.text("version", v.Time, v.Title, v.Status, v.Agent, v.Model, v.Cwd, v.Project, v.Profile)
	h.num(v.MaxContextChars, len(v.Tags))
	h.text(v.Tags...)
	h.flag(v.BranchedFrom != nil)
	if b := v.BranchedFrom; b != nil {
		h.text(b.ConversationID, b.MessageID)
	}
	h.flag(v.Ended != 0)
}

// Message feeds a message.
func (h *Hasher) Message(m Message) {
	h.row("message", m.Position, m.Origin)
	h.seqs = append(h.seqs, m.Seq)
	h.text(m.MessageID, m.Role, m.Speaker, m.Session, m.Model, m.Usage, m.Via)
	h.body(m.Content)
	h.body(m.Reasoning)
	h.num(m.CumChars, len(m.References))
	for _, r := range m.References {
		h.text(r.File, r.Name)
		h.num(r.StartLine, r.EndLine)
	}
}

// Call feeds a tool call.
func (h *Hasher) Call(c ToolCall) {
	h.row("call", c.Position, c.Origin)
	h.seqs = append(h.seqs, c.Seq)
	h.text(c.ToolCallID, c.MessageID, c.ToolName)
	h.body(c.Arguments)
	h.num(c.Iteration)
}

// Result feeds a tool result.
func (h *Hasher) Result(r ToolResult) {
	h.row("result", r.Position, r.Origin)
	h.seqs = append(h.seqs, r.Seq)
	h.text(r.ToolCallID, r.Error)
	h.flag(r.Success != nil)
	h.flag(r.Success != nil && *r.Success)
	h.body(r.Result)
	h.flag(r.DurationMS != nil)
	if r.DurationMS != nil {
		h.num(int(math.Float64bits(*r.DurationMS)))
	}
}

// Summary feeds a summary. Its range is hashed as two counts: the rows fed so far that are
// below the range, and those within it. What consolidated or superseded the summary is not
// hashed, because that follows from the other summaries.
func (h *Hasher) Summary(s Summary) {
	h.row("summary", s.Position, s.Origin)
	if !h.sorted {
		slices.Sort(h.seqs)
		h.sorted = true
	}
	below, _ := slices.BinarySearch(h.seqs, s.FirstSeq)
	upTo, _ := slices.BinarySearch(h.seqs, s.LastSeq+1)
	h.text(s.SummaryID, s.Supersedes, s.Conversation, s.Actions, s.Method, s.FallbackReason, s.Model, s.PromptHash)
	h.num(s.Level, below, upTo, s.FirstTurn, s.LastTurn, s.TurnCount, s.CharsIn, s.CharsOut)
	for _, list := range [][]string{s.Children, s.Findings, s.Topics, s.Files, s.Tools} {
		h.num(len(list))
		h.text(list...)
	}
}

// Condensed feeds a condensation.
func (h *Hasher) Condensed(c Condensed) {
	h.row("condensed", c.Position, c.Origin)
	h.text(c.ToolCallID, c.Model, c.PromptHash)
	h.body(c.Content)
	h.num(c.CharsIn, c.CharsOut)
}

// FilesConversation feeds the state of a conversation of the projection "files".
func (h *Hasher) FilesConversation(s FilesState) {
	h.text("files", s.Cwd)
	h.num(s.TurnCount)
	h.flag(s.DeletedSeq != 0)
}

// Access feeds one file access; revoked means that its call failed. count is how often
// its path was accessed with its kind, 0 if the access is revoked or superseded by a
// newer one.
func (h *Hasher) Access(path, kind, tool string, turn, count int, revoked bool) {
	h.text("access", path, kind, tool)
	h.num(turn, count)
	h.flag(revoked)
}

func (h *Hasher) row(kind string, p Position, o Origin) {
	e := events.Event{Subject: h.id.ID, Source: o.Source, ID: o.EventID}
	h.text(kind, e.Identity(h.id.Tenant).String(), o.Time)
	h.num(p.N, p.Turn, p.Step)
}

func (h *Hasher) body(b Body) {
	h.text(b.Text, b.Hash.String())
	h.num(b.Bytes, b.Chars)
}

func (h *Hasher) text(parts ...string) {
	for _, p := range parts {
		h.num(len(p))
		h.h.Write([]byte(p))
	}
}

func (h *Hasher) num(values ...int) {
	for _, v := range values {
		binary.BigEndian.PutUint64(h.scratch[:], uint64(v))
		h.h.Write(h.scratch[:])
	}
}

func (h *Hasher) flag(b bool) {
	if b {
		h.num(1)
	} else {
		h.num(0)
	}
}

// EmbeddedConversation feeds the state of a conversation of the projection "embeddings".
func (h *Hasher) EmbeddedConversation(s EmbeddedState) {
	h.text("embeddings")
	h.flag(s.DeletedSeq != 0)
}

// Embedding feeds only that there are vectors, since their values may differ each time.
func (h *Hasher) Embedding(messageID string) { h.text("embedding", messageID) }
