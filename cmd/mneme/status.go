package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"mneme.dev/mneme/internal/console"
	"mneme.dev/mneme/internal/doctor"
	"mneme.dev/mneme/internal/httpapi"
)

// StatusCmd shows the log, the projections and the processes.
type StatusCmd struct{}

func (*StatusCmd) Help() string {
	return `Lag is the number of published events not applied yet; rate is the number of events processed per second over the last seconds. Processes report twice a second; a killed one stays listed for two seconds.

Below the tables, status says what is wrong and what to do about it.

Examples:

    mneme status
    mneme status --json | jq '.projections[] | {name, partition, holder, state, lag}'
    mneme status --json | jq '.processes[] | {name, program, version, state}'`
}

func (c *StatusCmd) Run(ctx context.Context, g *Globals, t *terminal, api *client) error {
	var s httpapi.Status
	if err := api.get(ctx, "/v1/status", nil, &s); err != nil {
		return err
	}
	if g.JSON {
		return t.json(s)
	}
	if err := t.card("events", s.Stream.Messages, "head", s.Stream.Head, "bytes", s.Stream.Bytes, "partitions", s.Stream.Partitions); err != nil {
		return err
	}
	if err := t.text("\n"); err != nil {
		return err
	}
	rows, styles := [][]any{}, []style{}
	for i, p := range s.Projections {
		failed := any(p.Failed) // of all partitions: once for each projection
		if i > 0 && s.Projections[i-1].Name == p.Name {
			failed = ""
		}
		rows = append(rows, []any{p.Name, p.Store, p.Generation, p.Partition, p.State, p.Checkpoint, p.Lag, eventRate(p.Rate), p.Holder, p.Epoch, p.Retries, p.Applied, p.Duplicates, failed, p.Error})
		level, _, _ := doctor.Judge(p, s.Rebuilds)
		styles = append(styles, levels[level])
	}
	if err := t.paintedTable([]column{
		{Name: "PROJECTION"}, {Name: "STORE", Drop: 11}, {Name: "GENERATION", Right: true, Drop: 12}, {Name: "PARTITION", Right: true, Drop: 3}, {Name: "STATE"}, {Name: "CHECKPOINT", Right: true, Drop: 4},
		{Name: "LAG", Right: true}, {Name: "RATE", Right: true, Drop: 5}, {Name: "HOLDER", Min: 12, Drop: 2}, {Name: "EPOCH", Right: true, Drop: 10}, {Name: "RETRIES", Right: true, Drop: 7},
		{Name: "APPLIED", Right: true, Drop: 8}, {Name: "DUPLICATES", Right: true, Drop: 9}, {Name: "FAILED", Right: true, Drop: 1}, {Name: "ERROR", Min: 12, Drop: 6},
	}, rows, styles); err != nil {
		return err
	}
	if err := c.rebuilds(t, s.Rebuilds); err != nil {
		return err
	}
	if err := c.erasing(t, &s); err != nil {
		return err
	}
	if err := c.processes(t, s.Processes); err != nil {
		return err
	}
	if o := s.OTLP; o != nil {
		if err := t.text("\n"); err != nil {
			return err
		}
		if err := t.card("otlp", strings.Join(o.Listen, ", "), "recorded", o.Recorded, "known", o.Known, "refused", o.Refused, "events", o.Published); err != nil {
			return err
		}
	}
	c.remedies(t, &s)
	return nil
}

func eventRate(rate float64) string {
	if rate > 0 && rate < 10 {
		return strconv.FormatFloat(rate, 'f', 1, 64)
	}
	return strconv.FormatFloat(rate, 'f', 0, 64)
}

// levels are the colors of rows; healthy rows have none.
var levels = map[doctor.Level]style{doctor.Warning: yellow, doctor.Failed: red}

// rebuilds prints the rebuilds, if there are any.
func (c *StatusCmd) rebuilds(t *terminal, list []httpapi.Rebuild) error {
	if len(list) == 0 {
		return nil
	}
	if err := t.text("\n"); err != nil {
		return err
	}
	rows, styles := [][]any{}, []style{}
	for _, r := range list {
		left := ""
		if r.ETASeconds != nil {
			left = (time.Duration(*r.ETASeconds) * time.Second).String()
		}
		rows = append(rows, []any{r.Projection, r.Generation, r.State, r.Applied, r.Total, eventRate(r.Rate), left, r.Error})
		styles = append(styles, map[string]style{"failed": red, "unreadable": yellow}[r.State])
	}
	return t.paintedTable([]column{
		{Name: "REBUILD"}, {Name: "GENERATION", Right: true}, {Name: "STATE"}, {Name: "APPLIED", Right: true}, {Name: "OF", Right: true},
		{Name: "RATE", Right: true, Drop: 2}, {Name: "LEFT", Drop: 1}, {Name: "ERROR", Min: 12, Drop: 3},
	}, rows, styles)
}

// erasing prints the running erasure and the retentions, if there are any.
func (c *StatusCmd) erasing(t *terminal, s *httpapi.Status) error {
	if e := s.Erasure; e != nil {
		if err := t.text("\n"); err != nil {
			return err
		}
		if err := t.card("erasure", e.State, "erased", e.Erased, "of", e.Todo, "doing", e.Doing); err != nil {
			return err
		}
	}
	if len(s.Retention) == 0 {
		return nil
	}
	rows := [][]any{}
	for _, r := range s.Retention {
		rows = append(rows, []any{r.Tenant, r.Days})
	}
	if err := t.text("\n"); err != nil {
		return err
	}
	return t.table([]column{{Name: "TENANT"}, {Name: "ERASED AFTER DAYS", Right: true}}, rows)
}

