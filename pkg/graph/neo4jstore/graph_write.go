package neo4jstore

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
)

// The stored properties of each kind, in the order in which they are read.
var (
	countProps       = props{"message_count", "turn_count", "step_count", "tool_call_count", "tool_result_count", "summary_count", "condensed_count", "total_chars", "last_seq"}
	descriptionProps = props{"title", "tags", "status", "agent", "model", "cwd", "project", "profile", "max_context_chars", "branched_from", "branched_at"}
	movedProps       = slices.Concat(props{"created_at", "updated_at", "version_seq"}, countProps)
	describedProps   = slices.Concat(descriptionProps, props{"branch_of", "awaits", "words"})
	headProps        = props{"seq", "n", "turn", "step", "event_id", "source", "time"}
	messageProps     = slices.Concat(headProps, props{
		"id", "role", "content", "content_bytes", "char_count", "content_hash", "reasoning", "reasoning_bytes", "reasoning_chars", "reasoning_hash",
		"speaker", "session", "model", "usage", "via", "references", "cum_chars",
	})
	bagProps  = props{"terms", "vectors", "words"} // of a message with text
	callProps = slices.Concat(headProps, props{
		"id", "message_id", "tool_name", "arguments", "arguments_bytes", "arguments_chars", "arguments_hash", "iteration",
	})
	resultProps = slices.Concat(headProps, props{
		"tool_call_id", "success", "result", "result_size_bytes", "result_chars", "result_hash", "error", "duration_ms",
	})
	versionProps = slices.Concat(props{"seq", "ended", "time"}, descriptionProps)
	summaryProps = slices.Concat(headProps, props{
		"id", "level", "first_seq", "last_seq", "first_turn", "last_turn", "children", "supersedes", "said", "actions", "findings", "topics", "files", "tools",
		"turn_count", "method", "fallback_reason", "model", "prompt_hash", "chars_in", "chars_out",
	})
	condensedProps = slices.Concat(headProps, props{
		"tool_call_id", "content", "content_bytes", "char_count", "content_hash", "model", "prompt_hash", "chars_in", "chars_out",
	})

	// Copied from a call's result.
	outcomeProps = props{"success", "duration_ms"}

	// What all rows have in addition: their conversation, and the claims of their event.
	// updated_at is set on rows of events without a time.
	ownerProps = props{"conversation", "tenant", "conversation_id"}
	claimProps = props{"identity", "payload_key", "content_digest", "updated_at"}
)

func stored(own ...props) string {
	return slices.Concat(ownerProps, claimProps, slices.Concat(own...)).create()
}

