package events

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// The allowed values of a role, a status, a file operation and a method.
var (
	roles    = []string{"user", "assistant", "system"}
	statuses = []string{"active", "archived"}
	fileOps  = []string{"read", "write", "edit", "search", "list"}
	methods  = []string{"llm", "extractive"}
	scopes   = []string{"function", "type", "value", "section", "block"}
)

func (p *ConversationStarted) Validate() error {
	if err := notNegative("data.max_context_chars", p.MaxContextChars); err != nil {
		return err
	}
	if b := p.BranchedFrom; b != nil {
		return first(
			id("data.branched_from.conversation_id", b.ConversationID),
			id("data.branched_from.message_id", b.MessageID))
	}
	return nil
}

func (p *ConversationUpdated) Validate() error {
	if p.Status == "" {
		return nil
	}
	return oneOf("data.status", p.Status, statuses)
}

func (*ConversationDeleted) Validate() error { return nil }

func (p *MessageCreated) Validate() error {
	for i, r := range p.References {
		field := fmt.Sprintf("data.references[%d]", i)
		switch {
		case r.File == "":
			return invalid(field+".file", "is missing")
		case r.StartLine < 0 || r.EndLine < 0:
			return invalid(field, "has a negative line")
		}
	}
	return first(id("data.message_id", p.MessageID), oneOf("data.role", p.Role, roles), present("data.content", p.Content))
}

func (p *ToolCalled) Validate() error {
	if len(p.Arguments) == 0 {
		return invalid("data.arguments", "is missing")
	}
	return first(
		id("data.tool_call_id", p.ToolCallID),
		optionalID("data.message_id", p.MessageID),
		id("data.tool_name", p.ToolName),
		notNegative("data.iteration", p.Iteration))
}

func (p *ToolReturned) Validate() error {
	if p.Result.IsZero() {
		return invalid("data.result", "is missing")
	}
	if ms := p.DurationMS; ms != nil && *ms < 0 {
		return invalid("data.duration_ms", "is negative")
	}
	for i, f := range p.Files {
		field := fmt.Sprintf("data.files[%d]", i)
		if f.Path == "" {
			return invalid(field+".path", "is missing")
		}
		if err := oneOf(field+".op", f.Op, fileOps); err != nil {
			return err
		}
	}
	return id("data.tool_call_id", p.ToolCallID)
}

func (p *SummaryWritten) Validate() error {
	switch {
	case p.Level < 1:
		return invalid("data.level", "is %d, the lowest is 1", p.Level)
	case p.FirstSeq == 0 || p.LastSeq < p.FirstSeq || p.LastSeq > math.MaxInt64: // more than a store can compare
		return invalid("data.first_seq", "%d to %d is not a range of sequences", p.FirstSeq, p.LastSeq)
	case p.LastTurn < p.FirstTurn:
		return invalid("data.first_turn", "%d to %d is not a range of turns", p.FirstTurn, p.LastTurn)
	}
	return first(
		id("data.summary_id", p.SummaryID),
		present("data.conversation", p.Conversation),
		notNegative("data.turn_count", p.TurnCount),
		oneOf("data.method", p.Method, methods),
		notNegative("data.chars_in", p.CharsIn),
		notNegative("data.chars_out", p.CharsOut))
}

func (p *ToolCondensed) Validate() error {
	return first(
		id("data.tool_call_id", p.ToolCallID),
		present("data.content", p.Content),
		nonEmpty("data.model", p.Model),
		notNegative("data.chars_in", p.CharsIn),
		notNegative("data.chars_out", p.CharsOut))
}

func (p *ProjectAliased) Validate() error { return nonEmpty("data.project", p.Project) }

// hexHash is a SHA-256.
var hexHash = regexp.MustCompile(`^[0-9a-f]{64}$`)

func (p *ContextServed) Validate() error {
	switch {
	case p.AsOf == 0 || p.AsOf > math.MaxInt64:
		return invalid("data.as_of", "%d is not a sequence", p.AsOf)
	case !hexHash.MatchString(p.Hash):
		return invalid("data.hash", "is not a SHA-256 in hex")
	case p.MaxChars < 1:
		return invalid("data.max_chars", "is %d, the lowest is 1", p.MaxChars)
	}
	return first(nonEmpty("data.strategy", p.Strategy), notNegative("data.chars", p.Chars))
}

func (p *MemoryChanged) Validate() error {
	if p.Content != nil && len(*p.Content) > MaxMemoryFileBytes {
		return invalid("data.content", "has %d bytes, the limit is %d", len(*p.Content), MaxMemoryFileBytes)
	}
	if p.MovedTo != "" {
		return first(memoryPath("data.path", p.Path), memoryPath("data.moved_to", p.MovedTo))
	}
	return memoryPath("data.path", p.Path)
}

func (p *InsightWritten) Validate() error {
	if p.Answer == nil {
		return invalid("data.answer", "is missing")
	}
	return first(
		id("data.task", p.Task),
		notNegative("data.turns", p.Turns),
		notNegative("data.chars", p.Chars),
		nonEmpty("data.model", p.Model))
}

