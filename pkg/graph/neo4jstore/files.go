package neo4jstore

import (
	"cmp"
	"context"
	"errors"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
)

// Files is the read model "files" in Neo4j.
type Files struct{ *Store[*graph.FilesUnit] }

var _ graph.FilesStore = (*Files)(nil)

// FilesCodec is the read model "files".
var FilesCodec = Codec[*graph.FilesUnit]{
	Layout: filesLayout,
	Begin:  func(t *Tx) Work[*graph.FilesUnit] { return &filesTx{Tx: t} },
	Hash:   hashFiles,
}

// OpenFiles connects to write one generation of the read model, and makes the schema. It
// returns the errors of the package comment.
func OpenFiles(ctx context.Context, c Config, generation int) (*Files, error) {
	s, err := Open(ctx, c, generation, FilesCodec)
	if err != nil {
		return nil, err
	}
	return &Files{s}, nil
}

const foundFiles = "MATCH (c:FilesConversation {key: $key}) MATCH (s:FilesSettled {key: c.checkpoint}) "

// ranks is the factor in an access's position, seq * ranks + rank. No event makes a
// thousand accesses.
const ranks = 1000

// place is the position of an access in its conversation.
func place(seq uint64, rank int) int64 { return number(seq)*ranks + int64(rank) }

// isCurrent selects accesses that are current as of a sequence: from since, which is set if
// a failed call made the access current again, to until. No statement here uses OR, because
// the planner may search for each side separately and sort the results.
const isCurrent = "coalesce(a.until, settled + 1) > settled AND coalesce(a.since, settled) <= settled"

// The reads of files, newest first. Accesses that are current as of the settled sequence
// can be found until the second later commit to the conversation. If that commit is settled
// when a read ends, the read may have missed some.
const (
	selectFilesState = foundFiles + `RETURN s.seq, s.repairs, c.last_seq, c.deleted_seq,
		COLLECT { MATCH (e:FilesEvent) WHERE e.conversation = $key AND e.seq <= s.seq RETURN e.seq ORDER BY e.conversation DESC, e.seq DESC LIMIT 1 }`

	selectAccessesNow = foundFiles + `WITH c, s.seq AS settled
		WITH c, settled, COLLECT { MATCH (a:FileAccess) USING INDEX SEEK a:FileAccess(conversation, current)
			WHERE a.conversation = $key AND a.current < (settled + 1) * 1000 AND ` + isCurrent + `
			RETURN [a.path, a.kind, a.tool, a.turn, a.seq, a.count] ORDER BY a.conversation DESC, a.current DESC LIMIT $limit } AS list
		WITH c, settled, list, COLLECT { MATCH (e:FilesEvent) WHERE e.conversation = $key AND e.seq <= settled RETURN e.seq ORDER BY e.conversation DESC, e.seq DESC LIMIT 1 } AS newest
		MATCH (s:FilesSettled {key: c.checkpoint}) RETURN list, s.seq = settled OR c.last_seq <= settled AS whole, coalesce(newest[0], 0)`

	selectAccessesThen = foundFiles + `WITH c, CASE WHEN s.seq < $last THEN s.seq ELSE $last END AS last
		MATCH (a:FileAccess) WHERE a.conversation = $key AND a.at < (last + 1) * 1000 AND coalesce(a.revoked, last + 1) > last
		WITH a.path AS path, a.kind AS kind, max(a.at) AS at, count(*) AS count ORDER BY at DESC LIMIT $limit
		MATCH (a:FileAccess {conversation: $key, at: at}) WITH a, count ORDER BY a.at DESC
		RETURN collect([a.path, a.kind, a.tool, a.turn, a.seq, count])`

	selectFilesForHash = foundFiles + `WITH c, s.seq AS settled RETURN settled, c.last_seq, c.deleted_seq, c.cwd, c.turn_count,
		COLLECT { MATCH (a:FileAccess) WHERE a.conversation = $key AND a.at < (settled + 1) * 1000
			RETURN [a.path, a.kind, a.tool, a.turn, a.count, a.current IS NOT NULL AND ` + isCurrent + `, a.revoked IS NOT NULL] ORDER BY a.conversation, a.at }`
)

