package neo4jstore

import (
	"cmp"
	"context"
	"slices"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
)

func scanHead(v *values) (p graph.Position, o graph.Origin) {
	p = graph.Position{Seq: v.seq(), N: v.int(), Turn: v.int(), Step: v.int()}
	o = graph.Origin{EventID: v.text(), Source: v.text(), Time: v.text()}
	return p, o
}

func scanMessage(v *values) (m graph.Message) {
	m.Position, m.Origin = scanHead(v)
	m.MessageID, m.Role, m.Content, m.Reasoning = v.text(), v.text(), v.body(), v.body()
	m.Speaker, m.Session, m.Model, m.Usage, m.Via = v.text(), v.text(), v.text(), v.text(), v.text()
	v.json(&m.References)
	m.CumChars = v.int()
	return m
}

func scanCall(v *values) (c graph.ToolCall) {
	c.Position, c.Origin = scanHead(v)
	c.ToolCallID, c.MessageID, c.ToolName, c.Arguments, c.Iteration = v.text(), v.text(), v.text(), v.body(), v.int()
	return c
}

func scanResult(v *values) (r graph.ToolResult) {
	r.Position, r.Origin = scanHead(v)
	r.ToolCallID, r.Success, r.Result, r.Error, r.DurationMS = v.text(), optional[bool](v), v.body(), v.text(), optional[float64](v)
	return r
}

// scanAll scans each row of a list.
func scanAll[T any](v *values, scan func(*values) T) []T {
	var list []T
	for _, one := range take[[]any](v) {
		r := valuesOf(one)
		list = append(list, scan(r))
		if r.err != nil && v.err == nil {
			v.err = r.err
		}
	}
	return list
}

// kind is a kind of rows with the index that orders them.
type kind struct {
	label string
	props props
}

var (
	messages = kind{"Message", messageProps}
	calls    = kind{"ToolCall", callProps}
	results  = kind{"ToolResult", resultProps}
)

// between is a subquery for the rows of a kind from $from up to a sequence. equal names further
// columns that must equal their parameters. The order is that of the index on the conversation,
// these columns and seq, so that Neo4j need not sort.
func (k kind) between(equal []string, oldestFirst bool, what string) string {
	index, where, order := "conversation", "n.conversation = $key", "n.conversation"
	direction := " DESC"
	if oldestFirst {
		direction = ""
	}
	order += direction
	for _, column := range equal {
		index += ", " + column
		where += " AND n." + column + " = $" + column
		order += ", n." + column + direction
	}
	return "COLLECT { MATCH (n:" + k.label + ") USING INDEX SEEK n:" + k.label + "(" + index + ", seq) WHERE " + where +
		" AND n.seq >= $from AND n.seq <= upTo RETURN " + what + " ORDER BY " + order + ", n.seq" + direction + " LIMIT $limit }"
}

// reading is a statement that returns the rows of subqueries.
func reading(subqueries ...string) string {
	names := ""
	for i, subquery := range subqueries {
		name := "rows" + string(rune('a'+i))
		subqueries[i] = subquery + " AS " + name
		names += ", " + name
	}
	statement := found + "WITH c, s.seq AS settled, " + upTo + " AS upTo WITH c, settled"
	for _, subquery := range subqueries {
		statement += ", " + subquery
	}
	return statement + " RETURN " + frame + names
}

// ordered is a statement in two forms: newest rows first, and oldest first.
type ordered [2]string

func inOrder(make func(oldestFirst bool) string) ordered { return ordered{make(false), make(true)} }

func (o ordered) first(oldest bool) string {
	if oldest {
		return o[1]
	}
	return o[0]
}

var (
	selectMessages = inOrder(func(oldest bool) string { return reading(messages.between(nil, oldest, messageProps.list("n"))) })
	selectByRole   = inOrder(func(oldest bool) string {
		return reading(messages.between([]string{"role"}, oldest, messageProps.list("n")))
	})
	selectByTurn = reading("COLLECT { MATCH (n:Message) USING INDEX SEEK n:Message(conversation, begins_turn) WHERE n.conversation = $key AND n.begins_turn = $turn" +
		" AND n.seq >= $from AND n.seq <= upTo RETURN " + messageProps.list("n") + " LIMIT $limit }")

	selectSeqs = inOrder(func(oldest bool) string {
		return reading(messages.between(nil, oldest, "n.seq"), calls.between(nil, oldest, "n.seq"), results.between(nil, oldest, "n.seq"))
	})
	selectCalls = inOrder(func(oldest bool) string { return reading(calls.between(nil, oldest, callProps.list("n"))) })
	selectRows  = reading(messages.between(nil, true, messageProps.list("n")), calls.between(nil, true, callProps.list("n")), results.between(nil, true, resultProps.list("n")))
)

// Messages implements graph.Reader.
func (g *Graph) Messages(ctx context.Context, id events.ConversationID, q graph.MessageQuery) ([]graph.Message, error) {
	query, params := selectMessages.first(q.OldestFirst), map[string]any{"from": number(q.From), "last": before(q.Before), "limit": limit(q.Limit)}
	switch {
	case q.Turn != 0:
		query, params["turn"] = selectByTurn, q.Turn
	case q.Role != "":
		query, params["role"] = selectByRole.first(q.OldestFirst), q.Role
	}
	v, err := g.of(ctx, id, query, params)
	if err != nil {
		return nil, err
	}
	return scanAll(v, scanMessage), v.err
}