func (p *LessonWithdrawn) Validate() error {
	if len(p.EventSource) > MaxSourceBytes {
		return invalid("data.event_source", "is %d bytes long, the limit is %d", len(p.EventSource), MaxSourceBytes)
	}
	return first(nonEmpty("data.event_source", p.EventSource), id("data.event_id", p.EventID))
}

func (p *StoryWritten) Validate() error {
	switch {
	case p.Level < 1:
		return invalid("data.level", "is %d, the lowest is 1", p.Level)
	case len(p.Names) == 0:
		return invalid("data.names", "is empty")
	case len(p.Told) == 0:
		return invalid("data.told", "is empty")
	case len(p.Told) > MaxTold:
		return invalid("data.told", "has %d conversations, the limit is %d", len(p.Told), MaxTold)
	}
	for i, t := range p.Told {
		if err := first(id(fmt.Sprintf("data.told[%d].id", i), t.ID), notNegative(fmt.Sprintf("data.told[%d].chars", i), t.Chars)); err != nil {
			return err
		}
	}
	return first(
		nonEmpty("data.project", p.Project),
		present("data.conversation", p.Conversation),
		oneOf("data.method", p.Method, methods),
		notNegative("data.chars_in", p.CharsIn),
		notNegative("data.chars_out", p.CharsOut))
}

func (*StoryWithdrawn) Validate() error { return nil }

func (p *CodeIndexed) Validate() error {
	switch {
	case !hexHash.MatchString(p.Hash):
		return invalid("data.hash", "is not a SHA-256 in hex")
	case len(p.Scopes) > MaxCodeScopes:
		return invalid("data.scopes", "has %d scopes, the limit is %d", len(p.Scopes), MaxCodeScopes)
	}
	for i := range p.Scopes {
		if err := p.Scopes[i].validate(fmt.Sprintf("data.scopes[%d]", i)); err != nil {
			return err
		}
	}
	return first(
		nonEmpty("data.project", p.Project),
		codePath("data.path", p.Path),
		notNegative("data.lines", p.Lines),
		notNegative("data.left_out", p.Left))
}

func (s *CodeScope) validate(field string) error {
	switch {
	case s.StartLine < 1:
		return invalid(field+".start_line", "is %d, the lowest is 1", s.StartLine)
	case s.EndLine < s.StartLine:
		return invalid(field+".end_line", "%d to %d is not a range of lines", s.StartLine, s.EndLine)
	case len(s.Name) > MaxScopeNameBytes:
		return invalid(field+".name", "has %d bytes, the limit is %d", len(s.Name), MaxScopeNameBytes)
	case len(s.Text) > MaxScopeTextBytes:
		return invalid(field+".text", "has %d bytes, the limit is %d", len(s.Text), MaxScopeTextBytes)
	}
	return first(oneOf(field+".kind", s.Kind, scopes), nonEmpty(field+".text", s.Text))
}

// codePath refuses anything but a path of a file below a folder.
func codePath(field, path string) error {
	if len(path) > MaxCodePathBytes {
		return invalid(field, "has %d bytes, the limit is %d", len(path), MaxCodePathBytes)
	}
	for part := range strings.SplitSeq(path, "/") {
		if part == "" || part == "." || part == ".." {
			return invalid(field, "%q is no path of a file below a folder", path)
		}
	}
	return nil
}

func (p *CodeScanned) Validate() error {
	return first(nonEmpty("data.project", p.Project), nonEmpty("data.root", p.Root), notNegative("data.files", p.Files))
}

// memoryPath refuses paths that could mean another place on some system, or a place outside of their folder.
func memoryPath(field, path string) error {
	if len(path) > MaxMemoryPathBytes {
		return invalid(field, "has %d bytes, the limit is %d", len(path), MaxMemoryPathBytes)
	}
	for part := range strings.SplitSeq(path, "/") {
		if part == "" || part == "." || part == ".." || strings.TrimSpace(part) != part || strings.ContainsFunc(part, isOddInPath) {
			return invalid(field, "%q is no path: it needs components separated by single slashes, none of them . or .., without backslashes, percent signs and control characters", path)
		}
	}
	return nil
}

func isOddInPath(r rune) bool { return r == '\\' || r == '%' || unicode.IsControl(r) }

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func id(field, value string) error {
	return first(nonEmpty(field, value), optionalID(field, value))
}

// nonEmpty refuses an empty text.
func nonEmpty(field, value string) error {
	if value == "" {
		return invalid(field, "is missing")
	}
	return nil
}

func optionalID(field, value string) error {
	if len(value) > MaxIDBytes {
		return invalid(field, "is %d bytes long, the limit is %d", len(value), MaxIDBytes)
	}
	return nil
}

// present refuses a missing text; it may be empty.
func present(field, value string) error {
	if value == absent {
		return invalid(field, "is missing")
	}
	return nil
}

func notNegative(field string, value int) error {
	if value < 0 {
		return invalid(field, "is negative")
	}
	return nil
}

func oneOf(field, value string, allowed []string) error {
	if value == "" {
		return invalid(field, "is missing")
	}
	if !slices.Contains(allowed, value) {
		return invalid(field, "%q is none of %q", value, allowed)
	}
	return nil
}