// filesAttempts is how often a read of the current files is tried while commits overtake
// it. After that the files are found among all accesses, which takes longer but cannot be
// overtaken.
const filesAttempts = 5

// Files implements graph.FilesReader.
func (f *Files) Files(ctx context.Context, id events.ConversationID, q graph.FileQuery) (list []graph.FileAccess, err error) {
	n := q.Limit
	if n <= 0 {
		n = 200
	}
	params := map[string]any{"key": f.Key(id), "last": number(cmp.Or(q.AsOf, graph.Latest)), "limit": n}
	v, newest, err := f.current(ctx, params)
	if errors.Is(err, errOvertaken) || err == nil && q.AsOf != 0 && q.AsOf < newest {
		v, err = f.first(ctx, selectAccessesThen, params)
	}
	if err != nil {
		return nil, err
	}
	if len(v.list) == 0 {
		return nil, nil
	}
	return scanAll(v, scanAccess), v.err
}

func scanAccess(v *values) graph.FileAccess {
	return graph.FileAccess{Path: v.text(), Kind: v.text(), Tool: v.text(), Turn: v.int(), Seq: v.seq(), Count: v.int()}
}

// errOvertaken means that commits overtook every attempt of a read.
var errOvertaken = errors.New("commits overtook the read")

// current reads the current files, and the conversation's last sequence at that time.
func (f *Files) current(ctx context.Context, params map[string]any) (v *values, newest uint64, err error) {
	for range filesAttempts {
		if v, err = f.first(ctx, selectAccessesNow, params); err != nil || len(v.list) == 0 {
			return v, 0, err
		}
		end := &values{list: v.list[1:]}
		whole := end.flag()
		if newest = end.seq(); whole || end.err != nil {
			return v, newest, end.err
		}
	}
	return nil, 0, errOvertaken
}

// first reads the first row of a statement; no values if there is none.
func (f *Files) first(ctx context.Context, query string, params map[string]any) (*values, error) {
	rows, err := f.Read(ctx, query, params)
	if err != nil || len(rows) == 0 {
		return &values{list: []any{}}, err
	}
	return &values{list: rows[0]}, nil
}

// LastSeq implements graph.FilesReader.
func (f *Files) LastSeq(ctx context.Context, id events.ConversationID) (seq, repairs uint64, err error) {
	rows, err := f.Read(ctx, selectFilesState, map[string]any{"key": f.Key(id)})
	if err != nil || len(rows) == 0 {
		return 0, 0, err
	}
	v := &values{list: rows[0]}
	settled, repairs, last, deleted, newest := v.seq(), v.seq(), v.seq(), v.seq(), take[[]any](v)
	if last <= settled || deleted != 0 || len(newest) == 0 {
		return min(last, settled), repairs, v.err
	}
	return valuesOf(newest).seq(), repairs, v.err
}

// hashFiles implements Codec.Hash.
func hashFiles(ctx context.Context, s *Store[*graph.FilesUnit], id events.ConversationID) (projection.ConversationHash, error) {
	h := projection.ConversationHash{Conversation: id}
	rows, err := s.Read(ctx, selectFilesForHash, map[string]any{"key": s.Key(id)})
	if err != nil || len(rows) == 0 {
		return h, err
	}
	v := &values{list: rows[0]}
	settled, last, deleted := v.seq(), v.seq(), v.seq()
	hasher := graph.NewHasher(id)
	hasher.FilesConversation(graph.FilesState{ConversationState: projection.ConversationState{DeletedSeq: deleted}, Cwd: v.text(), TurnCount: v.int()})
	for _, one := range take[[]any](v) {
		a := valuesOf(one)
		path, kind, tool, turn, count, current, revoked := a.text(), a.text(), a.text(), a.int(), a.int(), a.flag(), a.flag()
		if a.err != nil {
			return h, a.err
		}
		if !current {
			count = 0
		}
		if deleted == 0 {
			hasher.Access(path, kind, tool, turn, count, revoked)
		}
	}
	h.LastSeq, h.Hash = min(last, settled), hasher.Sum()
	return h, v.err
}
