package sqlitestore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
)

// Columns in the order in which scanConversation reads them.
const (
	conversationColumns = `k.c, k.tenant, k.id, k.created_at, k.updated_at, k.message_count, k.turn_count, k.step_count,
		k.tool_call_count, k.tool_result_count, k.summary_count, k.condensed_count, k.total_chars, k.first_seq, k.last_seq, k.deleted_seq, ` + descriptionColumns
	descriptionColumns = `coalesce(v.title,''), coalesce(v.tags,''), coalesce(v.status,''), coalesce(v.agent,''), coalesce(v.model,''),
		coalesce(v.cwd,''), coalesce(v.project,''), coalesce(v.profile,''), coalesce(v.max_context_chars,0), coalesce(v.branched_from,'')`
)

// The reads of conversations. A test checks the plans of all reads: each must be a seek.
const (
	selectConversation = "SELECT " + conversationColumns + " FROM conversation AS k LEFT JOIN version AS v ON v.c = k.c AND v.ended = 0 WHERE k.tenant = ? AND k.id = ?"

	selectByActivity = "SELECT " + conversationColumns + ` FROM conversation AS k INDEXED BY conversation_by_activity
		JOIN version AS v ON v.c = k.c AND v.ended = 0 WHERE k.deleted_seq = 0 AND k.tenant = ? AND k.last_seq < ? ORDER BY k.last_seq DESC LIMIT ?`
	selectByCreation = "SELECT " + conversationColumns + ` FROM conversation AS k INDEXED BY conversation_by_creation
		JOIN version AS v ON v.c = k.c AND v.ended = 0 WHERE k.deleted_seq = 0 AND k.tenant = ? AND k.first_seq < ? ORDER BY k.first_seq DESC LIMIT ?`
)

// Conversations implements graph.Reader. SQLite finds rows on demand, so rows after the end of the
// page cost nothing.
func (g *Graph) Conversations(ctx context.Context, tenant string, q graph.ConversationQuery) (page graph.Page[graph.Conversation], err error) {
	query := selectByActivity
	if q.Created {
		query = selectByCreation
	}
	full := errors.New("the page is full")
	examined, bytes, last := 0, 0, uint64(0)
	err = g.Snapshot(ctx, func(read Queryer) error {
		rows, err := read(query, tenant, before(q.Before), graph.MaxExamined+1)
		return Each(rows, err, func(rows *sql.Rows) error {
			if examined == graph.MaxExamined || len(page.Rows) == limit(q.Limit) || bytes > graph.MaxPageBytes {
				page.Next = last
				return full
			}
			var c graph.Conversation
			var key int64
			if err := scanConversation(rows, &key, &c); err != nil {
				return err
			}
			examined, last = examined+1, q.Position(&c)
			if q.Matches(&c) {
				page.Rows, bytes = append(page.Rows, c), bytes+c.Size()
			}
			return nil
		})
	})
	if errors.Is(err, full) {
		err = nil
	}
	return page, err
}

// Conversation implements graph.Reader.
func (g *Graph) Conversation(ctx context.Context, id events.ConversationID, asOf uint64) (c graph.Conversation, err error) {
	err = g.Snapshot(ctx, func(q Queryer) error {
		var key int64
		if key, c, err = conversation(q, id); err != nil {
			return err
		}
		if asOf < c.FirstSeq {
			return fmt.Errorf("conversation %q as of sequence %d: %w", id.ID, asOf, graph.ErrNotFound)
		}
		if asOf < c.LastSeq {
			if err := rewind(q, key, asOf, &c); err != nil {
				return err
			}
		}
		c.Repairs, err = readRepairs(q)
		return err
	})
	return c, err
}

// conversation reads a conversation that exists and is not deleted.
func conversation(q Queryer, id events.ConversationID) (key int64, c graph.Conversation, err error) {
	rows, err := q(selectConversation, id.Tenant, id.ID)
	err = Each(rows, err, func(rows *sql.Rows) error { return scanConversation(rows, &key, &c) })
	switch {
	case err != nil:
		return 0, c, err
	case key == 0:
		return 0, c, fmt.Errorf("conversation %q of tenant %q: %w", id.ID, id.Tenant, graph.ErrNotFound)
	case c.DeletedSeq != 0:
		return 0, c, fmt.Errorf("conversation %q of tenant %q, which was deleted: %w", id.ID, id.Tenant, graph.ErrNotFound)
	}
	return key, c, nil
}

const versionThen = "SELECT 0,'','','','',0,0,0,0,0,0,0,0,0,0,0, " + descriptionColumns + " FROM version AS v WHERE v.c = ? AND v.seq <= ? ORDER BY v.seq DESC LIMIT 1"

