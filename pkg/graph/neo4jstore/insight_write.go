package neo4jstore

import (
	"context"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/insight"
)

var insightLayout = Layout{
	Projection: "insight", Conversation: "InsightConversation", Event: "InsightEvent", Payloads: []string{"InsightEvent"},
	Statements: []string{selectInsightStates, selectInsightDays},
	Writes: []Piece{
		NewConversations("InsightConversation"),
		movePiece("InsightConversation", "memory"),
		NewPiece("days", "UNWIND $in.rows AS r MERGE (d:InsightDay {key: r.key}) SET "+props{"conversation", "id", "day", "listed", "project", "agent", "counts", "detail"}.set("d")),
		Tombstone("InsightConversation", ", c.memory = null"),
		NewPiece("unlisted", "UNWIND $in.rows AS r MATCH (d:InsightDay) WHERE d.conversation = r.key AND d.day IS NOT NULL REMOVE d.listed"),
		Events("InsightEvent"),
	},
	Sweeps: []string{Empty("InsightDay", "day"), Empty("InsightEvent", "seq")},
	Nodes:  []Nodes{{"InsightDay", []string{"day"}}, {"InsightEvent", bySeq}},
}

type insightTx struct{ *Tx }

var (
	selectInsightStates = statesOf("InsightConversation", "memory")
	selectInsightDays   = "UNWIND $in.days AS day MATCH (d:InsightDay {key: day[1]}) RETURN day[0], " + insightRow
)

const insightRow = "d.day, d.project, d.agent, d.counts, d.detail"

func insightDayKey(conversation, day string) string { return conversation + "/" + day }

// Load implements Work.
func (t *insightTx) Load(ctx context.Context, list []*events.Recorded) (*insight.Unit, error) {
	u := insight.NewUnit()
	if err := loadStates(ctx, t.Tx, u.States, list, selectInsightStates, func(v *values, s *insight.State) (err error) {
		s.Memory, err = insight.DecodeMemory(v.text())
		return err
	}); err != nil {
		return nil, err
	}
	days, wanted := u.StoredDays(list), []any{}
	for i, d := range days {
		wanted = append(wanted, []any{i, insightDayKey(t.Key(d.ID), d.Day)})
	}
	if len(wanted) == 0 {
		return u, nil
	}
	rows, err := t.Run(ctx, selectInsightDays, In("days", wanted))
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		v := &values{list: row}
		i := v.int()
		r := scanInsightRow(v)
		if v.err != nil {
			return nil, v.err
		}
		if err := u.States[days[i].ID].Enter(r); err != nil {
			return nil, err
		}
	}
	return u, nil
}

func scanInsightRow(v *values) insight.Row {
	return insight.Row{Day: v.text(), Project: v.text(), Agent: v.text(), Counts: v.text(), Detail: v.text()}
}

// Save implements Work.
func (t *insightTx) Save(_ context.Context, u *insight.Unit) error {
	saveStates(t.Tx, u.States, func(s *insight.State, r Row) {
		key := t.Key(s.ID)
		if s.DeletedSeq == 0 {
			r["memory"] = insight.EncodeMemory(&s.Memory)
		} else {
			t.Add("unlisted", Row{"key": key})
		}
		for _, r := range s.Rows() {
			t.Add("days", Row{
				"key": insightDayKey(key, r.Day), "conversation": key, "id": r.Conversation, "day": r.Day, "listed": t.tenantKey(s.ID.Tenant),
				"project": r.Project, "agent": r.Agent, "counts": r.Counts, "detail": r.Detail,
			})
		}
	})
	t.AddEvents(u.Lives)
	return nil
}
