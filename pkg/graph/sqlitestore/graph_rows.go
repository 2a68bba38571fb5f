package sqlitestore

import (
	"cmp"
	"context"
	"database/sql"
	"slices"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
)

// Columns in the order in which the scan functions read them.
const (
	headColumns    = "seq, n, turn, step, event_id, source, time, "
	messageColumns = headColumns + `message_id, role, content, content_bytes, content_chars, content_hash,
		reasoning, reasoning_bytes, reasoning_chars, reasoning_hash, speaker, session, model, usage, via, cum_chars, reference_count`
	callColumns   = headColumns + "tool_call_id, message_id, tool_name, arguments, arguments_bytes, arguments_chars, arguments_hash, iteration"
	resultColumns = headColumns + "tool_call_id, success, result, result_bytes, result_chars, result_hash, error, duration_ms"
)

// The reads of ranges. They need INDEXED BY: SQLite could otherwise read a range of sequences
// across all conversations.
const (
	newestFirst = " ORDER BY seq DESC LIMIT ?"
	oldestFirst = " ORDER BY seq LIMIT ?"
	inRange     = " AND seq >= ? AND seq < ?"

	ofConversation = " FROM message INDEXED BY message_by_conversation WHERE c = ?" + inRange
	ofRole         = " FROM message INDEXED BY message_by_role WHERE c = ? AND role = ?" + inRange
	ofTurn         = " FROM message INDEXED BY message_by_turn WHERE c = ? AND role = 'user' AND turn = ?" + inRange
	ofCalls        = " FROM tool_call INDEXED BY tool_call_by_conversation WHERE c = ?" + inRange
	ofResults      = " FROM tool_result INDEXED BY tool_result_by_conversation WHERE c = ?" + inRange
)

func order(oldest bool) string {
	if oldest {
		return oldestFirst
	}
	return newestFirst
}

// Messages implements graph.Reader.
func (g *Graph) Messages(ctx context.Context, id events.ConversationID, q graph.MessageQuery) (list []graph.Message, err error) {
	err = g.Snapshot(ctx, func(query Queryer) error {
		key, _, err := conversation(query, id)
		if err != nil {
			return err
		}
		from, args := ofConversation, []any{key}
		switch {
		case q.Turn != 0:
			from, args = ofTurn, append(args, q.Turn)
		case q.Role != "":
			from, args = ofRole, append(args, q.Role)
		}
		args = append(args, min(q.From, maxSeq), before(q.Before), limit(q.Limit))
		list, err = messages(query, "SELECT "+messageColumns+from+order(q.OldestFirst), args...)
		return err
	})
	return list, err
}

// Transcript implements graph.Reader. It first chooses the rows in the indexes alone, because
// reading their texts is the costly part.
func (g *Graph) Transcript(ctx context.Context, id events.ConversationID, q graph.TranscriptQuery) (list []graph.Entry, err error) {
	err = g.Snapshot(ctx, func(query Queryer) error {
		key, _, err := conversation(query, id)
		if err != nil {
			return err
		}
		first, end, err := extentOf(query, key, q)
		if err != nil || first >= end {
			return err
		}
		if list, err = callsBetween(query, key, first, end); err != nil || q.CallsOnly {
			return err
		}
		found, err := messages(query, "SELECT "+messageColumns+ofConversation, key, first, end)
		if err != nil {
			return err
		}
		for _, m := range found { // a pointer to a copy, so that keeping one message does not keep the others
			list = append(list, graph.Entry{Message: &m})
		}
		rows, err := query("SELECT "+resultColumns+ofResults, key, first, end)
		return Each(rows, err, func(rows *sql.Rows) error {
			var r graph.ToolResult
			list = append(list, graph.Entry{Result: &r})
			return scanResult(rows, &r)
		})
	})
	slices.SortFunc(list, func(a, b graph.Entry) int {
		if q.OldestFirst {
			a, b = b, a
		}
		return cmp.Compare(b.Position().Seq, a.Position().Seq)
	})
	return list, err
}

func callsBetween(q Queryer, key int64, first, end uint64) (list []graph.Entry, err error) {
	rows, err := q("SELECT "+callColumns+ofCalls, key, first, end)
	err = Each(rows, err, func(rows *sql.Rows) error {
		var c graph.ToolCall
		list = append(list, graph.Entry{Call: &c})
		return scanCall(rows, &c)
	})
	return list, err
}

// extentOf returns the range that holds exactly the chosen rows, end excluded.
func extentOf(q Queryer, key int64, t graph.TranscriptQuery) (first, end uint64, err error) {
	first, end = min(t.From, maxSeq), before(t.Before)
	kinds := []string{ofCalls, ofConversation, ofResults}
	if t.CallsOnly {
		kinds = kinds[:1]
	}
	var seqs []uint64
	for _, kind := range kinds {
		rows, err := q("SELECT seq"+kind+order(t.OldestFirst), key, first, end, limit(t.Limit))
		of, err := All(rows, err, func(rows *sql.Rows, seq *uint64) error { return rows.Scan(seq) })
		if err != nil {
			return 0, 0, err
		}
		seqs = append(seqs, of...)
	}
	slices.Sort(seqs)
	switch n := limit(t.Limit); {
	case len(seqs) < n: // all there are
	case t.OldestFirst:
		end = seqs[n-1] + 1
	default:
		first = seqs[len(seqs)-n]
	}
	return first, end, nil
}

