package neo4jstore

import (
	"cmp"
	"context"
	"slices"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/project"
	"mneme.dev/mneme/pkg/projection"
)

// Projects is the read model "projects" in Neo4j.
type Projects struct {
	*Store[*project.Unit]
	replayer *project.Replayer
}

// NewProjects returns the reads of a store of [ProjectsCodec].
func NewProjects(s *Store[*project.Unit]) *Projects { return &Projects{s, project.NewReplayer()} }

var _ project.Store = (*Projects)(nil)

// ProjectsCodec is the read model "projects".
var ProjectsCodec = Codec[*project.Unit]{
	Layout: projectsLayout,
	Begin:  func(t *Tx) Work[*project.Unit] { return &projectsTx{t} },
	Hash:   hashProjects,
}

// Steps and members never change, so readers use those up to the settled sequence. Hints and the
// order by the index keep a read on the way from a member to its conversation: without them, Neo4j may begin
// with all conversations.
const (
	settledMember = "MATCH (c:ProjectsConversation) USING INDEX SEEK c:ProjectsConversation(key) WHERE c.key = m.conversation AND c.deleted_seq IS NULL MATCH (s:ProjectsSettled) USING INDEX SEEK s:ProjectsSettled(key) WHERE s.key = c.checkpoint AND m.seq <= s.seq"

	selectMembers = `UNWIND $in.names AS name CALL (name) {
			MATCH (m:ProjectMember) USING INDEX SEEK m:ProjectMember(project, seq) WHERE m.project = name[1] AND m.seq <= $last
			RETURN m ORDER BY m.project DESC, m.seq DESC LIMIT $limit
		} ` + settledMember + " RETURN name[0], m.seq, c.id, m.words"

	existsMember = "EXISTS { MATCH (m:ProjectMember) USING INDEX SEEK m:ProjectMember(project, seq) WHERE m.project = n.key AND m.seq <= $last WITH m ORDER BY m.project, m.seq " + settledMember + " }"

	selectNames = `MATCH (n:ProjectName) USING INDEX SEEK n:ProjectName(listed, name) WHERE n.listed = $listed AND n.name > $after AND n.name >= $below AND n.name < $end AND ` + existsMember + `
		RETURN n.name ORDER BY n.listed, n.name LIMIT $limit`
	selectOnlyNames = "UNWIND $in.keys AS key MATCH (n:ProjectName {key: key}) WHERE " + existsMember + " RETURN n.name"

	selectHeads = `UNWIND $in.keys AS key MATCH (c:ProjectsConversation {key: key}) WHERE c.deleted_seq IS NULL MATCH (s:ProjectsSettled {key: c.checkpoint})
		WITH key, coalesce(s.repairs, 0) AS repairs, CASE WHEN s.seq < $last THEN s.seq ELSE $last END AS upTo
		RETURN key, repairs, COLLECT { MATCH (n:ProjectStep) USING INDEX SEEK n:ProjectStep(conversation, seq) WHERE n.conversation = key AND n.seq <= upTo
			RETURN n.seq ORDER BY n.conversation DESC, n.seq DESC LIMIT 1 }`

	selectSteps = `UNWIND $in.ends AS end WITH end[0] AS key, end[1] AS upTo
		WITH key, upTo, COLLECT { MATCH (b:ProjectStep) USING INDEX SEEK b:ProjectStep(conversation, based) WHERE b.conversation = key AND b.based <= upTo
			RETURN b.based ORDER BY b.conversation DESC, b.based DESC LIMIT 1 } AS bases
		WHERE size(bases) > 0
		RETURN key, COLLECT { MATCH (n:ProjectStep) USING INDEX SEEK n:ProjectStep(conversation, seq) WHERE n.conversation = key AND n.seq >= bases[0] AND n.seq <= upTo
			RETURN [n.seq, n.change, n.base] ORDER BY n.conversation, n.seq }`

	selectDeletedProjects = "UNWIND $in.keys AS key MATCH (c:ProjectsConversation {key: key}) WHERE c.deleted_seq IS NOT NULL RETURN c.id"

	selectLastDeletion = `MATCH (c:ProjectsConversation) USING INDEX SEEK c:ProjectsConversation(generation, tenant, deleted_seq)
		WHERE c.generation = $generation AND c.tenant = $tenant AND c.deleted_seq > 0
		RETURN c.deleted_seq ORDER BY c.generation DESC, c.tenant DESC, c.deleted_seq DESC LIMIT 1`

	selectProjectsForHash = `MATCH (c:ProjectsConversation {key: $key}) MATCH (s:ProjectsSettled {key: c.checkpoint})
		WITH c, s.seq AS settled RETURN settled, c.last_seq, c.deleted_seq, COLLECT { MATCH (n:ProjectStep) USING INDEX SEEK n:ProjectStep(conversation, seq)
			WHERE n.conversation = $key AND n.seq <= settled RETURN n.change ORDER BY n.conversation, n.seq }`
)

// Members implements project.Reader.
func (p *Projects) Members(ctx context.Context, tenant string, q project.MemberQuery) (list []project.Member, err error) {
	names := make([]any, len(q.Names))
	for i, name := range q.Names {
		names[i] = []any{name, p.projectKey(tenant, q.Kind, name)}
	}
	params := In("names", names)
	params["last"], params["limit"] = number(q.AsOf), cmp.Or(q.Each, q.Limit)
	err = p.scan(ctx, selectMembers, params, func(v *values) {
		list = append(list, project.Member{Kind: q.Kind, Name: v.text(), Seq: v.seq(), Conversation: events.ConversationID{Tenant: tenant, ID: v.text()}, Words: v.text()})
	})
	slices.SortFunc(list, func(a, b project.Member) int { return cmp.Compare(b.Seq, a.Seq) })
	return list[:min(len(list), q.Limit)], err
}

