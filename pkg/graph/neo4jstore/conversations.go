package neo4jstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
)

// conversationProps lists the properties of a conversation's node, which may show a commit
// in progress.
var conversationProps = slices.Concat(props{"tenant", "id", "created_at", "updated_at", "first_seq", "deleted_seq"}, countProps, descriptionProps, props{"version_seq"})

func scanConversation(v *values) (c graph.Conversation) {
	c.ID = events.ConversationID{Tenant: v.text(), ID: v.text()}
	c.CreatedAt, c.UpdatedAt, c.FirstSeq, c.DeletedSeq = v.text(), v.text(), v.seq(), v.seq()
	c.Counts = graph.Counts{
		MessageCount: v.int(), TurnCount: v.int(), StepCount: v.int(), ToolCallCount: v.int(), ToolResultCount: v.int(),
		SummaryCount: v.int(), CondensedCount: v.int(), TotalChars: v.int(), LastSeq: v.seq(),
	}
	c.Description = scanDescription(v)
	return c
}

func scanDescription(v *values) (d graph.Description) {
	d = graph.Description{
		Title: v.text(), Tags: v.strings(), Status: v.text(), Agent: v.text(), Model: v.text(),
		Cwd: v.text(), Project: v.text(), Profile: v.text(), MaxContextChars: v.int(),
	}
	if conversation, message := v.text(), v.text(); conversation != "" {
		d.BranchedFrom = &events.BranchedAt{ConversationID: conversation, MessageID: message}
	}
	return d
}

// before returns the last sequence below a bound; a bound of 0 means all.
func before(seq uint64) int64 {
	if seq == 0 {
		return number(maxSeq)
	}
	return number(seq - 1)
}

func limit(n int) int {
	if n <= 0 {
		return 50
	}
	return n
}

// Reads of one conversation start at its node and see only completed commits.
const found = "MATCH (c:Conversation {key: $key}) MATCH (s:GraphSettled {key: c.checkpoint}) "

// upTo is the last sequence of a read: the parameter $last, or the settled sequence.
const upTo = "CASE WHEN s.seq < $last THEN s.seq ELSE $last END"

// notFound is the error for an unknown conversation.
func notFound(id events.ConversationID) error {
	return fmt.Errorf("conversation %q of tenant %q: %w", id.ID, id.Tenant, graph.ErrNotFound)
}

// of runs a query on one conversation. The statement continues [found] and must return the
// frame columns first: the sequences at which the conversation began and was deleted.
func (g *Graph) of(ctx context.Context, id events.ConversationID, statement string, params map[string]any) (*values, error) {
	params["key"] = g.Key(id)
	rows, err := g.Read(ctx, statement, params)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, notFound(id)
	}
	v := &values{list: rows[0]}
	settled, first, deleted := v.seq(), v.seq(), v.seq()
	switch {
	case v.err != nil:
		return nil, v.err
	case deleted != 0:
		return nil, fmt.Errorf("conversation %q of tenant %q, which was deleted: %w", id.ID, id.Tenant, graph.ErrNotFound)
	case first > settled:
		return nil, notFound(id)
	}
	return v, nil
}

// frame holds the columns that every read of one conversation returns first.
const frame = "settled, c.first_seq, c.deleted_seq"

// newest is a subquery for the newest row of a kind up to a sequence.
func newest(label string, p props, upTo string) string {
	return "COLLECT { MATCH (n:" + label + ") USING INDEX SEEK n:" + label + "(conversation, seq) WHERE n.conversation = $key AND n.seq <= " + upTo +
		" RETURN " + p.list("n") + " ORDER BY n.conversation DESC, n.seq DESC LIMIT 1 }"
}

