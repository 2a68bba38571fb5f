package neo4jstore

import (
	"cmp"
	"context"
	"slices"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
)

// REFERENCES_CODE has indexed properties: about is the tenant with the last component of
// the file, symbol the tenant with the name, and conversation and seq are the message's. So
// a read takes the newest references in the order of an index, however many references a
// Scope has.

// codeKey returns the key of a file's last component, or of a symbol, in a tenant; "" if it
// is not indexed.
func (s *store) codeKey(tenant, name string) string {
	if name == "" {
		return ""
	}
	return s.tenantKey(tenant) + "/" + name
}

// mentionedBy holds the reads of references by a property, in a tenant and in conversations,
// newest first. They say SEEK because on a recently empty graph the planner would scan the
// index.
type mentionedBy struct{ ofTenant, ofConversations string }

func by(property string) mentionedBy {
	where := "r." + property + " = $code"
	return mentionedBy{
		`MATCH ()-[r:REFERENCES_CODE]->() USING INDEX SEEK r:REFERENCES_CODE(` + property + `, seq) WHERE ` + where + ` AND r.seq > 0
			WITH r ORDER BY r.` + property + ` DESC, r.seq DESC LIMIT $limit
			MATCH (c:Conversation {key: r.conversation}) MATCH (s:GraphSettled {key: c.checkpoint})
			WITH c, s, r, endNode(r) AS o
			RETURN CASE WHEN c.listed = $listed AND r.seq <= s.seq THEN c.id END, r.seq, o.file, o.start_line, o.end_line, o.name`,
		`UNWIND $in.rows AS row MATCH (c:Conversation) USING INDEX SEEK c:Conversation(key) WHERE c.key = row[0] AND c.listed = $listed MATCH (s:GraphSettled {key: c.checkpoint}) WHERE c.first_seq <= s.seq
			RETURN row[2], ` + conversationProps.list("c") + `,
				COLLECT { MATCH ()-[r:REFERENCES_CODE]->() USING INDEX SEEK r:REFERENCES_CODE(conversation, ` + property + `, seq)
					WHERE r.conversation = c.key AND ` + where + ` AND r.seq <= row[1]
					WITH r, s ORDER BY r.conversation DESC, r.` + property + ` DESC, r.seq DESC LIMIT $limit
					WITH r, startNode(r) AS m, endNode(r) AS o WHERE r.seq <= s.seq
					RETURN [r.seq, m.turn, m.id, o.file, o.start_line, o.end_line, o.name] }`,
	}
}

var (
	byFile   = by("about")
	bySymbol = by("symbol")
)

// lookedUp returns the key to look a query up by: the symbol if there is one, because it is rarer than its file.
func (s *store) lookedUp(tenant string, q graph.CodeQuery) (mentionedBy, map[string]any) {
	params := map[string]any{"listed": s.tenantKey(tenant)}
	if q.Name != "" {
		params["code"] = s.codeKey(tenant, q.Name)
		return bySymbol, params
	}
	params["code"] = s.codeKey(tenant, q.Base())
	return byFile, params
}

func scanReference(v *values) events.Reference {
	return events.Reference{File: v.text(), StartLine: v.int(), EndLine: v.int(), Name: v.text()}
}

// Referring implements graph.CodeReader.
func (g *Graph) Referring(ctx context.Context, tenant string, q graph.CodeQuery) (graph.Mentions, error) {
	statements, params := g.lookedUp(tenant, q)
	return q.Mentions(func(limit int) ([]graph.Mention, error) {
		return g.mentions(ctx, statements.ofTenant, params, limit, scanReference)
	})
}

// mentions reads mentions of code.
func (s *store) mentions(ctx context.Context, statement string, params map[string]any, limit int, scan func(*values) events.Reference) ([]graph.Mention, error) {
	params["limit"] = limit
	var list []graph.Mention
	err := s.scan(ctx, statement, params, func(v *values) {
		list = append(list, graph.Mention{Conversation: v.text(), Seq: v.seq(), Reference: scan(v)})
	})
	return list, err
}

