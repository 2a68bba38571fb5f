package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/insight"
)

type (
	insightShop  = workshop[*insight.Unit, insight.Store]
	insightBench = bench[*insight.Unit, insight.Store]
)

// insightData are payloads that change a row. Counts do not depend on the order; the list of open calls does.
var insightData = Data{
	Nth:     func(n int) events.Payload { return read(fmt.Sprintf("k%d", n), fmt.Sprintf("/%d", n)) },
	Refused: func(text string) events.Payload { return message(text, "user", strings.Repeat("x", RefusedLength)) },
	Again:   &events.ConversationStarted{Agent: "again"},
}

// RefusedLength is the length in characters of the message that "insight" must refuse: no row without this message
// counts as many.
const RefusedLength = 77_777

// RunInsight runs every case for the projection "insight". Backend.Refuse refuses the message with
// this id, which has [RefusedLength] characters.
func RunInsight(t *testing.T, b Backend[insight.Store]) {
	w := insightShop{backend: b, projection: insight.Projection(files.DefaultTable())}
	w.run(t, append(engineCases(w, insightData), insightCases(w)...))
}

// rowsOf reads the rows of a tenant, sorted, each as conversation, day, project and agent.
func rowsOf(b *insightBench, tenant string, q insight.RowQuery) (list []string) {
	b.t.Helper()
	require.NoError(b.t, b.store.Rows(b.ctx, tenant, q, func(r *insight.Row) error {
		list = append(list, strings.Join([]string{r.Conversation, r.Day, r.Project, r.Agent}, " "))
		_, err := r.Decode()
		return err
	}))
	slices.Sort(list)
	return list
}

func insightCases(w insightShop) []namedCase {
	return []namedCase{
		{"a query reads the rows of a tenant's days and projects, and no others", func(t *testing.T) {
			h := NewHistory()
			h.Time = time.Date(2026, 3, 1, 23, 59, 58, 0, time.UTC)
			h.Add("a", &events.ConversationStarted{Project: "p", Agent: "x"})
			h.Add("a", message("m1", "user", "one"))
			h.Add("a", message("m2", "user", "two")) // the next day
			h.Add("b", &events.ConversationStarted{Project: "q"})
			h.Add("b", message("m1", "user", "one"))
			h.Tenant = "u"
			h.Add("a", &events.ConversationStarted{Project: "p"})
			h.Add("a", message("m1", "user", "one"))
			h.Tenant, h.Time = "t", time.Time{}
			h.Add("b", message("m2", "user", "whenever"))
			inOneBatchAndInMany(t, w, h, func(t *testing.T, b *insightBench) {
				a1, a2, b2, unknown := "a 2026-03-01 p x", "a 2026-03-02 p x", "b 2026-03-02 q ", "b  q "
				require.Equal(t, []string{a1, a2, unknown, b2}, rowsOf(b, "t", insight.RowQuery{}))
				require.Equal(t, []string{a1, a2, unknown, b2}, rowsOf(b, "t", insight.RowQuery{Detail: true}))
				require.Equal(t, []string{a2, b2}, rowsOf(b, "t", insight.RowQuery{Since: "2026-03-02"}))
				require.Equal(t, []string{a1}, rowsOf(b, "t", insight.RowQuery{Since: "2026-01-01", Until: "2026-03-01"}))
				require.Equal(t, []string{a1, a2}, rowsOf(b, "t", insight.RowQuery{Projects: []string{"p", "other"}}))
				require.Empty(t, rowsOf(b, "t", insight.RowQuery{Projects: []string{}}))
				require.Equal(t, []string{unknown, b2}, rowsOf(b, "t", insight.RowQuery{Conversation: "b"}))
				require.Equal(t, []string{a2}, rowsOf(b, "t", insight.RowQuery{Conversation: "a", Since: "2026-03-02", Projects: []string{"p"}, Detail: true}))
				require.Empty(t, rowsOf(b, "t", insight.RowQuery{Conversation: "a", Projects: []string{"q"}}))
				require.Equal(t, []string{"a 2026-03-02 p "}, rowsOf(b, "u", insight.RowQuery{Conversation: "a"}))
				require.Empty(t, rowsOf(b, "u", insight.RowQuery{Conversation: "b"}))
				require.Equal(t, []string{"a 2026-03-02 p "}, rowsOf(b, "u", insight.RowQuery{}))
				require.Empty(t, rowsOf(b, "v", insight.RowQuery{}))
			})
		}},
		{"a row counts for the project and the agent at its last event", func(t *testing.T) {
			h := NewHistory()
			h.Time = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
			h.Add("a", &events.ConversationStarted{Project: "p", Agent: "x"})
			h.Add("a", message("m1", "user", "one"))
			h.Time = h.Time.AddDate(0, 0, 1)
			h.Add("a", &events.ConversationStarted{Project: "q", Agent: "y"})
			h.Add("a", message("m2", "user", "two"))
			inOneBatchAndInMany(t, w, h, func(t *testing.T, b *insightBench) {
				require.Equal(t, []string{"a 2026-03-01 p x", "a 2026-03-02 q y"}, rowsOf(b, "t", insight.RowQuery{}))
			})
		}},
		{"a deleted conversation counts nowhere", func(t *testing.T) {
			h := NewHistory()
			h.Add("a", message("m1", "user", "one"))
			h.Add("b", message("m1", "user", "one"))
			h.Add("a", &events.ConversationDeleted{})
			h.Add("a", message("m2", "user", "too late"))
			inOneBatchAndInMany(t, w, h, func(t *testing.T, b *insightBench) {
				require.Equal(t, []string{"b   "}, rowsOf(b, "t", insight.RowQuery{}))
				require.Empty(t, rowsOf(b, "t", insight.RowQuery{Conversation: "a"}))
			})
		}},
		{"what calls and files leave open is remembered from batch to batch", func(t *testing.T) {
			h := NewHistory()
			h.Time = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
			h.Add("a", result("late", "ok", true))
			h.Add("a", read("k1", "/x"))
			h.Add("a", result("k1", "text", true))
			h.Add("a", read("late", "/x"))
			h.Add("a", write("k2", "/x"))
			h.Add("a", result("k2", "error: denied", false))
			inOneBatchAndInMany(t, w, h, func(t *testing.T, b *insightBench) {
				n := 0
				require.NoError(t, b.store.Rows(b.ctx, "t", insight.RowQuery{}, func(r *insight.Row) error {
					n++
					d, err := r.Decode()
					require.NoError(t, err)
					m := d.Models[""]
					require.EqualValues(t, []int64{2, 1, 1, 1}, []int64{m.Reads, m.Rereads, m.Writes, m.FirstChanges})
					require.EqualValues(t, []int64{2, 2}, []int64{m.Tools["Read"].Count, m.Tools["Read"].Succeeded})
					require.EqualValues(t, []int64{1, 1}, []int64{m.Tools["Write"].Count, m.Tools["Write"].Failed})
					return nil
				}))
				require.Equal(t, 1, n)
				require.NoError(t, b.store.Rows(b.ctx, "t", insight.RowQuery{Detail: true}, func(r *insight.Row) error {
					d, err := r.Decode()
					require.NoError(t, err)
					require.Equal(t, map[string]*insight.File{"/x": {Reads: 2, Rereads: 1, Writes: 1}}, d.Detail.Files)
					require.Equal(t, map[string]map[string]int64{"Write": {"error: denied": 1}}, d.Detail.Errors)
					return nil
				}))
			})
		}},
	}
}
