package sqlitestore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/summary"
)

// Columns in the order in which the scan functions read them.
const (
	summaryColumns = headColumns + `summary_id, level, first_seq, last_seq, first_turn, last_turn, children, supersedes,
		conversation, actions, findings, topics, files, tools, turn_count, method, fallback_reason, model, prompt_hash, chars_in, chars_out`
	condensedColumns = headColumns + "tool_call_id, content, content_bytes, content_chars, content_hash, model, prompt_hash, chars_in, chars_out"
	rangeColumns     = "summary_id, level, first_seq, last_seq, first_turn, last_turn, chars_out"

	// The summary that consolidated the range of a summary s, and the next revision of s. The
	// ranges of a level come in order, so the first one that ends at or after the end of s contains
	// s.
	endColumns = `, coalesce((SELECT p.seq FROM summary AS p INDEXED BY summary_by_range
			WHERE p.c = s.c AND p.level = s.level + 1 AND p.last_seq >= s.last_seq ORDER BY p.last_seq, p.seq LIMIT 1), 0)
		, coalesce((SELECT r.seq FROM summary AS r INDEXED BY summary_by_range
			WHERE r.c = s.c AND r.level = s.level AND r.last_seq = s.last_seq AND r.seq > s.seq ORDER BY r.seq LIMIT 1), 0)`
)

// The reads of the sequences of summaries.
const (
	inSummaryRange = " AND s.seq >= ? AND s.seq < ?"
	current        = ` AND NOT EXISTS (SELECT 1 FROM summary AS r INDEXED BY summary_by_range
		WHERE r.c = s.c AND r.level = s.level AND r.last_seq = s.last_seq AND r.seq > s.seq AND r.seq <= ?)`

	summarySeqs        = "SELECT s.seq FROM summary AS s INDEXED BY summary_by_conversation WHERE s.c = ?"
	summarySeqsOfLevel = "SELECT s.seq FROM summary AS s INDEXED BY summary_by_level WHERE s.c = ? AND s.level = ?"

	// The frontier of a level is every range that ends after the last range of the level above.
	// Each range ends before its summary, which keeps later rows out of the search.
	frontierSeqs = `SELECT s.seq FROM summary AS s INDEXED BY summary_by_range WHERE s.c = ? AND s.level = ? AND s.last_seq < ?
		AND s.last_seq > coalesce((SELECT p.last_seq FROM summary AS p INDEXED BY summary_by_range
			WHERE p.c = ? AND p.level = ? AND p.last_seq < ? AND p.seq <= ? ORDER BY p.last_seq DESC LIMIT 1), 0)`

	selectTopLevel  = "SELECT coalesce(max(level), 0) FROM summary INDEXED BY summary_by_level WHERE c = ?"
	selectSummaries = "SELECT " + summaryColumns + endColumns + " FROM json_each(?) AS k CROSS JOIN summary AS s ON s.seq = k.value"
)

// Summaries implements graph.Reader. It first chooses the rows in the indexes alone.
func (g *Graph) Summaries(ctx context.Context, id events.ConversationID, q graph.SummaryQuery) (list []graph.Summary, err error) {
	err = g.Snapshot(ctx, func(query Queryer) error {
		key, _, err := conversation(query, id)
		if err != nil {
			return err
		}
		seqs, err := summarySeqsOf(query, key, q)
		if err != nil || len(seqs) == 0 {
			return err
		}
		asOf, _, _ := q.Bounds(maxSeq)
		at := make(map[uint64]int, len(seqs))
		for i, seq := range seqs {
			at[seq] = i
		}
		list = make([]graph.Summary, len(seqs))
		rows, err := query(selectSummaries, marshal(seqs))
		return Each(rows, err, func(rows *sql.Rows) error {
			var s graph.Summary
			err := scanSummary(rows, &s)
			s.AsOf(asOf)
			list[at[s.Seq]] = s
			return err
		})
	})
	return list, err
}

// summarySeqsOf returns the sequences of the summaries that a query asks for, in its order.
func summarySeqsOf(query Queryer, key int64, q graph.SummaryQuery) (seqs []uint64, err error) {
	asOf, from, before := q.Bounds(maxSeq)
	read := func(statement, order string, args ...any) error {
		statement, args = statement+inSummaryRange, append(args, from, before)
		if !q.Superseded {
			statement, args = statement+current, append(args, asOf)
		}
		if order != "" {
			statement, args = statement+order, append(args, limit(q.Limit))
		}
		rows, err := query(statement, args...)
		found, err := All(rows, err, func(rows *sql.Rows, seq *uint64) error { return rows.Scan(seq) })
		seqs = append(seqs, found...)
		return err
	}
	first, last := q.Level, q.Level
	switch {
	case !q.Frontier && q.Level == 0:
		err = read(summarySeqs, order(q.OldestFirst), key)
		return seqs, err
	case !q.Frontier:
		err = read(summarySeqsOfLevel, order(q.OldestFirst), key, q.Level)
		return seqs, err
	case q.Level == 0:
		first = 1
		rows, err := query(selectTopLevel, key)
		if err := Each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&last) }); err != nil {
			return nil, err
		}
	}
	for above := range last - first + 1 {
		level := first + above
		if err := read(frontierSeqs, "", key, level, asOf, key, level+1, asOf, asOf); err != nil {
			return nil, err
		}
	}
	return q.Page(seqs), nil
}

