package costs

import (
	"context"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph/neo4jstore"
	"mneme.dev/mneme/pkg/projection"
)

var inNeo4j = neo4jstore.Codec[*Unit]{
	Layout: neo4jstore.Layout{
		Projection: name, Conversation: "CostConversation", Event: "CostEvent", Payloads: []string{"CostEvent"},
		Writes: []neo4jstore.Piece{
			neo4jstore.NewConversations("CostConversation"),
			neo4jstore.NewPiece("moved", "UNWIND $in.rows AS r MATCH (c:CostConversation {key: r.key}) SET c.project = r.project, c.last_seq = r.last_seq"),
			neo4jstore.Tombstone("CostConversation", ""),
			neo4jstore.Events("CostEvent"),
			neo4jstore.NewPiece("used", `UNWIND $in.rows AS r CREATE (:CostEvent {
				conversation: r.conversation, seq: r.seq, identity: r.identity, payload_key: r.payload_key, content_digest: r.content_digest,
				event_id: r.event_id, day: r.day, model: r.model, project: r.project, input: r.input, output: r.output, cost: r.cost})`),
		},
		Statements: []string{selectConversations},
		Sweeps:     []string{neo4jstore.Empty("CostEvent", "seq")},
		Nodes:      []neo4jstore.Nodes{{Label: "CostEvent", By: []string{"seq"}}},
	},
	Begin: func(t *neo4jstore.Tx) neo4jstore.Work[*Unit] { return neo4jWork{t} },
	Hash: func(ctx context.Context, s *neo4jstore.Store[*Unit], id events.ConversationID) (projection.ConversationHash, error) {
		h := projection.ConversationHash{Conversation: id}
		rows, err := s.Read(ctx, selectForHash, map[string]any{"key": s.Key(id)})
		if err != nil || len(rows) == 0 {
			return h, err
		}
		c := projection.ConversationState{ID: id, LastSeq: uint64(rows[0][0].(int64)), DeletedSeq: uint64(rows[0][1].(int64))}
		var uses []Use
		for _, row := range rows[0][2].([]any) {
			v := row.([]any)
			uses = append(uses, Use{EventID: v[0].(string), Day: v[1].(string), Model: v[2].(string), Project: v[3].(string), Input: v[4].(int64), Output: v[5].(int64), Cost: v[6].(int64)})
		}
		if c.DeletedSeq != 0 { // its rows may not be swept yet
			uses = nil
		}
		h.LastSeq, h.Hash = c.LastSeq, hashOf(c, uses)
		return h, nil
	},
}

const (
	selectConversations = `UNWIND $in.keys AS key MATCH (c:CostConversation {key: key})
		RETURN c.tenant, c.id, coalesce(c.project, ''), c.last_seq, coalesce(c.deleted_seq, 0)`

	// What is settled: the commit of a batch shows its rows one statement before its sequence.
	selectForHash = `MATCH (c:CostConversation {key: $key}) MATCH (s:TokenCostsSettled {key: c.checkpoint})
		RETURN CASE WHEN c.last_seq < s.seq THEN c.last_seq ELSE s.seq END, coalesce(c.deleted_seq, 0),
		COLLECT { MATCH (e:CostEvent) WHERE e.conversation = c.key AND e.seq <= s.seq
			WITH e.seq AS seq, [e.event_id, e.day, e.model, e.project, e.input, e.output, e.cost] AS use WHERE ` + whole + `
			RETURN use ORDER BY seq }`

	selectTotals = `MATCH (e:CostEvent) WHERE e.conversation STARTS WITH $prefix AND e.seq > 0
		WITH [e.day, e.model, e.project, e.input, e.output, e.cost] AS use WHERE ` + whole + `
		RETURN use[0] AS day, use[1] AS model, use[2] AS project, sum(use[3]), sum(use[4]), sum(use[5]) ORDER BY day, model, project`

	// whole leaves out the claims of other events, and a row that the sweep after a deletion removes at this moment: of that,
	// a statement may still read some properties.
	whole = "all(value IN use WHERE value IS NOT NULL)"
)

type neo4jWork struct{ *neo4jstore.Tx }

// Load implements neo4jstore.Work.
func (w neo4jWork) Load(ctx context.Context, list []*events.Recorded) (*Unit, error) {
	u := newUnit()
	var keys []string
	for _, id := range u.Begin(list) {
		keys = append(keys, w.Key(id))
	}
	rows, err := w.Run(ctx, selectConversations, neo4jstore.In("keys", keys))
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		c := u.States[events.ConversationID{Tenant: row[0].(string), ID: row[1].(string)}]
		c.Key, c.Project, c.LastSeq, c.DeletedSeq = 1, row[2].(string), uint64(row[3].(int64)), uint64(row[4].(int64))
	}
	return u, nil
}

// Save implements neo4jstore.Work.
func (w neo4jWork) Save(_ context.Context, u *Unit) error {
	for _, c := range u.Touched() {
		if c.Key == 0 {
			w.Add("conversations", w.NewConversation(c.ID))
		}
		w.Add("moved", neo4jstore.Row{"key": w.Key(c.ID), "project": c.Project, "last_seq": int64(c.LastSeq)})
		if c.Dropped {
			w.Delete(c.ID, c.DeletedSeq)
		}
		for _, use := range c.uses {
			r := w.Claimed(c.ID, use.Seq)
			r["event_id"], r["day"], r["model"], r["project"] = use.EventID, use.Day, use.Model, use.Project
			r["input"], r["output"], r["cost"] = use.Input, use.Output, use.Cost
			w.Add("used", r)
		}
	}
	// The claims of the other events.
	w.AddEvents(u.Lives)
	return nil
}

func totalsInNeo4j(ctx context.Context, s *neo4jstore.Store[*Unit], tenant string) (list []Total, err error) {
	// A key ends with the id of the conversation, so that of an empty id begins those of its tenant.
	rows, err := s.Read(ctx, selectTotals, map[string]any{"prefix": s.Key(events.ConversationID{Tenant: tenant})})
	for _, row := range rows {
		list = append(list, Total{row[0].(string), row[1].(string), row[2].(string), row[3].(int64), row[4].(int64), row[5].(int64)})
	}
	return list, err
}