var graphLayout = Layout{
	Projection: "graph", Conversation: "Conversation", Event: "GraphEvent", Payloads: []string{"Message", "ToolCall", "ToolResult", "Summary"},
	Statements: []string{selectStates, selectRanges, selectReturned},
	Writes: []Piece{
		NewConversations("Conversation", slices.Concat(props{"listed", "first_seq"}, movedProps, describedProps)...),
		NewPiece("moved", "UNWIND $in.rows AS r MATCH (c:Conversation {key: r.key}) SET "+movedProps.set("c")),
		NewPiece("described", "UNWIND $in.rows AS r MATCH (c:Conversation {key: r.key}) SET "+describedProps.set("c")),
		Tombstone("Conversation", ` REMOVE c.listed, c.ledger
			WITH c MATCH (:Conversation)-[h:HAS_BRANCH]->(c) DELETE h`),
		NewPiece("ended", "UNWIND $in.rows AS r MATCH (v:Version {conversation: r.key, seq: r.seq}) SET v.ended = r.ended"),
		NewPiece("versions", "UNWIND $in.rows AS r CREATE (v:Version:GraphEvent "+stored(versionProps)+`)
			WITH v, r MATCH (c:Conversation {key: r.conversation}) CREATE (c)-[:HAS_VERSION]->(v)`),
		NewPiece("messages", "UNWIND $in.rows AS r CREATE (m:Message:GraphEvent "+stored(messageProps, bagProps, props{"begins_turn"})+`)
			WITH m, r MATCH (c:Conversation {key: r.conversation}) CREATE (c)-[:HAS_MESSAGE]->(m)`),
		NewPiece("scopes", "UNWIND $in.rows AS r MERGE (s:Scope {key: r.key}) SET "+props{"tenant", "file", "start_line", "end_line", "name"}.set("s")),
		NewPiece("references", "UNWIND $in.rows AS r MATCH (m:Message {payload_key: r.message}) MATCH (s:Scope {key: r.scope})"+
			" CREATE (m)-[:REFERENCES_CODE "+props{"conversation", "seq", "about", "symbol"}.create()+"]->(s)"),
		// Children whose parent is in this batch (most of them), or may be stored.
		NewPiece("calls", "UNWIND $in.rows AS r CREATE (t:ToolCall:GraphEvent "+stored(callProps, outcomeProps)+`)
			WITH t, r MATCH (m:Message {payload_key: r.message}) CREATE (m)-[:HAS_TOOL_CALL]->(t)`),
		NewPiece("lateCalls", "UNWIND $in.rows AS r CREATE (t:ToolCall:GraphEvent "+stored(callProps, outcomeProps, props{"awaits"})+`)
			WITH t, r MATCH (m:Message {payload_key: r.message}) CREATE (m)-[:HAS_TOOL_CALL]->(t) SET t.awaits = null`),
		NewPiece("results", "UNWIND $in.rows AS r CREATE (x:ToolResult:GraphEvent "+stored(resultProps)+`)
			WITH x, r MATCH (t:ToolCall {payload_key: r.call}) CREATE (t)-[:HAS_RESULT]->(x)`),
		NewPiece("lateResults", "UNWIND $in.rows AS r CREATE (x:ToolResult:GraphEvent "+stored(resultProps, props{"awaits"})+`)
			WITH x, r MATCH (t:ToolCall {payload_key: r.call}) CREATE (t)-[:HAS_RESULT]->(x) SET x.awaits = null, t.success = r.success, t.duration_ms = r.duration_ms`),
		NewPiece("messageKeys", "UNWIND $in.rows AS key MATCH (t:ToolCall {awaits: key}) MATCH (m:Message {payload_key: key}) CREATE (m)-[:HAS_TOOL_CALL]->(t) SET t.awaits = null"),
		NewPiece("callKeys", `UNWIND $in.rows AS r MATCH (x:ToolResult {awaits: r.key}) MATCH (t:ToolCall {payload_key: r.key})
			CREATE (t)-[:HAS_RESULT]->(x) SET x.awaits = null, t.success = x.success, t.duration_ms = x.duration_ms`),
		NewPiece("summaries", "UNWIND $in.rows AS r CREATE (s:Summary:GraphEvent "+stored(summaryProps)+`)
			WITH s, r MATCH (c:Conversation {key: r.conversation}) SET c.ledger = r.ledger CREATE (c)-[:HAS_SUMMARY]->(s)`),
		NewPiece("children", "UNWIND $in.rows AS r MATCH (s:Summary {payload_key: r.parent}) MATCH (n:Summary {payload_key: r.child}) CREATE (s)-[:CONSOLIDATES]->(n)"),
		NewPiece("condensed", "UNWIND $in.rows AS r CREATE (d:Condensed:GraphEvent "+stored(condensedProps)+`)
			WITH d, r MATCH (x:ToolResult {payload_key: r.result}) CREATE (x)-[:CONDENSED_TO]->(d)`),
	},
	Link: `CALL () {
			UNWIND $in.branches AS key MATCH (b:Conversation {key: key})
			OPTIONAL MATCH (old:Conversation)-[h:HAS_BRANCH]->(b) WHERE old.key <> b.branch_of DELETE h
			WITH DISTINCT b MATCH (p:Conversation {key: b.awaits}) MERGE (p)-[:HAS_BRANCH]->(b) SET b.awaits = null
		} CALL () {
			UNWIND $in.parents AS key MATCH (b:Conversation {awaits: key}) MATCH (p:Conversation {key: key}) MERGE (p)-[:HAS_BRANCH]->(b) SET b.awaits = null
		}`,
	// The first SET takes the lock: another partition may be giving the branch another parent.
	Unlink: []string{"MATCH (:Conversation {key: $key})-[:HAS_BRANCH]->(b:Conversation) SET b.branch_of = b.branch_of WITH b WHERE b.branch_of = $key SET b.awaits = $key"},
	Relink: []string{"MATCH (b:Conversation) WHERE b.awaits STARTS WITH $prefix MATCH (p:Conversation {key: b.awaits}) MERGE (p)-[:HAS_BRANCH]->(b) SET b.awaits = null"},
	Sweeps: []string{
		`MATCH (m:Message) USING INDEX SEEK m:Message(conversation, seq) WHERE m.conversation = $key AND m.seq IS NOT NULL
			MATCH (m)-[x:REFERENCES_CODE]->(s:Scope) WITH x, s LIMIT $limit WITH collect(x) AS links, collect(DISTINCT s) AS scopes
			CALL (links) { UNWIND links AS x DELETE x }
			CALL (scopes) { UNWIND scopes AS s SET s.file = s.file WITH s WHERE NOT EXISTS { (s)<-[:REFERENCES_CODE]-() } DELETE s }
			RETURN size(links)`,
		Empty("Condensed", "seq"), Empty("Summary", "seq"), Empty("ToolResult", "seq"), Empty("ToolCall", "seq"), Empty("Message", "seq"), Empty("Version", "seq"),
	},
	Nodes: []Nodes{{"Condensed", bySeq}, {"Summary", bySeq}, {"ToolResult", bySeq}, {"ToolCall", bySeq}, {"Message", bySeq}, {"Version", bySeq}, {Label: "Scope"}},
}

