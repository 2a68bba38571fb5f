package sqlitestore

import (
	"context"
	"database/sql"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
)

const ofBags = " FROM bag INDEXED BY bag_by_conversation WHERE c = ?" + inRange

// Bags implements graph.RecallReader.
func (g *Graph) Bags(ctx context.Context, id events.ConversationID, q graph.BagQuery) (list []graph.Bag, err error) {
	err = g.Snapshot(ctx, func(query Queryer) error {
		key, _, err := conversation(query, id)
		if err != nil {
			return err
		}
		rows, err := query("SELECT seq, n, terms, vectors"+ofBags+oldestFirst, key, min(q.From, maxSeq), before(q.Before), limit(q.Limit))
		list, err = bags(rows, err)
		return err
	})
	return list, err
}

func bags(rows *sql.Rows, err error) (list []graph.Bag, _ error) {
	return All(rows, err, func(rows *sql.Rows, b *graph.Bag) error { return rows.Scan(&b.Seq, &b.N, &b.Terms, &b.Vectors) })
}

const messagesAt = "SELECT " + messageColumns + " FROM message INDEXED BY message_by_conversation WHERE c = ? AND seq IN (SELECT k.value FROM json_each(?) AS k) ORDER BY seq"

// MessagesAt implements graph.RecallReader.
func (g *Graph) MessagesAt(ctx context.Context, id events.ConversationID, seqs []uint64) (list []graph.Message, err error) {
	err = g.Snapshot(ctx, func(query Queryer) error {
		key, _, err := conversation(query, id)
		if err != nil {
			return err
		}
		list, err = messages(query, messagesAt, key, marshal(append([]uint64{}, seqs...)))
		return err
	})
	return list, err
}