// Names implements project.Reader.
func (p *Projects) Names(ctx context.Context, tenant string, q project.NameQuery) (list []string, err error) {
	params := map[string]any{"last": number(q.AsOf), "listed": p.projectKey(tenant, q.Kind, ""), "after": q.After, "below": q.Below, "end": q.Below + "\U0010FFFF", "limit": q.Limit}
	statement := selectNames
	if q.Only != nil {
		keys := make([]string, 0, len(q.Only))
		for _, name := range slices.Compact(slices.Sorted(slices.Values(q.Only))) {
			keys = append(keys, p.projectKey(tenant, q.Kind, name))
		}
		statement, params["in"] = selectOnlyNames, map[string]any{"keys": keys}
	}
	err = p.scan(ctx, statement, params, func(v *values) { list = append(list, v.text()) })
	slices.Sort(list)
	return list, err
}

// Digests implements project.Reader.
func (p *Projects) Digests(ctx context.Context, ids []events.ConversationID, asOf uint64) ([]*project.Digest, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	heads, keys, at := make([]project.Head, len(ids)), make([]string, len(ids)), map[string][]int{}
	for i, id := range ids {
		heads[i], keys[i] = project.Head{ID: id}, p.Key(id)
		at[keys[i]] = append(at[keys[i]], i)
	}
	params := In("keys", keys)
	params["last"] = number(asOf)
	err := p.scan(ctx, selectHeads, params, func(v *values) {
		key, repairs, newest := v.text(), v.seq(), take[[]any](v)
		for _, i := range at[key] {
			heads[i].Seq, heads[i].Repairs = valuesOf(newest).seq(), repairs
		}
	})
	if err != nil {
		return nil, err
	}
	return p.replayer.Digests(heads, func(unknown []project.Head) ([][]project.Step, error) { return p.steps(ctx, unknown) })
}

// steps reads the steps that the digests of heads are made of.
func (p *Projects) steps(ctx context.Context, heads []project.Head) ([][]project.Step, error) {
	list, ends, at := make([][]project.Step, len(heads)), make([]any, len(heads)), map[string][]int{}
	for i, h := range heads {
		key := p.Key(h.ID)
		ends[i], at[key] = []any{key, number(h.Seq)}, append(at[key], i)
	}
	err := p.scan(ctx, selectSteps, In("ends", ends), func(v *values) {
		key := v.text()
		steps := scanAll(v, func(v *values) project.Step { return project.Step{Seq: v.seq(), Change: v.text(), Base: v.text()} })
		for _, i := range at[key] {
			list[i] = steps
		}
	})
	return list, err
}

// Deleted implements project.Reader. Each conversation is one seek.
func (p *Projects) Deleted(ctx context.Context, tenant string, ids []string) (map[string]bool, error) {
	deleted := map[string]bool{}
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = p.Key(events.ConversationID{Tenant: tenant, ID: id})
	}
	if len(keys) == 0 {
		return deleted, nil
	}
	err := p.scan(ctx, selectDeletedProjects, In("keys", keys), func(v *values) { deleted[v.text()] = true })
	return deleted, err
}

// LastDeletion implements project.Reader.
func (p *Projects) LastDeletion(ctx context.Context, tenant string) (uint64, error) {
	rows, err := p.Read(ctx, selectLastDeletion, map[string]any{"generation": p.generation, "tenant": tenant})
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	v := &values{list: rows[0]}
	return v.seq(), v.err
}

// hashProjects implements Codec.Hash.
func hashProjects(ctx context.Context, s *Store[*project.Unit], id events.ConversationID) (h projection.ConversationHash, err error) {
	h.Conversation = id
	rows, err := s.Read(ctx, selectProjectsForHash, map[string]any{"key": s.Key(id)})
	if err != nil || len(rows) == 0 {
		return h, err
	}
	v := &values{list: rows[0]}
	settled, last, deleted := v.seq(), v.seq(), v.seq()
	changes := v.strings()
	if v.err != nil {
		return h, v.err
	}
	if deleted != 0 {
		changes = nil
	}
	h.LastSeq = min(last, settled)
	h.Hash, err = project.Hash(id, deleted != 0, changes)
	return h, err
}

// Warm is like [Graph.Warm].
func (p *Projects) Warm(ctx context.Context) error {
	_, err := p.Members(ctx, nobody.Tenant, project.MemberQuery{Kind: project.KindIn, Names: []string{""}, AsOf: graph.Latest, Limit: 1})
	_, e := p.Names(ctx, nobody.Tenant, project.NameQuery{Kind: project.KindIn, AsOf: graph.Latest, Limit: 1})
	_, f := p.Names(ctx, nobody.Tenant, project.NameQuery{Kind: project.KindIn, AsOf: graph.Latest, Only: []string{""}})
	_, g := p.Digests(ctx, []events.ConversationID{nobody}, graph.Latest)
	_, h := p.Deleted(ctx, nobody.Tenant, []string{nobody.ID})
	_, i := p.steps(ctx, []project.Head{{ID: nobody}})
	_, j := p.LastDeletion(ctx, nobody.Tenant)
	return cmp.Or(err, e, f, g, h, i, j, p.warm(ctx))
}