// extentKinds lists the kinds of rows that carry a conversation's counts, with the count
// that each of them has.
var extentKinds = []struct {
	label string
	props props
	count func(*graph.Counts) *int
}{
	{"Version", props{"seq", "n", "turn", "step", "cum_chars", "time", "updated_at"}, func(*graph.Counts) *int { return new(int) }},
	{"Message", props{"seq", "n", "turn", "step", "cum_chars", "time", "updated_at"}, func(c *graph.Counts) *int { return &c.MessageCount }},
	{"ToolCall", props{"seq", "n", "turn", "step", "cum_chars", "time", "updated_at"}, func(c *graph.Counts) *int { return &c.ToolCallCount }},
	{"ToolResult", props{"seq", "n", "turn", "step", "cum_chars", "time", "updated_at"}, func(c *graph.Counts) *int { return &c.ToolResultCount }},
	{"Summary", props{"seq", "n", "turn", "step", "cum_chars", "time", "updated_at"}, func(c *graph.Counts) *int { return &c.SummaryCount }},
	{"Condensed", props{"seq", "n", "turn", "step", "cum_chars", "time", "updated_at"}, func(c *graph.Counts) *int { return &c.CondensedCount }},
}

// extentsAt returns the subqueries for all extentKinds.
func extentsAt(upTo string) (list string) {
	for i, kind := range extentKinds {
		if i > 0 {
			list += ", "
		}
		list += newest(kind.label, kind.props, upTo)
	}
	return list
}

// extent holds the counts of a conversation as of a sequence.
type extent struct {
	graph.Counts
	timed   string // time of the newest timed event, among the newest of each kind
	updated string // UpdatedAt after the newest event
}

func scanExtent(v *values) (e extent) {
	var timed uint64
	for _, kind := range extentKinds {
		rows := take[[]any](v)
		if len(rows) == 0 {
			continue
		}
		r := valuesOf(rows[0])
		seq, n, turn, step, chars, at, updated := r.seq(), r.int(), r.int(), r.int(), r.int(), r.text(), r.text()
		if r.err != nil && v.err == nil {
			v.err = r.err
		}
		*kind.count(&e.Counts) = n
		e.TurnCount, e.StepCount, e.TotalChars = max(e.TurnCount, turn), max(e.StepCount, step), e.TotalChars+chars
		if at != "" {
			updated = at
			if seq > timed {
				timed, e.timed = seq, at
			}
		}
		if seq > e.LastSeq || seq == e.LastSeq && updated != "" {
			e.LastSeq, e.updated = seq, updated
		}
	}
	return e
}

var selectConversation = found + "WITH c, s.seq AS settled, s.repairs AS repairs, " + upTo + ` AS upTo
	WITH c, settled, repairs, ` + newest("Version", descriptionProps, "upTo") + " AS version, [" + extentsAt("upTo") + `] AS extents
	RETURN ` + frame + ", c.created_at, c.last_seq, repairs, version, extents"

// Conversation implements graph.Reader. It reads the state at a sequence, even the current
// one, from the newest rows and version up to it.
func (g *Graph) Conversation(ctx context.Context, id events.ConversationID, asOf uint64) (c graph.Conversation, err error) {
	v, err := g.of(ctx, id, selectConversation, map[string]any{"last": number(asOf)})
	if err != nil {
		return c, err
	}
	settled, first := valuesOf(v.list[:1]).seq(), valuesOf(v.list[1:2]).seq()
	created, last, repairs, versions := v.text(), v.seq(), v.seq(), take[[]any](v)
	reached := scanExtent(valuesOf(take[[]any](v)))
	if v.err != nil {
		return c, v.err
	}
	if asOf < first || len(versions) == 0 {
		return c, fmt.Errorf("conversation %q as of sequence %d: %w", id.ID, asOf, graph.ErrNotFound)
	}
	described := valuesOf(versions[0])
	c = graph.Conversation{ID: id, FirstSeq: first, Description: scanDescription(described), Counts: reached.Counts, Repairs: repairs}
	c.UpdatedAt = reached.timed
	if asOf >= settled || last <= settled && asOf >= last {
		c.UpdatedAt = reached.updated
	}
	if c.UpdatedAt != "" {
		c.CreatedAt = created
	}
	return c, described.err
}

var selectCounts = found + `WITH c, s.seq AS settled
	WITH c, settled, COLLECT { UNWIND $in.seqs AS seq WITH CASE WHEN settled < seq THEN settled ELSE seq END AS upTo RETURN [` + extentsAt("upTo") + `] } AS list
	RETURN ` + frame + ", list"

