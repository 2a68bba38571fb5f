package project

import (
	"fmt"
	"strings"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/projection"
)

// Kinds of [Member].
const (
	// KindIn lists a conversation under its project.
	KindIn = "in"
	// KindRoot lists a conversation under a repository whose root it shows.
	KindRoot = "root"
	// KindStory lists a chapter under the project whose story it belongs to.
	KindStory = "story"
	// KindTold lists a chapter under each conversation that it covers.
	KindTold = "told"
	// KindForgotten lists the withdrawal of lines under the project that its conversation belonged to then.
	KindForgotten = "forgotten"
)

// Member is an entry of a conversation in the list of a project. A conversation has several. It gets a new one when its
// place changes, with each of its first requests, and with a request [placedAgain] events of the log after the last
// entry. Entries never change. The digest of the conversation says whether an entry still holds.
type Member struct {
	Kind         string
	Name         string // of the project, or the root; of [KindTold] the id of a conversation
	Seq          uint64
	Conversation events.ConversationID
	Words        string // the terms of [Digest.About], separated by spaces; for a chapter, its level and what it consolidates; for a withdrawal, see [forgottenMembers]
}

// placedAgain is how many events of the log may separate a conversation's newest entry from its newest request. It
// bounds both the entries of a long conversation and the error in their order.
const placedAgain = 256

// earlyRequests is how many requests make an entry each: they say what the conversation is about.
const earlyRequests = 3

// changesPerBase is how many changes follow a stored digest before the next one. A reader applies fewer than that.
const changesPerBase = 16

// State is a conversation in a unit of work of the projection "projects".
type State struct {
	projection.ConversationState
	Digest Digest
	Since  int // changes since the newest stored digest, which is included
}

// Step is a stored change of a digest. If Base is not empty, it is the digest after it.
type Step struct {
	Seq    uint64
	Change string // see [Encode]
	Base   string
}

// Unit is the unit of work of the projection "projects".
type Unit struct {
	projection.States[State, *State]
	Steps   []projection.Of[State, Step]
	Members []projection.Of[State, Member]
}

// NewUnit makes an empty unit; the backend adds what it loads.
func NewUnit() *Unit { return &Unit{States: projection.States[State, *State]{}} }

// Projection declares the read model "projects": what is known about each project from its conversations.
func Projection(table *files.Table) projection.Projection[*Unit] {
	r := reducer{table}
	return projection.Projection[*Unit]{
		Name:     "projects",
		Version:  18,
		Settings: table.Fingerprint(),
		Reducers: map[string]projection.Reducer[*Unit]{
			events.TypeConversationStarted: r.reduce(r.started),
			events.TypeConversationUpdated: r.reduce(r.updated),
			events.TypeConversationDeleted: deleted,
			events.TypeMessageCreated:      r.reduce(r.message),
			events.TypeToolCalled:          r.reduce(r.called),
			events.TypeToolReturned:        r.reduce(r.returned),
			events.TypeSummaryWritten:      r.reduce(r.summary),
			events.TypeProjectAliased:      r.reduce(r.aliased),
			events.TypeMemoryChanged:       r.reduce(r.remembered),
			events.TypeInsightWritten:      r.reduce(r.insight),
			events.TypeLessonWithdrawn:     r.reduce(r.withdrew),
			events.TypeStoryWritten:        r.reduce(r.chapter),
			events.TypeStoryWithdrawn:      withdrawn,
		},
	}
}

func deleted(u *Unit, e *events.Recorded) error {
	s := u.Delete(e)
	u.Steps = projection.Without(u.Steps, s)
	u.Members = projection.Without(u.Members, s)
	return nil
}

// withdrawn ends a chapter as if its conversation were deleted. It affects no other conversation.
func withdrawn(u *Unit, e *events.Recorded) error {
	if !strings.HasPrefix(e.Conversation().ID, events.StoryPrefix) {
		return fmt.Errorf("%w: the conversation holds no chapter", projection.ErrInvalid)
	}
	return deleted(u, e)
}
