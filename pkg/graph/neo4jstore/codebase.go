package neo4jstore

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/codebase"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
)

// Codebase is the read model "code" in Neo4j.
type Codebase struct{ *Store[*codebase.Unit] }

var _ codebase.Store = (*Codebase)(nil)

// CodebaseCodec is the read model "code".
var CodebaseCodec = Codec[*codebase.Unit]{
	Layout: codebaseLayout,
	Begin:  func(t *Tx) Work[*codebase.Unit] { return &codebaseTx{t} },
	Hash:   hashCodebase,
}

const (
	upToCode  = "MATCH (s:CodeSettled {key: c.checkpoint}) WITH c, CASE WHEN s.seq < $last THEN s.seq ELSE $last END AS upTo "
	foundCode = "MATCH (c:CodeConversation {key: $key}) WHERE c.deleted_seq IS NULL " + upToCode

	newestScan = `COLLECT { MATCH (n:CodeScan) USING INDEX SEEK n:CodeScan(conversation, seq) WHERE n.conversation = c.key AND n.seq <= upTo
			RETURN [n.seq, n.event_id, n.project, n.root, n.done, n.files] ORDER BY n.conversation DESC, n.seq DESC LIMIT 1 }`
	selectCodeIndexes = "MATCH (c:CodeConversation) USING INDEX SEEK c:CodeConversation(listed) WHERE c.listed = $listed AND c.deleted_seq IS NULL " + upToCode +
		"WITH " + newestScan + " AS newest WHERE size(newest) > 0 RETURN newest ORDER BY newest[0][0] DESC LIMIT $limit"
	selectCodeScan = foundCode + "RETURN " + newestScan

	selectCodeVersions = foundCode + `RETURN COLLECT { MATCH (n:CodeVersion) USING INDEX SEEK n:CodeVersion(conversation, seq)
			WHERE n.conversation = $key AND n.seq >= $from AND n.seq <= upTo
			RETURN [n.seq, n.event_id, n.path, n.hash, n.removed, n.language, n.lines, n.left_out, n.scopes, CASE WHEN $bags THEN n.bags END] ORDER BY n.conversation, n.seq LIMIT $limit }`
	selectCodeBags = foundCode + `UNWIND $in.seqs AS seq WITH seq, upTo WHERE seq <= upTo
		MATCH (n:CodeVersion) USING INDEX SEEK n:CodeVersion(conversation, seq) WHERE n.conversation = $key AND n.seq = seq RETURN seq, n.bags`
	selectCodeTexts = foundCode + `UNWIND $in.seqs AS seq WITH seq, upTo WHERE seq <= upTo
		RETURN seq, COLLECT { MATCH (n:CodeScope) USING INDEX SEEK n:CodeScope(conversation, seq, part) WHERE n.conversation = $key AND n.seq = seq AND n.part >= 0
			RETURN n.text ORDER BY n.conversation, n.seq, n.part }`

	selectCodeForHash = `MATCH (c:CodeConversation {key: $key}) MATCH (s:CodeSettled {key: c.checkpoint})
		WITH c, s.seq AS settled RETURN settled, c.last_seq, c.deleted_seq, COLLECT { MATCH (n:CodeScan) USING INDEX SEEK n:CodeScan(conversation, seq)
			WHERE n.conversation = $key AND n.seq <= settled RETURN [n.seq, n.event_id, n.project, n.root, n.done, n.files] ORDER BY n.conversation, n.seq }`
)

func codeScan(v *values) codebase.Scan {
	return codebase.Scan{Seq: v.seq(), EventID: v.text(), Project: v.text(), Root: v.text(), Done: v.flag(), Files: v.int()}
}

// Indexes implements codebase.Reader.
func (s *Codebase) Indexes(ctx context.Context, tenant string, asOf uint64) (list []codebase.Scan, err error) {
	params := map[string]any{"listed": s.tenantKey(tenant), "last": number(asOf), "limit": codebase.MaxIndexes}
	err = s.scan(ctx, selectCodeIndexes, params, func(v *values) { list = append(list, scanAll(v, codeScan)...) })
	slices.SortFunc(list, func(a, b codebase.Scan) int {
		return cmp.Or(strings.Compare(a.Project, b.Project), cmp.Compare(a.Seq, b.Seq))
	})
	return list, err
}

