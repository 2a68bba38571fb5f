package neo4jstore

import (
	"cmp"
	"context"
	"slices"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/insight"
)

var insightLayout = Layout{
	Projection: "insight", Conversation: "InsightConversation", Event: "InsightEvent", Payloads: []string{"InsightEvent"},
	Statements: []string{selectInsightStates, selectInsightDays},
	Writes: []Piece{
		NewConversations("InsightConversation"),
		NewPiece("moved", "UNWIND $in.rows AS r MATCH (c:InsightConversation {key: r.key}) SET "+props{"last_seq", "memory"}.set("c")),
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
	selectInsightStates = "UNWIND $in.keys AS key MATCH (c:InsightConversation {key: key}) RETURN " + props{"tenant", "id", "last_seq", "deleted_seq", "memory"}.list("c")
	selectInsightDays   = "UNWIND $in.days AS day MATCH (d:InsightDay {key: day[1]}) RETURN day[0], " + insightRow
)

const insightRow = "d.day, d.project, d.agent, d.counts, d.detail"

func insightDayKey(conversation, day string) string { return conversation + "/" + day }

// Load implements Work.
func (t *insightTx) Load(ctx context.Context, list []*events.Recorded) (*insight.Unit, error) {
	u, ids, days := insight.NewUnit(list)
	if len(ids) == 0 {
		return u, nil
	}
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = t.Key(id)
	}
	rows, err := t.Run(ctx, selectInsightStates, In("keys", keys))
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		v := valuesOf(row[0])
		s := insight.State{Key: 1, ID: events.ConversationID{Tenant: v.text(), ID: v.text()}, LastSeq: v.seq(), DeletedSeq: v.seq()}
		memory := v.text()
		if v.err != nil {
			return nil, v.err
		}
		if s.Memory, err = insight.DecodeMemory(memory); err != nil {
			return nil, err
		}
		*u.States[s.ID] = s
	}
	wanted := []any{}
	for i, d := range days {
		if u.States[d.ID].Key != 0 {
			wanted = append(wanted, []any{i, insightDayKey(t.Key(d.ID), d.Day)})
		}
	}
	if len(wanted) == 0 {
		return u, nil
	}
	if rows, err = t.Run(ctx, selectInsightDays, In("days", wanted)); err != nil {
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
	var list []*insight.State
	for _, s := range u.States {
		if s.Touched {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b *insight.State) int { return cmp.Compare(a.LastSeq, b.LastSeq) })
	for _, s := range list {
		key := t.Key(s.ID)
		if s.Key == 0 {
			t.Add("conversations", t.NewConversation(s.ID))
		}
		moved := Row{"key": key, "last_seq": number(s.LastSeq)}
		if s.DeletedSeq == 0 {
			moved["memory"] = insight.EncodeMemory(&s.Memory)
		}
		t.Add("moved", moved)
		if s.Dropped {
			t.Delete(s.ID, s.DeletedSeq)
			t.Add("unlisted", Row{"key": key})
		}
		for _, r := range s.Rows() {
			t.Add("days", Row{
				"key": insightDayKey(key, r.Day), "conversation": key, "id": r.Conversation, "day": r.Day, "listed": t.tenantKey(s.ID.Tenant),
				"project": r.Project, "agent": r.Agent, "counts": r.Counts, "detail": r.Detail,
			})
		}
	}
	t.AddEvents(func(id events.ConversationID) bool {
		s := u.States[id]
		return s != nil && s.DeletedSeq == 0
	})
	return nil
}