// References implements graph.CodeReader.
func (g *Graph) References(ctx context.Context, tenant string, list []graph.Mentioned, q graph.CodeQuery) ([]graph.CodeReferences, error) {
	statements, params := g.lookedUp(tenant, q)
	asked := make([]any, len(list))
	for i, m := range list {
		asked[i] = []any{g.Key(events.ConversationID{Tenant: tenant, ID: m.ID}), number(m.Seq), i}
	}
	params["in"], params["limit"] = map[string]any{"rows": asked}, graph.MentionsEach
	rows, err := g.Read(ctx, statements.ofConversations, params)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(rows, func(a, b []any) int { return cmp.Compare(a[0].(int64), b[0].(int64)) })
	found := make([]graph.CodeReferences, len(rows))
	for i, row := range rows {
		c, references := valuesOf(row[1]), &values{list: row[2:]}
		found[i].Conversation = scanConversation(c)
		found[i].References = q.NewestReferences(scanAll(references, func(v *values) graph.CodeReference {
			return graph.CodeReference{Seq: v.seq(), Turn: v.int(), MessageID: v.text(), Reference: scanReference(v)}
		}))
		if err := cmp.Or(c.err, references.err); err != nil {
			return nil, err
		}
	}
	return found, nil
}

const (
	selectAccessing = `MATCH (a:FileAccess) USING INDEX SEEK a:FileAccess(about, current) WHERE a.about = $code AND a.current > 0
		WITH a ORDER BY a.about DESC, a.current DESC LIMIT $limit
		MATCH (c:FilesConversation {key: a.conversation}) MATCH (s:FilesSettled {key: c.checkpoint})
		WITH c, a, s.seq AS settled
		RETURN CASE WHEN c.deleted_seq IS NULL AND a.seq <= settled AND ` + isCurrent + ` THEN c.id END, a.seq, a.path`

	selectAccessesOfFile = `MATCH (a:FileAccess) USING INDEX SEEK a:FileAccess(about, current) WHERE a.about = $code AND a.current > 0
		WITH a ORDER BY a.about DESC, a.current DESC LIMIT $limit WITH a WHERE a.conversation IN $in.keys
		MATCH (c:FilesConversation {key: a.conversation}) WHERE c.deleted_seq IS NULL MATCH (s:FilesSettled {key: c.checkpoint})
		WITH c, a, s.seq AS settled WHERE a.seq <= settled AND ` + isCurrent + `
		RETURN c.id, [a.path, a.kind, a.tool, a.turn, a.seq, a.count] ORDER BY a.about DESC, a.current DESC`
)

// Accessing implements graph.AccessReader.
func (f *Files) Accessing(ctx context.Context, tenant string, q graph.CodeQuery) (found graph.Mentions, err error) {
	if q.Name != "" {
		return found, nil
	}
	params := map[string]any{"code": f.codeKey(tenant, q.Base())}
	return q.Mentions(func(limit int) ([]graph.Mention, error) {
		return f.mentions(ctx, selectAccessing, params, limit, func(v *values) events.Reference { return events.Reference{File: v.text()} })
	})
}

// Accesses implements graph.AccessReader.
func (f *Files) Accesses(ctx context.Context, tenant string, ids []string, q graph.CodeQuery) (map[string][]graph.FileAccess, error) {
	found, add := q.NewestAccesses()
	if q.Name != "" {
		return found, nil
	}
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = f.Key(events.ConversationID{Tenant: tenant, ID: id})
	}
	params := In("keys", keys)
	params["code"], params["limit"] = f.codeKey(tenant, q.Base()), graph.MaxMentions
	rows, err := f.Read(ctx, selectAccessesOfFile, params)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		v, access := &values{list: row}, valuesOf(row[1])
		add(v.text(), scanAccess(access))
		if err := cmp.Or(v.err, access.err); err != nil {
			return nil, err
		}
	}
	return found, nil
}
