package neo4jstore

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/summary"
)

// Summaries is the read model "summaries" in Neo4j.
type Summaries struct{ *Store[*summary.Unit] }

var _ summary.Store = (*Summaries)(nil)

// SummariesCodec is the read model "summaries".
var SummariesCodec = Codec[*summary.Unit]{
	Layout: summariesLayout,
	Begin: func(t *Tx) Work[*summary.Unit] {
		return &summariesTx{Tx: t, loaded: map[events.ConversationID]loadedState{}}
	},
	Hash: hashSummaries,
}

// Marks, ranges and states are rows that never change, and readers use those up to the
// settled sequence. Marks covered by level 1 stay, because they hold the claims of their
// events; the state tells readers which ones are covered.
const foundSummaries = "MATCH (c:SummariesConversation {key: $key}) MATCH (s:SummariesSettled {key: c.checkpoint}) "

// stateRow lists the properties of a state.
var stateRow = slices.Concat(props{"seq"}, stateProps).list("n")

// coveredSeq is the last sequence covered by level 1, from a stateRow.
const coveredSeq = "coalesce(state[0][2], 0)"

// withState reads the newest settled state of a conversation, as a list.
func withState(key string) string {
	return "WITH c, s.seq AS settled WITH c, settled, COLLECT { MATCH (n:SummariesState) USING INDEX SEEK n:SummariesState(conversation, seq) WHERE n.conversation = " + key +
		" AND n.seq <= settled RETURN " + stateRow + " ORDER BY n.conversation DESC, n.seq DESC LIMIT 1 } AS state "
}

// summarisedRow holds the columns that every read of a conversation returns first.
const summarisedRow = "settled, c.first_seq, c.deleted_seq, state"

// marksBehind is a subquery for the marks after a sequence.
func marksBehind(behind, limit string) string {
	return "COLLECT { MATCH (n:SummariesMark) USING INDEX SEEK n:SummariesMark(conversation, seq) WHERE n.conversation = $key AND n.seq > " + behind + " AND n.seq <= settled RETURN " +
		markProps.list("n") + " ORDER BY n.conversation, n.seq" + limit + " }"
}

var (
	selectSummary = foundSummaries + withState("$key") + "RETURN " + summarisedRow

	selectMarks = foundSummaries + withState("$key") + "WITH c, settled, state, " + coveredSeq + ` AS covered
		WITH c, settled, state, CASE WHEN covered > $after THEN covered ELSE $after END AS behind
		RETURN ` + summarisedRow + ", " + marksBehind("behind", " LIMIT $limit")

	selectTaken = foundSummaries + withState("$key") + "RETURN " + summarisedRow + `, COLLECT { MATCH (n:SummariesRange) USING INDEX SEEK n:SummariesRange(conversation, level, ends)
			WHERE n.conversation = $key AND n.level = $level AND n.ends > $after AND n.seq <= settled RETURN ` + rangeProps.list("n") + " ORDER BY n.conversation, n.level, n.ends LIMIT $limit }"

	selectSummaryForHash = foundSummaries + withState("$key") + "WITH c, settled, state, " + coveredSeq + ` AS covered
		RETURN ` + summarisedRow + ", " + marksBehind("covered", "") + `, COLLECT { MATCH (n:SummariesRange) USING INDEX SEEK n:SummariesRange(conversation, seq)
			WHERE n.conversation = $key AND n.seq <= settled RETURN ` + rangeProps.list("n") + " ORDER BY n.conversation, n.seq }"
)

// summariesAttempts is how often a read of a conversation is tried while commits remove the
// state that it reads. That takes keptStates commits during one read.
const summariesAttempts = 5

// found runs a query on one conversation. It returns no further values for an unknown
// conversation, which has no LastSeq, and for a deleted one.
func (s *Summaries) found(ctx context.Context, id events.ConversationID, statement string, params map[string]any) (summary.Conversation, *values, error) {
	unknown := summary.Conversation{ConversationState: projection.ConversationState{ID: id}}
	params["key"] = s.Key(id)
	for range summariesAttempts {
		rows, err := s.Read(ctx, statement, params)
		if err != nil || len(rows) == 0 {
			return unknown, nil, err
		}
		v := &values{list: rows[0]}
		c, visible := scanSummarised(v, id)
		switch {
		case v.err != nil || !visible:
			return unknown, nil, v.err
		case c.DeletedSeq != 0:
			return c, nil, nil
		case c.LastSeq != 0:
			return c, v, nil
		}
	}
	return unknown, nil, fmt.Errorf("%w: %w", projection.ErrUnavailable, errOvertaken)
}

// scanSummarised reads summarisedRow. Nothing unsettled is visible. LastSeq is 0 if the
// state was removed.
func scanSummarised(v *values, id events.ConversationID) (c summary.Conversation, visible bool) {
	settled, first, deleted := v.seq(), v.seq(), v.seq()
	c = summary.Conversation{ConversationState: projection.ConversationState{Key: 1, ID: id, DeletedSeq: deleted}, FirstSeq: first}
	states := take[[]any](v)
	if deleted != 0 {
		c.LastSeq = deleted
	} else if len(states) > 0 {
		state := valuesOf(states[0])
		c.LastSeq = state.seq()
		scanState(state, &c)
		v.err = cmp.Or(v.err, state.err)
	}
	return c, first <= settled
}

// Conversation implements summary.Reader.
func (s *Summaries) Conversation(ctx context.Context, id events.ConversationID) (summary.Conversation, error) {
	c, _, err := s.found(ctx, id, selectSummary, map[string]any{})
	return c, err
}

