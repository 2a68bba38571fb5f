package neo4jstore

import (
	"context"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
)

// hashPage is how many rows of each kind are read at once.
const hashPage = 200

// selectForHash reads a conversation with its first rows.
var (
	selectForHash = found + "WITH c, s.seq AS settled, s.seq AS upTo WITH c, settled, " +
		"COLLECT { MATCH (n:Version) WHERE n.conversation = $key AND n.seq <= upTo RETURN " + versionProps.list("n") + " ORDER BY n.conversation, n.seq } AS versions, " +
		"[" + extentsAt("upTo") + "] AS extents, " +
		messages.between(nil, true, messageProps.list("n")) + " AS messages, " +
		calls.between(nil, true, callProps.list("n")) + " AS calls, " +
		results.between(nil, true, resultProps.list("n")) + " AS results, " +
		summaries.between(nil, true, summaryProps.list("n")) + " AS summaries, " +
		condensations.between(nil, true, condensedProps.list("n")) + " AS condensations " +
		"RETURN " + frame + ", c.created_at, c.last_seq, versions, extents, messages, calls, results, summaries, condensations"
	selectMoreMessages = reading(messages.between(nil, true, messageProps.list("n")))
	selectMoreCalls    = reading(calls.between(nil, true, callProps.list("n")))
	selectMoreResults  = reading(results.between(nil, true, resultProps.list("n")))

	selectMoreSummaries     = reading(summaries.between(nil, true, summaryProps.list("n")))
	selectMoreCondensations = reading(condensations.between(nil, true, condensedProps.list("n")))
)

// hashGraph implements Codec.Hash.
func hashGraph(ctx context.Context, s *Store[*graph.Unit], id events.ConversationID) (projection.ConversationHash, error) {
	h := projection.ConversationHash{Conversation: id}
	rows, err := s.Read(ctx, selectForHash, map[string]any{"key": s.Key(id), "from": 0, "limit": hashPage})
	if err != nil || len(rows) == 0 {
		return h, err
	}
	v := &values{list: rows[0]}
	settled, first, deleted, created := v.seq(), v.seq(), v.seq(), v.text()
	last := v.seq()
	if first > settled {
		return h, v.err
	}
	hasher := graph.NewHasher(id)
	if deleted != 0 {
		hasher.Conversation(graph.Conversation{DeletedSeq: deleted})
		h.LastSeq, h.Hash = last, hasher.Sum()
		return h, v.err
	}
	versions := scanAll(v, scanVersion)
	reached := scanExtent(valuesOf(take[[]any](v)))
	c := graph.Conversation{Counts: reached.Counts, UpdatedAt: reached.updated}
	if c.UpdatedAt != "" {
		c.CreatedAt = created
	}
	hasher.Conversation(c)
	for _, version := range versions {
		if version.Ended > settled {
			version.Ended = 0
		}
		hasher.Version(version)
	}
	rest := remaining{&Graph{s}, ctx, id, settled}
	if err := hashRows(rest, v, scanMessage, selectMoreMessages, func(m graph.Message) uint64 { hasher.Message(m); return m.Seq }); err != nil {
		return h, err
	}
	if err := hashRows(rest, v, scanCall, selectMoreCalls, func(c graph.ToolCall) uint64 { hasher.Call(c); return c.Seq }); err != nil {
		return h, err
	}
	if err := hashRows(rest, v, scanResult, selectMoreResults, func(r graph.ToolResult) uint64 { hasher.Result(r); return r.Seq }); err != nil {
		return h, err
	}
	if err := hashRows(rest, v, scanSummary, selectMoreSummaries, func(s graph.Summary) uint64 { hasher.Summary(s); return s.Seq }); err != nil {
		return h, err
	}
	if err := hashRows(rest, v, scanCondensed, selectMoreCondensations, func(c graph.Condensed) uint64 { hasher.Condensed(c); return c.Seq }); err != nil {
		return h, err
	}
	h.LastSeq, h.Hash = c.LastSeq, hasher.Sum()
	return h, v.err
}

// remaining holds the reads of a conversation's pages after the first.
type remaining struct {
	*Graph
	ctx  context.Context
	id   events.ConversationID
	last uint64
}

// hashRows feeds the rows of a kind: first the rows already read, then page by page.
func hashRows[T any](r remaining, page *values, scan func(*values) T, query string, feed func(T) uint64) error {
	for {
		list := scanAll(page, scan)
		if page.err != nil {
			return page.err
		}
		var seq uint64
		for _, row := range list {
			seq = feed(row)
		}
		if len(list) < hashPage {
			return nil
		}
		var err error
		if page, err = r.of(r.ctx, r.id, query, map[string]any{"from": number(seq + 1), "last": number(r.last), "limit": hashPage}); err != nil {
			return err
		}
	}
}

func scanVersion(v *values) graph.Version {
	return graph.Version{Seq: v.seq(), Ended: v.seq(), Time: v.text(), Description: scanDescription(v)}
}
