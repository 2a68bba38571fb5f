package sqlitestore

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/insight"
	"mneme.dev/mneme/pkg/projection"
)

// Insight is the read model "insight" in SQLite.
type Insight struct{ *Store[*insight.Unit] }

var _ insight.Store = (*Insight)(nil)

// InsightCodec is the read model "insight".
var InsightCodec = Codec[*insight.Unit]{
	Projection: "insight",
	Schema:     insightSchema,
	Delete:     DeleteFrom("day"),
	Begin:      func(t *Tx) Work[*insight.Unit] { return insightTx{t} },
	Hash:       insightHash,
}

// insightSchema: queries read day_by_tenant and never look at conversations, unless they are about one.
const insightSchema = `
CREATE TABLE conversation (
  c INTEGER PRIMARY KEY, tenant TEXT NOT NULL, id TEXT NOT NULL, last_seq INTEGER NOT NULL, deleted_seq INTEGER NOT NULL,
  memory TEXT NOT NULL, UNIQUE (tenant, id)
);
CREATE TABLE day (
  c INTEGER NOT NULL, day TEXT NOT NULL, tenant TEXT NOT NULL, id TEXT NOT NULL, project TEXT NOT NULL, agent TEXT NOT NULL,
  counts TEXT NOT NULL, detail TEXT NOT NULL, UNIQUE (c, day)
);
CREATE INDEX day_by_tenant ON day (tenant, day);
`

type insightTx struct{ *Tx }

var insightStates = stateTable[insight.State, *insight.State]{
	columns: []string{"memory"},
	scan: func(s *insight.State, scan func(...any) error) (err error) {
		var memory string
		if err := scan(&memory); err != nil {
			return err
		}
		s.Memory, err = insight.DecodeMemory(memory)
		return err
	},
	values: func(s *insight.State) []any { return []any{insight.EncodeMemory(&s.Memory)} },
}

// Load implements Work.
func (t insightTx) Load(ctx context.Context, list []*events.Recorded) (*insight.Unit, error) {
	u := insight.NewUnit()
	if err := insightStates.load(ctx, t.Tx, u.States, list); err != nil {
		return nil, err
	}
	known := u.StoredDays(list)
	err := t.Lookup(ctx, Selection{"day, project, agent, counts, detail", "day", []string{"c", "day"}}, len(known), func(args []any, i int) []any {
		return append(args, u.States[known[i].ID].Key, known[i].Day)
	}, func(rows *sql.Rows) error {
		var i int
		var r insight.Row
		if err := rows.Scan(&i, &r.Day, &r.Project, &r.Agent, &r.Counts, &r.Detail); err != nil {
			return err
		}
		return u.States[known[i].ID].Enter(r)
	})
	return u, err
}

// Save implements Work.
func (t insightTx) Save(ctx context.Context, u *insight.Unit) error {
	touched, err := insightStates.save(ctx, t.Tx, u.States)
	if err != nil {
		return err
	}
	type dayOf struct {
		*insight.State
		insight.Row
	}
	var days []dayOf
	for _, s := range touched {
		for _, r := range s.Rows() {
			days = append(days, dayOf{s, r})
		}
	}
	_, err = t.Insert(ctx, Insertion{"day (c, day, tenant, id, project, agent, counts, detail)", 8, `ON CONFLICT (c, day) DO UPDATE SET
		project = excluded.project, agent = excluded.agent, counts = excluded.counts, detail = excluded.detail`}, len(days), func(args []any, i int) []any {
		d := &days[i]
		return append(args, d.Key, d.Day, d.ID.Tenant, d.Conversation, d.Project, d.Agent, d.Counts, d.Detail)
	})
	return err
}

const (
	selectDays         = "SELECT id, day, project, agent, counts, '' FROM day WHERE "
	selectDaysDetails  = "SELECT id, day, project, agent, '', detail FROM day WHERE "
	daysOfTenant       = "tenant = ?1"
	daysOfConversation = "c = (SELECT c FROM conversation WHERE tenant = ?1 AND id = ?5)"
	withinDays         = " AND day >= ?2 AND day <= ?3 AND (?4 IS NULL OR project IN (SELECT value FROM json_each(?4)))"
)

// Rows implements insight.Reader.
func (s *Insight) Rows(ctx context.Context, tenant string, query insight.RowQuery, yield func(*insight.Row) error) error {
	statement := selectDays
	if query.Detail {
		statement = selectDaysDetails
	}
	of := daysOfTenant
	if query.Conversation != "" {
		of = daysOfConversation
	}
	var projects any
	if query.Projects != nil {
		list, err := json.Marshal(query.Projects)
		if err != nil {
			return err
		}
		projects = string(list)
	}
	return s.Snapshot(ctx, func(q Queryer) error {
		rows, err := q(statement+of+withinDays, tenant, query.Since, cmp.Or(query.Until, "~"), projects, query.Conversation)
		return Each(rows, err, func(rows *sql.Rows) error {
			var r insight.Row
			if err := rows.Scan(&r.Conversation, &r.Day, &r.Project, &r.Agent, &r.Counts, &r.Detail); err != nil {
				return err
			}
			return yield(&r)
		})
	})
}

func insightHash(q Queryer, id events.ConversationID) (projection.ConversationHash, error) {
	h := projection.ConversationHash{Conversation: id}
	var c int64
	var deleted uint64
	var memory string
	rows, err := q("SELECT c, last_seq, deleted_seq, memory FROM conversation WHERE tenant = ? AND id = ?", id.Tenant, id.ID)
	if err := Each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&c, &h.LastSeq, &deleted, &memory) }); err != nil || c == 0 {
		return h, err
	}
	var list []insight.Row
	rows, err = q("SELECT day, project, agent, counts, detail FROM day WHERE c = ? ORDER BY day", c)
	list, err = All(rows, err, func(rows *sql.Rows, r *insight.Row) error {
		return rows.Scan(&r.Day, &r.Project, &r.Agent, &r.Counts, &r.Detail)
	})
	h.Hash = insight.Hash(id, deleted != 0, memory, list)
	return h, err
}
