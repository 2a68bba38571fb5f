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
	rows, err = q("SELECT "+callColumns+" FROM tool_call WHERE c = ? ORDER BY seq", key)
	if err := Each(rows, err, func(rows *sql.Rows) error {
		var c graph.ToolCall
		err := scanCall(rows, &c)
		hasher.Call(c)
		return err
	}); err != nil {
		return h, err
	}
	rows, err = q("SELECT "+resultColumns+" FROM tool_result WHERE c = ? ORDER BY seq", key)
	if err := Each(rows, err, func(rows *sql.Rows) error {
		var r graph.ToolResult
		err := scanResult(rows, &r)
		hasher.Result(r)
		return err
	}); err != nil {
		return h, err
	}
	rows, err = q("SELECT "+summaryColumns+", 0, 0 FROM summary WHERE c = ? ORDER BY seq", key)
	if err := Each(rows, err, func(rows *sql.Rows) error {
		var s graph.Summary
		err := scanSummary(rows, &s)
		hasher.Summary(s)
		return err
	}); err != nil {
		return h, err
	}
	rows, err = q("SELECT "+condensedColumns+" FROM condensed WHERE c = ? ORDER BY seq", key)
	if err := Each(rows, err, func(rows *sql.Rows) error {
		var c graph.Condensed
		err := scanCondensed(rows, &c)
		hasher.Condensed(c)
		return err
	}); err != nil {
		return h, err
	}
	h.LastSeq, h.Hash = c.LastSeq, hasher.Sum()
	return h, nil
}
