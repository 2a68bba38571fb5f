package neo4jstore

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/project"
)

var (
	projectStepProps   = props{"seq", "change", "base", "based"}
	projectMemberProps = props{"conversation", "seq", "kind", "project", "words"}
)

var projectsLayout = Layout{
	Projection: "projects", Conversation: "ProjectsConversation", Event: "ProjectsEvent", Payloads: []string{"ProjectsEvent"},
	Statements: []string{selectProjectsStates},
	Writes: []Piece{
		NewConversations("ProjectsConversation"),
		NewPiece("moved", "UNWIND $in.rows AS r MATCH (c:ProjectsConversation {key: r.key}) SET "+props{"last_seq", "digest", "since"}.set("c")),
		Tombstone("ProjectsConversation", ", c.digest = null, c.since = null"),
		Events("ProjectsEvent"),
		NewPiece("steps", "UNWIND $in.rows AS r CREATE (:ProjectStep:ProjectsEvent "+slices.Concat(claimedProps, projectStepProps).create()+")"),
		NewPiece("names", "UNWIND $in.rows AS r MERGE (n:ProjectName {key: r.key}) SET n.listed = r.listed, n.name = r.name, n.tenant = r.tenant"),
		NewPiece("members", "UNWIND $in.rows AS r CREATE (m:ProjectMember "+projectMemberProps.create()+`)
			WITH m, r MATCH (n:ProjectName {key: r.project}) CREATE (m)-[:IN_PROJECT]->(n)`),
	},
	Sweeps: []string{
		`MATCH (m:ProjectMember) WHERE m.conversation = $key AND m.seq IS NOT NULL
			MATCH (m)-[x:IN_PROJECT]->(n:ProjectName) WITH x, n LIMIT $limit WITH collect(x) AS links, collect(DISTINCT n) AS names
			CALL (links) { UNWIND links AS x DELETE x }
			CALL (names) { UNWIND names AS n SET n.name = n.name WITH n WHERE NOT EXISTS { (n)<-[:IN_PROJECT]-() } DELETE n }
			RETURN size(links)`,
		Empty("ProjectMember", "seq"), Empty("ProjectsEvent", "seq"),
	},
	Nodes: []Nodes{{"ProjectMember", bySeq}, {"ProjectsEvent", bySeq}, {Label: "ProjectName"}},
}

type projectsTx struct{ *Tx }

var selectProjectsStates = "UNWIND $in.keys AS key MATCH (c:ProjectsConversation {key: key}) RETURN " + props{"tenant", "id", "last_seq", "deleted_seq", "digest", "since"}.list("c")

// Load implements Work.
func (t *projectsTx) Load(ctx context.Context, list []*events.Recorded) (*project.Unit, error) {
	u := project.NewUnit()
	var keys []string
	for _, e := range list {
		if id := e.Conversation(); u.States[id] == nil {
			u.States[id] = &project.State{ID: id}
			keys = append(keys, t.Key(id))
		}
	}
	if len(keys) == 0 {
		return u, nil
	}
	rows, err := t.Run(ctx, selectProjectsStates, In("keys", keys))
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		v := valuesOf(row[0])
		s := project.State{Key: 1, ID: events.ConversationID{Tenant: v.text(), ID: v.text()}, LastSeq: v.seq(), DeletedSeq: v.seq()}
		digest := v.text()
		if s.Since = v.int(); v.err != nil {
			return nil, v.err
		}
		if s.Digest, err = project.DecodeDigest(digest); err != nil {
			return nil, err
		}
		*u.States[s.ID] = s
	}
	return u, nil
}

// Save implements Work.
func (t *projectsTx) Save(_ context.Context, u *project.Unit) error {
	var list []*project.State
	for _, s := range u.States {
		if s.Touched {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b *project.State) int { return cmp.Compare(a.LastSeq, b.LastSeq) })
	for _, s := range list {
		key := t.Key(s.ID)
		if s.Key == 0 {
			t.Add("conversations", t.NewConversation(s.ID))
		}
		moved := Row{"key": key, "last_seq": number(s.LastSeq)}
		if s.DeletedSeq == 0 {
			moved.text("digest", project.Encode(&s.Digest))
			moved.count("since", s.Since)
		}
		t.Add("moved", moved)
		if s.Dropped {
			t.Delete(s.ID, s.DeletedSeq)
		}
	}
	for i := range u.Steps {
		s := &u.Steps[i].Row
		r := t.Claimed(u.Steps[i].State.ID, s.Seq)
		r["change"] = s.Change
		if s.Base != "" {
			r["base"], r["based"] = s.Base, number(s.Seq)
		}
		t.Add("steps", r)
	}
	t.saveMembers(u)
	t.AddEvents(func(id events.ConversationID) bool {
		s := u.States[id]
		return s != nil && s.DeletedSeq == 0
	})
	return nil
}

func (t *projectsTx) saveMembers(u *project.Unit) {
	names := map[string]Row{}
	for i := range u.Members {
		m := &u.Members[i].Row
		tenant := m.Conversation.Tenant
		key := t.projectKey(tenant, m.Kind, m.Name)
		names[key] = Row{"key": key, "listed": t.projectKey(tenant, m.Kind, ""), "name": m.Name, "tenant": tenant}
		r := Row{"conversation": t.Key(m.Conversation), "seq": number(m.Seq), "kind": m.Kind, "project": key}
		r.text("words", m.Words)
		t.Add("members", r)
	}
	for _, key := range slices.Sorted(maps.Keys(names)) { // sorted, so that concurrent writers lock in the same order
		t.Add("names", names[key])
	}
}

// projectKey is the key of a name, see project.Member.
func (s *store) projectKey(tenant, kind, name string) string {
	return s.tenantKey(tenant) + "/" + kind + "/" + name
}
