package insight

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"mneme.dev/mneme/pkg/plain"
)

// By are the groupings of [Cache.Sum].
var By = []string{"day", "tool", "model", "agent", "project", "conversation", "command", "error", "file"}

// Sorts are the orders of groups by what they did: tokens read and written, failed calls, repeated reads of files, and the time
// of calls.
var Sorts = []string{"tokens", "errors", "rereads", "duration"}

// detailed are the groupings that read [Row.Detail].
var detailed = map[string]bool{"command": true, "error": true, "file": true}

// Query says what to add up.
type Query struct {
	Tenant       string
	By           string   // one of [By]
	Projects     []string // nil for all
	Conversation string   // "" for all
	Agent        string   // in any spelling, see [plain.SameName]; "" for all
	Since        string   // the first day; "" for all, which includes [UnknownDay]
	Until        string   // the last day, "" for all
	Sort         string   // one of [Sorts], largest first; "" for the order of the grouping. A group without this value counts as 0
	Limit        int      // of the groups
}

// Report is the answer to a [Query].
type Report struct {
	Total     Group     `json:"total" doc:"all groups together, including those left out"`
	Groups    []Group   `json:"groups" doc:"days in chronological order, other groups largest first, unless the query says how to sort"`
	LeftOut   int       `json:"left_out" doc:"groups beyond the limit"`
	Uncounted Uncounted `json:"uncounted" doc:"what no group counts, because a conversation keeps only so many names for each day"`
}

// Uncounted is what no group counts, because a row holds only so many names.
type Uncounted struct {
	Errors   int64 `json:"errors"`
	Files    int64 `json:"files" doc:"accesses of files"`
	Commands int64 `json:"commands" doc:"runs of commands"`
	Results  int64 `json:"results" doc:"results whose call was not seen"`
}

// Group is what one group did. Fields that do not apply to the grouping are absent.
type Group struct {
	Name          string  `json:"name" doc:"empty if unknown: a day without times, a model that nobody named"`
	Tool          string  `json:"tool,omitempty" doc:"of an error"`
	Title         string  `json:"title,omitempty" doc:"of a conversation"`
	Conversations int     `json:"conversations"`
	Work          *Work   `json:"work,omitempty"`
	Usage         *Usage  `json:"tokens,omitempty"`
	Cost          *Cost   `json:"cost,omitempty" doc:"absent without prices"`
	Calls         *Called `json:"calls,omitempty" doc:"of tools, or runs of a command"`
	Errors        int64   `json:"errors,omitempty" doc:"for an error: how often it occurred"`
	Files         *Files  `json:"files,omitempty"`
	Days          []Point `json:"days,omitempty" doc:"its size by day: tokens of a model, calls of a tool, runs of a command, accesses of a file, errors, else steps"`

	size int64
}

// Point is the size of a group on one day.
type Point struct {
	Day  string `json:"day"`
	Size int64  `json:"size"`
}

// Work is what conversations did.
type Work struct {
	Turns              int64    `json:"turns" doc:"messages with which a user asked for something, without notes, interruptions, and what the agent's program wrote in the user's name"`
	Steps              int64    `json:"steps" doc:"assistant messages"`
	Chars              int64    `json:"chars" doc:"of messages, reasoning, arguments and results"`
	Compactions        int64    `json:"compactions"`
	StepsBefore        *float64 `json:"steps_before_compaction,omitempty" doc:"steps since the previous compaction, on average"`
	TokensBefore       *float64 `json:"tokens_before_compaction,omitempty" doc:"tokens that the last step before read, on average"`
	Changing           int64    `json:"changing" doc:"conversations that changed a file for the first time"`
	SecondsUntilChange *int64   `json:"seconds_until_change,omitempty" doc:"from the first event to the first change of a file, median"`
	CallsUntilChange   *int64   `json:"calls_until_change,omitempty" doc:"median; the changing call included"`
}