// Transcript implements graph.Reader. It first selects the rows, using only the indexes,
// because reading their texts is expensive.
func (g *Graph) Transcript(ctx context.Context, id events.ConversationID, q graph.TranscriptQuery) (list []graph.Entry, err error) {
	n := limit(q.Limit)
	params := map[string]any{"from": number(q.From), "last": before(q.Before), "limit": n}
	if q.CallsOnly {
		v, err := g.of(ctx, id, selectCalls.first(q.OldestFirst), params)
		if err != nil {
			return nil, err
		}
		for _, c := range scanAll(v, scanCall) {
			list = append(list, graph.Entry{Call: &c})
		}
		return list, v.err
	}
	v, err := g.of(ctx, id, selectSeqs.first(q.OldestFirst), params)
	if err != nil {
		return nil, err
	}
	var seqs []int64
	for range 3 {
		for _, seq := range take[[]any](v) {
			one, _ := seq.(int64)
			seqs = append(seqs, one)
		}
	}
	if len(seqs) == 0 || v.err != nil {
		return nil, v.err
	}
	slices.Sort(seqs)
	switch {
	case len(seqs) <= n:
	case q.OldestFirst:
		seqs = seqs[:n]
	default:
		seqs = seqs[len(seqs)-n:]
	}
	if list, err = g.between(ctx, id, seqs[0], seqs[len(seqs)-1], n); err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b graph.Entry) int {
		if q.OldestFirst {
			a, b = b, a
		}
		return cmp.Compare(b.Position().Seq, a.Position().Seq)
	})
	return list, nil
}

// between reads the rows of all kinds from one sequence to another, up to a limit per kind.
func (g *Graph) between(ctx context.Context, id events.ConversationID, from, last int64, limit int) (list []graph.Entry, err error) {
	v, err := g.of(ctx, id, selectRows, map[string]any{"from": from, "last": last, "limit": limit})
	if err != nil {
		return nil, err
	}
	for _, m := range scanAll(v, scanMessage) {
		list = append(list, graph.Entry{Message: &m})
	}
	for _, c := range scanAll(v, scanCall) {
		list = append(list, graph.Entry{Call: &c})
	}
	for _, r := range scanAll(v, scanResult) {
		list = append(list, graph.Entry{Result: &r})
	}
	return list, v.err
}

// byKey is a statement for rows of a kind by their unique keys.
func (k kind) byKey() string {
	return reading("COLLECT { UNWIND $in.keys AS k MATCH (n:" + k.label + " {payload_key: k}) WHERE n.seq <= upTo RETURN " + k.props.list("n") + " }")
}

var (
	selectMessagesByKey = messages.byKey()
	selectCallsByKey    = calls.byKey()
	selectResultsByKey  = results.byKey()
)

// byKey reads rows by their payload ids.
func (g *Graph) byKey(ctx context.Context, id events.ConversationID, query string, refs []graph.Ref, keyOf func(string) string, asOf uint64) (*values, error) {
	keys := make([]string, 0, len(refs))
	for _, ref := range refs {
		if ref.Depth == 0 { // rows of ancestors are in other conversations
			keys = append(keys, g.payloadKey(id, keyOf(ref.ID)))
		}
	}
	slices.Sort(keys)
	return g.of(ctx, id, query, map[string]any{"in": map[string]any{"keys": slices.Compact(keys)}, "last": number(asOf)})
}

// byRef returns rows by the refs that they have, of the answer to a read.
func byRef[T any](v *values, err error, scan func(*values) T, refOf func(*T) graph.Ref) (map[graph.Ref]T, error) {
	if err != nil {
		return nil, err
	}
	rows := map[graph.Ref]T{}
	for _, row := range scanAll(v, scan) {
		rows[refOf(&row)] = row
	}
	return rows, v.err
}

// MessagesByID implements graph.Reader.
func (g *Graph) MessagesByID(ctx context.Context, id events.ConversationID, refs []graph.Ref, asOf uint64) (map[graph.Ref]graph.Message, error) {
	v, err := g.byKey(ctx, id, selectMessagesByKey, refs, events.MessageKey, asOf)
	return byRef(v, err, scanMessage, func(m *graph.Message) graph.Ref { return graph.Ref{ID: m.MessageID} })
}

// Calls implements graph.Reader.
func (g *Graph) Calls(ctx context.Context, id events.ConversationID, refs []graph.Ref, asOf uint64) (map[graph.Ref]graph.ToolCall, error) {
	v, err := g.byKey(ctx, id, selectCallsByKey, refs, events.ToolCallKey, asOf)
	return byRef(v, err, scanCall, (*graph.ToolCall).Ref)
}

// Results implements graph.Reader.
func (g *Graph) Results(ctx context.Context, id events.ConversationID, refs []graph.Ref, asOf uint64) (map[graph.Ref]graph.ToolResult, error) {
	v, err := g.byKey(ctx, id, selectResultsByKey, refs, events.ToolResultKey, asOf)
	return byRef(v, err, scanResult, (*graph.ToolResult).Ref)
}
