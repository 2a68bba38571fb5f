package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/tabular"
	"mneme.dev/mneme/pkg/insight"
)

// InsightsCmd shows what many conversations say together.
type InsightsCmd struct {
	By           string `help:"What a row is: ${enum}." enum:"${insights_by}" default:"day"`
	Project      string `help:"Only conversations of this project: its name, or a folder; . is this one." placeholder:"NAME"`
	Conversation string `help:"Only this conversation: its id, or the name that contexts give it." placeholder:"ID" complete:"conversation"`
	Agent        string `help:"Only conversations of this agent, in any spelling: claude-code is Claude Code, too. mneme insights --by agent shows the names." placeholder:"NAME"`
	Since        string `help:"Only from this UTC day on: 2026-01-31, or how long ago, such as 7d." placeholder:"TIME"`
	Until        string `help:"Only up to this UTC day." placeholder:"TIME"`
	Sort         string `help:"Rows with the most of this first: tokens, errors, rereads or duration (of calls). By default, days in order, other rows the largest first." enum:",${insights_sort}" default:"" placeholder:"SORT"`
	Limit        int    `help:"Maximum number of rows, at most 1000." default:"50"`
	CSV          bool   `name:"csv" help:"Print CSV with a heading: exact numbers, durations in milliseconds, times in seconds." xor:"form"`
	waitFlags
}

func (*InsightsCmd) Help() string {
	return `Counts what agents did: tokens, calls with their outcomes and durations, errors, files. Days are UTC days of the events' own times; what has no time, or none between 2000 and 2099, is on an unknown day, which --since leaves out.

TURNS are the messages with which a user asked for something, without what the agent's program wrote in the user's name. Tokens are those that transcripts give. IN is all that models read, CACHED the part that came from the cache. Costs need a price file at the server (MNEME_PRICES_FILE). REFUSED are calls that the user refused, KNOWN those that are known to have succeeded or failed, and SUCCESS is the share of these that succeeded. P50 and P99 are within 1/32. REREADS are reads of files that the conversation had read before and that nobody had written since. On a terminal, DAYS draws the last 30 days.

Examples:

    mneme insights --project . --since 7d
    mneme insights --by tool
    mneme insights --by error --since 30d --limit 10
    mneme insights --by conversation --sort rereads
    mneme insights --conversation ID --by tool
    mneme insights --by command --csv > commands.csv
    mneme insights --by model --json | jq '.groups[] | {name, tokens}'`
}

// insightField is a column of the table and of the CSV. value returns nil for what is unknown.
type insightField struct {
	column
	csv   string
	value func(*insight.Group) any
	show  func(any) string // on a terminal, nil for the table's own way
}