// Scanned implements codebase.Reader.
func (s *Codebase) Scanned(ctx context.Context, id events.ConversationID, asOf uint64) (*codebase.Scan, error) {
	rows, err := s.Read(ctx, selectCodeScan, map[string]any{"key": s.Key(id), "last": number(asOf)})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	v := &values{list: rows[0]}
	list := scanAll(v, codeScan)
	if v.err != nil || len(list) == 0 {
		return nil, v.err
	}
	return &list[0], nil
}

// Versions implements codebase.Reader.
func (s *Codebase) Versions(ctx context.Context, id events.ConversationID, q codebase.VersionQuery) ([]codebase.Version, error) {
	return s.versions(ctx, id, q, false)
}

func (s *Codebase) versions(ctx context.Context, id events.ConversationID, q codebase.VersionQuery, bags bool) ([]codebase.Version, error) {
	rows, err := s.Read(ctx, selectCodeVersions, map[string]any{"key": s.Key(id), "from": number(q.From), "last": number(q.AsOf), "limit": q.Limit, "bags": bags})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	v := &values{list: rows[0]}
	list := scanAll(v, func(v *values) codebase.Version {
		one := codebase.Version{Seq: v.seq(), EventID: v.text(), Path: v.text(), Hash: v.text(), Removed: v.flag(), Language: v.text(), Lines: v.int(), Left: v.int()}
		v.json(&one.Scopes)
		one.Bags = take[[]byte](v)
		return one
	})
	return list, v.err
}

// Bags implements codebase.Reader.
func (s *Codebase) Bags(ctx context.Context, id events.ConversationID, seqs []uint64) (map[uint64][]byte, error) {
	bags := map[uint64][]byte{}
	err := s.ofVersions(ctx, id, selectCodeBags, seqs, func(v *values) {
		seq := v.seq()
		bags[seq] = take[[]byte](v)
	})
	return bags, err
}

// Texts implements codebase.Reader.
func (s *Codebase) Texts(ctx context.Context, id events.ConversationID, seqs []uint64) (map[uint64][]string, error) {
	texts := map[uint64][]string{}
	err := s.ofVersions(ctx, id, selectCodeTexts, seqs, func(v *values) {
		if seq, list := v.seq(), v.strings(); len(list) > 0 {
			texts[seq] = list
		}
	})
	return texts, err
}

// ofVersions reads rows of versions by their sequences.
func (s *Codebase) ofVersions(ctx context.Context, id events.ConversationID, query string, seqs []uint64, scan func(*values)) error {
	numbers := make([]int64, len(seqs))
	for i, seq := range seqs {
		numbers[i] = number(seq)
	}
	params := In("seqs", numbers)
	params["key"], params["last"] = s.Key(id), number(graph.Latest)
	return s.scan(ctx, query, params, scan)
}

// hashedAtOnce is how many versions a hash reads at once.
const hashedAtOnce = 256

// hashCodebase implements Codec.Hash.
func hashCodebase(ctx context.Context, s *Store[*codebase.Unit], id events.ConversationID) (h projection.ConversationHash, err error) {
	h.Conversation = id
	rows, err := s.Read(ctx, selectCodeForHash, map[string]any{"key": s.Key(id)})
	if err != nil || len(rows) == 0 {
		return h, err
	}
	v := &values{list: rows[0]}
	settled, last, deleted := v.seq(), v.seq(), v.seq()
	scans := scanAll(v, codeScan)
	if v.err != nil {
		return h, v.err
	}
	hasher := codebase.NewHasher(id, deleted != 0)
	for from := uint64(0); deleted == 0; {
		list, err := (&Codebase{s}).versions(ctx, id, codebase.VersionQuery{From: from, AsOf: settled, Limit: hashedAtOnce}, true)
		if err != nil {
			return h, err
		}
		for i := range list {
			hasher.Version(&list[i])
		}
		if len(list) < hashedAtOnce {
			break
		}
		from = list[len(list)-1].Seq + 1
	}
	for i := range scans {
		if deleted == 0 {
			hasher.Scan(&scans[i])
		}
	}
	h.LastSeq, h.Hash = min(last, settled), hasher.Sum()
	return h, nil
}

// Warm is like [Graph.Warm].
func (s *Codebase) Warm(ctx context.Context) error {
	_, err := s.Indexes(ctx, nobody.Tenant, graph.Latest)
	_, e := s.Scanned(ctx, nobody, graph.Latest)
	_, f := s.Versions(ctx, nobody, codebase.VersionQuery{AsOf: graph.Latest, Limit: 1})
	_, g := s.Texts(ctx, nobody, []uint64{1})
	return cmp.Or(err, e, f, g, s.warm(ctx))
}
