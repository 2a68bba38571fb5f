package neo4jstore

import (
	"context"
	"encoding/json"
	"slices"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/summary"
)

var (
	summaries     = kind{"Summary", summaryProps}
	condensations = kind{"Condensed", condensedProps}
)

func scanSummary(v *values) (s graph.Summary) {
	s.Position, s.Origin = scanHead(v)
	s.SummaryID, s.Level, s.FirstSeq, s.LastSeq, s.FirstTurn, s.LastTurn = v.text(), v.int(), v.seq(), v.seq(), v.int(), v.int()
	s.Children, s.Supersedes, s.Conversation, s.Actions = v.strings(), v.text(), v.text(), v.text()
	s.Findings, s.Topics, s.Files, s.Tools = v.strings(), v.strings(), v.strings(), v.strings()
	s.TurnCount, s.Method, s.FallbackReason, s.Model, s.PromptHash, s.CharsIn, s.CharsOut = v.int(), v.text(), v.text(), v.text(), v.text(), v.int(), v.int()
	return s
}

// scanEnded is scanSummary including what ended the summary, as of a sequence.
func scanEnded(asOf uint64) func(*values) graph.Summary {
	return func(v *values) graph.Summary {
		s := scanSummary(v)
		s.ConsolidatedSeq, s.SupersededSeq = v.seq(), v.seq()
		s.AsOf(asOf)
		return s
	}
}

func scanCondensed(v *values) (c graph.Condensed) {
	c.Position, c.Origin = scanHead(v)
	c.ToolCallID, c.Content, c.Model, c.PromptHash, c.CharsIn, c.CharsOut = v.text(), v.body(), v.text(), v.text(), v.int(), v.int()
	return c
}

// The reads of summaries. Their nodes never change: reads find what consolidated or
// superseded one in the index on ranges.
const (
	// What consolidated the range of a summary n, and its next revision. The ranges of
	// a level are accepted in order, so the first one that ends at or after the end
	// of n contains n.
	endOf = `head(COLLECT { MATCH (p:Summary) USING INDEX SEEK p:Summary(conversation, level, last_seq, seq)
			WHERE p.conversation = $key AND p.level = n.level + 1 AND p.last_seq >= n.last_seq AND p.seq > 0
			RETURN p.seq ORDER BY p.conversation, p.level, p.last_seq, p.seq LIMIT 1 }),
		head(COLLECT { MATCH (r:Summary) USING INDEX SEEK r:Summary(conversation, level, last_seq, seq)
			WHERE r.conversation = $key AND r.level = n.level AND r.last_seq = n.last_seq AND r.seq > n.seq
			RETURN r.seq ORDER BY r.conversation, r.level, r.last_seq, r.seq LIMIT 1 })`

	current = ` AND ($superseded OR NOT EXISTS { MATCH (r:Summary) USING INDEX SEEK r:Summary(conversation, level, last_seq, seq)
			WHERE r.conversation = $key AND r.level = n.level AND r.last_seq = n.last_seq AND r.seq > n.seq AND r.seq <= asOf })`

	// The frontier of a level is the ranges that end after the last range of the level above.
	// Each range ends before its summary, so the search never reaches later summaries.
	selectFrontier = found + "WITH c, s.seq AS settled, " + upTo + ` AS asOf
		WITH c, settled, asOf, COLLECT { MATCH (n:Summary) USING INDEX SEEK n:Summary(conversation, level, seq)
			WHERE n.conversation = $key AND n.level >= 1 AND n.seq > 0 RETURN n.level ORDER BY n.conversation DESC, n.level DESC, n.seq DESC LIMIT 1 } AS top
		WITH c, settled, asOf, CASE WHEN $level = 0 THEN range(1, coalesce(head(top), 0)) ELSE [$level] END AS levels
		WITH c, settled, COLLECT { UNWIND levels AS level
			WITH level, COLLECT { MATCH (p:Summary) USING INDEX SEEK p:Summary(conversation, level, last_seq, seq)
				WHERE p.conversation = $key AND p.level = level + 1 AND p.last_seq < asOf AND p.seq <= asOf
				RETURN p.last_seq ORDER BY p.conversation DESC, p.level DESC, p.last_seq DESC, p.seq DESC LIMIT 1 } AS above
			MATCH (n:Summary) USING INDEX SEEK n:Summary(conversation, level, last_seq, seq)
			WHERE n.conversation = $key AND n.level = level AND n.last_seq > coalesce(head(above), 0) AND n.last_seq < asOf
				AND n.seq <= asOf AND n.seq >= $from AND n.seq < $before` + current + `
			RETURN n.seq } AS seqs
		RETURN ` + frame + ", seqs"
)