// SummariesByID implements graph.Reader.
func (g *Graph) SummariesByID(ctx context.Context, id events.ConversationID, summaries []string, asOf uint64) (map[string]graph.Summary, error) {
	found := map[string]graph.Summary{}
	err := g.Snapshot(ctx, func(q Queryer) error {
		key, _, err := conversation(q, id)
		if err != nil {
			return err
		}
		rows, err := byKeyIn(q, key, id, summaries, events.SummaryKey, "summary AS s", summaryColumns+endColumns, asOf)
		return Each(rows, err, func(rows *sql.Rows) error {
			var s graph.Summary
			err := scanSummary(rows, &s)
			s.AsOf(asOf)
			found[s.SummaryID] = s
			return err
		})
	})
	return found, err
}

const selectCondensed = "SELECT " + condensedColumns + " FROM condensed INDEXED BY condensed_by_call WHERE c = ? AND tool_call_id = ? AND seq <= ?" + newestFirst

// Condensations implements graph.Reader.
func (g *Graph) Condensations(ctx context.Context, id events.ConversationID, calls []graph.Ref, asOf uint64) (map[graph.Ref]graph.Condensed, error) {
	found := map[graph.Ref]graph.Condensed{}
	err := g.Snapshot(ctx, func(q Queryer) error {
		key, _, err := conversation(q, id)
		if err != nil {
			return err
		}
		for _, call := range ownIDs(calls) {
			rows, err := q(selectCondensed, key, call, min(asOf, maxSeq), 1)
			if err := Each(rows, err, func(rows *sql.Rows) error {
				var c graph.Condensed
				err := scanCondensed(rows, &c)
				found[c.Ref()] = c
				return err
			}); err != nil {
				return err
			}
		}
		return nil
	})
	return found, err
}

// lookUp reads what the reducers need to know about a conversation.
func (t graphTx) lookUp(ctx context.Context, u *graph.Unit, id events.ConversationID, key int64, l *graph.Lookups) error {
	if len(l.Summaries) > 0 {
		rows, err := byKeyIn(t.inside(ctx), key, id, l.Summaries, events.SummaryKey, "summary", rangeColumns, maxSeq)
		if err := Each(rows, err, func(rows *sql.Rows) error {
			var r summary.Range
			err := rows.Scan(&r.ID, &r.Level, &r.First, &r.Last, &r.FirstTurn, &r.LastTurn, &r.Chars)
			u.Known[graph.SummaryRef{Conversation: id, SummaryID: r.ID}] = r
			return err
		}); err != nil {
			return err
		}
	}
	if len(l.Results) == 0 {
		return nil
	}
	rows, err := byKeyIn(t.inside(ctx), key, id, l.Results, events.ToolResultKey, "tool_result", "tool_call_id", maxSeq)
	return Each(rows, err, func(rows *sql.Rows) error {
		var call string
		err := rows.Scan(&call)
		u.Returned[graph.CallRef{Conversation: id, ToolCallID: call}] = true
		return err
	})
}

func (t graphTx) saveSummaries(ctx context.Context, u *graph.Unit) error {
	_, err := t.Insert(ctx, Insertion{Into: "summary (c, " + summaryColumns + ")", Width: 29}, len(u.Summaries), func(args []any, i int) []any {
		s := &u.Summaries[i].Row
		args = appendHead(args, u.Summaries[i].State.Key, s.Position, s.Origin)
		return append(args, s.SummaryID, s.Level, s.FirstSeq, s.LastSeq, s.FirstTurn, s.LastTurn, marshal(s.Children), s.Supersedes,
			s.Conversation, s.Actions, marshal(s.Findings), marshal(s.Topics), marshal(s.Files), marshal(s.Tools),
			s.TurnCount, s.Method, s.FallbackReason, s.Model, s.PromptHash, s.CharsIn, s.CharsOut)
	})
	return err
}

func (t graphTx) saveCondensed(ctx context.Context, u *graph.Unit) error {
	_, err := t.Insert(ctx, Insertion{Into: "condensed (c, " + condensedColumns + ")", Width: 17}, len(u.Condensed), func(args []any, i int) []any {
		c := &u.Condensed[i].Row
		args = appendHead(args, u.Condensed[i].State.Key, c.Position, c.Origin)
		args = appendBody(append(args, c.ToolCallID), &c.Content)
		return append(args, c.Model, c.PromptHash, c.CharsIn, c.CharsOut)
	})
	return err
}

func scanSummary(rows *sql.Rows, s *graph.Summary) error {
	return rows.Scan(append(head(&s.Position, &s.Origin), &s.SummaryID, &s.Level, &s.FirstSeq, &s.LastSeq, &s.FirstTurn, &s.LastTurn, texts{&s.Children}, &s.Supersedes,
		&s.Conversation, &s.Actions, texts{&s.Findings}, texts{&s.Topics}, texts{&s.Files}, texts{&s.Tools},
		&s.TurnCount, &s.Method, &s.FallbackReason, &s.Model, &s.PromptHash, &s.CharsIn, &s.CharsOut, &s.ConsolidatedSeq, &s.SupersededSeq)...)
}

func scanCondensed(rows *sql.Rows, c *graph.Condensed) error {
	dst := append(append(head(&c.Position, &c.Origin), &c.ToolCallID), body(&c.Content)...)
	return rows.Scan(append(dst, &c.Model, &c.PromptHash, &c.CharsIn, &c.CharsOut)...)
}

// texts scans a list that marshal encoded.
type texts struct{ dst *[]string }

// Scan implements sql.Scanner.
func (l texts) Scan(value any) error {
	text, ok := value.(string)
	if !ok {
		return fmt.Errorf("not a list: %T", value)
	}
	if text == "" {
		return nil
	}
	return json.Unmarshal([]byte(text), l.dst)
}