// Usage are the tokens that models used.
type Usage struct {
	In         int64 `json:"in" doc:"tokens read, including those from the cache"`
	Cached     int64 `json:"cached" doc:"of those, read from the cache"`
	CacheWrite int64 `json:"cache_write" doc:"of those, written into the cache"`
	Out        int64 `json:"out" doc:"written, reasoning included"`
	Unknown    int64 `json:"unknown_steps" doc:"steps without a known number of tokens"`
}

// Called are calls and how they ended.
type Called struct {
	Count       int64    `json:"count"`
	Succeeded   int64    `json:"succeeded"`
	Failed      int64    `json:"failed"`
	Refused     int64    `json:"refused" doc:"calls that the user did not allow, or interrupted; not counted as failed"`
	Untold      int64    `json:"untold" doc:"calls whose result does not say whether they succeeded, or that did not run because another call of the step had failed"`
	SuccessRate *float64 `json:"success_rate,omitempty" doc:"share of succeeded among the calls whose outcome is known"`
	Timed       int64    `json:"timed" doc:"calls whose duration is known"`
	Median      *int64   `json:"p50_ms,omitempty" doc:"within 1/32"`
	P99         *int64   `json:"p99_ms,omitempty" doc:"within 1/32"`
	TotalMS     int64    `json:"total_ms" doc:"of all calls, within 1/32"`
}

// Files are accesses of files.
type Files struct {
	Reads       int64    `json:"reads"`
	Rereads     int64    `json:"rereads" doc:"reads of something that the conversation had read before and not written since"`
	RereadShare *float64 `json:"reread_share,omitempty"`
	Writes      int64    `json:"writes"`
}

// sum adds up one group.
type sum struct {
	tool          string
	conversations []int32 // numbers of the adder, some more than once
	work          Model   // without Tools
	tokens        map[string]Tokens
	calls         Calls // without MS
	ms            tally // of the calls
	errors        int64
	files         File
	days          []Point // some more than once
	size          int64
}

// of counts a row. There are tens of thousands of rows, and lists that are sorted at the end are faster than maps.
func (s *sum) of(r *Row, conversation int32, size int64) {
	if n := len(s.conversations); n == 0 || s.conversations[n-1] != conversation {
		s.conversations = append(s.conversations, conversation)
	}
	if n := len(s.days); n == 0 || s.days[n-1].Day != r.Day {
		s.days = append(s.days, Point{Day: r.Day})
	}
	s.days[len(s.days)-1].Size += size
	s.size += size
}

// inOrder sorts the lists.
func (s *sum) inOrder() {
	slices.Sort(s.conversations)
	s.conversations = slices.Compact(s.conversations)
	slices.SortFunc(s.days, func(a, b Point) int { return cmp.Compare(a.Day, b.Day) })
	once := s.days[:0]
	for _, d := range s.days {
		if n := len(once); n > 0 && once[n-1].Day == d.Day {
			once[n-1].Size += d.Size
		} else {
			once = append(once, d)
		}
	}
	s.days = once
}

// add adds what was done with a model.
func (s *sum) add(name string, m *Model) {
	s.done(m)
	s.files.add(&File{m.Reads, m.Rereads, m.Writes})
	s.used(name, m.Tokens)
	for _, c := range m.Tools {
		s.called(c)
	}
}

// called adds calls.
func (s *sum) called(c *Calls) {
	s.calls.add(c)
	s.ms.add(c.MS)
}

// merge adds another group, but not its conversations.
func (s *sum) merge(o *sum) {
	s.done(&o.work)
	s.files.add(&o.files)
	for name, t := range o.tokens {
		s.used(name, t)
	}
	s.calls.add(&o.calls)
	s.ms.merge(o.ms)
	s.errors += o.errors
}

func (s *sum) done(m *Model) {
	w := &s.work
	w.Turns += m.Turns
	w.Steps += m.Steps
	w.Chars += m.Chars
	w.Tokens.add(m.Tokens)
	w.NoUsage += m.NoUsage
	w.Compactions += m.Compactions
	w.CompactedSteps += m.CompactedSteps
	w.CompactedTokens += m.CompactedTokens
	w.FirstChanges += m.FirstChanges
	w.FirstSeconds.Merge(m.FirstSeconds)
	w.FirstCalls.Merge(m.FirstCalls)
}

