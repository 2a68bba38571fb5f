package projection_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/projection"
)

// tallied is the state of a conversation in a read model that counts events.
type tallied struct {
	projection.ConversationState
	events int
}

func TestStatesAreBegunTouchedAndDeleted(t *testing.T) {
	t.Parallel()
	at := func(id string, seq uint64) *events.Recorded {
		return &events.Recorded{Event: events.Event{Subject: id}, Tenant: "t", Seq: seq}
	}
	id := func(name string) events.ConversationID { return events.ConversationID{Tenant: "t", ID: name} }
	unit := struct {
		projection.States[tallied, *tallied]
	}{projection.States[tallied, *tallied]{}}
	var _ projection.Unit = unit

	list := []*events.Recorded{at("b", 1), at("a", 2), at("b", 3)}
	require.Equal(t, []events.ConversationID{id("b"), id("a")}, unit.Begin(list), "in the order of the events")
	require.Empty(t, unit.Begin(list))
	require.Empty(t, unit.Touched())
	require.True(t, unit.Lives(id("a")))
	require.False(t, unit.Lives(id("c")))
	unit.States[id("b")].Key = 7

	var rows []projection.Of[tallied, string]
	for _, e := range append(list, at("c", 4)) {
		s := unit.Touch(e)
		s.events++
		rows = append(rows, projection.RowOf(s, e.Subject))
	}
	require.Equal(t, []*tallied{unit.States[id("a")], unit.States[id("b")], unit.States[id("c")]}, unit.Touched(), "by their newest events")
	require.Equal(t, tallied{projection.ConversationState{ID: id("b"), Key: 7, LastSeq: 3, Touched: true}, 2}, *unit.States[id("b")])

	b := unit.Delete(at("b", 5))
	require.Equal(t, tallied{ConversationState: projection.ConversationState{ID: id("b"), Key: 7, LastSeq: 5, DeletedSeq: 5, Touched: true, Dropped: true}}, *b)
	require.EqualValues(t, 5, unit.Tombstone(id("b")))
	require.Zero(t, unit.Tombstone(id("a")))
	require.Zero(t, unit.Tombstone(id("d")))
	require.False(t, unit.Lives(id("b")))
	rows = projection.Without(rows, b)
	require.Len(t, rows, 2)
	require.Equal(t, []string{"a", "c"}, []string{rows[0].Row, rows[1].Row})
}
