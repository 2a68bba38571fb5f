package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Outcome is the result of a fault.
type Outcome struct {
	Fault
	Began     time.Duration  `json:"began"`    // by the schedule's clock
	Amid      int            `json:"amid"`     // unrecovered faults at that time
	Recovery  time.Duration  `json:"recovery"` // from the end of the fault
	Recovered bool           `json:"recovered"`
	Stall     time.Duration  `json:"stall"`   // the longest time without an acknowledgement
	Publish   map[string]int `json:"publish"` // errors that publishers saw
	Read      map[string]int `json:"read"`    // errors that readers saw
}

// Report holds the findings of a campaign.
type Report struct {
	Seed         uint64         `json:"seed"`
	Command      string         `json:"command"`
	Complete     bool           `json:"complete"` // it ran to its end
	Error        string         `json:"error,omitempty"`
	Faults       int            `json:"faults"` // of the schedule
	Events       int            `json:"events"` // planned
	Acknowledged int            `json:"acknowledged"`
	Took         time.Duration  `json:"took"`
	Outcomes     []Outcome      `json:"outcomes"` // in the order of recovery
	Publish      map[string]int `json:"publish"`
	Read         map[string]int `json:"read"`
	Rebuilt      []Rebuilt      `json:"rebuilt"`
	Checked      Checked        `json:"checked"`
	Later        bool           `json:"checked_later"` // checked later, after an interruption
	Summarized   time.Duration  `json:"summarized"`    // how long summarizers took for what was due at the end
	Violating    int            `json:"violating"`     // how many violations there are
	Violations   []string       `json:"violations"`
}

// note adds the outcome of a fault.
func (c *campaign) note(o Outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.outcomes = append(c.outcomes, o)
}

// report returns the results so far.
func (c *campaign) report() *Report {
	r := &Report{
		Seed: c.Seed, Faults: c.Plan.Faults, Events: c.Events, Publish: c.tally.snapshot(), Read: c.reads.snapshot(),
		Command: fmt.Sprintf("make faults SEED=%d FAULTS=%d EVENTS=%d", c.Seed, c.Plan.Faults, c.Events),
	}
	if each := time.Duration(c.Plan.Faults) * eachFault; c.Duration != each {
		r.Command += fmt.Sprint(" DURATION=", c.Duration)
	}
	if c.ledger != nil {
		r.Acknowledged, _ = c.ledger.acknowledged()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.began.IsZero() {
		r.Took = time.Since(c.began)
	}
	r.Outcomes, r.Rebuilt, r.Checked, r.Summarized = slices.Clone(c.outcomes), c.rebuilds.list(), c.checked, c.summarized
	r.Violating, r.Violations = c.violating, slices.Clone(c.violations)
	return r
}

// checkedLater completes the report of an interrupted campaign with the findings of a check.
func (r *Report) checkedLater(c *campaign) {
	if r.Complete {
		return
	}
	r.Checked, r.Summarized, r.Acknowledged, r.Later = c.checked, c.summarized, c.checked.Acknowledged, true
	if r.Error = "it was interrupted"; len(r.Outcomes) == r.Faults && r.Acknowledged >= r.Events {
		r.Complete, r.Error = true, ""
	}
	r.Violating += c.violating
	r.Violations = append(r.Violations, c.violations...)
}

// keepReporting writes the report until ctx ends.
func (c *campaign) keepReporting(ctx context.Context) {
	for pause(ctx, reportEvery); ctx.Err() == nil; pause(ctx, reportEvery) {
		r := c.report()
		c.Say("%s: %d of %d events acknowledged, %d of %d faults recovered from, %d violations",
			r.Took.Round(time.Second), r.Acknowledged, r.Events, len(r.Outcomes), r.Faults, r.Violating)
		if err := c.Report(r); err != nil {
			c.Say("%v", err)
		}
	}
}

// write writes the report as JSON and as Markdown. Each file is replaced atomically.
func (r *Report) write(jsonFile, markdownFile string) error {
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	return errors.Join(replace(jsonFile, append(text, '\n')), replace(markdownFile, []byte(r.Markdown())))
}

// reportName is the file name of the JSON report, next to the campaign's directory.
const reportName = "report.json"

// readReport reads the last report of a campaign. If the campaign ended before it wrote
// one, the report is empty and complete.
func readReport(path string) (*Report, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &Report{Complete: true}, nil
	}
	if err != nil {
		return nil, err
	}
	var r Report
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &r, nil
}