// revisions is a subquery for the sequences of summaries, of one level or of all.
func revisions(level, oldestFirst bool) string {
	index, where, order, direction := "conversation", "n.conversation = $key", "n.conversation", " DESC"
	if oldestFirst {
		direction = ""
	}
	order += direction
	if level {
		index, where, order = index+", level", where+" AND n.level = $level", order+", n.level"+direction
	}
	return found + "WITH c, s.seq AS settled, " + upTo + " AS asOf WITH c, settled, COLLECT { MATCH (n:Summary) USING INDEX SEEK n:Summary(" + index + ", seq) WHERE " + where +
		" AND n.seq >= $from AND n.seq <= CASE WHEN $before <= asOf THEN $before - 1 ELSE asOf END" + current + " RETURN n.seq ORDER BY " + order + ", n.seq" + direction + " LIMIT $limit } AS seqs RETURN " + frame + ", seqs"
}

var (
	selectSummarySeqs        = inOrder(func(oldest bool) string { return revisions(false, oldest) })
	selectSummarySeqsOfLevel = inOrder(func(oldest bool) string { return revisions(true, oldest) })

	endedProps = summaryProps.list("n") + " + [" + endOf + "]"

	selectSummaries      = reading("COLLECT { UNWIND $in.seqs AS seq MATCH (n:Summary {conversation: $key, seq: seq}) RETURN " + endedProps + " }")
	selectSummariesByKey = reading("COLLECT { UNWIND $in.keys AS k MATCH (n:Summary {payload_key: k}) WHERE n.seq <= upTo RETURN " + endedProps + " }")
	selectCondensed      = reading(`COLLECT { UNWIND $in.calls AS call CALL (call, upTo) { MATCH (n:Condensed) USING INDEX SEEK n:Condensed(conversation, tool_call_id, seq)
		WHERE n.conversation = $key AND n.tool_call_id = call AND n.seq <= upTo RETURN ` + condensedProps.list("n") + ` AS found ORDER BY n.conversation DESC, n.tool_call_id DESC, n.seq DESC LIMIT 1 } RETURN found }`)
)

// Summaries implements graph.Reader. It first selects the rows, using only the indexes.
func (g *Graph) Summaries(ctx context.Context, id events.ConversationID, q graph.SummaryQuery) ([]graph.Summary, error) {
	asOf, from, before := q.Bounds(maxSeq)
	params := map[string]any{
		"last": number(asOf), "from": number(from), "before": number(before), "level": q.Level, "superseded": q.Superseded, "limit": limit(q.Limit),
	}
	statement := selectSummarySeqs.first(q.OldestFirst)
	switch {
	case q.Frontier:
		statement = selectFrontier
	case q.Level != 0:
		statement = selectSummarySeqsOfLevel.first(q.OldestFirst)
	}
	v, err := g.of(ctx, id, statement, params)
	if err != nil {
		return nil, err
	}
	settled := valuesOf(v.list[:1]).seq()
	var seqs []uint64
	for _, seq := range take[[]any](v) {
		one, _ := seq.(int64)
		seqs = append(seqs, uint64(one))
	}
	if seqs = q.Page(seqs); len(seqs) == 0 || v.err != nil {
		return nil, v.err
	}
	return g.summariesAt(ctx, id, seqs, min(asOf, settled)) // sees nothing newer than the first read
}

// summariesAt reads summaries by their own sequences, in that order, as of a sequence.
func (g *Graph) summariesAt(ctx context.Context, id events.ConversationID, seqs []uint64, asOf uint64) (list []graph.Summary, err error) {
	wanted := make([]int64, len(seqs))
	for i, seq := range seqs {
		wanted[i] = number(seq)
	}
	params := In("seqs", wanted)
	params["last"] = number(asOf)
	v, err := g.of(ctx, id, selectSummaries, params)
	if err != nil {
		return nil, err
	}
	found := make(map[uint64]graph.Summary, len(seqs))
	for _, s := range scanAll(v, scanEnded(asOf)) {
		found[s.Seq] = s
	}
	for _, seq := range seqs {
		if s, ok := found[seq]; ok { // missing during a repair
			list = append(list, s)
		}
	}
	return list, v.err
}

// SummariesByID implements graph.Reader.
func (g *Graph) SummariesByID(ctx context.Context, id events.ConversationID, ids []string, asOf uint64) (map[string]graph.Summary, error) {
	refs := make([]graph.Ref, len(ids))
	for i, one := range ids {
		refs[i] = graph.Ref{ID: one}
	}
	v, err := g.byKey(ctx, id, selectSummariesByKey, refs, events.SummaryKey, asOf)
	if err != nil {
		return nil, err
	}
	settled := valuesOf(v.list[:1]).seq()
	found := map[string]graph.Summary{}
	for _, s := range scanAll(v, scanEnded(min(asOf, settled))) {
		found[s.SummaryID] = s
	}
	return found, v.err
}

