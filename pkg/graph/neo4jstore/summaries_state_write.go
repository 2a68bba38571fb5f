package neo4jstore

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/summary"
)

// The stored properties of each kind, in the order in which they are read.
var (
	stateProps   = props{"ledger", "covered_seq", "turn_count", "chars", "covered_turn", "covered_chars", "max_context_chars", "profile", "titled", "first_user", "answered"}
	waitingState = props{"last_seq", "pending", "uncovered_turns", "untitled"}
	markProps    = props{"seq", "turn", "chars"}
	rangeProps   = props{"seq", "id", "level", "first_seq", "last_seq", "first_turn", "last_turn", "chars", "revised"}
	countedState = props{"states", "states_from"}
	claimedProps = props{"conversation", "identity", "payload_key", "content_digest"}
)

var summariesLayout = Layout{
	Projection: "summaries", Conversation: "SummariesConversation", Event: "SummariesEvent", Payloads: []string{"SummariesEvent"},
	Statements: []string{selectSummarised, selectNamed, selectBehind},
	Writes: []Piece{
		NewConversations("SummariesConversation", slices.Concat(props{"first_seq"}, waitingState, countedState, stateProps)...),
		NewPiece("moved", "UNWIND $in.rows AS r MATCH (c:SummariesConversation {key: r.key}) SET "+slices.Concat(waitingState, countedState, stateProps).set("c")),
		Tombstone("SummariesConversation", ""),
		NewPiece("outdated", `UNWIND $in.rows AS r CALL (r) {
			MATCH (n:SummariesState) WHERE n.conversation = r.conversation AND n.seq < r.before RETURN n LIMIT 1000
		} DELETE n`), // more exist if an older build wrote them, which removed none
		NewPiece("states", "UNWIND $in.rows AS r CREATE (:SummariesState "+slices.Concat(props{"conversation", "seq"}, stateProps).create()+")"),
		Events("SummariesEvent"),
		NewPiece("marks", "UNWIND $in.rows AS r CREATE (:SummariesMark:SummariesEvent "+slices.Concat(claimedProps, markProps).create()+")"),
		NewPiece("ranges", "UNWIND $in.rows AS r CREATE (:SummariesRange:SummariesEvent "+slices.Concat(claimedProps, rangeProps, props{"ends"}).create()+")"),
	},
	Sweeps: []string{Empty("SummariesState", "seq"), Empty("SummariesEvent", "seq")},
	Nodes:  []Nodes{{"SummariesState", bySeq}, {"SummariesEvent", bySeq}},
}

// keptStates is the least number of states of a conversation that are kept besides the
// newest. Older ones are removed together, every keptStates batches, so up to twice as many
// exist. A read finds the state that was settled when it began unless keptStates batches are
// committed during the read.
const keptStates = 8

// summariesTx is a transaction of the projection "summaries".
type summariesTx struct {
	*Tx
	loaded map[events.ConversationID]loadedState // of stored conversations
}

// loadedState is what is stored for a conversation in addition to its state.
type loadedState struct {
	lastSeq uint64
	states  int    // batches since older states were last removed
	from    uint64 // the newest state at that time
}

var (
	selectSummarised = statesOf("SummariesConversation", slices.Concat(props{"first_seq"}, countedState, stateProps)...)
	selectNamed      = "UNWIND $in.names AS key MATCH (n:SummariesEvent {payload_key: key}) RETURN key, " + rangeProps.list("n")
	selectBehind     = `UNWIND $in.ends AS r CALL (r) {
			MATCH (n:SummariesMark) USING INDEX SEEK n:SummariesMark(conversation, seq) WHERE n.conversation = r.conversation AND n.seq > r.last RETURN n ORDER BY n.conversation, n.seq LIMIT 1
		} RETURN r.i, ` + markProps.list("n")
)

// Load implements Work.
func (t *summariesTx) Load(ctx context.Context, list []*events.Recorded) (*summary.Unit, error) {
	u := summary.NewUnit()
	if err := loadStates(ctx, t.Tx, u.States, list, selectSummarised, func(v *values, c *summary.Conversation) error {
		c.FirstSeq = v.seq()
		t.loaded[c.ID] = loadedState{c.LastSeq, v.int(), v.seq()}
		scanState(v, c)
		return nil
	}); err != nil {
		return nil, err
	}
	if err := t.loadNamed(ctx, u, list); err != nil {
		return nil, err
	}
	return u, t.loadBehind(ctx, u, list)
}

// written returns the summaries among events, in conversations that have stored rows.
func (t *summariesTx) written(list []*events.Recorded, each func(events.ConversationID, *events.SummaryWritten)) {
	for _, e := range list {
		if p, ok := e.Payload.(*events.SummaryWritten); ok && t.loaded[e.Conversation()].lastSeq != 0 {
			each(e.Conversation(), p)
		}
	}
}

