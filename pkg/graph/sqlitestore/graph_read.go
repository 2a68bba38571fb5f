package sqlitestore

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"

	"mneme/events"
	"mneme/pkg/graph"
	"mneme/pkg/projection"
)

// Columns in the order in which the scan functions read them.
const (
	conversationColumns = `k.c, k.tenant, k.id, k.created_at, k.updated_at, k.message_count, k.turn_count, k.step_count,
		k.tool_call_count, k.tool_result_count, k.total_chars, k.first_seq, k.last_seq, k.deleted_seq, ` + descriptionColumns
	descriptionColumns = `coalesce(v.title,''), coalesce(v.tags,''), coalesce(v.status,''), coalesce(v.agent,''), coalesce(v.model,''),
		coalesce(v.cwd,''), coalesce(v.project,''), coalesce(v.profile,''), coalesce(v.max_context_chars,0), coalesce(v.branched_from,'')`
	headColumns    = "seq, n, turn, step, event_id, source, time, "
	messageColumns = headColumns + `message_id, role, content, content_bytes, content_chars, content_hash,
		reasoning, reasoning_bytes, reasoning_chars, reasoning_hash, speaker, session, model, usage, via, cum_chars, reference_count`
	callColumns   = headColumns + "tool_call_id, message_id, tool_name, arguments, arguments_bytes, arguments_chars, arguments_hash, iteration"
	resultColumns = headColumns + "tool_call_id, success, result, result_bytes, result_chars, result_hash, error, duration_ms"
)

// The newest-first reads. A test looks at their plans: each must be a seek.
const (
	selectConversation = "SELECT " + conversationColumns + " FROM conversation AS k LEFT JOIN version AS v ON v.c = k.c AND v.ended = 0 WHERE k.tenant = ? AND k.id = ?"

	selectMessages = "SELECT " + messageColumns + " FROM message WHERE c = ? AND seq < ? ORDER BY seq DESC LIMIT ?"
	selectByRole   = "SELECT " + messageColumns + " FROM message WHERE c = ? AND role = ? AND seq < ? ORDER BY seq DESC LIMIT ?"
	selectOldest   = "SELECT " + messageColumns + " FROM message WHERE c = ? AND seq < ? ORDER BY seq LIMIT ?"
	selectOldestBy = "SELECT " + messageColumns + " FROM message WHERE c = ? AND role = ? AND seq < ? ORDER BY seq LIMIT ?"

	// INDEXED BY, or a range of sequences could be read across all conversations.
	selectMessageSeqs  = "SELECT seq FROM message WHERE c = ? AND seq < ? ORDER BY seq DESC LIMIT ?"
	selectCallSeqs     = "SELECT seq FROM tool_call WHERE c = ? AND seq < ? ORDER BY seq DESC LIMIT ?"
	selectResultSeqs   = "SELECT seq FROM tool_result WHERE c = ? AND seq < ? ORDER BY seq DESC LIMIT ?"
	selectMessagesFrom = "SELECT " + messageColumns + " FROM message INDEXED BY message_by_conversation WHERE c = ? AND seq >= ? AND seq < ?"
	selectCallsFrom    = "SELECT " + callColumns + " FROM tool_call INDEXED BY tool_call_by_conversation WHERE c = ? AND seq >= ? AND seq < ?"
	selectResultsFrom  = "SELECT " + resultColumns + " FROM tool_result INDEXED BY tool_result_by_conversation WHERE c = ? AND seq >= ? AND seq < ?"

	selectList = "SELECT " + conversationColumns + ` FROM conversation AS k JOIN version AS v ON v.c = k.c AND v.ended = 0
		WHERE k.deleted_seq = 0 AND k.tenant = ? AND k.last_seq < ? AND (? = '' OR v.status = ?) ORDER BY k.last_seq DESC LIMIT ?`
)

// Conversations implements graph.Reader.
func (g *Graph) Conversations(ctx context.Context, tenant string, q graph.ConversationQuery) (list []graph.Conversation, err error) {
	err = g.snapshot(ctx, func(query queryer) error {
		rows, err := query(selectList, tenant, before(q.Before), q.Status, q.Status, limit(q.Limit))
		return each(rows, err, func(rows *sql.Rows) error {
			var c graph.Conversation
			var key int64
			err := scanConversation(rows, &key, &c)
			list = append(list, c)
			return err
		})
	})
	return list, err
}

// Conversation implements graph.Reader.
func (g *Graph) Conversation(ctx context.Context, id events.ConversationID, asOf uint64) (c graph.Conversation, err error) {
	err = g.snapshot(ctx, func(q queryer) error {
		var key int64
		if key, c, err = conversation(q, id); err != nil {
			return err
		}
		if asOf >= c.LastSeq {
			return nil
		}
		if asOf < c.FirstSeq {
			return fmt.Errorf("conversation %q as of sequence %d: %w", id.ID, asOf, graph.ErrNotFound)
		}
		return rewind(q, key, asOf, &c)
	})
	return c, err
}

