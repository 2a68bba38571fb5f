package neo4jstore

import (
	"cmp"
	"context"
	"errors"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/insight"
	"mneme.dev/mneme/pkg/projection"
)

// Insight is the read model "insight" in Neo4j.
type Insight struct{ *Store[*insight.Unit] }

var _ insight.Store = (*Insight)(nil)

// InsightCodec is the read model "insight".
var InsightCodec = Codec[*insight.Unit]{
	Layout: insightLayout,
	Begin:  func(t *Tx) Work[*insight.Unit] { return &insightTx{t} },
	Hash:   hashInsight,
}

// A row changes with its conversation's next event, so a read of rows sees each as of its last commit, settled or not.
const (
	daysOfTenant       = "MATCH (d:InsightDay) USING INDEX SEEK d:InsightDay(listed, day) WHERE d.listed = $listed"
	daysOfConversation = "MATCH (d:InsightDay) USING INDEX SEEK d:InsightDay(conversation, day) WHERE d.conversation = $key AND d.listed = $listed"
	withinDays         = " AND d.day >= $since AND d.day <= $until AND ($projects IS NULL OR d.project IN $projects) RETURN d.id, d.day, d.project, d.agent, "
	countsOfDays       = "d.counts, ''"
	detailsOfDays      = "'', d.detail"

	selectInsightForHash = `MATCH (c:InsightConversation {key: $key}) RETURN c.last_seq, c.deleted_seq, c.memory, COLLECT {
		MATCH (d:InsightDay) USING INDEX SEEK d:InsightDay(conversation, day) WHERE d.conversation = $key AND d.day IS NOT NULL RETURN [` + insightRow + `] ORDER BY d.conversation, d.day }`
	selectInsightPosition = "MATCH (c:InsightConversation {key: $key}) RETURN c.last_seq"
)

// Rows implements insight.Reader.
func (s *Insight) Rows(ctx context.Context, tenant string, q insight.RowQuery, yield func(*insight.Row) error) error {
	statement := daysOfTenant
	if q.Conversation != "" {
		statement = daysOfConversation
	}
	if statement += withinDays; q.Detail {
		statement += detailsOfDays
	} else {
		statement += countsOfDays
	}
	var projects any
	if q.Projects != nil {
		projects = q.Projects
	}
	of := map[string]any{
		"listed": s.tenantKey(tenant), "key": s.Key(events.ConversationID{Tenant: tenant, ID: q.Conversation}),
		"since": q.Since, "until": cmp.Or(q.Until, "~"), "projects": projects,
	}
	return s.each(ctx, statement, of, func(row []any) error {
		v := &values{list: row}
		r := insight.Row{Conversation: v.text(), Day: v.text(), Project: v.text(), Agent: v.text(), Counts: v.text(), Detail: v.text()}
		if v.err != nil {
			return v.err
		}
		return yield(&r)
	})
}

// hashAttempts is how often a hash is read while commits to its conversation overtake the read.
const hashAttempts = 5

var errRowsMoved = errors.New("commits overtook the read of a conversation's rows")

// hashInsight implements Codec.Hash. Rows change, so it reads them again if the conversation has moved on.
func hashInsight(ctx context.Context, s *Store[*insight.Unit], id events.ConversationID) (h projection.ConversationHash, err error) {
	h.Conversation = id
	key := map[string]any{"key": s.Key(id)}
	for range hashAttempts {
		rows, err := s.Read(ctx, selectInsightForHash, key)
		if err != nil || len(rows) == 0 {
			return h, err
		}
		v := &values{list: rows[0]}
		last, deleted, memory := v.seq(), v.seq(), v.text()
		list := scanAll(v, scanInsightRow)
		if v.err != nil {
			return h, v.err
		}
		now, err := s.Read(ctx, selectInsightPosition, key)
		if err != nil {
			return h, err
		}
		if len(now) == 1 && (&values{list: now[0]}).seq() == last {
			h.LastSeq, h.Hash = last, insight.Hash(id, deleted != 0, memory, list)
			return h, nil
		}
	}
	return h, errRowsMoved
}

// Warm is like [Graph.Warm].
func (s *Insight) Warm(ctx context.Context) error {
	none := func(*insight.Row) error { return nil }
	err := s.Rows(ctx, nobody.Tenant, insight.RowQuery{}, none)
	e := s.Rows(ctx, nobody.Tenant, insight.RowQuery{Detail: true}, none)
	return cmp.Or(err, e, s.warm(ctx))
}
