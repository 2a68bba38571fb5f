package neo4jstore

import (
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
		movePiece("ProjectsConversation", "digest", "since"),
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

var selectProjectsStates = statesOf("ProjectsConversation", "digest", "since")

// Load implements Work.
func (t *projectsTx) Load(ctx context.Context, list []*events.Recorded) (*project.Unit, error) {
	u := project.NewUnit()
	return u, loadStates(ctx, t.Tx, u.States, list, selectProjectsStates, func(v *values, s *project.State) (err error) {
		digest := v.text()
		s.Since = v.int()
		s.Digest, err = project.DecodeDigest(digest)
		return err
	})
}

// Save implements Work.
func (t *projectsTx) Save(_ context.Context, u *project.Unit) error {
	saveStates(t.Tx, u.States, func(s *project.State, r Row) {
		if s.DeletedSeq == 0 {
			r.text("digest", project.Encode(&s.Digest))
			r.count("since", s.Since)
		}
	})
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
	t.AddEvents(u.Lives)
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
