package neo4jstore

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"
	"github.com/neo4j/neo4j-go-driver/v5/neo4j/notifications"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/neo4jtest"
)

// These tests use everything that the stores can do, and check the server's plans of the
// statements that are really sent.

// forbidden lists operators that read rows of other conversations or all rows of one, or
// that wait for all rows.
var forbidden = []string{"AllNodesScan", "NodeByLabelScan", "NodeIndexScan", "DirectedRelationshipIndexScan", "DirectedAllRelationshipsScan", "UndirectedAllRelationshipsScan", "CartesianProduct", "Eager", "Sort", "Top", "PartialTop", "PartialSort"}

func TestEveryStatementIsASeek(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	list := sentByAll(t, openStores(t, c))
	maps.Copy(list, sentBySummaries(t, openSummarised(t, c, generationOf(t.Name()))))
	maps.Copy(list, sentByEmbeddings(t, openEmbedded(t, c, generationOf(t.Name()), 8)))
	t.Run("in a large store", func(t *testing.T) {
		t.Parallel()
		check(t, c, list)
	})
	if mnemetest.All {
		t.Run("in an empty store", func(t *testing.T) {
			t.Parallel()
			empty := patient(Config{URI: neo4jtest.Own(t).URI()})
			openBoth(t, empty, 1) // makes the schema
			check(t, empty, list)
		})
	}
}

// sentByAll uses everything that the stores can do, and returns each statement once.
func sentByAll(t *testing.T, s *stores) map[string]sent {
	t.Helper()
	for _, do := range []func(){
		func() { s.append(t, "c") }, func() { s.append(t, "c") }, func() { s.newest(t, "c") }, func() { s.rest(t, "c") },
		func() { require.NoError(t, s.graph.migrate(t.Context())) },
	} {
		do()
	}
	byText := map[string]sent{}
	for _, one := range s.spy.since() {
		byText[one.statement] = one
	}
	requireSent(t, byText, graphLayout.dialect(), filesLayout.dialect())
	return byText
}

// requireSent checks that a test made the stores send all statements of their dialects.
func requireSent(t *testing.T, byText map[string]sent, dialects ...dialect) {
	t.Helper()
	for _, d := range dialects {
		parts := slices.Concat(d.Unlink, d.Relink, d.Sweeps, d.Statements, []string{settleAfter, d.linkAndSettle()})
		for _, p := range slices.Concat(d.Writes, d.Tidy) {
			parts = append(parts, p.statement)
		}
		for _, part := range parts {
			statement := (&store{dialect: d}).engine(part)
			if _, ok := byText[statement]; !ok {
				t.Errorf("the test does not make the store send\n%s", statement)
			}
		}
	}
}

// check reads the plans of statements.
func check(t *testing.T, c Config, list map[string]sent) {
	t.Helper()
	d, err := open(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.close()) })
	for _, statement := range slices.Sorted(maps.Keys(list)) {
		plan, complaints := explain(t, d, statement, list[statement].params)
		for _, complaint := range complaints {
			t.Errorf("the server says of\n%s\n%s", statement, complaint)
		}
		for _, operator := range slices.Compact(slices.Sorted(slices.Values(operators(plan)))) {
			if slices.Contains(forbidden, operator) && !excused(operator, statement) {
				t.Errorf("%s in\n%s\n%s", operator, statement, plan)
			}
		}
	}
}