func (c *StatusCmd) processes(t *terminal, list []httpapi.ProcessStatus) error {
	if err := t.text("\n"); err != nil {
		return err
	}
	rows, styles := [][]any{}, []style{}
	for _, p := range list {
		rows = append(rows, []any{p.Name, p.Program, p.Version, when(p.Started), p.State, held(p.Partitions), p.Lag, eventRate(p.Rate), p.Retries, p.Error})
		switch {
		case p.State == "halted":
			styles = append(styles, red)
		case p.Error != "":
			styles = append(styles, yellow)
		default:
			styles = append(styles, "")
		}
	}
	return t.paintedTable([]column{
		{Name: "PROCESS", Min: 12}, {Name: "PROGRAM"}, {Name: "VERSION", Min: 8, Drop: 3}, {Name: "SINCE", Drop: 2}, {Name: "STATE"}, {Name: "PARTITIONS", Min: 10},
		{Name: "LAG", Right: true, Drop: 1}, {Name: "RATE", Right: true, Drop: 4}, {Name: "RETRIES", Right: true, Drop: 6}, {Name: "ERROR", Min: 12, Drop: 5},
	}, rows, styles)
}

// held prints partitions on one line, such as graph 0-3,7. It adds the generation if that
// differs from the first one's.
func held(list []httpapi.DrivenPartition) string {
	var out strings.Builder
	for i := 0; i < len(list); {
		p := list[i]
		last := i
		for last+1 < len(list) && list[last+1].Projection == p.Projection && list[last+1].Generation == p.Generation && list[last+1].Partition == list[last].Partition+1 {
			last++
		}
		switch {
		case i > 0 && list[i-1].Projection == p.Projection && list[i-1].Generation == p.Generation:
			out.WriteString(",")
		default:
			if i > 0 {
				out.WriteString(" ")
			}
			out.WriteString(p.Projection)
			if p.Generation > 1 {
				fmt.Fprintf(&out, "/%d", p.Generation)
			}
			out.WriteString(" ")
		}
		out.WriteString(strconv.Itoa(p.Partition))
		if last > i {
			fmt.Fprintf(&out, "-%d", list[last].Partition)
		}
		i = last + 1
	}
	return out.String()
}

// remedies prints each problem and its remedy once, with all projections and partitions that have it.
func (c *StatusCmd) remedies(t *terminal, s *httpapi.Status) {
	type finding struct {
		level        doctor.Level
		what, remedy string
	}
	type affected struct {
		name       string
		partitions []string
	}
	var order []finding
	where := map[finding][]affected{}
	for _, p := range s.Projections {
		level, what, remedy := doctor.Judge(p, s.Rebuilds)
		if level == doctor.OK {
			continue
		}
		f := finding{level, what, remedy}
		list := where[f]
		if list == nil {
			order = append(order, f)
		}
		if len(list) == 0 || list[len(list)-1].name != p.Name {
			list = append(list, affected{name: p.Name})
		}
		last := &list[len(list)-1]
		last.partitions = append(last.partitions, strconv.Itoa(p.Partition))
		where[f] = list
	}
	if s.Stream.Missing > 0 {
		what, remedy := doctor.MissingEvents(s.Stream.Missing)
		t.remark(red, "failed  "+what, remedy)
	}
	if s.Stream.Changed != "" {
		t.remark(red, "failed  somebody has changed the log: "+console.OneLine(s.Stream.Changed), "do what the message says")
	}
	if level, what, remedy := doctor.JudgeSize(s.Stream.Bytes, s.Stream.MaxBytes); what != "" {
		t.remark(levels[level], fmt.Sprintf("%s  the log, %d of %d bytes: %s", level, s.Stream.Bytes, s.Stream.MaxBytes, what), remedy)
	}
	slices.SortStableFunc(order, func(a, b finding) int { return strings.Compare(string(a.level), string(b.level)) })
	for _, f := range order {
		var names []string
		for _, a := range where[f] {
			partitions := " partition "
			if len(a.partitions) > 1 {
				partitions = " partitions "
			}
			names = append(names, a.name+partitions+strings.Join(a.partitions, ", "))
		}
		t.remark(levels[f.level], string(f.level)+"  "+strings.Join(names, "; ")+": "+console.OneLine(f.what), f.remedy)
	}
	if s.Stream.Error != "" {
		t.remark(red, "failed  the log takes no writes: "+console.OneLine(s.Stream.Error), doctor.LogRemedy(s))
	}
	if what, remedy := doctor.JudgeTranscripts(s.Capture, time.Now()); what != "" {
		t.remark(yellow, "warning  "+console.OneLine(what), remedy)
	}
	if what, remedy := doctor.JudgeOTLP(s.OTLP, time.Now()); what != "" {
		t.remark(yellow, "warning  "+console.OneLine(what), remedy)
	}
	if s.ProviderError != "" {
		t.remark(yellow, "warning  "+console.OneLine(s.ProviderError), doctor.ProviderRemedy)
	}
	if s.ProcessesError != "" {
		t.remark(red, "failed  the running processes, and what they drive, are unknown: "+console.OneLine(s.ProcessesError), doctor.LeasesRemedy)
	}
}