var (
	insightConversations = insightField{column{Name: "CONVERSATIONS", Right: true, Drop: 4}, "conversations", func(g *insight.Group) any { return g.Conversations }, nil}
	insightTimeField     = insightField{column{Name: "TIME", Right: true, Drop: 3}, "total_ms", func(g *insight.Group) any { return g.Calls.TotalMS }, milliseconds}
	insightRereads       = insightField{column{Name: "REREADS", Right: true}, "rereads", func(g *insight.Group) any { return g.Files.Rereads }, nil}
	insightCallFields    = []insightField{
		{column{Name: "FAILED", Right: true}, "failed", func(g *insight.Group) any { return g.Calls.Failed }, nil},
		{column{Name: "REFUSED", Right: true, Drop: 5}, "refused", func(g *insight.Group) any { return g.Calls.Refused }, nil},
		{column{Name: "KNOWN", Right: true}, "known", func(g *insight.Group) any { return g.Calls.Succeeded + g.Calls.Failed }, nil},
		{column{Name: "SUCCESS", Right: true}, "success_rate", func(g *insight.Group) any { return known(g.Calls.SuccessRate) }, percent},
		{column{Name: "P50", Right: true, Drop: 1}, "p50_ms", func(g *insight.Group) any { return known(g.Calls.Median) }, milliseconds},
		{column{Name: "P99", Right: true}, "p99_ms", func(g *insight.Group) any { return known(g.Calls.P99) }, milliseconds},
		insightTimeField, insightConversations,
	}
	insightFileFields = []insightField{
		{column{Name: "READS", Right: true}, "reads", func(g *insight.Group) any { return g.Files.Reads }, nil},
		insightRereads,
		{column{Name: "WRITES", Right: true}, "writes", func(g *insight.Group) any { return g.Files.Writes }, nil},
		insightConversations,
	}
	insightWorkFields = []insightField{
		insightConversations,
		{column{Name: "TURNS", Right: true}, "turns", func(g *insight.Group) any { return g.Work.Turns }, nil},
		{column{Name: "STEPS", Right: true}, "steps", func(g *insight.Group) any { return g.Work.Steps }, nil},
		{column{Name: "CHARS", Right: true, Drop: 10}, "chars", func(g *insight.Group) any { return g.Work.Chars }, large},
		{column{Name: "IN", Right: true}, "tokens_in", func(g *insight.Group) any { return g.Usage.In }, large},
		{column{Name: "CACHED", Right: true, Drop: 5}, "tokens_cached", func(g *insight.Group) any { return g.Usage.Cached }, large},
		{column{Name: "OUT", Right: true}, "tokens_out", func(g *insight.Group) any { return g.Usage.Out }, large},
		{column{Name: "UNKNOWN", Right: true, Drop: 9}, "unknown_token_steps", func(g *insight.Group) any { return g.Usage.Unknown }, nil},
		{column{Name: "COST", Right: true}, "cost", func(g *insight.Group) any {
			if g.Cost == nil {
				return nil
			}
			return known(g.Cost.Amount)
		}, func(v any) string { return fmt.Sprintf("%.2f", v) }},
		{column{Name: "CALLS", Right: true}, "calls", func(g *insight.Group) any { return g.Calls.Count }, nil},
		{column{Name: "FAILED", Right: true, Drop: 4}, "failed_calls", func(g *insight.Group) any { return g.Calls.Failed }, nil},
		{column{Name: "REFUSED", Right: true, Drop: 8}, "refused_calls", func(g *insight.Group) any { return g.Calls.Refused }, nil},
		{column{Name: "REREADS", Right: true, Drop: 4}, "reread_share", func(g *insight.Group) any { return known(g.Files.RereadShare) }, percent},
		{column{Name: "CHANGED AFTER", Right: true, Drop: 6}, "seconds_until_change", func(g *insight.Group) any { return known(g.Work.SecondsUntilChange) }, seconds},
		{column{Name: "COMPACTED", Right: true, Drop: 7}, "compactions", func(g *insight.Group) any { return g.Work.Compactions }, nil},
	}
)

// insightFields returns the columns of a grouping, the name first.
func insightFields(by string) []insightField {
	name := insightField{column{Name: strings.ToUpper(by), Min: 16}, by, func(g *insight.Group) any { return g.Name }, nil}
	count := func(heading, csv string) insightField {
		return insightField{column{Name: heading, Right: true}, csv, func(g *insight.Group) any { return g.Calls.Count }, nil}
	}
	name.End = by == "project" || by == "file"
	switch by {
	case "tool":
		return append([]insightField{name, count("CALLS", "calls")}, insightCallFields...)
	case "command":
		return append([]insightField{name, count("RUNS", "runs")}, insightCallFields...)
	case "error":
		return []insightField{
			name, {column{Name: "TOOL"}, "tool", func(g *insight.Group) any { return g.Tool }, nil},
			{column{Name: "TIMES", Right: true}, "times", func(g *insight.Group) any { return g.Errors }, nil}, insightConversations,
		}
	case "file":
		return append([]insightField{name}, insightFileFields...)
	}
	if by == "conversation" {
		name.column = conversationColumn
		fields := []insightField{name}
		for _, f := range insightWorkFields {
			switch f.csv {
			case "conversations", "tokens_cached", "seconds_until_change": // of no use for a single one
			case "reread_share":
				fields = append(fields, insightRereads)
			default:
				fields = append(fields, f)
			}
		}
		return append(fields, insightTimeField, insightField{column{Name: "TITLE", Min: 12}, "title", func(g *insight.Group) any { return g.Title }, nil})
	}
	return append([]insightField{name}, insightWorkFields...)
}