// Marks implements summary.Reader.
func (s *Summaries) Marks(ctx context.Context, id events.ConversationID, after uint64, limit int) ([]summary.Mark, error) {
	return rowsOf(ctx, s, id, selectMarks, map[string]any{"after": number(after), "limit": limit}, scanMark)
}

// Ranges implements summary.Reader.
func (s *Summaries) Ranges(ctx context.Context, id events.ConversationID, level int, after uint64, limit int) ([]summary.Taken, error) {
	return rowsOf(ctx, s, id, selectTaken, map[string]any{"level": level, "after": number(after), "limit": limit}, scanTaken)
}

// rowsOf reads rows of one conversation.
func rowsOf[T any](ctx context.Context, s *Summaries, id events.ConversationID, statement string, params map[string]any, scan func(*values) T) ([]T, error) {
	_, v, err := s.found(ctx, id, statement, params)
	if err != nil || v == nil {
		return nil, err
	}
	list := scanAll(v, scan)
	return list, v.err
}

// The nodes say which conversations wait, so a commit in progress may show; the data returned
// about each is settled. The order is that of the index, which is UTF-8 order.
var (
	selectWaitingHere = waitingWhere("c.tenant = $tenant AND c.id > $id")
	selectWaitingNext = waitingWhere("c.tenant > $tenant AND c.id IS NOT NULL") // of the following tenants
)

func waitingWhere(behind string) string {
	return "MATCH (c:SummariesConversation) USING INDEX SEEK c:SummariesConversation(generation, tenant, id) WHERE c.generation = $generation AND " + behind + ` AND c.deleted_seq IS NULL
			AND CASE WHEN coalesce(c.pending, 0) >= $pending THEN true WHEN $turns > 0 AND coalesce(c.uncovered_turns, 0) >= $turns THEN true ELSE $untitled AND c.untitled IS NOT NULL END
		WITH c ORDER BY c.generation, c.tenant, c.id LIMIT $limit
		MATCH (s:SummariesSettled {key: c.checkpoint}) ` + withState("c.key") + "RETURN c.tenant, c.id, " + summarisedRow
}

// waits reports whether a conversation matches a query.
func waits(c *summary.Conversation, q *summary.WaitingQuery) bool {
	return c.LastSeq != 0 && c.DeletedSeq == 0 && (c.Pending() >= q.Pending || q.Turns > 0 && c.Turn-c.CoveredTurn >= q.Turns || q.Untitled && c.Untitled())
}

// Waiting implements summary.Reader.
func (s *Summaries) Waiting(ctx context.Context, q summary.WaitingQuery) (list []summary.Conversation, err error) {
	params := map[string]any{
		"generation": s.generation, "pending": q.Pending, "turns": q.Turns, "untitled": q.Untitled,
		"tenant": q.After.Tenant, "id": q.After.ID,
	}
	for statement := selectWaitingHere; len(list) < q.Limit; {
		n := q.Limit - len(list)
		params["limit"] = n
		rows, err := s.Read(ctx, statement, params)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			v := &values{list: row}
			id := events.ConversationID{Tenant: v.text(), ID: v.text()}
			c, visible := scanSummarised(v, id)
			if v.err != nil {
				return nil, v.err
			}
			if params["tenant"], params["id"] = id.Tenant, id.ID; visible && waits(&c, &q) {
				list = append(list, c)
			}
		}
		switch {
		case len(rows) == n: // the last row's tenant may have more
			statement = selectWaitingHere
		case statement == selectWaitingNext:
			return list, nil
		default:
			statement = selectWaitingNext
		}
	}
	return list, nil
}

// hashSummaries implements Codec.Hash.
func hashSummaries(ctx context.Context, s *Store[*summary.Unit], id events.ConversationID) (projection.ConversationHash, error) {
	h := projection.ConversationHash{Conversation: id}
	c, v, err := (&Summaries{s}).found(ctx, id, selectSummaryForHash, map[string]any{})
	if err != nil || c.LastSeq == 0 {
		return h, err
	}
	var marks []summary.Mark
	var taken []summary.Taken
	if v != nil {
		marks, taken = scanAll(v, scanMark), scanAll(v, scanTaken)
		err = v.err
	}
	h.LastSeq, h.Hash = c.LastSeq, summary.Hash(c, marks, taken)
	return h, err
}

// scanState reads stateProps.
func scanState(v *values, c *summary.Conversation) {
	if ledger := v.text(); ledger != "" {
		if err := json.Unmarshal([]byte(ledger), &c.Ledger); err != nil && v.err == nil {
			v.err = err
		}
	}
	_ = v.seq() // covered_seq, which is in the ledger too
	c.Turn, c.Chars, c.CoveredTurn, c.CoveredChars = v.int(), v.int(), v.int(), v.int()
	c.MaxContextChars, c.Profile, c.Titled, c.FirstUser, c.Answered = v.int(), v.text(), v.flag(), v.seq(), v.flag()
}

func scanMark(v *values) summary.Mark {
	return summary.Mark{Seq: v.seq(), Turn: v.int(), Chars: v.int()}
}

func scanTaken(v *values) (t summary.Taken) {
	t.Seq, t.ID, t.Level, t.First, t.Last = v.seq(), v.text(), v.int(), v.seq(), v.seq()
	t.FirstTurn, t.LastTurn, t.Chars, t.Revised = v.int(), v.int(), v.int(), v.flag()
	return t
}
