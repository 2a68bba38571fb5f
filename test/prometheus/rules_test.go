// Package prometheus tests deploy/prometheus and deploy/grafana with Prometheus's own engine.
package prometheus

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/stretchr/testify/require"
)

const root = "../../"

func read(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(root + name)
	require.NoError(t, err)
	return string(raw)
}

var syntax = parser.NewParser(parser.Options{})

// alerts are the rules by name.
func alerts(t *testing.T) map[string]rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.Parse([]byte(read(t, "deploy/prometheus/rules.yml")), false, model.UTF8Validation, syntax, nil)
	require.Empty(t, errs)
	list := map[string]rulefmt.Rule{}
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			require.NotEmpty(t, r.Alert)
			require.NotContains(t, list, r.Alert)
			require.NotEmpty(t, r.Annotations["summary"], r.Alert)
			require.NotEmpty(t, r.Annotations["description"], r.Alert)
			require.Contains(t, []string{"warning", "critical"}, r.Labels["severity"], r.Alert)
			list[r.Alert] = r
		}
	}
	return list
}

// firing and quiet are series, one sample a minute for half an hour, that must and must not
// raise an alert at the end. The syntax is promtool's.
var samples = map[string]struct{ firing, quiet string }{
	"TheLogHasLostEvents":        {`mneme_log_missing_events 0x20 1x10`, `mneme_log_missing_events 1x20 0x10`},
	"AProjectionHasHalted":       {`mneme_projection_state{state="halted"} 0x20 1x10`, `mneme_projection_state{state="halted"} 0x30` + "\n" + `mneme_projection_state{state="live"} 1x30`},
	"AProjectionFallsBehind":     {`mneme_projection_lag_events{partition="0"} 0+500x30`, `mneme_projection_lag_events{partition="0"} 90000-500x30` + "\n" + `mneme_projection_lag_events{partition="1"} 0+10x30`},
	"AProjectionMakesNoProgress": {"mneme_projection_lag_events{p=\"0\"} 10x30\nmneme_projection_checkpoint{p=\"0\"} 0+1x10 10x20", "mneme_projection_lag_events{p=\"0\"} 10x30\nmneme_projection_checkpoint{p=\"0\"} 0+1x30\nmneme_projection_lag_events{p=\"1\"} 0x30\nmneme_projection_checkpoint{p=\"1\"} 7x30"},
	"NoProcessDrivesAPartition":  {held("files", "summaries"), held("graph", "files", "summaries")},
	"SummariesComeTooSlowly":     {"mneme_summaries_queued{instance=\"a\"} 60x30\nmneme_summaries_queued{instance=\"b\"} 50x30", `mneme_summaries_queued 200x20 50x10`},
	"SummariesWait":              {`mneme_summaries_waiting 3x30`, `mneme_summaries_waiting 3x20 0x10`},
	"ModelCallsFail":             {`mneme_model_failures_total{class="denied"} 0+1x30`, `mneme_model_failures_total{class="canceled"} 0+9x30`},
	"PartitionsKeepChangingHands": {`mneme_projection_epoch{projection="graph",partition="1"} 0+1x30`,
		`mneme_projection_epoch{projection="graph",partition="1"} 1x20 2x10`},
	"EventsAreSkipped":    {`mneme_projection_failed_events{class="error"} 0x25 1x5`, `mneme_projection_failed_events{class="error"} 4x30`},
	"TheLogIsNearlyFull":  {"mneme_log_bytes 90x30\nmneme_log_limit_bytes 100x30", "mneme_log_bytes 80x30\nmneme_log_limit_bytes 100x30"},
	"PublishingFails":     {`mneme_publish_refused_events_total{error_type="full"} 0+1x30`, "mneme_publish_refused_events_total{error_type=\"invalid\"} 0+1x30\nmneme_publish_refused_events_total{error_type=\"quota\"} 0+1x30"},
	"ReadsTimeOut":        {`mneme_await_duration_seconds_count{outcome="timeout"} 0+1x30`, `mneme_await_duration_seconds_count{outcome="reached"} 0+1x30`},
	"TheAPIFails":         {`http_server_request_duration_seconds_count{http_response_status_code="503"} 0+1x30`, "http_server_request_duration_seconds_count{http_response_status_code=\"404\"} 0+1x30\nhttp_server_request_duration_seconds_count{http_response_status_code=\"507\"} 0+1x30"},
	"NATSIsDown":          {`mneme_nats_connected 1x20 0x10`, `mneme_nats_connected 0x20 1x10`},
	"AStoreDoesNotAnswer": {`mneme_scrape_success{source="store"} 0x30`, `mneme_scrape_success{source="store"} 0x20 1x10`},
}