var selectStates = "UNWIND $in.keys AS key MATCH (c:Conversation {key: key}) RETURN " + slices.Concat(conversationProps, props{"ledger"}).list("c")

// Load implements Work.
func (t *graphTx) Load(ctx context.Context, list []*events.Recorded) (*graph.Unit, error) {
	u := graph.NewUnit()
	var keys []string
	for _, e := range list {
		id := e.Conversation()
		if u.States[id] == nil {
			u.States[id] = &graph.State{}
			keys = append(keys, t.Key(id))
		}
	}
	if len(keys) == 0 {
		return u, nil
	}
	rows, err := t.Run(ctx, selectStates, In("keys", keys))
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		v := valuesOf(row[0])
		s := &graph.State{Key: 1, Conversation: scanConversation(v)}
		t.loaded[s.ID] = stamp{version: v.seq(), updated: s.UpdatedAt}
		v.json(&s.Ledger.Levels)
		if v.err != nil {
			return nil, v.err
		}
		u.States[s.ID] = s
	}
	return u, t.lookUp(ctx, u, graph.LookupsOf(list))
}

// stamp is what the store keeps about a loaded conversation.
type stamp struct {
	version uint64 // sequence of the current version
	updated string // UpdatedAt
}

// Save implements Work.
func (t *graphTx) Save(_ context.Context, u *graph.Unit) error {
	list := make([]*graph.State, 0, len(u.States))
	for _, s := range u.States {
		if s.Touched {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b *graph.State) int { return cmp.Compare(a.FirstSeq, b.FirstSeq) })
	// If one event makes two rows, the version comes last and has no claims.
	t.saved, t.untimed = nil, false
	if err := t.saveMessages(u); err != nil {
		return err
	}
	t.saveCalls(u)
	t.saveResults(u)
	t.saveSummaries(u)
	t.saveCondensed(u)
	current := t.saveVersions(u)
	t.saveUntimed()
	for _, s := range list {
		t.saveState(s, current)
	}
	return nil
}

func (t *graphTx) saveState(s *graph.State, current map[*graph.State]uint64) {
	key := t.Key(s.ID)
	version, described := current[s]
	if !described {
		version = t.loaded[s.ID].version
	}
	r := Row{"key": key, "version_seq": number(version), "last_seq": number(s.LastSeq)}
	r.text("created_at", s.CreatedAt)
	r.text("updated_at", s.UpdatedAt)
	r.count("message_count", s.MessageCount)
	r.count("turn_count", s.TurnCount)
	r.count("step_count", s.StepCount)
	r.count("tool_call_count", s.ToolCallCount)
	r.count("tool_result_count", s.ToolResultCount)
	r.count("summary_count", s.SummaryCount)
	r.count("condensed_count", s.CondensedCount)
	r.count("total_chars", s.TotalChars)
	if described = described || s.Dropped; described {
		describe(r, &s.Description)
		r.text("words", t.words(s.ID.Tenant, graph.TitleWords(s.Title)))
		if s.BranchedFrom != nil {
			parent := t.Key(events.ConversationID{Tenant: s.ID.Tenant, ID: s.BranchedFrom.ConversationID})
			r["branch_of"], r["awaits"] = parent, parent
			t.after["branches"] = append(t.after["branches"], key)
		}
	}
	if s.Key == 0 {
		maps.Copy(r, t.NewConversation(s.ID))
		r["listed"], r["first_seq"] = t.tenantKey(s.ID.Tenant), number(s.FirstSeq)
		t.Add("conversations", r)
		t.after["parents"] = append(t.after["parents"], key)
	} else {
		t.Add("moved", r)
		if described {
			t.Add("described", r)
		}
	}
	if s.DeletedSeq != 0 {
		t.Delete(s.ID, s.DeletedSeq)
	}
}

