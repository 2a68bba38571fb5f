package neo4jstore

import (
	"context"
	"slices"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/codebase"
)

var (
	codeVersionProps = props{"seq", "event_id", "path", "hash", "removed", "language", "lines", "left_out", "scopes", "bags"}
	codeScopeProps   = props{"conversation", "tenant", "seq", "part", "project_path", "name", "kind", "start_line", "end_line", "text"}
	codeScanProps    = props{"seq", "event_id", "project", "root", "done", "files"}
)

var codebaseLayout = Layout{
	Projection: codebase.Name, Conversation: "CodeConversation", Event: "CodeEvent", Payloads: []string{"CodeEvent"},
	Statements: []string{selectCodeStates},
	Writes: []Piece{
		NewConversations("CodeConversation"),
		movePiece("CodeConversation", "project", "listed"),
		Tombstone("CodeConversation", ", c.project = null, c.listed = null"),
		Events("CodeEvent"),
		NewPiece("versions", "UNWIND $in.rows AS r CREATE (:CodeVersion:CodeEvent "+slices.Concat(claimedProps, codeVersionProps).create()+")"),
		// The server converts the bytes to floats, because a float takes nine bytes to send. These nodes lack the
		// properties key and file of the Scope nodes of the projection graph, so nothing in that projection finds them.
		NewPiece("scopes", "UNWIND $in.rows AS r CREATE (n:CodeScope:Scope "+codeScopeProps.create()+") SET n.embedding = [x IN r.vector | toFloat(x)]"),
		NewPiece("scans", "UNWIND $in.rows AS r CREATE (:CodeScan:CodeEvent "+slices.Concat(claimedProps, codeScanProps).create()+")"),
	},
	Sweeps: []string{Empty("CodeScope", "seq", "part"), Empty("CodeEvent", "seq")},
	Nodes:  []Nodes{{"CodeScope", []string{"seq", "part"}}, {"CodeEvent", bySeq}},
}

type codebaseTx struct{ *Tx }

var selectCodeStates = statesOf("CodeConversation", "project")

// Load implements Work.
func (t *codebaseTx) Load(ctx context.Context, list []*events.Recorded) (*codebase.Unit, error) {
	u := codebase.NewUnit()
	return u, loadStates(ctx, t.Tx, u.States, list, selectCodeStates, func(v *values, s *codebase.State) error {
		s.Project = v.text()
		return nil
	})
}

// Save implements Work.
func (t *codebaseTx) Save(_ context.Context, u *codebase.Unit) error {
	saveStates(t.Tx, u.States, func(s *codebase.State, r Row) {
		if s.Project != "" { // it is not deleted
			r["project"], r["listed"] = s.Project, t.tenantKey(s.ID.Tenant)
		}
	})
	for i := range u.Versions {
		if err := t.saveVersion(u.Versions[i].State.ID, &u.Versions[i].Row); err != nil {
			return err
		}
	}
	for i := range u.Scans {
		s := &u.Scans[i].Row
		r := t.Claimed(u.Scans[i].State.ID, s.Seq)
		r["event_id"], r["project"], r["root"] = s.EventID, s.Project, s.Root
		r.flag("done", s.Done)
		r.count("files", s.Files)
		t.Add("scans", r)
	}
	t.AddEvents(u.Lives)
	return nil
}

func (t *codebaseTx) saveVersion(id events.ConversationID, v *codebase.Version) error {
	r := t.Claimed(id, v.Seq)
	r["event_id"], r["path"], r["hash"] = v.EventID, v.Path, v.Hash
	r.flag("removed", v.Removed)
	r.text("language", v.Language)
	r.count("lines", v.Lines)
	r.count("left_out", v.Left)
	if len(v.Scopes) > 0 {
		r["scopes"], r["bags"] = codebase.Encode(v.Scopes), v.Bags
	}
	t.Add("versions", r)
	vectors, err := v.Vectors()
	if err != nil {
		return err
	}
	for part, s := range v.Scopes {
		r := Row{"conversation": t.Key(id), "tenant": id.Tenant, "seq": number(v.Seq), "part": part, "project_path": v.Path, "kind": s.Kind, "start_line": s.Start, "end_line": s.End, "text": v.Texts[part]}
		r.text("name", s.Name)
		if vectors[part] != nil {
			raw := make([]byte, len(vectors[part]))
			for i, x := range vectors[part] {
				raw[i] = byte(x)
			}
			r["vector"] = raw
		}
		t.Add("scopes", r)
	}
	return nil
}