// Condensations implements graph.Reader.
func (g *Graph) Condensations(ctx context.Context, id events.ConversationID, refs []graph.Ref, asOf uint64) (map[graph.Ref]graph.Condensed, error) {
	calls := make([]string, 0, len(refs))
	for _, ref := range refs {
		if ref.Depth == 0 { // rows of ancestors are in other conversations
			calls = append(calls, ref.ID)
		}
	}
	slices.Sort(calls)
	params := In("calls", slices.Compact(calls))
	params["last"] = number(asOf)
	v, err := g.of(ctx, id, selectCondensed, params)
	return byRef(v, err, scanCondensed, (*graph.Condensed).Ref)
}

var (
	selectRanges   = "UNWIND $in.keys AS k MATCH (n:Summary {payload_key: k}) RETURN k, " + props{"id", "level", "first_seq", "last_seq", "first_turn", "last_turn", "chars_out"}.list("n")
	selectReturned = "UNWIND $in.keys AS k MATCH (n:ToolResult {payload_key: k}) RETURN k, n.tool_call_id"
)

// lookUp reads the rows that the reducers look up.
func (t *graphTx) lookUp(ctx context.Context, u *graph.Unit, lookups map[events.ConversationID]*graph.Lookups) error {
	owners := map[string]events.ConversationID{}
	var ranges, results []string
	for id, l := range lookups {
		if u.States[id].Key == 0 {
			continue
		}
		for _, one := range l.Summaries {
			key := t.payloadKey(id, events.SummaryKey(one))
			ranges, owners[key] = append(ranges, key), id
		}
		for _, one := range l.Results {
			key := t.payloadKey(id, events.ToolResultKey(one))
			results, owners[key] = append(results, key), id
		}
	}
	look := func(statement string, keys []string, scan func(id events.ConversationID, v *values)) error {
		if len(keys) == 0 {
			return nil
		}
		slices.Sort(keys)
		rows, err := t.Run(ctx, statement, In("keys", slices.Compact(keys)))
		if err != nil {
			return err
		}
		for _, row := range rows {
			v := &values{list: row}
			scan(owners[v.text()], v)
			if v.err != nil {
				return v.err
			}
		}
		return nil
	}
	if err := look(selectRanges, ranges, func(id events.ConversationID, v *values) {
		n := valuesOf(v.list[1])
		r := summary.Range{ID: n.text(), Level: n.int(), First: n.seq(), Last: n.seq(), FirstTurn: n.int(), LastTurn: n.int(), Chars: n.int()}
		u.Known[graph.SummaryRef{Conversation: id, SummaryID: r.ID}], v.err = r, n.err
	}); err != nil {
		return err
	}
	return look(selectReturned, results, func(id events.ConversationID, v *values) {
		u.Returned[graph.CallRef{Conversation: id, ToolCallID: v.text()}] = true
	})
}

func (t *graphTx) saveSummaries(u *graph.Unit) {
	for i := range u.Summaries {
		s, n := u.Summaries[i].State, &u.Summaries[i].Row
		ledger, _ := json.Marshal(s.Ledger.Levels) // of numbers
		r := make(Row, maxColumns)
		r["id"], r["level"], r["ledger"] = n.SummaryID, n.Level, string(ledger)
		head(r, &n.Position, &n.Origin)
		r["first_seq"], r["last_seq"] = number(n.FirstSeq), number(n.LastSeq)
		r.count("first_turn", n.FirstTurn)
		r.count("last_turn", n.LastTurn)
		r.texts("children", n.Children)
		r.text("supersedes", n.Supersedes)
		r.text("said", n.Conversation)
		r.text("actions", n.Actions)
		r.texts("findings", n.Findings)
		r.texts("topics", n.Topics)
		r.texts("files", n.Files)
		r.texts("tools", n.Tools)
		r.count("turn_count", n.TurnCount)
		r.text("method", n.Method)
		r.text("fallback_reason", n.FallbackReason)
		r.text("model", n.Model)
		r.text("prompt_hash", n.PromptHash)
		r.count("chars_in", n.CharsIn)
		r.count("chars_out", n.CharsOut)
		key := t.payloadKey(s.ID, events.SummaryKey(n.SummaryID))
		linked := map[string]bool{}
		for _, child := range n.Children {
			if !linked[child] {
				linked[child] = true
				t.Add("children", Row{"parent": key, "child": t.payloadKey(s.ID, events.SummaryKey(child))})
			}
		}
		t.save("summaries", r, s, n.Seq, n.Time)
	}
}

func (t *graphTx) saveCondensed(u *graph.Unit) {
	for i := range u.Condensed {
		s, c := u.Condensed[i].State, &u.Condensed[i].Row
		r := make(Row, maxColumns)
		r["tool_call_id"], r["result"] = c.ToolCallID, t.payloadKey(s.ID, events.ToolResultKey(c.ToolCallID))
		head(r, &c.Position, &c.Origin)
		r.body("content", "content_bytes", "char_count", "content_hash", &c.Content)
		r.text("model", c.Model)
		r.text("prompt_hash", c.PromptHash)
		r.count("chars_in", c.CharsIn)
		r.count("chars_out", c.CharsOut)
		t.save("condensed", r, s, c.Seq, c.Time)
	}
}
