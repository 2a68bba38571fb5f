package sqlitestore

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/projection"
)

// stateTable is the table conversation of a read model. Each row is the state of a conversation in a unit of work.
type stateTable[S any, P projection.StateOf[S]] struct {
	columns  []string // besides stateColumns
	selected []string // further ones that only queries need: they follow from the state
	// scan passes where the columns go to scan, and decodes what they hold.
	scan   func(s *S, scan func(own ...any) error) error
	values func(s *S) []any // of columns and selected
}

// stateColumns are the columns that a [projection.ConversationState] is stored in.
var stateColumns = []string{"c", "tenant", "id", "last_seq", "deleted_seq"}

func (t stateTable[S, P]) list() string {
	return strings.Join(slices.Concat(stateColumns, t.columns), ", ")
}

// scanRow reads any preceding columns, then those of [stateTable.list].
func (t stateTable[S, P]) scanRow(rows *sql.Rows, s *S, before ...any) error {
	c := P(s).Common()
	return t.scan(s, func(own ...any) error {
		return rows.Scan(slices.Concat(before, []any{&c.Key, &c.ID.Tenant, &c.ID.ID, &c.LastSeq, &c.DeletedSeq}, own)...)
	})
}

// load adds the conversations of events to a unit of work.
func (t stateTable[S, P]) load(ctx context.Context, tx *Tx, states projection.States[S, P], list []*events.Recorded) error {
	ids := states.Begin(list)
	return tx.Lookup(ctx, Selection{t.list(), "conversation", []string{"tenant", "id"}}, len(ids), func(args []any, i int) []any {
		return append(args, ids[i].Tenant, ids[i].ID)
	}, func(rows *sql.Rows) error {
		var i int
		var s S
		err := t.scanRow(rows, &s, &i)
		tx.Keys[ids[i]], *states[ids[i]] = P(&s).Common().Key, s
		return err
	})
}

// read reads the state of a conversation. Its Key is 0 if there is none.
func (t stateTable[S, P]) read(q Queryer, id events.ConversationID) (s S, err error) {
	P(&s).Common().ID = id
	rows, err := q("SELECT "+t.list()+" FROM conversation WHERE tenant = ? AND id = ?", id.Tenant, id.ID)
	err = Each(rows, err, func(rows *sql.Rows) error { return t.scanRow(rows, &s) })
	return s, err
}

// save stores the states that a unit changed. It returns them, each with its number, as [Tx.Touch] does for one.
func (t stateTable[S, P]) save(ctx context.Context, tx *Tx, states projection.States[S, P]) ([]*S, error) {
	touched := states.Touched()
	for _, s := range touched {
		var err error
		c := P(s).Common()
		if c.Key, err = tx.Touch(ctx, c.ID, c.Dropped); err != nil {
			return nil, err
		}
	}
	columns := slices.Concat(stateColumns, t.columns, t.selected)
	var updates []string
	for _, column := range columns[3:] {
		updates = append(updates, column+" = excluded."+column)
	}
	into := Insertion{"conversation (" + strings.Join(columns, ", ") + ")", len(columns), "ON CONFLICT (c) DO UPDATE SET " + strings.Join(updates, ", ")}
	_, err := tx.Insert(ctx, into, len(touched), func(args []any, i int) []any {
		c := P(touched[i]).Common()
		args = append(args, c.Key, c.ID.Tenant, c.ID.ID, c.LastSeq, c.DeletedSeq)
		return append(args, t.values(touched[i])...)
	})
	return touched, err
}
