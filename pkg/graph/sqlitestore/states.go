package sqlitestore

import (
	"context"
	"database/sql"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/projection"
)

// stateTable says how the table conversation of a read model is read.
type stateTable[S any, P projection.StateOf[S]] struct {
	columns string
	// scan reads any preceding columns, then these. It must set the state's ID and Key.
	scan func(rows *sql.Rows, s *S, before ...any) error
}

// load adds the conversations of events to a unit of work.
func (t stateTable[S, P]) load(ctx context.Context, tx *Tx, states projection.States[S, P], list []*events.Recorded) error {
	ids := states.Begin(list)
	return tx.Lookup(ctx, Selection{t.columns, "conversation", []string{"tenant", "id"}}, len(ids), func(args []any, i int) []any {
		return append(args, ids[i].Tenant, ids[i].ID)
	}, func(rows *sql.Rows) error {
		var i int
		var s S
		err := t.scan(rows, &s, &i)
		tx.Keys[ids[i]], *states[ids[i]] = P(&s).Common().Key, s
		return err
	})
}

// read reads the state of a conversation. Its Key is 0 if there is none.
func (t stateTable[S, P]) read(q Queryer, id events.ConversationID) (s S, err error) {
	P(&s).Common().ID = id
	rows, err := q("SELECT "+t.columns+" FROM conversation WHERE tenant = ? AND id = ?", id.Tenant, id.ID)
	err = Each(rows, err, func(rows *sql.Rows) error { return t.scan(rows, &s) })
	return s, err
}

// touch returns the states that a unit changed, each with its number, as [Tx.Touch] does for one.
func touch[S any, P projection.StateOf[S]](ctx context.Context, t *Tx, states projection.States[S, P]) ([]*S, error) {
	touched := states.Touched()
	for _, s := range touched {
		var err error
		c := P(s).Common()
		if c.Key, err = t.Touch(ctx, c.ID, c.Dropped); err != nil {
			return nil, err
		}
	}
	return touched, nil
}
