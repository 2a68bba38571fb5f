package sqlitestore

import (
	"database/sql"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
)

func graphHash(q Queryer, id events.ConversationID) (projection.ConversationHash, error) {
	h := projection.ConversationHash{Conversation: id}
	var key int64
	var c graph.Conversation
	rows, err := q(selectConversation, id.Tenant, id.ID)
	if err := Each(rows, err, func(rows *sql.Rows) error { return scanConversation(rows, &key, &c) }); err != nil || key == 0 {
		return h, err
	}
	hasher := graph.NewHasher(id)
	hasher.Conversation(c)
	rows, err = q("SELECT v.ended, '','',v.time,'',0,0,0,0,0,0,0,0,0,0,0, "+descriptionColumns+" FROM version AS v WHERE v.c = ? ORDER BY v.seq", key)
	if err := Each(rows, err, func(rows *sql.Rows) error {
		var v graph.Version
		var ended int64
		var described graph.Conversation
		err := scanConversation(rows, &ended, &described)
		v.Ended, v.Time, v.Description = uint64(ended), described.CreatedAt, described.Description
		hasher.Version(v)
		return err
	}); err != nil {
		return h, err
	}
	const page = 500
	for after := uint64(0); ; {
		list, err := messages(q, "SELECT "+messageColumns+" FROM message WHERE c = ? AND seq > ? ORDER BY seq LIMIT ?", key, after, page)
		if err != nil {
			return h, err
		}
		for _, m := range list {
			hasher.Message(m)
			after = m.Seq
		}
		if len(list) < page {
			break
		}
	}
	if err := feed(q, "SELECT "+callColumns+" FROM tool_call WHERE c = ? ORDER BY seq", key, scanCall, hasher.Call); err != nil {
		return h, err
	}
	if err := feed(q, "SELECT "+resultColumns+" FROM tool_result WHERE c = ? ORDER BY seq", key, scanResult, hasher.Result); err != nil {
		return h, err
	}
	if err := feed(q, "SELECT "+summaryColumns+", 0, 0 FROM summary WHERE c = ? ORDER BY seq", key, scanSummary, hasher.Summary); err != nil {
		return h, err
	}
	if err := feed(q, "SELECT "+condensedColumns+" FROM condensed WHERE c = ? ORDER BY seq", key, scanCondensed, hasher.Condensed); err != nil {
		return h, err
	}
	h.LastSeq, h.Hash = c.LastSeq, hasher.Sum()
	return h, nil
}

// feed feeds the rows of a conversation that a query finds.
func feed[T any](q Queryer, query string, key int64, scan func(*sql.Rows, *T) error, to func(T)) error {
	rows, err := q(query, key)
	return Each(rows, err, func(rows *sql.Rows) error {
		var row T
		err := scan(rows, &row)
		to(row)
		return err
	})
}