// conversation reads a conversation that exists and is not deleted.
func conversation(q queryer, id events.ConversationID) (key int64, c graph.Conversation, err error) {
	rows, err := q(selectConversation, id.Tenant, id.ID)
	err = each(rows, err, func(rows *sql.Rows) error { return scanConversation(rows, &key, &c) })
	switch {
	case err != nil:
		return 0, c, err
	case key == 0:
		return 0, c, fmt.Errorf("conversation %q: %w", id.ID, graph.ErrNotFound)
	case c.DeletedSeq != 0:
		return 0, c, fmt.Errorf("conversation %q was deleted: %w", id.ID, graph.ErrNotFound)
	}
	return key, c, nil
}

// The newest row of each kind up to a sequence, with the counts that it carries.
const (
	lastVersion = "SELECT seq, 0, 0, 0, 0, time FROM version WHERE c = ? AND seq <= ? ORDER BY seq DESC LIMIT 1"
	lastMessage = "SELECT seq, n, turn, step, cum_chars, time FROM message WHERE c = ? AND seq <= ? ORDER BY seq DESC LIMIT 1"
	lastCall    = "SELECT seq, n, turn, step, 0, time FROM tool_call WHERE c = ? AND seq <= ? ORDER BY seq DESC LIMIT 1"
	lastResult  = "SELECT seq, n, turn, step, 0, time FROM tool_result WHERE c = ? AND seq <= ? ORDER BY seq DESC LIMIT 1"

	versionThen = "SELECT 0,'','','','',0,0,0,0,0,0,0,0,0, " + descriptionColumns + " FROM version AS v WHERE v.c = ? AND v.seq <= ? ORDER BY v.seq DESC LIMIT 1"
)

// rewind sets a conversation back to a sequence: its description is the version of
// then, its counts are those that the newest rows of then carry.
func rewind(q queryer, key int64, asOf uint64, c *graph.Conversation) error {
	was := graph.Conversation{ID: c.ID, FirstSeq: c.FirstSeq}
	rows, err := q(versionThen, key, asOf)
	if err := each(rows, err, func(rows *sql.Rows) error {
		var described graph.Conversation
		var none int64
		err := scanConversation(rows, &none, &described)
		was.Description = described.Description
		return err
	}); err != nil {
		return err
	}
	var timed uint64 // the newest sequence that has a time
	var versions int
	for _, t := range []struct {
		query string
		n     *int
	}{{lastVersion, &versions}, {lastMessage, &was.MessageCount}, {lastCall, &was.ToolCallCount}, {lastResult, &was.ToolResultCount}} {
		rows, err := q(t.query, key, asOf)
		if err := each(rows, err, func(rows *sql.Rows) error {
			var seq uint64
			var turn, step, chars int
			var at string
			err := rows.Scan(&seq, t.n, &turn, &step, &chars, &at)
			was.TurnCount, was.StepCount = max(was.TurnCount, turn), max(was.StepCount, step)
			was.TotalChars += chars
			was.LastSeq = max(was.LastSeq, seq)
			if seq > timed && at != "" {
				timed, was.UpdatedAt, was.CreatedAt = seq, at, c.CreatedAt
			}
			return err
		}); err != nil {
			return err
		}
	}
	*c = was
	return nil
}

// Messages implements graph.Reader.
func (g *Graph) Messages(ctx context.Context, id events.ConversationID, q graph.MessageQuery) (list []graph.Message, err error) {
	err = g.snapshot(ctx, func(query queryer) error {
		key, _, err := conversation(query, id)
		if err != nil {
			return err
		}
		any, byRole := selectMessages, selectByRole
		if q.OldestFirst {
			any, byRole = selectOldest, selectOldestBy
		}
		if q.Role != "" {
			list, err = messages(query, byRole, key, q.Role, before(q.Before), limit(q.Limit))
		} else {
			list, err = messages(query, any, key, before(q.Before), limit(q.Limit))
		}
		return err
	})
	return list, err
}

// Transcript implements graph.Reader. It finds out first, in the indexes alone,
// which rows are the newest: their texts are what costs.
func (g *Graph) Transcript(ctx context.Context, id events.ConversationID, beforeSeq uint64, n int) (list []graph.Entry, err error) {
	err = g.snapshot(ctx, func(q queryer) error {
		key, _, err := conversation(q, id)
		if err != nil {
			return err
		}
		end := before(beforeSeq)
		first, err := nthNewest(q, key, end, limit(n))
		if err != nil {
			return err
		}
		found, err := messages(q, selectMessagesFrom, key, first, end)
		if err != nil {
			return err
		}
		for i := range found {
			list = append(list, graph.Entry{Message: &found[i]})
		}
		rows, err := q(selectCallsFrom, key, first, end)
		if err := each(rows, err, func(rows *sql.Rows) error {
			var c graph.ToolCall
			list = append(list, graph.Entry{Call: &c})
			return scanCall(rows, &c)
		}); err != nil {
			return err
		}
		rows, err = q(selectResultsFrom, key, first, end)
		return each(rows, err, func(rows *sql.Rows) error {
			var r graph.ToolResult
			list = append(list, graph.Entry{Result: &r})
			return scanResult(rows, &r)
		})
	})
	slices.SortFunc(list, func(a, b graph.Entry) int { return cmp.Compare(b.Position().Seq, a.Position().Seq) })
	return list, err
}

