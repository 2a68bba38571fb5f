package transcript

import (
	"context"
	"database/sql"
	"errors"
	"regexp"

	"github.com/klauspost/compress/zstd"
)

const openClawFormat = "openclaw"

// openClaw names the events of OpenClaw, whose sessions have the lines of pi's.
var openClaw = piNames{format: openClawFormat, agent: "OpenClaw", source: "import/openclaw", prefix: "openclaw:"}

// openClawTask matches the prompt of a subagent and captures its task.
var openClawTask = regexp.MustCompile(`(?s)^\[Subagent Context\] .*?\n\n\[Subagent Task\]\n\n(.+?)(?:\n\nBegin\. Execute the assigned task to completion\.)?$`)

var openClawTables = []map[string][]string{
	{"transcript_events": {"session_id", "seq", "event_json"}, "session_windows": {"session_id", "created_at", "updated_at"}},
}

// openClawStore reads the database of an agent of OpenClaw. Until the summer of 2026 its sessions were files of JSON lines;
// since then each line is a row, which is final.
type openClawStore struct {
	packed  bool // rows may be compressed
	decoder *zstd.Decoder
}

func newOpenClawStore(string) store { return &openClawStore{} }

func (o *openClawStore) sessions(ctx context.Context, db *sql.DB, since int64) (_ []stored, err error) {
	if o.packed, err = hasColumns(ctx, db, map[string][]string{"transcript_events": {"event_zstd"}}); err != nil {
		return nil, err
	}
	return changedSince(ctx, db, since, `SELECT session_id, created_at AS created, max(updated_at, coalesce((SELECT e.created_at FROM transcript_events e WHERE e.session_id = w.session_id ORDER BY e.seq DESC LIMIT 1), 0)) AS changed
			FROM session_windows w`,
		func(s *stored) []any { return []any{&s.id, &s.created, &s.changed} })
}

func (o *openClawStore) session(ctx context.Context, tx *sql.Tx, s stored, out *batch) error {
	p := newPiOf(openClaw, s.id)
	text := "event_json, NULL"
	if o.packed {
		text = "event_json, event_zstd"
	}
	return query(ctx, tx, func(scan func(...any) error) error {
		var plain, packed []byte
		if err := scan(&plain, &packed); err != nil {
			return err
		}
		out.line++
		raw, err := o.unpack(plain, packed)
		if err == nil {
			err = p.value(out, raw)
		}
		if err != nil {
			p.refuse(out, err)
		}
		return nil
	}, "SELECT "+text+" FROM transcript_events WHERE session_id = ? ORDER BY seq", s.id)
}

// unpack returns the text of a row.
func (o *openClawStore) unpack(plain, packed []byte) ([]byte, error) {
	switch {
	case len(plain) > 0:
		return plain, nil
	case len(packed) == 0:
		return nil, errors.New("is empty")
	}
	if o.decoder == nil {
		decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(MaxLineBytes))
		if err != nil {
			return nil, err
		}
		o.decoder = decoder // it starts no goroutines
	}
	return o.decoder.DecodeAll(packed, nil)
}