// rewind sets a conversation back to a sequence: its description becomes the version of that time,
// and its counts those that the newest rows of that time hold.
func rewind(q Queryer, key int64, asOf uint64, c *graph.Conversation) error {
	was := graph.Conversation{ID: c.ID, FirstSeq: c.FirstSeq}
	rows, err := q(versionThen, key, asOf)
	if err := Each(rows, err, func(rows *sql.Rows) error {
		var described graph.Conversation
		var none int64
		err := scanConversation(rows, &none, &described)
		was.Description = described.Description
		return err
	}); err != nil {
		return err
	}
	reached, err := extents(q, key, []uint64{asOf})
	if err != nil {
		return err
	}
	was.Counts = reached[0].Counts
	if was.UpdatedAt = reached[0].updatedAt; was.UpdatedAt != "" {
		was.CreatedAt = c.CreatedAt
	}
	*c = was
	return nil
}

// Counts implements graph.Reader.
func (g *Graph) Counts(ctx context.Context, id events.ConversationID, seqs []uint64) (list []graph.Counts, err error) {
	err = g.Snapshot(ctx, func(q Queryer) error {
		key, _, err := conversation(q, id)
		if err != nil {
			return err
		}
		reached, err := extents(q, key, seqs)
		for _, r := range reached {
			list = append(list, r.Counts)
		}
		return err
	})
	return list, err
}

// The newest row of each kind up to each of a list of sequences, with the counts in it.
var newestRows = []struct {
	query string
	count func(*graph.Counts) *int
}{
	{newestUpTo("version", "0, 0, 0, 0, v.time"), func(*graph.Counts) *int { return new(int) }},
	{newestUpTo("message", "v.n, v.turn, v.step, v.cum_chars, v.time"), func(c *graph.Counts) *int { return &c.MessageCount }},
	{newestUpTo("tool_call", "v.n, v.turn, v.step, 0, v.time"), func(c *graph.Counts) *int { return &c.ToolCallCount }},
	{newestUpTo("tool_result", "v.n, v.turn, v.step, 0, v.time"), func(c *graph.Counts) *int { return &c.ToolResultCount }},
	{newestUpTo("summary", "v.n, v.turn, v.step, 0, v.time"), func(c *graph.Counts) *int { return &c.SummaryCount }},
	{newestUpTo("condensed", "v.n, v.turn, v.step, 0, v.time"), func(c *graph.Counts) *int { return &c.CondensedCount }},
}

func newestUpTo(table, columns string) string {
	return "SELECT k.key, v.seq, " + columns + " FROM json_each(?1) AS k CROSS JOIN " + table +
		" AS v ON v.c = ?2 AND v.seq = (SELECT max(seq) FROM " + table + " WHERE c = ?2 AND seq <= k.value)"
}

// extent is how far a conversation had come.
type extent struct {
	graph.Counts
	updatedAt string
	timed     uint64 // the sequence of the event that set updatedAt
}

// extents reads the extent of a conversation at each of these sequences.
func extents(q Queryer, key int64, seqs []uint64) ([]extent, error) {
	asked := make([]uint64, len(seqs))
	for i, seq := range seqs {
		asked[i] = min(seq, maxSeq)
	}
	list := make([]extent, len(seqs))
	for _, kind := range newestRows {
		rows, err := q(kind.query, marshal(asked), key)
		if err := Each(rows, err, func(rows *sql.Rows) error {
			var i, n, turn, step, chars int
			var seq uint64
			var at string
			if err := rows.Scan(&i, &seq, &n, &turn, &step, &chars, &at); err != nil {
				return err
			}
			e := &list[i]
			*kind.count(&e.Counts) = n
			e.TurnCount, e.StepCount = max(e.TurnCount, turn), max(e.StepCount, step)
			e.TotalChars += chars
			e.LastSeq = max(e.LastSeq, seq)
			if seq > e.timed && at != "" {
				e.timed, e.updatedAt = seq, at
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// maxSeq is the highest sequence that SQLite's integers can hold.
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
		&c.ToolCallCount, &c.ToolResultCount, &c.SummaryCount, &c.CondensedCount, &c.TotalChars, &c.FirstSeq, &c.LastSeq, &c.DeletedSeq,
		&c.Title, &tags, &c.Status, &c.Agent, &c.Model, &c.Cwd, &c.Project, &c.Profile, &c.MaxContextChars, &branched)
	if err == nil && tags != "" {
		err = json.Unmarshal([]byte(tags), &c.Tags)
	}
	if err == nil && branched != "" {
		err = json.Unmarshal([]byte(branched), &c.BranchedFrom)
	}
	return err
}