// held are processes that drive the partitions of projections.
func held(projections ...string) string {
	var lines []string
	for _, p := range projections {
		lines = append(lines, fmt.Sprintf(`mneme_projection_held{projection=%q,partition="0",instance="a"} 1x30`, p), fmt.Sprintf(`mneme_projection_held{projection=%q,partition="0",instance="b"} 0x30`, p))
	}
	return strings.Join(lines, "\n")
}

// raised reports whether an alert fires half an hour after the start of the series: its expression has held
// for as long as the rule says.
func raised(t *testing.T, r rulefmt.Rule, series string) bool {
	t.Helper()
	storage := promqltest.LoadedStorage(t, "load 1m\n  "+strings.ReplaceAll(series, "\n", "\n  "))
	engine := promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery)
	end := time.Unix(0, 0).Add(30 * time.Minute)
	for at := end.Add(-time.Duration(r.For)); !at.After(end); at = at.Add(15 * time.Second) {
		query, err := engine.NewInstantQuery(t.Context(), storage, nil, r.Expr, at)
		require.NoError(t, err)
		vector, err := query.Exec(t.Context()).Vector()
		require.NoError(t, err)
		if len(vector) == 0 {
			return false
		}
	}
	return true
}

func TestEachAlertFiresWhenItShouldAndOnlyThen(t *testing.T) {
	t.Parallel()
	list := alerts(t)
	require.Len(t, samples, len(list), "an alert has no series")
	for name, r := range list {
		s := samples[name]
		require.True(t, raised(t, r, s.firing), "%s does not fire on\n%s", name, s.firing)
		require.False(t, raised(t, r, s.quiet), "%s fires on\n%s", name, s.quiet)
	}
}

func TestTheTableOfAlertsHasTheRules(t *testing.T) {
	t.Parallel()
	rules := alerts(t)
	_, table, _ := strings.Cut(read(t, "docs/metrics.md"), "## Alerts")
	rows := regexp.MustCompile("(?m)^\\| ([A-Z][^|]+) \\| `(.+?)`(?: for (\\d+) (min|s))? \\| .+ \\|$").FindAllStringSubmatch(table, -1)
	require.Len(t, rows, len(rules))
	for _, row := range rows {
		wait := time.Duration(0)
		if row[3] != "" {
			var err error
			wait, err = time.ParseDuration(row[3] + strings.TrimSuffix(row[4], "in"))
			require.NoError(t, err)
		}
		found := false
		for _, r := range rules {
			found = found || r.Annotations["summary"] == row[1] && r.Expr == row[2] && time.Duration(r.For) == wait
		}
		require.True(t, found, "deploy/prometheus/rules.yml has no rule like: %s", row[0])
	}
}

// exposed are the metrics of docs/metrics.md, which a test of internal/telemetry compares with
// the programs. It is followed by the names that Prometheus derives from histograms.
func exposed(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{"up": true}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (\\w+) \\|").FindAllStringSubmatch(read(t, "docs/metrics.md"), -1) {
		names[row[1]] = true
		if row[2] == "histogram" {
			names[row[1]+"_bucket"], names[row[1]+"_sum"], names[row[1]+"_count"] = true, true, true
		}
	}
	require.Greater(t, len(names), 40)
	return names
}

// metrics are the names in an expression.
func metrics(t *testing.T, expr string) (names []string) {
	t.Helper()
	parsed, err := syntax.ParseExpr(expr)
	require.NoError(t, err, expr)
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if v, ok := node.(*parser.VectorSelector); ok {
			names = append(names, v.Name)
		}
		return nil
	})
	require.NotEmpty(t, names, expr)
	return names
}

func TestRulesAndDashboardAskForMetricsThatExist(t *testing.T) {
	t.Parallel()
	known := exposed(t)
	for name, r := range alerts(t) {
		for _, m := range metrics(t, r.Expr) {
			require.True(t, known[m], "alert %s asks for %s", name, m)
		}
	}
	var dashboard struct {
		UID    string
		Title  string
		Panels []struct {
			ID      int
			Title   string
			Type    string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr, RefID string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(read(t, "deploy/grafana/mneme.json")), &dashboard))
	require.NotEmpty(t, dashboard.UID)
	ids, cells := map[int]bool{}, map[[2]int]string{}
	for _, p := range dashboard.Panels {
		require.False(t, ids[p.ID], "two panels have the id %d", p.ID)
		ids[p.ID] = true
		require.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				cell := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				require.Empty(t, cells[cell], "%s covers another panel", p.Title)
				cells[cell] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		require.NotEmpty(t, p.Targets, p.Title)
		for _, target := range p.Targets {
			expr := strings.NewReplacer("$__rate_interval", "5m", "$instance", "a", "$projection", "graph").Replace(target.Expr)
			for _, m := range metrics(t, expr) {
				require.True(t, known[m], "panel %q asks for %s", p.Title, m)
			}
		}
	}
	require.Greater(t, len(ids), 10)
}