func describe(r Row, d *graph.Description) {
	r.text("title", d.Title)
	r.text("status", d.Status)
	r.text("agent", d.Agent)
	r.text("model", d.Model)
	r.text("cwd", d.Cwd)
	r.text("project", d.Project)
	r.text("profile", d.Profile)
	r.count("max_context_chars", d.MaxContextChars)
	if d.Tags != nil {
		r["tags"] = d.Tags
	}
	if b := d.BranchedFrom; b != nil {
		r["branched_from"], r["branched_at"] = b.ConversationID, b.MessageID
	}
}

// saveVersions returns the sequence of the new current version of each conversation that
// has one.
func (t *graphTx) saveVersions(u *graph.Unit) map[*graph.State]uint64 {
	current := map[*graph.State]uint64{}
	for _, v := range u.Versions {
		if before := t.loaded[v.State.ID].version; current[v.State] == 0 && v.State.Ended && before != 0 {
			t.Add("ended", Row{"key": t.Key(v.State.ID), "seq": number(before), "ended": number(v.Row.Seq)})
		}
		current[v.State] = v.Row.Seq
		r := Row{"seq": number(v.Row.Seq)}
		if v.Row.Ended != 0 {
			r["ended"] = number(v.Row.Ended)
		}
		r.text("time", v.Row.Time)
		describe(r, &v.Row.Description)
		t.save("versions", r, v.State, v.Row.Seq, v.Row.Time)
	}
	return current
}

// maxColumns is the capacity that a row is made with: the rows of most events have no more columns.
const maxColumns = 32

// save adds a row to a piece, with its conversation and the claims of its event.
func (t *graphTx) save(param string, r Row, s *graph.State, seq uint64, at string) {
	maps.Copy(r, t.owner(s))
	t.claim(r, seq)
	t.Add(param, r)
	t.saved = append(t.saved, saved{s, seq, at, r})
	t.untimed = t.untimed || at == ""
}

// owner holds the properties that every row of a conversation has.
func (t *graphTx) owner(s *graph.State) Row {
	if t.owners[s] == nil {
		t.owners[s] = Row{"conversation": t.Key(s.ID), "tenant": s.ID.Tenant, "conversation_id": s.ID.ID}
	}
	return t.owners[s]
}

// saved is a row of the batch.
type saved struct {
	state *graph.State
	seq   uint64
	time  string
	row   Row
}

// saveUntimed gives rows of events without a time the time of the last timed event.
func (t *graphTx) saveUntimed() {
	if !t.untimed {
		return
	}
	slices.SortStableFunc(t.saved, func(a, b saved) int { return cmp.Compare(a.seq, b.seq) })
	last := map[*graph.State]string{}
	for _, r := range t.saved {
		if _, seen := last[r.state]; !seen {
			last[r.state] = t.loaded[r.state.ID].updated
		}
		if r.time != "" {
			last[r.state] = r.time
		} else {
			r.row.text("updated_at", last[r.state])
		}
	}
}

func head(r Row, p *graph.Position, o *graph.Origin) {
	r["seq"] = number(p.Seq)
	r.count("n", p.N)
	r.count("turn", p.Turn)
	r.count("step", p.Step)
	r.text("event_id", o.EventID)
	r.text("source", o.Source)
	r.text("time", o.Time)
}