func (s *sum) used(model string, t Tokens) {
	if s.tokens == nil {
		s.tokens = map[string]Tokens{}
	}
	all := s.tokens[model]
	all.add(t)
	s.tokens[model] = all
}

func (f *File) add(o *File) {
	f.Reads += o.Reads
	f.Rereads += o.Rereads
	f.Writes += o.Writes
}

// add adds everything but the durations.
func (c *Calls) add(o *Calls) {
	c.Count += o.Count
	c.Succeeded += o.Succeeded
	c.Failed += o.Failed
	c.Refused += o.Refused
	c.Untold += o.Untold
}

// adder adds up rows.
type adder struct {
	q      Query
	total  sum
	groups map[[2]string]*sum // by name and tool
	left   Left

	numbers map[string]int32 // of conversations
	number  int32            // number of the row's conversation
}

// row begins a new row.
func (a *adder) row(r *Row) {
	n, ok := a.numbers[r.Conversation]
	if !ok {
		n = int32(len(a.numbers))
		a.numbers[r.Conversation] = n
	}
	a.number = n
	a.total.of(r, n, 0)
}

// key returns the group of a row, for groupings in which a row belongs to one group.
func (a *adder) key(r *Row) string {
	switch a.q.By {
	case "agent":
		return r.Agent
	case "project":
		return r.Project
	case "conversation":
		return r.Conversation
	}
	return r.Day
}

func (a *adder) group(name, tool string) *sum {
	at := [2]string{name, tool}
	s := a.groups[at]
	if s == nil {
		s = &sum{tool: tool}
		a.groups[at] = s
	}
	return s
}

func (a *adder) counts(r *Row, d *Day) {
	for name, m := range d.Models {
		switch a.q.By {
		case "tool": // only the total has these
			a.total.done(m)
			a.total.files.add(&File{m.Reads, m.Rereads, m.Writes})
			a.total.used(name, m.Tokens)
			for tool, c := range m.Tools {
				s := a.group(tool, "")
				s.of(r, a.number, c.Count)
				s.called(c)
			}
		case "model":
			s := a.group(name, "")
			s.of(r, a.number, m.In()+m.Output)
			s.add(name, m)
		default:
			s := a.group(a.key(r), "")
			s.of(r, a.number, m.Steps)
			s.add(name, m)
		}
	}
}

func (a *adder) detail(r *Row, d *Detail) {
	a.left.Errors += d.Left.Errors
	a.left.Files += d.Left.Files
	a.left.Commands += d.Left.Commands
	a.left.Results += d.Left.Results
	switch a.q.By {
	case "command":
		for name, c := range d.Commands {
			s := a.group(name, "")
			s.of(r, a.number, c.Count)
			s.called(c)
		}
	case "error":
		for tool, list := range d.Errors {
			for text, n := range list {
				s := a.group(text, tool)
				s.of(r, a.number, n)
				s.errors += n
			}
		}
	case "file":
		for path, f := range d.Files {
			if a.q.Projects == nil && a.q.Conversation == "" && r.Project != "" && !strings.HasPrefix(path, "/") {
				path = r.Project + "/" + path
			}
			s := a.group(path, "")
			s.of(r, a.number, f.Reads+f.Writes)
			s.files.add(f)
		}
	}
}