// nthNewest is the sequence of the n-th newest row below end, or of the oldest one
// if there are fewer.
func nthNewest(q queryer, key int64, end uint64, n int) (uint64, error) {
	var seqs []uint64
	for _, query := range []string{selectMessageSeqs, selectCallSeqs, selectResultSeqs} {
		rows, err := q(query, key, end, n)
		if err := each(rows, err, func(rows *sql.Rows) error {
			var seq uint64
			err := rows.Scan(&seq)
			seqs = append(seqs, seq)
			return err
		}); err != nil {
			return 0, err
		}
	}
	if len(seqs) == 0 {
		return end, nil
	}
	slices.Sort(seqs)
	return seqs[max(0, len(seqs)-n)], nil
}

// Results implements graph.Reader.
func (g *Graph) Results(ctx context.Context, id events.ConversationID, callIDs []string, asOf uint64) (map[string]graph.ToolResult, error) {
	found := map[string]graph.ToolResult{}
	err := g.byKey(ctx, id, callIDs, events.ToolResultKey, "SELECT "+resultColumns+" FROM tool_result WHERE seq = (SELECT seq FROM identity WHERE c = ? AND key = ?) AND seq <= ?", asOf,
		func(rows *sql.Rows) error {
			var r graph.ToolResult
			err := scanResult(rows, &r)
			found[r.ToolCallID] = r
			return err
		})
	return found, err
}

// Calls implements graph.Reader.
func (g *Graph) Calls(ctx context.Context, id events.ConversationID, callIDs []string, asOf uint64) (map[string]graph.ToolCall, error) {
	found := map[string]graph.ToolCall{}
	err := g.byKey(ctx, id, callIDs, events.ToolCallKey, "SELECT "+callColumns+" FROM tool_call WHERE seq = (SELECT seq FROM identity WHERE c = ? AND key = ?) AND seq <= ?", asOf,
		func(rows *sql.Rows) error {
			var c graph.ToolCall
			err := scanCall(rows, &c)
			found[c.ToolCallID] = c
			return err
		})
	return found, err
}

// byKey reads rows by their payload ids through the claimed keys.
func (g *Graph) byKey(ctx context.Context, id events.ConversationID, ids []string, keyOf func(string) string, query string, asOf uint64, scan func(*sql.Rows) error) error {
	return g.snapshot(ctx, func(q queryer) error {
		c, _, err := conversation(q, id)
		if err != nil {
			return err
		}
		for _, one := range ids {
			key := projection.PayloadKey(id, keyOf(one))
			rows, err := q(query, c, key[:], min(asOf, maxSeq))
			if err := each(rows, err, scan); err != nil {
				return err
			}
		}
		return nil
	})
}

// messages reads messages with their references.
func messages(q queryer, query string, args ...any) (list []graph.Message, err error) {
	counts := []int{}
	rows, err := q(query, args...)
	if err := each(rows, err, func(rows *sql.Rows) error {
		var m graph.Message
		var refs int
		err := scanMessage(rows, &m, &refs)
		list, counts = append(list, m), append(counts, refs)
		return err
	}); err != nil {
		return nil, err
	}
	for i, n := range counts {
		if n == 0 {
			continue
		}
		rows, err := q("SELECT file, start_line, end_line, name FROM reference WHERE seq = ? ORDER BY i", list[i].Seq)
		if err := each(rows, err, func(rows *sql.Rows) error {
			var r events.Reference
			err := rows.Scan(&r.File, &r.StartLine, &r.EndLine, &r.Name)
			list[i].References = append(list[i].References, r)
			return err
		}); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// maxSeq is the greatest sequence that SQLite's integers can hold.
const maxSeq = uint64(1<<63 - 1)

func before(seq uint64) uint64 {
	if seq == 0 {
		return maxSeq
	}
	return min(seq, maxSeq)
}

func limit(n int) int {
	if n <= 0 {
		return 50
	}
	return n
}

func scanConversation(rows *sql.Rows, key *int64, c *graph.Conversation) error {
	var tags, branched string
	err := rows.Scan(key, &c.ID.Tenant, &c.ID.ID, &c.CreatedAt, &c.UpdatedAt, &c.MessageCount, &c.TurnCount, &c.StepCount,
		&c.ToolCallCount, &c.ToolResultCount, &c.TotalChars, &c.FirstSeq, &c.LastSeq, &c.DeletedSeq,
		&c.Title, &tags, &c.Status, &c.Agent, &c.Model, &c.Cwd, &c.Project, &c.Profile, &c.MaxContextChars, &branched)
	if err == nil && tags != "" {
		err = json.Unmarshal([]byte(tags), &c.Tags)
	}
	if err == nil && branched != "" {
		err = json.Unmarshal([]byte(branched), &c.BranchedFrom)
	}
	return err
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
