package events

import (
	"maps"
	"slices"
	"strings"
)

// The event types of the vocabulary. A published version never changes, except
// that optional fields may be added to its data.
const (
	TypeConversationStarted = "dev.mneme.conversation.started.v1"
	TypeConversationUpdated = "dev.mneme.conversation.updated.v1"
	TypeConversationDeleted = "dev.mneme.conversation.deleted.v1"
	TypeMessageCreated      = "dev.mneme.message.created.v1"
	TypeToolCalled          = "dev.mneme.tool.called.v1"
	TypeToolReturned        = "dev.mneme.tool.returned.v1"
	TypeSummaryWritten      = "dev.mneme.summary.written.v1"
	TypeToolCondensed       = "dev.mneme.tool.condensed.v1"
	TypeProjectAliased      = "dev.mneme.project.aliased.v1"
	TypeContextServed       = "dev.mneme.context.served.v1"
	TypeMemoryChanged       = "dev.mneme.memory.changed.v1"
	TypeInsightWritten      = "dev.mneme.insight.written.v1"
	TypeLessonWithdrawn     = "dev.mneme.lesson.withdrawn.v1"
	TypeStoryWritten        = "dev.mneme.story.written.v1"
	TypeStoryWithdrawn      = "dev.mneme.story.withdrawn.v1"
	TypeCodeIndexed         = "dev.mneme.code.indexed.v1"
	TypeCodeScanned         = "dev.mneme.code.scanned.v1"
)

// Limits of one event. Anything over a limit is refused, and the reason names the limit.
const (
	MaxEventBytes  = 8 << 20 // the body of one event
	MaxIDBytes     = 512     // a conversation, event, message, tool call or summary id
	MaxSourceBytes = 1024
	MaxTenantBytes = 128

	MaxExtensionBytes = 4096 // the value of one extension attribute

	MaxMemoryPathBytes = 256      // the path of a file of an agent's memory
	MaxMemoryFileBytes = 64 << 10 // its text

	MaxTold = 1024 // conversations that a chapter of a story covers

	MaxCodePathBytes  = 1024    // the path of a file of a project's code
	MaxCodeScopes     = 1_000   // scopes of a file
	MaxScopeNameBytes = 256     // the name of a scope
	MaxScopeTextBytes = 8 << 10 // its text
)

// prototypes makes an empty payload for each type of the vocabulary.
var prototypes = map[string]func() Payload{
	TypeConversationStarted: func() Payload { return new(ConversationStarted) },
	TypeConversationUpdated: func() Payload { return new(ConversationUpdated) },
	TypeConversationDeleted: func() Payload { return new(ConversationDeleted) },
	TypeMessageCreated:      func() Payload { return &MessageCreated{Content: absent} },
	TypeToolCalled:          func() Payload { return new(ToolCalled) },
	TypeToolReturned:        func() Payload { return new(ToolReturned) },
	TypeSummaryWritten:      func() Payload { return &SummaryWritten{Conversation: absent} },
	TypeToolCondensed:       func() Payload { return &ToolCondensed{Content: absent} },
	TypeProjectAliased:      func() Payload { return new(ProjectAliased) },
	TypeContextServed:       func() Payload { return new(ContextServed) },
	TypeMemoryChanged:       func() Payload { return new(MemoryChanged) },
	TypeInsightWritten:      func() Payload { return new(InsightWritten) },
	TypeLessonWithdrawn:     func() Payload { return new(LessonWithdrawn) },
	TypeStoryWritten:        func() Payload { return &StoryWritten{Conversation: absent} },
	TypeStoryWithdrawn:      func() Payload { return new(StoryWithdrawn) },
	TypeCodeIndexed:         func() Payload { return new(CodeIndexed) },
	TypeCodeScanned:         func() Payload { return new(CodeScanned) },
}

// Types lists the vocabulary's event types, sorted.
func Types() []string { return slices.Sorted(maps.Keys(prototypes)) }

const typePrefix = "dev.mneme."

// Kind returns the last token of an event's subject: the type without its prefix and version,
// "dev.mneme.message.created.v1" → "message_created". A later version of a type keeps its kind.
// Every type outside of the vocabulary, even a foreign one (see [IsForeign]), has the kind "other".
func Kind(eventType string) string {
	rest, ours := strings.CutPrefix(eventType, typePrefix)
	noun, rest, ok := strings.Cut(rest, ".")
	verb, version, ok2 := strings.Cut(rest, ".")
	if !ours || !ok || !ok2 || noun == "" || verb == "" || !isVersion(version) || !isWord(noun) || !isWord(verb) {
		return "other"
	}
	return noun + "_" + verb
}

func isVersion(s string) bool {
	digits, ok := strings.CutPrefix(s, "v")
	return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}

func isWord(s string) bool { return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz") == "" }
