package main

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/insight"
)

func TestInsightsAreATableCSVAndJSON(t *testing.T) {
	t.Parallel()
	prices := filepath.Join(t.TempDir(), "prices.yaml")
	require.NoError(t, os.WriteFile(prices, []byte("currency: EUR\nmodels: {opus*: {input: 10, output: 50}}\n"), 0o600))
	s := &server{Server: mnemetest.UpWith(t, "--data", filepath.Join(t.TempDir(), "data"), "--prices-file", prices), t: t}
	s.ready = ready{HTTP: s.HTTP, NATS: s.NATS}
	event := func(kind, id, day string, more map[string]any) map[string]any {
		more["type"], more["id"], more["time"] = "dev.mneme."+kind, id, day+"T10:00:00Z"
		return more
	}
	s.publish("c",
		event("conversation.started.v1", "1", "2026-03-01", map[string]any{"agent": "claude-code", "project": "shop", "title": "=1+1"}),
		event("message.created.v1", "2", "2026-03-01", map[string]any{"message_id": "u", "role": "user", "content": "fix it"}),
		event("message.created.v1", "3", "2026-03-01", map[string]any{"message_id": "a", "role": "assistant", "content": "", "model": "opus-5", "usage": map[string]any{"input_tokens": 100_000, "output_tokens": 10_000}}),
		event("tool.called.v1", "4", "2026-03-01", map[string]any{"tool_call_id": "k", "tool_name": "Bash", "arguments": map[string]any{"command": "go test ./..."}}),
		event("tool.returned.v1", "5", "2026-03-01", map[string]any{"tool_call_id": "k", "result": "exit status 7", "success": false, "duration_ms": 1500}),
		event("tool.called.v1", "7", "2026-03-01", map[string]any{"tool_call_id": "l", "tool_name": "Read", "arguments": map[string]any{}}),
		event("message.created.v1", "6", "2026-03-04", map[string]any{"message_id": "b", "role": "assistant", "content": "x", "model": "other", "usage": map[string]any{"input_tokens": 1, "output_tokens": 1}}),
	)
	show := func(args ...string) string {
		out, stderr, code := s.mneme(append([]string{"insights"}, args...)...)
		require.Zero(t, code, stderr)
		require.Empty(t, stderr, "nothing but the rows for programs")
		return out
	}
	require.Eventually(t, func() bool { return strings.Contains(show("--by", "day"), "2026-03-04") }, mnemetest.Patience, 50*time.Millisecond)

	require.Equal(t, "TOOL\tCALLS\tFAILED\tREFUSED\tKNOWN\tSUCCESS\tP50\tP99\tTIME\tCONVERSATIONS\n"+
		"Bash\t1\t1\t0\t1\t0\t1504\t1504\t1504\t1\nRead\t1\t0\t0\t0\t\t\t\t0\t1\n", show("--by", "tool"))
	require.Equal(t, "ERROR\tTOOL\tTIMES\tCONVERSATIONS\nexit status <n>\tBash\t1\t1\n", show("--by", "error"))
	require.Contains(t, show("--by", "command"), "go test ./...\t1\t1\t0\t1\t0\t")
	require.Equal(t, []string{"2026-03-04"}, firstCells(show("--since", "2026-03-02")))
	require.Equal(t, []string{"2026-03-01"}, firstCells(show("--until", "2026-03-03", "--project", "shop", "--agent", "Claude Code")))
	require.Equal(t, []string{"2026-03-01", "2026-03-04"}, firstCells(show("--conversation", "c")))
	_, stderr, code := s.mneme("insights", "--conversation", "d")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "d")
	out, stderr, code := s.mneme("insights", "--agent", "codex")
	require.Zero(t, code, stderr)
	require.Empty(t, firstCells(out))
	require.Contains(t, stderr, "no conversation is of the agent codex: mneme insights --by agent shows the names")

	rows, err := csv.NewReader(strings.NewReader(show("--by", "model", "--csv"))).ReadAll()
	require.NoError(t, err)
	require.Equal(t, "cost", rows[0][9])
	costs := map[string]string{}
	for _, row := range rows[1:] {
		costs[row[0]] = row[9]
	}
	require.Equal(t, map[string]string{"opus-5": "1.5", "other": "", "": "0"}, costs, "an unknown cost is not 0")

	rows, err = csv.NewReader(strings.NewReader(show("--by", "conversation", "--csv"))).ReadAll()
	require.NoError(t, err)
	require.Equal(t, "'=1+1", rows[1][len(rows[1])-1], "a spreadsheet must not run it")

	list, stderr, code := s.mneme("conversations", "list", "--sort", "errors", "--project", "shop")
	require.Zero(t, code, stderr)
	require.Len(t, firstCells(list), 1)
	require.Contains(t, list, "CONVERSATION\tTURNS\t")
	_, stderr, code = s.mneme("conversations", "list", "--sort", "errors", "--tag", "bug")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "not --tag")

	in := read[httpapi.Insights](s, "insights", "--by", "model", "--json")
	require.Equal(t, []string{"other"}, in.Total.Cost.Unknown)
	require.Equal(t, 1.5, *in.Total.Cost.Amount)

	seen := s.person(160, nil, "insights", "--by", "agent")
	require.Contains(t, seen, "█  █", "two days without a step lie between")
	require.Contains(t, seen, "total")
	require.Contains(t, seen, "Costs in EUR, without those of other, whose price is unknown")

	_, stderr, code = s.mneme("insights", "--since", "2026-03-02", "--until", "2026-03-01")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "--until is before --since")
	for _, args := range [][]string{{"--since", "yesterday"}, {"--until", "2026-02-31"}, {"--by", "hour"}, {"--limit", "0"}, {"--csv", "--json"}, {"--tz", "Europe/Berlin"}} {
		_, stderr, code := s.mneme(append([]string{"insights"}, args...)...)
		require.Equal(t, exitUsage, code, args)
		require.Contains(t, stderr, args[0], args)
	}
}

// firstCells returns the first cell of each row below the heading.
func firstCells(table string) (cells []string) {
	for i, line := range strings.Split(strings.TrimSpace(table), "\n") {
		if cell, _, _ := strings.Cut(line, "\t"); i > 0 {
			cells = append(cells, cell)
		}
	}
	return cells
}

func TestASparklineHasALevelForEachDay(t *testing.T) {
	t.Parallel()
	groups := []insight.Group{
		{Days: []insight.Point{{Day: "", Size: 1000}, {Day: "2026-02-27", Size: 1}, {Day: "2026-03-02", Size: 80}}},
		{Days: []insight.Point{{Day: "2026-03-01", Size: 0}}},
	}
	days := lastDays(groups)
	require.Equal(t, []string{"2026-02-27", "2026-02-28", "2026-03-01", "2026-03-02"}, days)
	require.Equal(t, "▁  █", sparkline(days, groups[0].Days))
	require.Empty(t, sparkline(days, groups[1].Days))
	require.Len(t, lastDays([]insight.Group{{Days: []insight.Point{{Day: "2020-01-01", Size: 1}, {Day: "2026-03-02", Size: 1}}}}), drawn)
	require.Empty(t, lastDays(nil))
}
