package health

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/testdata"
	"mneme.dev/mneme/pkg/graph"
)

// recorded applies the rules to each recorded conversation of a file.
func recorded(t *testing.T, name string, visit func(id string, c *Checker, rows int)) {
	all := map[string][]testdata.Event{}
	for e := range testdata.Events(t, name) {
		all[e.ConversationID] = append(all[e.ConversationID], e)
	}
	for _, id := range slices.Sorted(maps.Keys(all)) {
		list := all[id]
		slices.SortStableFunc(list, func(a, b testdata.Event) int { return a.Seq - b.Seq })
		rows := rowsOf(list)
		cwd := ""
		for _, e := range list {
			if e.Kind == "conversation" {
				cwd = e.MetaText("cwd")
			}
		}
		c := New(cwd)
		for _, row := range rows {
			c.Add(row)
		}
		visit(id, c, len(rows))
	}
}

func rowsOf(list []testdata.Event) (rows []graph.Entry) {
	var p graph.Position
	for _, e := range list {
		p.Seq = uint64(e.Seq)
		switch e.Kind {
		case "message":
			if e.Role == "user" {
				p.Turn++
			} else if e.Role == "assistant" {
				p.Step++
			}
			m := &graph.Message{Position: p, Role: e.Role, Content: graph.NewBody(e.Content)}
			if e.Meta["is_meta"] == true {
				m.Via = "meta"
			}
			rows = append(rows, graph.Entry{Message: m})
		case "tool_call":
			rows = append(rows, graph.Entry{Call: &graph.ToolCall{Position: p, ToolCallID: e.ID, ToolName: e.ToolName, Arguments: graph.NewBody(string(e.Arguments))}})
		case "tool_result":
			id := ""
			if len(e.ParentIDs) > 0 {
				id = e.ParentIDs[0]
			}
			rows = append(rows, graph.Entry{Result: &graph.ToolResult{Position: p, ToolCallID: id, Success: e.Success, Result: graph.NewBody(e.Text()), Error: e.Error}})
		}
	}
	return rows
}

// SHOW=1 in the environment prints the findings.
func TestFindingsOnRecordedSessionsAreFewAndStandOnTheirEvents(t *testing.T) {
	for _, name := range []string{"claude_code", "pi", "codex", "gemini_cli", "swe_agent", "openhands"} {
		sessions, odd, rows := 0, 0, 0
		count := map[Rule]int{}
		recorded(t, name, func(id string, c *Checker, n int) {
			sessions, rows = sessions+1, rows+n
			found := c.Findings()
			if len(found) > 0 {
				odd++
			}
			for _, f := range found {
				count[f.Rule]++
				require.NotEmpty(t, f.Seqs)
				require.True(t, slices.IsSorted(f.Seqs))
				require.Equal(t, f.FirstSeq, f.Seqs[0])
				if os.Getenv("SHOW") != "" {
					fmt.Printf("%s\t%s\t%s\t%d\t%s\t%v\t%s\n", name, id, f.Rule, f.Count, f.Tool, f.Seqs, f.Subject)
				}
			}
		})
		t.Logf("%s: %d sessions, %d rows, %d odd, %v", name, sessions, rows, odd, count)
		require.LessOrEqual(t, odd, 1+sessions/10, "rules that find something in every session say nothing")
	}
}
