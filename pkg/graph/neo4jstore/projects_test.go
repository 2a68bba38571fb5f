package neo4jstore

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/storetest"
	"mneme.dev/mneme/pkg/project"
)

// tellProjects builds the read model "projects" of a small history, whose properties the documentation lists.
func tellProjects(t *testing.T, generation int) {
	t.Helper()
	opened, err := Open(t.Context(), testConfig(t), generation, ProjectsCodec)
	require.NoError(t, err)
	p := NewProjects(opened)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	h := storetest.NewHistory()
	h.Add("one", &events.ConversationStarted{Title: "First", Cwd: "/w/r/.worktrees/4"})
	for n := range 20 {
		h.Add("one", &events.MessageCreated{MessageID: fmt.Sprint("m", n), Role: "user", Content: "change it"})
	}
	h.Add("one", &events.MessageCreated{MessageID: "s", Role: "system", Content: "x"})
	h.Add("gone", &events.ConversationStarted{Cwd: "/w"})
	h.Add("gone", &events.ConversationDeleted{})
	declared := project.Projection(files.DefaultTable())
	cp, err := p.Acquire(t.Context(), 0, declared.Fingerprint())
	require.NoError(t, err)
	_, err = declared.Apply(t.Context(), p, cp, h.Messages)
	require.NoError(t, err)
}

// A project's reads must not cost more with more conversations, and none may scan.
func TestReadsOfAProjectOfManyConversationsCostWhatThoseOfFewCost(t *testing.T) {
	t.Parallel()
	many := 300
	if mnemetest.All {
		many = 5000
	}
	opened, err := Open(t.Context(), testConfig(t), generationOf(t.Name()), ProjectsCodec)
	require.NoError(t, err)
	p := NewProjects(opened)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	h := storetest.NewHistory()
	ids := map[string][]events.ConversationID{}
	session := func(cwd string, n int) {
		id := fmt.Sprint(cwd[3:], n)
		ids[cwd] = append(ids[cwd], events.ConversationID{Tenant: h.Tenant, ID: id})
		h.Add(id, &events.ConversationStarted{Cwd: cwd})
		h.Add(id, &events.MessageCreated{MessageID: "m", Role: "user", Content: "fix the test of " + id})
		h.Add(id, &events.ToolCalled{ToolCallID: "k", ToolName: "Read", Arguments: fmt.Appendf(nil, `{"file_path":"%s/%d.go"}`, cwd, n)})
	}
	for n := range many {
		session("/w/large", n)
		if n%(many/30) == 0 {
			session("/w/small", n)
		}
	}
	declared := project.Projection(files.DefaultTable())
	cp, err := p.Acquire(t.Context(), 0, declared.Fingerprint())
	require.NoError(t, err)
	for batch := range slices.Chunk(h.Messages, BatchEvents) {
		cp, err = declared.Apply(t.Context(), p, cp, batch)
		require.NoError(t, err)
	}

	spy := watch(&p.store)
	spy.prefix = "PROFILE "
	seeks := func(statements []sent) {
		for _, one := range statements {
			plan, _ := one.summary.Profile().Arguments()["string-representation"].(string)
			for _, operator := range slices.Compact(slices.Sorted(slices.Values(operators(plan)))) {
				if slices.Contains(forbidden, operator) && !excused(operator, one.statement) {
					t.Errorf("%s in\n%s\n%s", operator, one.statement, plan)
				}
			}
		}
	}
	for cwd := range ids {
		session(cwd, many)
	}
	_, err = declared.Apply(t.Context(), p, cp, h.Since(cp.Seq+1))
	require.NoError(t, err)
	seeks(spy.since())
	costs := map[string]map[string]int64{}
	for cwd, list := range ids {
		costs[cwd] = map[string]int64{}
		for name, read := range map[string]func() (int, error){
			"members": func() (int, error) {
				list, err := p.Members(t.Context(), h.Tenant, project.MemberQuery{Kind: project.KindIn, Names: []string{cwd}, AsOf: graph.Latest, Limit: 20})
				return len(list), err
			},
			"names": func() (int, error) {
				list, err := p.Names(t.Context(), h.Tenant, project.NameQuery{Kind: project.KindIn, Below: cwd, AsOf: graph.Latest, Limit: 20})
				return len(list), err
			},
			"one name": func() (int, error) {
				list, err := p.Names(t.Context(), h.Tenant, project.NameQuery{Kind: project.KindIn, Only: []string{cwd}, AsOf: graph.Latest, Limit: 20})
				return len(list), err
			},
			"digests": func() (int, error) {
				list, err := p.Digests(t.Context(), list[len(list)-20:], graph.Latest)
				return len(list), err
			},
		} {
			n, err := read()
			require.NoError(t, err)
			require.Positive(t, n, "%s of %s", name, cwd)
			statements := spy.since()
			costs[cwd][name] = hits(t, statements)
			seeks(statements)
		}
	}
	for name, large := range costs["/w/large"] {
		small := costs["/w/small"][name]
		t.Logf("%-10s %5d db hits with 30 conversations, %5d with %d", name, small, large, many)
		require.Positive(t, small, name)
		require.LessOrEqual(t, large, small+small/5, name)
	}
}
