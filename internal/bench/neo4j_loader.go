package bench

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"
)

// nodeKind is a label and the relationship between its nodes and their parents.
type nodeKind struct {
	labels string // the first belongs to this kind alone
	key    string // the property that begins with the generation
	seq    string // the sequence of the event that made the node

	tie, of, ofKey, ofSeq string // the relationship, the parent's label and lookup key, and its event
}

// own returns the label that no other kind has.
func (k nodeKind) own() string {
	label, _, _ := strings.Cut(k.labels, ":")
	return label
}

// nodeKinds has parents before children.
var nodeKinds = []nodeKind{
	{"Conversation", "key", "first_seq", "HAS_BRANCH", "Conversation", "key", "first_seq"},
	{"Version:GraphEvent", "conversation", "seq", "HAS_VERSION", "Conversation", "key", "first_seq"},
	{"Message:GraphEvent", "conversation", "seq", "HAS_MESSAGE", "Conversation", "key", "first_seq"},
	{"ToolCall:GraphEvent", "conversation", "seq", "HAS_TOOL_CALL", "Message", "payload_key", "seq"},
	{"ToolResult:GraphEvent", "conversation", "seq", "HAS_RESULT", "ToolCall", "payload_key", "seq"},
	{"Summary:GraphEvent", "conversation", "seq", "HAS_SUMMARY", "Conversation", "key", "first_seq"},
	{"Condensed:GraphEvent", "conversation", "seq", "CONDENSED_TO", "ToolResult", "payload_key", "seq"},
}

// bulk holds the writes of one statement: rows by sequence, which the statement gets as lists.
type bulk struct {
	statement   string
	rows        []row
	nodes, ties int // made by all rows together
}

// graphRows is the content of a generation, in the order in which a transaction writes it.
type graphRows []*bulk

// Scopes, references to them and consolidations have no sequence themselves.
const (
	readScopes = `MATCH (s:Scope)<-[:REFERENCES_CODE]-(m:Message) WHERE s.key STARTS WITH $prefix WITH s, min(m.seq) AS seq
		RETURN seq, s.key, s.tenant, s.file, s.start_line, s.end_line, s.name ORDER BY seq`
	writeScopes    = "UNWIND $rows AS r CREATE (:Scope {key: r[0], tenant: r[1], file: r[2], start_line: r[3], end_line: r[4], name: r[5]})"
	readReferences = `MATCH (s:Scope)<-[x:REFERENCES_CODE]-(m:Message) WHERE s.key STARTS WITH $prefix
		RETURN m.seq, m.payload_key, s.key, x.conversation, x.seq, x.about, x.symbol ORDER BY m.seq`
	writeReferences = `UNWIND $rows AS r MATCH (m:Message {payload_key: r[0]}) MATCH (s:Scope {key: r[1]})
		CREATE (m)-[:REFERENCES_CODE {conversation: r[2], seq: r[3], about: r[4], symbol: r[5]}]->(s)`
	// A summary has several children, each older than itself.
	readChildren = `MATCH (s:Summary)-[:CONSOLIDATES]->(n:Summary) WHERE s.conversation STARTS WITH $prefix AND s.seq IS NOT NULL
		RETURN s.seq, s.payload_key, n.payload_key ORDER BY s.seq, n.seq`
	writeChildren = "UNWIND $rows AS r MATCH (s:Summary {payload_key: r[0]}) MATCH (n:Summary {payload_key: r[1]}) CREATE (s)-[:CONSOLIDATES]->(n)"
)

// read reads the generation.
func (b *neo4jBackend) read(ctx context.Context) (rows graphRows, err error) {
	params := map[string]any{"prefix": fmt.Sprint(b.generation, "/")}
	var later graphRows
	for _, k := range nodeKinds {
		found, err := b.query(ctx, k.read(), params)
		if err != nil {
			return nil, err
		}
		nodes, ties, err := k.bulks(found)
		if err != nil {
			return nil, err
		}
		rows, later = append(rows, nodes), append(later, ties)
	}
	scopes, references, children := &bulk{statement: writeScopes}, &bulk{statement: writeReferences}, &bulk{statement: writeChildren}
	for _, what := range []struct {
		read string
		into *bulk
	}{{readScopes, scopes}, {readReferences, references}, {readChildren, children}} {
		found, err := b.query(ctx, what.read, params)
		if err != nil {
			return nil, err
		}
		for _, record := range found {
			if err := what.into.add(record.Values); err != nil {
				return nil, err
			}
		}
	}
	scopes.nodes, references.ties, children.ties = len(scopes.rows), len(references.rows), len(children.rows)
	return append(append(rows, scopes, references, children), later...), nil
}

func (k nodeKind) read() string {
	return fmt.Sprintf("MATCH (n:%s) WHERE n.%s STARTS WITH $prefix AND n.%s IS NOT NULL OPTIONAL MATCH (p:%s)-[:%s]->(n)"+
		" RETURN n.%[3]s AS seq, n.%[2]s, p.%[6]s, p.%[7]s, properties(n) ORDER BY seq", k.own(), k.key, k.seq, k.of, k.tie, k.ofKey, k.ofSeq)
}