// loadNamed adds the summaries that other summaries refer to.
func (t *summariesTx) loadNamed(ctx context.Context, u *summary.Unit, list []*events.Recorded) error {
	names := map[string]events.ConversationID{}
	t.written(list, func(id events.ConversationID, p *events.SummaryWritten) {
		for _, name := range append(slices.Clone(p.Children), p.Supersedes) {
			if name != "" {
				names[t.rangeKey(id, name)] = id
			}
		}
	})
	if len(names) == 0 {
		return nil
	}
	rows, err := t.Run(ctx, selectNamed, In("names", slices.Sorted(maps.Keys(names))))
	if err != nil {
		return err
	}
	for _, row := range rows {
		key, _ := row[0].(string)
		v := valuesOf(row[1])
		taken := scanTaken(v)
		if v.err != nil {
			return v.err
		}
		u.Loaded(names[key], taken.Range)
	}
	return nil
}

// rangeKey is the key that a summary's event claims for its id.
func (s *store) rangeKey(id events.ConversationID, name string) string {
	return s.payloadKey(id, (&events.SummaryWritten{SummaryID: name}).Key())
}

// loadBehind adds the first mark after each summary of level 1.
func (t *summariesTx) loadBehind(ctx context.Context, u *summary.Unit, list []*events.Recorded) error {
	type end struct {
		id   events.ConversationID
		last uint64
	}
	var found []end
	var ends []any
	t.written(list, func(id events.ConversationID, p *events.SummaryWritten) {
		if p.Level == 1 {
			ends = append(ends, Row{"i": len(found), "conversation": t.Key(id), "last": number(p.LastSeq)})
			found = append(found, end{id, p.LastSeq})
		}
	})
	if len(ends) == 0 {
		return nil
	}
	rows, err := t.Run(ctx, selectBehind, In("ends", ends))
	if err != nil {
		return err
	}
	for _, row := range rows {
		i, _ := row[0].(int64)
		v := valuesOf(row[1])
		mark := scanMark(v)
		if v.err != nil {
			return v.err
		}
		u.LoadedMark(found[i].id, found[i].last, mark)
	}
	return nil
}

// Save implements Work.
func (t *summariesTx) Save(_ context.Context, u *summary.Unit) error {
	for _, c := range u.States.Touched() {
		t.saveConversation(c)
	}
	t.saveEvents(u)
	return nil
}

func (t *summariesTx) saveConversation(c *summary.Conversation) {
	key := t.Key(c.ID)
	state := stateRowOf(c)
	r := Row{"key": key, "last_seq": number(c.LastSeq)}
	maps.Copy(r, state)
	if c.DeletedSeq == 0 {
		r.count("pending", c.Pending())
		r.count("uncovered_turns", c.Turn-c.CoveredTurn)
		r.flag("untitled", c.Untitled())
		state["conversation"], state["seq"] = key, number(c.LastSeq)
		t.Add("states", state)
	}
	loaded := t.loaded[c.ID]
	if loaded.states++; loaded.states == keptStates {
		if loaded.from != 0 {
			t.Add("outdated", Row{"conversation": key, "before": number(loaded.from)})
		}
		loaded.states, loaded.from = 0, c.LastSeq
	}
	r["states"], r["states_from"] = loaded.states, number(loaded.from)
	if loaded.lastSeq != 0 {
		t.Add("moved", r)
	} else {
		maps.Copy(r, t.NewConversation(c.ID))
		r["first_seq"] = number(c.FirstSeq)
		t.Add("conversations", r)
	}
	if c.Dropped {
		t.Delete(c.ID, c.DeletedSeq)
	}
}

// stateRowOf returns the stored form of a conversation's state.
func stateRowOf(c *summary.Conversation) Row {
	r := Row{}
	if len(c.Ledger.Levels) > 0 {
		raw, _ := json.Marshal(c.Ledger) // of numbers
		r["ledger"], r["covered_seq"] = string(raw), number(c.Ledger.Last(1))
	}
	r.count("turn_count", c.Turn)
	r.count("chars", c.Chars)
	r.count("covered_turn", c.CoveredTurn)
	r.count("covered_chars", c.CoveredChars)
	r.count("max_context_chars", c.MaxContextChars)
	r.text("profile", clean(c.Profile))
	r.flag("titled", c.Titled)
	if c.FirstUser != 0 {
		r["first_user"] = number(c.FirstUser)
	}
	r.flag("answered", c.Answered)
	return r
}

// saveEvents writes the rows of events with their claims: marks, ranges, and other events.
// In a deleted conversation the tombstone holds every key.
func (t *summariesTx) saveEvents(u *summary.Unit) {
	for i := range u.Marks {
		m := &u.Marks[i].Row
		r := t.Claimed(u.Marks[i].State.ID, m.Seq)
		r.count("turn", m.Turn)
		r.count("chars", m.Chars)
		t.Add("marks", r)
	}
	for i := range u.Taken {
		s := &u.Taken[i].Row
		r := t.Claimed(u.Taken[i].State.ID, s.Seq)
		r["id"], r["level"], r["first_seq"], r["last_seq"] = s.ID, s.Level, number(s.First), number(s.Last)
		r.count("first_turn", s.FirstTurn)
		r.count("last_turn", s.LastTurn)
		r.count("chars", s.Chars)
		if r.flag("revised", s.Revised); !s.Revised {
			r["ends"] = number(s.Last)
		}
		t.Add("ranges", r)
	}
	t.AddEvents(u.Lives)
}