// exceptions lists permitted operators, each with the reason.
var exceptions = []struct {
	operator, reason string
	statements       []string
}{
	{"Eager", "a row's mark that it waits is set and taken away: it keeps the rows of a batch", []string{
		pieceOf(graphLayout.dialect(), "lateCalls"), pieceOf(graphLayout.dialect(), "lateResults"), pieceOf(graphLayout.dialect(), "messageKeys"), pieceOf(graphLayout.dialect(), "callKeys"),
	}},
	{"Eager", "it keeps what it deletes, of a batch", []string{pieceOf(filesLayout.dialect(), "metCalls"), pieceOf(filesLayout.dialect(), "metResults"), pieceOf(graphLayout.dialect(), "deleted"), pieceOf(summariesLayout.dialect(), "outdated")}},
	{"Eager", "it keeps the branches that a batch has made", engineOf(graphLayout.dialect().linkAndSettle())},
	{"Eager", "it keeps the branches without a parent", graphLayout.Relink},
	{"Eager", "it keeps the branches of one conversation", graphLayout.Unlink},
	{"Eager", "it keeps one row", slices.Concat(engineOf(makeCheckpoint), engineOf(settleAfter), engineOf(countRepair), engineOf(showRepairs))},
	{"Eager", "it keeps what one transaction of a sweep deletes", []string{graphLayout.Sweeps[0], filesLayout.Sweeps[0]}},
	{"CartesianProduct", "of one node, by its key, and another, by its key", []string{pieceOf(graphLayout.dialect(), "references"), pieceOf(graphLayout.dialect(), "children")}},
	{"CartesianProduct", "of one node, by its key, and those that wait for it", []string{
		pieceOf(graphLayout.dialect(), "messageKeys"), pieceOf(graphLayout.dialect(), "callKeys"), engineOf(graphLayout.dialect().linkAndSettle())[0],
	}},
	{"Top", "the past of files: its cost is that of all accesses up to then", []string{selectAccessesThen}},
	{"Sort", "the past of files: of a page", []string{selectAccessesThen}},
	{"Top", "of the indexes of a tenant's code, which are few", []string{selectCodeIndexes}},
	{"NodeByLabelScan", "of the schema's steps, which are few", []string{selectMigrations}},
	{"Sort", "of the schema's steps, which are few", []string{selectMigrations}},
}

func pieceOf(d dialect, name string) string {
	for _, p := range d.Writes {
		if p.name == name {
			return p.statement
		}
	}
	panic("no piece " + name)
}

// engineOf returns an engine statement for each projection.
func engineOf(statement string) (list []string) {
	for _, d := range []dialect{graphLayout.dialect(), filesLayout.dialect(), summariesLayout.dialect(), embeddingsLayout.dialect(), projectsLayout.dialect(), codebaseLayout.dialect()} {
		list = append(list, (&store{dialect: d}).engine(statement))
	}
	return list
}

func excused(operator, statement string) bool {
	for _, e := range exceptions {
		if e.operator == operator && slices.Contains(e.statements, statement) {
			return true
		}
	}
	return false
}

// explain returns a fresh plan of a statement, with the server's notifications.
func explain(t *testing.T, d *db, statement string, params map[string]any) (plan string, complaints []string) {
	t.Helper()
	ctx := t.Context()
	if strings.HasPrefix(statement, "SHOW ") {
		return "", nil // has no plan
	}
	session := d.driver.NewSession(ctx, neo4j.SessionConfig{DatabaseName: d.Database, NotificationsMinSeverity: notifications.InformationLevel})
	defer func() { _ = session.Close(context.WithoutCancel(ctx)) }()
	result, err := session.Run(ctx, "CYPHER replan=force EXPLAIN "+statement, params)
	require.NoError(t, err, statement)
	summary, err := result.Consume(ctx)
	require.NoError(t, err, statement)
	for _, n := range summary.Notifications() {
		if string(n.Category()) != string(notifications.Unrecognized) {
			complaints = append(complaints, n.Code()+" "+n.Title()+" "+n.Description())
		}
	}
	plan, _ = summary.Plan().Arguments()["string-representation"].(string) // the plans of Children repeat the last one
	return plan, complaints
}

var operatorInPlan = regexp.MustCompile(`(?m)^\|[ |\\]*\+(\w+)`)

// operators returns the names in a plan.
func operators(plan string) (list []string) {
	for _, m := range operatorInPlan.FindAllStringSubmatch(plan, -1) {
		list = append(list, m[1])
	}
	return list
}
