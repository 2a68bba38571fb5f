package costs

import (
	"context"
	"database/sql"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/projection"
)

var inSQLite = sqlitestore.Codec[*Unit]{
	Projection: name,
	Schema: `
CREATE TABLE conversation (
  c INTEGER PRIMARY KEY, tenant TEXT NOT NULL, id TEXT NOT NULL, project TEXT NOT NULL,
  last_seq INTEGER NOT NULL, deleted_seq INTEGER NOT NULL, UNIQUE (tenant, id)
);
CREATE TABLE used (
  seq INTEGER PRIMARY KEY, c INTEGER NOT NULL, event_id TEXT NOT NULL, day TEXT NOT NULL, model TEXT NOT NULL,
  project TEXT NOT NULL, input INTEGER NOT NULL, output INTEGER NOT NULL, cost INTEGER NOT NULL
);
CREATE INDEX used_by_conversation ON used (c, seq);
`,
	Delete: sqlitestore.DeleteFrom("used"),
	Begin:  func(t *sqlitestore.Tx) sqlitestore.Work[*Unit] { return sqliteWork{t} },
	Hash: func(q sqlitestore.Queryer, id events.ConversationID) (projection.ConversationHash, error) {
		h := projection.ConversationHash{Conversation: id}
		rows, err := q("SELECT "+conversationColumns+" FROM conversation WHERE tenant = ? AND id = ?", id.Tenant, id.ID)
		var c Conversation
		if err := sqlitestore.Each(rows, err, func(rows *sql.Rows) error { return rows.Scan(fields(&c)...) }); err != nil || c.Key == 0 {
			return h, err
		}
		var uses []Use
		rows, err = q("SELECT event_id, day, model, project, input, output, cost FROM used WHERE c = ? ORDER BY seq", c.Key)
		uses, err = sqlitestore.All(rows, err, func(rows *sql.Rows, u *Use) error {
			return rows.Scan(&u.EventID, &u.Day, &u.Model, &u.Project, &u.Input, &u.Output, &u.Cost)
		})
		h.LastSeq, h.Hash = c.LastSeq, hashOf(c.ConversationState, uses)
		return h, err
	},
}

const conversationColumns = "c, tenant, id, project, last_seq, deleted_seq"

// fields returns the targets for scanning conversationColumns.
func fields(c *Conversation) []any {
	return []any{&c.Key, &c.ID.Tenant, &c.ID.ID, &c.Project, &c.LastSeq, &c.DeletedSeq}
}

type sqliteWork struct{ *sqlitestore.Tx }

// Load implements sqlitestore.Work.
func (w sqliteWork) Load(ctx context.Context, list []*events.Recorded) (*Unit, error) {
	u := newUnit()
	for _, id := range u.Begin(list) {
		c := u.States[id]
		rows, err := w.Query(ctx, "SELECT "+conversationColumns+" FROM conversation WHERE tenant = ? AND id = ?", id.Tenant, id.ID)
		if err := sqlitestore.Each(rows, err, func(rows *sql.Rows) error { return rows.Scan(fields(c)...) }); err != nil {
			return nil, err
		}
		if c.Key != 0 {
			w.Keys[id] = c.Key
		}
	}
	return u, nil
}

// Save implements sqlitestore.Work.
func (w sqliteWork) Save(ctx context.Context, u *Unit) (err error) {
	list := u.Touched()
	for _, c := range list {
		if c.Key, err = w.Touch(ctx, c.ID, c.Dropped); err != nil {
			return err
		}
		used := sqlitestore.Insertion{Into: "used (seq, c, event_id, day, model, project, input, output, cost)", Width: 9}
		if _, err := w.Insert(ctx, used, len(c.uses), func(args []any, i int) []any {
			u := c.uses[i]
			return append(args, u.Seq, c.Key, u.EventID, u.Day, u.Model, u.Project, u.Input, u.Output, u.Cost)
		}); err != nil {
			return err
		}
	}
	conversations := sqlitestore.Insertion{Into: "conversation (" + conversationColumns + ")", Width: 6,
		Conflict: "ON CONFLICT (c) DO UPDATE SET project = excluded.project, last_seq = excluded.last_seq, deleted_seq = excluded.deleted_seq"}
	_, err = w.Insert(ctx, conversations, len(list), func(args []any, i int) []any {
		c := list[i]
		return append(args, c.Key, c.ID.Tenant, c.ID.ID, c.Project, c.LastSeq, c.DeletedSeq)
	})
	return err
}

func totalsInSQLite(ctx context.Context, s *sqlitestore.Store[*Unit], tenant string) (list []Total, err error) {
	err = s.Snapshot(ctx, func(q sqlitestore.Queryer) error {
		rows, err := q(`SELECT u.day, u.model, u.project, sum(u.input), sum(u.output), sum(u.cost)
			FROM conversation c JOIN used u ON u.c = c.c WHERE c.tenant = ? GROUP BY 1, 2, 3 ORDER BY 1, 2, 3`, tenant)
		list, err = sqlitestore.All(rows, err, func(rows *sql.Rows, t *Total) error {
			return rows.Scan(&t.Day, &t.Model, &t.Project, &t.Input, &t.Output, &t.Cost)
		})
		return err
	})
	return list, err
}
