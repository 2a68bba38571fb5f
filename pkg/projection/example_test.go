package projection_test

import (
	"fmt"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/projection"
)

// counts is a unit of work: the state that reducers change.
type counts struct {
	messages map[events.ConversationID]int
	deleted  map[events.ConversationID]uint64
}

// Tombstone implements projection.Unit.
func (c *counts) Tombstone(id events.ConversationID) uint64 { return c.deleted[id] }

// A projection is a declaration: its reducers are pure functions of the unit of work and the event. The
// engine follows the log for exactly the types that have a reducer.
func ExampleProjection() {
	p := projection.Projection[*counts]{
		Name:    "message-counts",
		Version: 1,
		Reducers: map[string]projection.Reducer[*counts]{
			events.TypeMessageCreated: func(c *counts, e *events.Recorded) error {
				c.messages[e.Conversation()]++
				return nil
			},
			events.TypeConversationDeleted: func(c *counts, e *events.Recorded) error {
				delete(c.messages, e.Conversation())
				c.deleted[e.Conversation()] = e.Seq
				return nil
			},
		},
	}
	fmt.Println(p.Validate(), p.Types())

	p.Reducers["dev.mneme.message.liked"] = nil // no such type
	fmt.Println(p.Validate())
	// Output:
	// <nil> [dev.mneme.conversation.deleted.v1 dev.mneme.message.created.v1]
	// projection message-counts: unknown event type "dev.mneme.message.liked"
}