// MessagesByID implements graph.Reader.
func (g *Graph) MessagesByID(ctx context.Context, id events.ConversationID, messages []graph.Ref, asOf uint64) (map[graph.Ref]graph.Message, error) {
	found := map[graph.Ref]graph.Message{}
	err := g.Snapshot(ctx, func(q Queryer) error {
		list, err := messagesOf(q, func() (*sql.Rows, error) {
			return byKey(q, id, messages, events.MessageKey, "message", messageColumns, asOf)
		})
		for _, m := range list {
			found[graph.Ref{ID: m.MessageID}] = m
		}
		return err
	})
	return found, err
}

// Calls implements graph.Reader.
func (g *Graph) Calls(ctx context.Context, id events.ConversationID, calls []graph.Ref, asOf uint64) (map[graph.Ref]graph.ToolCall, error) {
	found := map[graph.Ref]graph.ToolCall{}
	err := g.Snapshot(ctx, func(q Queryer) error {
		rows, err := byKey(q, id, calls, events.ToolCallKey, "tool_call", callColumns, asOf)
		return Each(rows, err, func(rows *sql.Rows) error {
			var c graph.ToolCall
			err := scanCall(rows, &c)
			found[c.Ref()] = c
			return err
		})
	})
	return found, err
}

// Results implements graph.Reader.
func (g *Graph) Results(ctx context.Context, id events.ConversationID, calls []graph.Ref, asOf uint64) (map[graph.Ref]graph.ToolResult, error) {
	found := map[graph.Ref]graph.ToolResult{}
	err := g.Snapshot(ctx, func(q Queryer) error {
		rows, err := byKey(q, id, calls, events.ToolResultKey, "tool_result", resultColumns, asOf)
		return Each(rows, err, func(rows *sql.Rows) error {
			var r graph.ToolResult
			err := scanResult(rows, &r)
			found[r.Ref()] = r
			return err
		})
	})
	return found, err
}

// byKey reads rows by their payload ids through the claimed keys, all in one query.
func byKey(q Queryer, id events.ConversationID, refs []graph.Ref, keyOf func(string) string, table, columns string, asOf uint64) (*sql.Rows, error) {
	c, _, err := conversation(q, id)
	if err != nil {
		return nil, err
	}
	return byKeyIn(q, c, id, ownIDs(refs), keyOf, table, columns, asOf)
}

// ownIDs returns the ids of rows of the conversation itself: ancestors' rows are not here.
func ownIDs(refs []graph.Ref) []string {
	ids := make([]string, 0, len(refs))
	for _, ref := range refs {
		if ref.Depth == 0 {
			ids = append(ids, ref.ID)
		}
	}
	return ids
}

// byKeyIn is byKey for a conversation whose number is known.
func byKeyIn(q Queryer, c int64, id events.ConversationID, ids []string, keyOf func(string) string, table, columns string, asOf uint64) (*sql.Rows, error) {
	keys := make([]string, len(ids))
	for i, one := range ids {
		keys[i] = projection.PayloadKey(id, keyOf(one)).String()
	}
	return q("SELECT "+columns+" FROM "+table+` WHERE seq IN
		(SELECT i.seq FROM json_each(?) AS k CROSS JOIN identity AS i ON i.c = ? AND i.key = unhex(k.value)) AND seq <= ?`, marshal(keys), c, min(asOf, maxSeq))
}

// messages reads messages with their references.
func messages(q Queryer, query string, args ...any) ([]graph.Message, error) {
	return messagesOf(q, func() (*sql.Rows, error) { return q(query, args...) })
}

func messagesOf(q Queryer, read func() (*sql.Rows, error)) (list []graph.Message, err error) {
	at := map[uint64]int{} // those that have references
	var referring []uint64
	rows, err := read()
	if err := Each(rows, err, func(rows *sql.Rows) error {
		var m graph.Message
		var references int
		err := scanMessage(rows, &m, &references)
		if references > 0 {
			m.References = make([]events.Reference, references)
			at[m.Seq] = len(list)
			referring = append(referring, m.Seq)
		}
		list = append(list, m)
		return err
	}); err != nil || len(referring) == 0 {
		return list, err
	}
	rows, err = q("SELECT r.seq, r.i, r.file, r.start_line, r.end_line, r.name FROM json_each(?) AS k CROSS JOIN reference AS r ON r.seq = k.value", marshal(referring))
	err = Each(rows, err, func(rows *sql.Rows) error {
		var seq uint64
		var i int
		var r events.Reference
		err := rows.Scan(&seq, &i, &r.File, &r.StartLine, &r.EndLine, &r.Name)
		list[at[seq]].References[i] = r
		return err
	})
	return list, err
}

func head(p *graph.Position, o *graph.Origin) []any {
	return []any{&p.Seq, &p.N, &p.Turn, &p.Step, &o.EventID, &o.Source, &o.Time}
}

func body(b *graph.Body) []any { return []any{&b.Text, &b.Bytes, &b.Chars, blob(&b.Hash)} }

func scanMessage(rows *sql.Rows, m *graph.Message, references *int) error {
	dst := append(head(&m.Position, &m.Origin), &m.MessageID, &m.Role)
	dst = append(append(dst, body(&m.Content)...), body(&m.Reasoning)...)
	return rows.Scan(append(dst, &m.Speaker, &m.Session, &m.Model, &m.Usage, &m.Via, &m.CumChars, references)...)
}

func scanCall(rows *sql.Rows, c *graph.ToolCall) error {
	dst := append(head(&c.Position, &c.Origin), &c.ToolCallID, &c.MessageID, &c.ToolName)
	return rows.Scan(append(append(dst, body(&c.Arguments)...), &c.Iteration)...)
}

func scanResult(rows *sql.Rows, r *graph.ToolResult) error {
	dst := append(head(&r.Position, &r.Origin), &r.ToolCallID, &r.Success)
	return rows.Scan(append(append(dst, body(&r.Result)...), &r.Error, &r.DurationMS)...)
}
