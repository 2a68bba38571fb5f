package neo4jstore

import (
	"cmp"
	"context"
	"slices"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/projection"
)

// statesOf is the statement of loadStates for the conversations of a read model, by their label, with these properties.
func statesOf(label string, more ...string) string {
	return "UNWIND $in.keys AS key MATCH (c:" + label + " {key: key}) RETURN " + append(props{"tenant", "id", "last_seq", "deleted_seq"}, more...).list("c")
}

// loadStates adds the conversations of events to a unit of work. scan reads the further properties of [statesOf].
func loadStates[S any, P projection.StateOf[S]](ctx context.Context, t *Tx, states projection.States[S, P], list []*events.Recorded, statement string, scan func(*values, *S) error) error {
	ids := states.Begin(list)
	if len(ids) == 0 {
		return nil
	}
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = t.Key(id)
	}
	rows, err := t.Run(ctx, statement, In("keys", keys))
	if err != nil {
		return err
	}
	for _, row := range rows {
		v := valuesOf(row[0])
		id := events.ConversationID{Tenant: v.text(), ID: v.text()}
		if v.err != nil {
			return v.err
		}
		s := states[id]
		c := P(s).Common()
		c.Key, c.LastSeq, c.DeletedSeq = 1, v.seq(), v.seq()
		if err := scan(v, s); v.err != nil || err != nil {
			return cmp.Or(v.err, err) // what could not be read can't be decoded either
		}
	}
	return nil
}

// saveStates adds the rows of the conversations that a unit changed to the pieces conversations, moved and deleted. more
// adds what a read model stores besides their last sequence.
func saveStates[S any, P projection.StateOf[S]](t *Tx, states projection.States[S, P], more func(*S, Row)) {
	for _, s := range states.Touched() {
		c := P(s).Common()
		if c.Key == 0 {
			t.Add("conversations", t.NewConversation(c.ID))
		}
		r := Row{"key": t.Key(c.ID), "last_seq": number(c.LastSeq)}
		more(s, r)
		t.Add("moved", r)
		if c.Dropped {
			t.Delete(c.ID, c.DeletedSeq)
		}
	}
}

// movePiece returns the piece that sets the last sequence of conversations and these properties, which may be empty.
func movePiece(label string, more ...string) Piece {
	return NewPiece("moved", "UNWIND $in.rows AS r MATCH (c:"+label+" {key: r.key}) SET "+props(slices.Concat([]string{"last_seq"}, more)).set("c"))
}