func replace(path string, text []byte) error {
	if path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", text, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// Markdown returns the report as Markdown.
func (r *Report) Markdown() string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say("# Faults\n\n<!-- Made by make faults; do not edit. -->\n")
	say("What happens to mneme when the systems it depends on fail. Everything is real: nats-server, Neo4j, two ingestors, two file-trackers and two summarizers on Neo4j, one of each on")
	say("SQLite, and a context-api for each store, all on one log of %d partitions and each in a separate process, with the permissions of its role on the NATS server. The summarizers on Neo4j write the summaries; the one on SQLite only follows.", partitions)
	say("Recorded conversations of agents are published to the log, many at once. Meanwhile faults happen on a schedule that the seed decides, some in sequence and some overlapping,")
	say("read models are rebuilt, and readers check every answer. Publishing pauses while a store is more than %d events behind.\n", maxBehind)
	say("    %s\n", r.Command)
	say("%s\n", r.verdict())
	say("| | |\n|---|---|")
	say("| faults | %d of %d |", len(r.Outcomes), r.Faults)
	say("| events acknowledged | %d of %d |", r.Acknowledged, r.Events)
	say("| time | %s |", r.Took.Round(time.Second))
	if r.Later {
		say("| checked | by `faults check`, on what the interrupted run had stored |")
	}
	if r.Checked.Messages > 0 {
		say("| messages in the log, of %d conversations | %d, %d MB |", r.Checked.Conversations, r.Checked.Messages, r.Checked.LogBytes>>20)
		say("| copies among them, dropped by the read models | %d |", r.Checked.Duplicates)
		say("| invalid ones among them, listed as failed | %d |", r.Checked.Refused)
		say("| summaries among them, on levels 1, 2, … | %s |", strings.Trim(fmt.Sprint(r.Checked.Summaries), "[]"))
		say("| titles among them | %d |", r.Checked.Titles)
		say("| time that summarizers took for the rest at the end | %s |", r.Summarized.Round(time.Second))
		for _, name := range projections {
			say("| hash of the read model %s, from the log and in both stores | `%s` |", name, r.Checked.Hashes[name])
		}
		say("| time of the checks | %s |", r.Checked.Took.Round(time.Second))
	}
	say("\n## Faults and recovery\n")
	say("Recovery is the time from the end of the fault (the process is restarted, the link works again) until publishing continues and both stores have applied")
	say("everything that was acknowledged by then; if faults overlap, it includes the others. Stall is the longest time without an acknowledgement, even if publishing was paused.\n")
	say("| fault | of | times | recovery p50 | max | stall p50 | max | publishers saw | readers saw |\n|---|---|---:|---:|---:|---:|---:|---|---|")
	for _, g := range r.groups() {
		say("| %s | %s | %d | %s | %s | %s | %s | %s | %s |", g.kind, g.target, len(g.recovery),
			seconds(middle(g.recovery)), seconds(slices.Max(g.recovery)), seconds(middle(g.stall)), seconds(slices.Max(g.stall)), listOf(g.publish), listOf(g.read))
	}
	if len(r.Rebuilt) > 0 {
		say("\n## Rebuilds\n\nEach continues through the faults that follow it, until it serves or all of it is removed.\n\n| read model | after events | took | end |\n|---|---:|---:|---|")
		for _, b := range r.Rebuilt {
			say("| %s | %d | %s | %s |", b.Model, b.Events, seconds(b.Took), b.End)
		}
	}
	say("\n## Totals\n\n| what | times |\n|---|---:|")
	for _, counts := range []map[string]int{r.Publish, r.Read} {
		for _, what := range slices.Sorted(maps.Keys(counts)) {
			say("| %s | %d |", what, counts[what])
		}
	}
	say("\n## What is checked\n")
	say("During the run: every request gets an answer, with status 200, 404, 503 or 504; an acknowledged event requested with at_least never gives 404; a conversation's messages are an unbroken run of the published ones, in order,")
	say("up to the at_least that was requested; its count never falls unless a rebuild is running; a context has no duplicates, nothing out of order, and no call without its acknowledged result; summaries of a level follow each other;")
	say("no projector halts; no program exits by itself, and each exits within %s of a SIGTERM, with code 0.\n", endPatience)
	say("At the end, when all faults are over: every acknowledged event is in the log exactly as it was sent and in both stores exactly once; each conversation is in the order in which it was published; exactly the invalid")
	say("events are listed as failed; on each level the summaries of a conversation follow each other from its first event on, without overlap or gap, each once in the log and once in every read model,")
	say("each states its sources correctly, and no due summary is missing; the numbers of applied events and dropped copies match the log; `verify` finds no difference; and the hashes of every conversation are")
	say("the same in both stores.")
	if r.Violating > 0 {
		say("\n## Violations\n")
		for _, v := range r.Violations {
			say("- %s", strings.ReplaceAll(v, "\n", "\n      "))
		}
	}
	return b.String()
}