func known[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

func percent(v any) string { return fmt.Sprintf("%.1f%%", 100*v.(float64)) }

func milliseconds(v any) string {
	switch ms := v.(int64); {
	case ms < 1000:
		return fmt.Sprintf("%d ms", ms)
	case ms < 60_000:
		return fmt.Sprintf("%.1f s", float64(ms)/1000)
	case ms < 3_600_000:
		return fmt.Sprintf("%.1f min", float64(ms)/60_000)
	default:
		return fmt.Sprintf("%.1f h", float64(ms)/3_600_000)
	}
}

func seconds(v any) string { return milliseconds(v.(int64) * 1000) }

func large(v any) string {
	switch n := v.(int64); {
	case n < 10_000:
		return strconv.FormatInt(n, 10)
	case n < 10_000_000:
		return fmt.Sprintf("%.0fk", float64(n)/1e3)
	default:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	}
}

func (c *InsightsCmd) Run(ctx context.Context, g *Globals, t *terminal, api *client) error {
	if c.CSV && g.JSON {
		return usageError("--csv and --json: give one of them")
	}
	if c.Limit < 1 || c.Limit > maxInsights {
		return usageError("--limit %d: give a number from 1 to %d", c.Limit, maxInsights)
	}
	project, err := projectNamed(c.Project)
	if err != nil {
		return err
	}
	query := parameters{"by": c.By, "project": project, "conversation": c.Conversation, "agent": c.Agent, "sort": c.Sort, "limit": c.Limit}
	for name, text := range map[string]string{"since": c.Since, "until": c.Until} {
		if text == "" {
			continue
		}
		at, err := sinceOf(text, time.Now())
		if err != nil {
			return usageError("--%s %q: give a day such as 2026-01-31, or how long ago, such as 12h or 30d", name, text)
		}
		query[name] = at.UTC().Format(time.DateOnly)
	}
	return showOne(ctx, g, t, api, "/v1/insights", query.with(c.waitFlags.query()), func(in *httpapi.Insights) error {
		if c.CSV {
			return c.csv(t, in)
		}
		if len(in.Groups) == 0 {
			api.remarkUnknown(ctx, t, project)
			api.remarkUnknownAgent(ctx, t, c.Agent)
		}
		return c.table(t, in)
	})
}

func (c *InsightsCmd) csv(t *terminal, in *httpapi.Insights) error {
	fields := insightFields(c.By)
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	row := make([]string, len(fields))
	for i, f := range fields {
		row[i] = f.csv
	}
	if err := w.Write(row); err != nil {
		return err
	}
	for n := range in.Groups {
		for i, f := range fields {
			if row[i] = ""; f.value(&in.Groups[n]) != nil {
				row[i] = tabular.Inert(fmt.Sprint(f.value(&in.Groups[n])))
			}
		}
		if err := w.Write(row); err != nil {
			return err
		}
	}
	w.Flush()
	_, err := escapeControls{t.out, t.isPerson()}.Write(out.Bytes())
	return err
}

// maxInsights is the largest number of rows in an answer.
const maxInsights = 1000

// unknownName stands for a name that nobody gave.
const unknownName = "(unknown)"

func (c *InsightsCmd) table(t *terminal, in *httpapi.Insights) error {
	person := t.isPerson()
	fields := insightFields(c.By)
	if in.Total.Cost == nil {
		fields = slices.DeleteFunc(fields, func(f insightField) bool { return f.csv == "cost" })
	}
	columns := make([]column, 0, len(fields)+1)
	for _, f := range fields {
		columns = append(columns, f.column)
	}
	days := lastDays(in.Groups)
	draws := person && len(days) > 1 && c.By != "conversation"
	if draws {
		columns = append(columns, column{Name: "DAYS", Drop: 2})
	}
	row := func(g *insight.Group) (cells []any) {
		for i, f := range fields {
			switch v := f.value(g); {
			case i == 0 && v == "":
				cells = append(cells, unknownName)
			case v == nil:
				cells = append(cells, "")
			case person && f.show != nil:
				cells = append(cells, f.show(v))
			case f.show != nil:
				cells = append(cells, fmt.Sprint(v))
			default:
				cells = append(cells, v)
			}
		}
		if draws {
			cells = append(cells, sparkline(days, g.Days))
		}
		return cells
	}
	var rows [][]any
	var styles []style
	for i := range in.Groups {
		rows, styles = append(rows, row(&in.Groups[i])), append(styles, "")
	}
	if person && len(rows) > 0 {
		in.Total.Name = "total"
		rows, styles = append(rows, row(&in.Total)), append(styles, bold)
	}
	if err := t.paintedTable(columns, rows, styles); err != nil || !person {
		return err
	}
	c.remark(t, in)
	return nil
}

// remark says what the numbers leave out.
func (c *InsightsCmd) remark(t *terminal, in *httpapi.Insights) {
	say := func(format string, args ...any) { t.say("%s", t.hang(fmt.Sprintf(format, args...), 0)) }
	if in.LeftOut > 0 {
		say("%s more; --limit shows them", number(in.LeftOut))
	}
	if c.By == "tool" { // the total has tokens, but no row does
		return
	}
	if u := in.Total.Usage; u != nil && u.Unknown > 0 {
		say("%s of %s have no known tokens", number(u.Unknown), counted(uint64(in.Total.Work.Steps), "step"))
	}
	switch cost := in.Total.Cost; {
	case cost == nil && in.Total.Usage != nil:
		say("Costs are unknown: the server has no price file (MNEME_PRICES_FILE)")
	case cost != nil && len(cost.Unknown) > 0:
		names := slices.Clone(cost.Unknown)
		for i, name := range names {
			if name == "" {
				names[i] = unknownName
			}
		}
		say("Costs in %s, without those of %s, whose price is unknown", cost.Currency, strings.Join(names, ", "))
	case cost != nil:
		say("Costs in %s", cost.Currency)
	}
	left, what := in.Uncounted.Errors, "failed calls"
	switch c.By {
	case "error":
	case "file":
		left, what = in.Uncounted.Files, "reads and writes"
	case "command":
		left, what = in.Uncounted.Commands, "runs"
	default:
		return
	}
	if left > 0 {
		say("%s %s are in no row: only so many different names are kept of one conversation and day", number(left), what)
	}
}

// drawn is the largest number of days in a sparkline.
const drawn = 30

// lastDays lists the days from the first to the last one of any group, without gaps: the newest of them.
func lastDays(groups []insight.Group) (days []string) {
	first, last := "", ""
	for i := range groups {
		for _, p := range groups[i].Days {
			if p.Day == insight.UnknownDay {
				continue
			}
			if first == "" || p.Day < first {
				first = p.Day
			}
			last = max(last, p.Day)
		}
	}
	at, err := time.Parse(time.DateOnly, last)
	for err == nil && len(days) < drawn && at.Format(time.DateOnly) >= first {
		days = append(days, at.Format(time.DateOnly))
		at = at.AddDate(0, 0, -1)
	}
	slices.Reverse(days)
	return days
}

// sparkline draws the sizes of days. A day without any is blank.
func sparkline(days []string, points []insight.Point) string {
	size, most := map[string]int64{}, int64(0)
	for _, p := range points {
		if slices.Contains(days, p.Day) {
			size[p.Day] = p.Size
			most = max(most, p.Size)
		}
	}
	levels := []rune("▁▂▃▄▅▆▇█")
	var b strings.Builder
	for _, day := range days {
		if n := size[day]; n > 0 {
			b.WriteRune(levels[(n*int64(len(levels))-1)/most])
		} else {
			b.WriteByte(' ')
		}
	}
	return strings.TrimRight(b.String(), " ")
}