// bulks returns the bulks for nodes with ties to existing parents, and those for ties to later
// parents.
func (k nodeKind) bulks(found []*neo4j.Record) (nodes, ties *bulk, err error) {
	has := map[string]any{}
	for _, record := range found {
		maps.Copy(has, record.Values[4].(map[string]any))
	}
	names := slices.Sorted(maps.Keys(has))
	nodes, ties = &bulk{statement: k.create(names), nodes: len(found)}, &bulk{statement: k.link()}
	for _, record := range found {
		seq, key, parent, properties := record.Values[0], record.Values[1], record.Values[2], record.Values[4].(map[string]any)
		if parent != nil && (k.own() == k.of || record.Values[3].(int64) > seq.(int64)) {
			if err := ties.add([]any{max(record.Values[3].(int64), seq.(int64)), parent, key, seq}); err != nil {
				return nil, nil, err
			}
			parent = nil
		}
		values := []any{seq, parent}
		for _, name := range names {
			values = append(values, properties[name])
		}
		if err := nodes.add(values); err != nil {
			return nil, nil, err
		}
		if parent != nil {
			nodes.ties++
		}
	}
	ties.ties = len(ties.rows)
	slices.SortStableFunc(ties.rows, func(a, b row) int { return int(a.seq) - int(b.seq) })
	return nodes, ties, nil
}

// add adds a row: its sequence and its values.
func (b *bulk) add(raw []any) error {
	seq, ok := raw[0].(int64)
	if !ok {
		return fmt.Errorf("a row with %v for a sequence", raw[0])
	}
	r := row{seq: uint64(seq), values: make([]value, len(raw)-1)}
	for i, v := range raw[1:] {
		if err := r.values[i].Scan(v); err != nil {
			return err
		}
	}
	b.rows = append(b.rows, r)
	return nil
}

// create makes nodes with all of their properties, and ties them to their parents.
func (k nodeKind) create(names []string) string {
	properties := make([]string, len(names))
	for i, name := range names {
		properties[i] = fmt.Sprintf("%s: r[%d]", name, i+1)
	}
	statement := fmt.Sprintf("UNWIND $rows AS r CREATE (n:%s {%s})", k.labels, strings.Join(properties, ", "))
	if k.own() == k.of { // cannot be created and matched in one clause
		return statement
	}
	return statement + fmt.Sprintf(" WITH n, r MATCH (p:%s {%s: r[0]}) CREATE (p)-[:%s]->(n)", k.of, k.ofKey, k.tie)
}

// link ties existing nodes to parents that came later.
func (k nodeKind) link() string {
	return fmt.Sprintf("UNWIND $rows AS r MATCH (n:%s {%s: r[1], %s: r[2]}) MATCH (p:%s {%s: r[0]}) CREATE (p)-[:%s]->(n)",
		k.own(), k.key, k.seq, k.of, k.ofKey, k.tie)
}

// load writes all rows in transactions that end at the given sequences, and returns how long it
// took.
func (g graphRows) load(ctx context.Context, session neo4j.SessionWithContext, ends []uint64) (time.Duration, error) {
	began := time.Now()
	next, nodes, ties := make([]int, len(g)), 0, 0
	for _, last := range ends {
		tx, err := session.BeginTransaction(ctx)
		if err != nil {
			return 0, err
		}
		for i, b := range g {
			rows := b.rows[next[i]:]
			n := sort.Search(len(rows), func(i int) bool { return rows[i].seq > last })
			if n == 0 {
				continue
			}
			made, err := b.insert(ctx, tx, rows[:n])
			if err != nil {
				_ = tx.Close(ctx)
				return 0, err
			}
			next[i] += n
			nodes, ties = nodes+made.NodesCreated(), ties+made.RelationshipsCreated()
		}
		if err := tx.Commit(ctx); err != nil {
			return 0, err
		}
	}
	took := time.Since(began)
	wantNodes, wantTies := 0, 0
	for _, b := range g {
		wantNodes, wantTies = wantNodes+b.nodes, wantTies+b.ties
	}
	if nodes != wantNodes || ties != wantTies {
		return 0, fmt.Errorf("the bare loader made %d nodes and %d relationships of %d and %d", nodes, ties, wantNodes, wantTies)
	}
	return took, nil
}

// insert writes rows in one statement.
func (b *bulk) insert(ctx context.Context, tx neo4j.ExplicitTransaction, rows []row) (neo4j.Counters, error) {
	list := make([]any, len(rows))
	for i, r := range rows {
		values := make([]any, len(r.values))
		for j := range r.values {
			values[j] = r.values[j].arg()
		}
		list[i] = values
	}
	result, err := tx.Run(ctx, b.statement, map[string]any{"rows": list})
	if err != nil {
		return nil, err
	}
	summary, err := result.Consume(ctx)
	if err != nil {
		return nil, err
	}
	return summary.Counters(), nil
}