func (r *Report) verdict() string {
	switch {
	case r.Violating > 0:
		return fmt.Sprintf("**%d violations**, listed below.", r.Violating)
	case !r.Complete:
		return "**Not complete**: " + cmp.Or(r.Error, "it is still running") + ". No violation was found by then."
	}
	return fmt.Sprintf("**No violation**: of %d acknowledged events 0 are lost, 0 doubled, 0 out of order, in the log and in both stores.", r.Checked.Acknowledged)
}

// group collects the outcomes of faults of one kind and class of targets.
type group struct {
	kind            Kind
	target          string
	recovery, stall []time.Duration
	publish, read   map[string]int
}

func (r *Report) groups() []*group {
	by := map[[2]string]*group{}
	var list []*group
	for _, o := range r.Outcomes {
		target := class(o.Target)
		key := [2]string{string(o.Kind), target}
		g := by[key]
		if g == nil {
			g = &group{kind: o.Kind, target: target, publish: map[string]int{}, read: map[string]int{}}
			by[key] = g
			list = append(list, g)
		}
		g.recovery, g.stall = append(g.recovery, o.Recovery), append(g.stall, o.Stall)
		for what, n := range o.Publish {
			g.publish[what] += n
		}
		for what, n := range o.Read {
			g.read[what] += n
		}
	}
	slices.SortFunc(list, func(a, b *group) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.target, b.target)) })
	return list
}

// class returns the target without the number that tells several programs apart.
func class(target string) string {
	if from := linkFrom(target); from != "" && from != everybody {
		return link(linkServer(target), "one program")
	}
	return strings.TrimRight(target, "-12")
}

func middle(list []time.Duration) time.Duration {
	list = slices.Sorted(slices.Values(list))
	return list[(len(list)-1)/2]
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

// listOf lists the counts of errors; 200, 404 and repeats are not errors.
func listOf(counts map[string]int) string {
	var list []string
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		_, short, _ := strings.Cut(what, ": ")
		if short != "200" && short != "404" && !strings.HasPrefix(what, "repeat") {
			list = append(list, fmt.Sprintf("%d× %s", counts[what], short))
		}
	}
	return cmp.Or(strings.Join(list, ", "), "nothing")
}