// Sum adds up what the rows of a tenant count. prices may be nil.
func (c *Cache) Sum(ctx context.Context, r Reader, q Query, prices *Prices) (*Report, error) {
	a := &adder{q: q, groups: map[[2]string]*sum{}, numbers: map[string]int32{}}
	err := r.Rows(ctx, q.Tenant, RowQuery{Since: q.Since, Until: q.Until, Projects: q.Projects, Conversation: q.Conversation, Detail: detailed[q.By]}, func(row *Row) error {
		if q.Agent != "" && !plain.SameName(row.Agent, q.Agent) {
			return nil
		}
		d, err := c.day(row)
		if err != nil {
			return err
		}
		a.row(row)
		if detailed[q.By] {
			a.detail(row, &d.Detail)
		} else {
			a.counts(row, &d)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, s := range a.groups {
		a.total.merge(s)
	}
	out := &Report{Total: a.show("", &a.total, prices), Groups: []Group{}, Uncounted: Uncounted(a.left)}
	out.Total.Days = nil
	for at, s := range a.groups {
		out.Groups = append(out.Groups, a.show(at[0], s, prices))
	}
	slices.SortFunc(out.Groups, func(x, y Group) int {
		if q.Sort != "" && x.rank(q.Sort) != y.rank(q.Sort) {
			return cmp.Compare(y.rank(q.Sort), x.rank(q.Sort))
		}
		if q.By == "day" {
			return cmp.Compare(x.Name, y.Name)
		}
		return cmp.Or(cmp.Compare(y.size, x.size), cmp.Compare(x.Name, y.Name), cmp.Compare(x.Tool, y.Tool))
	})
	if q.Limit > 0 && len(out.Groups) > q.Limit {
		out.LeftOut = len(out.Groups) - q.Limit
		if q.By == "day" && q.Sort == "" { // the newest
			out.Groups = out.Groups[out.LeftOut:]
		} else {
			out.Groups = out.Groups[:q.Limit]
		}
	}
	return out, nil
}

// rank returns what one of [Sorts] compares.
func (g *Group) rank(sort string) int64 {
	switch {
	case sort == "tokens" && g.Usage != nil:
		return g.Usage.In + g.Usage.Out
	case sort == "errors" && g.Calls != nil:
		return g.Calls.Failed
	case sort == "errors":
		return g.Errors
	case sort == "rereads" && g.Files != nil:
		return g.Files.Rereads
	case sort == "duration" && g.Calls != nil:
		return g.Calls.TotalMS
	}
	return 0
}

func share(n, of int64) *float64 {
	if of == 0 {
		return nil
	}
	return new(math.Round(float64(n)/float64(of)*10_000) / 10_000)
}

func quantile(h Histogram, at float64) *int64 {
	if len(h) == 0 {
		return nil
	}
	return new(h.Quantile(at))
}

func (a *adder) show(name string, s *sum, prices *Prices) Group {
	s.inOrder()
	g := Group{Name: name, Tool: s.tool, Conversations: len(s.conversations), Errors: s.errors, size: s.size}
	if a.q.By != "day" {
		g.Days = s.days
	}
	all := s == &a.total && !detailed[a.q.By]
	if !detailed[a.q.By] || a.q.By == "command" {
		c, ms := &s.calls, s.ms.histogram()
		g.Calls = &Called{
			Count: c.Count, Succeeded: c.Succeeded, Failed: c.Failed, Refused: c.Refused, Untold: c.Untold, SuccessRate: share(c.Succeeded, c.Succeeded+c.Failed),
			Timed: ms.Count(), Median: quantile(ms, 0.5), P99: quantile(ms, 0.99), TotalMS: ms.Total(),
		}
	}
	if a.q.By == "file" || all || !detailed[a.q.By] && a.q.By != "tool" {
		g.Files = &Files{s.files.Reads, s.files.Rereads, share(s.files.Rereads, s.files.Reads), s.files.Writes}
	}
	if detailed[a.q.By] || a.q.By == "tool" && !all {
		return g
	}
	w := &s.work
	g.Work = &Work{
		Turns: w.Turns, Steps: w.Steps, Chars: w.Chars, Compactions: w.Compactions, StepsBefore: share(w.CompactedSteps, w.Compactions), TokensBefore: share(w.CompactedTokens, w.Compactions),
		Changing: w.FirstChanges, SecondsUntilChange: quantile(w.FirstSeconds, 0.5), CallsUntilChange: quantile(w.FirstCalls, 0.5),
	}
	g.Usage = &Usage{w.In(), w.CacheRead, w.CacheWrite, w.Output, w.NoUsage}
	if prices != nil {
		g.Cost = prices.Cost(s.tokens)
	}
	return g
}