func (t *graphTx) saveMessages(u *graph.Unit) error {
	scopes := map[string]Row{}
	bags := map[uint64]*graph.Bag{}
	made, err := u.Bags()
	if err != nil {
		return err
	}
	for _, b := range made {
		bags[b.Row.Seq] = &b.Row
	}
	for i := range u.Messages {
		s, m := u.Messages[i].State, &u.Messages[i].Row
		r := make(Row, maxColumns)
		r["id"], r["role"] = m.MessageID, m.Role
		head(r, &m.Position, &m.Origin)
		r.body("content", "content_bytes", "char_count", "content_hash", &m.Content)
		r.body("reasoning", "reasoning_bytes", "reasoning_chars", "reasoning_hash", &m.Reasoning)
		r.text("speaker", m.Speaker)
		r.text("session", m.Session)
		r.text("model", m.Model)
		r.text("usage", m.Usage)
		r.text("via", m.Via)
		r.count("cum_chars", m.CumChars)
		if bag := bags[m.Seq]; bag != nil {
			r["terms"], r["vectors"] = bag.Terms, bag.Vectors
			r.text("words", t.words(s.ID.Tenant, bag.Words))
		}
		if m.Role == "user" {
			r["begins_turn"] = m.Turn
		}
		key := t.payloadKey(s.ID, events.MessageKey(m.MessageID))
		t.here[key] = true
		if len(m.References) > 0 {
			raw, _ := json.Marshal(m.References) // of texts and numbers
			r["references"] = string(raw)
			t.saveReferences(s.ID, m, key, scopes)
		}
		t.save("messages", r, s, m.Seq, m.Time)
		t.Add("messageKeys", key)
	}
	for _, key := range slices.Sorted(maps.Keys(scopes)) { // so that concurrent writers lock in the same order
		t.Add("scopes", scopes[key])
	}
	return nil
}

// maxIndexedBytes is the longest text that is indexed; Neo4j accepts keys up to 8 kB.
const maxIndexedBytes = 4 << 10

func (t *graphTx) saveReferences(id events.ConversationID, m *graph.Message, message string, scopes map[string]Row) {
	linked := map[string]bool{}
	for _, ref := range m.References {
		if len(ref.File) > maxIndexedBytes {
			continue // it is on the message
		}
		key := t.digestKey(events.DigestOf("scope", id.Tenant, ref.File, strconv.Itoa(ref.StartLine), strconv.Itoa(ref.EndLine), ref.Name))
		if linked[key] {
			continue
		}
		linked[key] = true
		r := Row{"key": key, "tenant": id.Tenant, "file": ref.File}
		r.count("start_line", ref.StartLine)
		r.count("end_line", ref.EndLine)
		r.text("name", ref.Name)
		scopes[key] = r
		of := Row{"message": message, "scope": key, "conversation": t.Key(id), "seq": number(m.Seq)}
		of.text("about", t.codeKey(id.Tenant, graph.CodeBase(ref.File)))
		of.text("symbol", t.codeKey(id.Tenant, graph.CodeName(ref)))
		t.Add("references", of)
	}
}

func (t *graphTx) saveCalls(u *graph.Unit) {
	for i := range u.Calls {
		s, c := u.Calls[i].State, &u.Calls[i].Row
		r := make(Row, maxColumns)
		r["id"], r["tool_name"] = c.ToolCallID, c.ToolName
		head(r, &c.Position, &c.Origin)
		r.text("message_id", c.MessageID)
		r.body("arguments", "arguments_bytes", "arguments_chars", "arguments_hash", &c.Arguments)
		r.count("iteration", c.Iteration)
		to := "calls"
		if c.MessageID != "" {
			message := t.payloadKey(s.ID, events.MessageKey(c.MessageID))
			r["message"] = message
			if !t.here[message] {
				to, r["awaits"] = "lateCalls", message // removed if the message is stored already
			}
		}
		key := t.payloadKey(s.ID, events.ToolCallKey(c.ToolCallID))
		t.calls[key] = r
		t.save(to, r, s, c.Seq, c.Time)
		t.Add("callKeys", Row{"key": key})
	}
}

func (t *graphTx) saveResults(u *graph.Unit) {
	for i := range u.Results {
		s, x := u.Results[i].State, &u.Results[i].Row
		key := t.payloadKey(s.ID, events.ToolCallKey(x.ToolCallID))
		r := make(Row, maxColumns)
		r["tool_call_id"], r["call"] = x.ToolCallID, key
		head(r, &x.Position, &x.Origin)
		if x.Success != nil {
			r["success"] = *x.Success
		}
		r.body("result", "result_size_bytes", "result_chars", "result_hash", &x.Result)
		r.text("error", x.Error)
		if x.DurationMS != nil {
			r["duration_ms"] = *x.DurationMS
		}
		to := "results"
		if call := t.calls[key]; call != nil {
			call["success"], call["duration_ms"] = r["success"], r["duration_ms"]
		} else {
			to, r["awaits"] = "lateResults", key
		}
		t.save(to, r, s, x.Seq, x.Time)
	}
}