// Counts implements graph.Reader.
func (g *Graph) Counts(ctx context.Context, id events.ConversationID, seqs []uint64) (list []graph.Counts, err error) {
	params := make([]int64, len(seqs))
	for i, seq := range seqs {
		params[i] = number(seq)
	}
	v, err := g.of(ctx, id, selectCounts, In("seqs", params))
	if err != nil {
		return nil, err
	}
	for _, one := range take[[]any](v) {
		at := valuesOf(one)
		list = append(list, scanExtent(at).Counts)
		if at.err != nil {
			return nil, at.err
		}
	}
	return list, v.err
}

// The lists of conversations, newest first. The planner takes the order from the index.
var (
	selectByActivity = listBy("last_seq")
	selectByCreation = listBy("first_seq")
)

func listBy(order string) string {
	return "MATCH (c:Conversation) USING INDEX SEEK c:Conversation(listed, " + order + ") WHERE c.listed = $tenant AND c." + order + ` <= $last
		RETURN ` + conversationProps.list("c") + " ORDER BY c.listed DESC, c." + order + " DESC LIMIT $limit"
}

// listChunk is how many conversations are read at once.
const listChunk = 200

// How often a list is read that may have missed a conversation, and the pause in between.
const (
	listAttempts = 5
	listPause    = 5 * time.Millisecond
)

var countCreated = `CALL () { MATCH (c:Conversation) USING INDEX SEEK c:Conversation(listed, first_seq) WHERE c.listed = $tenant AND c.first_seq <= $last RETURN c LIMIT $limit }
	RETURN count(c)`

// Conversations implements graph.Reader.
//
// The index by activity moves a conversation with each commit, and Neo4j shows a move as a
// removal and an insertion: a scan that passes in between misses the conversation. A complete
// list is therefore compared with the index by creation, whose entries never move, and read
// again if it is short. A list that is cut off by its limit can't be compared: it may miss a
// conversation that changes at that moment, and shows it on the next read.
func (g *Graph) Conversations(ctx context.Context, tenant string, q graph.ConversationQuery) (page graph.Page[graph.Conversation], err error) {
	for range listAttempts {
		var examined int
		page, examined, err = g.list(ctx, tenant, q)
		if err != nil || page.Next != 0 || q.Created || q.Before != 0 {
			return page, err
		}
		rows, err := g.Read(ctx, countCreated, map[string]any{"tenant": g.tenantKey(tenant), "last": before(0), "limit": examined + 1})
		if err != nil {
			return page, err
		}
		v := valuesOf(rows[0])
		if n := v.int(); v.err != nil || n <= examined {
			return page, v.err
		}
		select {
		case <-time.After(listPause): // the move takes less
		case <-ctx.Done():
			return page, ctx.Err()
		}
	}
	return page, nil
}

// list reads one page and returns how many conversations it examined.
func (g *Graph) list(ctx context.Context, tenant string, q graph.ConversationQuery) (page graph.Page[graph.Conversation], examined int, err error) {
	query, last := selectByActivity, before(q.Before)
	if q.Created {
		query = selectByCreation
	}
	for bytes := 0; ; {
		n := min(listChunk, graph.MaxExamined-examined+1)
		if examined == 0 && q.Status == "" && len(q.Tags) == 0 { // most lists are one page without a filter
			n = min(n, limit(q.Limit)+1)
		}
		rows, err := g.Read(ctx, query, map[string]any{"tenant": g.tenantKey(tenant), "last": last, "limit": n})
		if err != nil {
			return page, examined, err
		}
		for _, row := range rows {
			if examined == graph.MaxExamined || len(page.Rows) == limit(q.Limit) || bytes > graph.MaxPageBytes {
				page.Next = uint64(last) + 1
				return page, examined, nil
			}
			v := valuesOf(row[0])
			c := scanConversation(v)
			if v.err != nil {
				return page, examined, v.err
			}
			examined, last = examined+1, number(q.Position(&c))-1
			if q.Matches(&c) {
				page.Rows, bytes = append(page.Rows, c), bytes+c.Size()
			}
		}
		if len(rows) < n {
			return page, examined, nil
		}
	}
}
