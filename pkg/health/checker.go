package health

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/harness"
	"mneme.dev/mneme/pkg/plain"
)

// Rule names a rule.
type Rule string

// The rules.
const (
	Loop       Rule = "loop"
	Failing    Rule = "failing"
	Reread     Rule = "rereads"
	LongTurn   Rule = "long_turn"
	Unanswered Rule = "unanswered"
)

// Thresholds of the rules: the least values that nearly always mean trouble in recorded sessions.
const (
	LoopCalls   = 3   // calls with the same result
	FailedCalls = 2   // failures of the same call
	Reads       = 3   // reads of the same part of a file
	TurnSteps   = 150 // steps of a turn
)

// MaxSeqs is how many events a finding names, the first ones.
const MaxSeqs = 20

// maxSubject is the longest subject in characters.
const maxSubject = 200

// maxLines is how many lines of files a checker remembers: whoever writes a conversation must not decide how much
// memory its check takes.
const maxLines = 1 << 20

// Finding is something odd. Count is of calls (loop, failing), of reads of what was read before
// (rereads), of steps (long_turn), or of requests (unanswered).
type Finding struct {
	Rule     Rule
	Count    int
	Tool     string // "" if it is not about a tool
	Subject  string // the call's arguments or command, the file, or the beginning of the user message, on one line
	Turn     int    // of the first event
	FirstSeq uint64
	LastSeq  uint64
	Seqs     []uint64 // of the events that prove it: calls, or messages; at most MaxSeqs
}

// Checker applies the rules to rows in log order. The zero value is not usable, see [New].
type Checker struct {
	cwd     string
	table   *files.Table
	waiting map[graph.Ref]*call
	runs    map[events.Digest]*run
	seen    map[events.Digest]bool // outcomes of calls that may have changed something
	news    int                    // how often something new has happened
	files   map[string]*reads
	room    int // how many more lines of files are remembered
	turn    turn
	asked   *asked
	found   []Finding
}

// call is a call whose result has not come.
type call struct {
	graph.Position
	tool, subject string
	key           events.Digest
	looks         bool
	accesses      []files.Access
}

// sighting collects the events of a finding.
type sighting struct{ Finding }

func (s *sighting) add(p graph.Position) {
	if s.Count == 0 {
		s.Turn, s.FirstSeq = p.Turn, p.Seq
	}
	s.Count++
	s.LastSeq = max(s.LastSeq, p.Seq)
	if len(s.Seqs) < MaxSeqs {
		s.Seqs = append(s.Seqs, p.Seq)
	}
}

// run is a run of equal calls with nothing new between.
type run struct {
	sighting
	news    int
	failed  bool
	outcome events.Digest
}

// reads are the reads of a file since it was written.
type reads struct {
	sighting
	first graph.Position
	lines map[uint64]int // how often a line was read, by its hash
	again bool           // a part was read Reads times
}

type turn struct {
	sighting
	number int
}

type asked struct{ sighting }

// New returns a checker of a conversation whose tools run in a directory, "" if unknown.
func New(cwd string) *Checker {
	return &Checker{
		cwd: cwd, table: files.DefaultTable(), waiting: map[graph.Ref]*call{}, runs: map[events.Digest]*run{},
		seen: map[events.Digest]bool{}, files: map[string]*reads{}, room: maxLines,
	}
}

// Add takes the next row.
func (c *Checker) Add(e graph.Entry) {
	switch {
	case e.Message != nil:
		c.message(e.Message)
	case e.Call != nil:
		c.called(e.Call)
	default:
		c.returned(e.Result)
	}
}

func (c *Checker) message(m *graph.Message) {
	if m.Turn != c.turn.number {
		c.endTurn()
		c.turn.number = m.Turn
	}
	switch m.Role {
	case "assistant":
		c.asked = nil
		if c.turn.Count == 0 {
			c.turn.Rule = LongTurn
		}
		c.turn.add(m.Position)
	case "user":
		c.news++
		text := strings.TrimSpace(harness.Said(m.Content.Text))
		c.turn.Subject = text
		if !harness.Asks(m.Role, m.Via, m.Content.Text) {
			if m.Via == "" && harness.Interrupts(text) {
				c.asked = nil
			}
			return
		}
		if c.asked == nil {
			c.asked = &asked{sighting{Finding{Rule: Unanswered, Subject: text}}}
		}
		c.asked.add(m.Position)
	}
}

func (c *Checker) called(t *graph.ToolCall) {
	c.asked = nil
	made := files.Call{Tool: t.ToolName, Arguments: json.RawMessage(t.Arguments.Text), Cwd: c.cwd}
	key, subject := identify(t)
	c.waiting[t.Ref()] = &call{
		Position: t.Position, tool: t.ToolName, subject: plain.Clip(plain.Flat(subject), maxSubject), key: key,
		looks: c.table.Looks(made), accesses: c.table.FromCall(made),
	}
}

func (c *Checker) returned(r *graph.ToolResult) {
	made, ok := c.waiting[r.Ref()]
	if !ok {
		return // the call is unknown
	}
	delete(c.waiting, r.Ref())
	failed := r.Success != nil && !*r.Success
	text := cmp.Or(r.Error, r.Result.Text)
	if _, refused := harness.Refusal(text); failed && refused {
		c.news++ // the user spoke, and nothing ran
		return
	}
	if failed && harness.NotRun(text) {
		return
	}
	outcome := digestOf(r)
	if c.changed(made, outcome, failed) {
		c.news++
	}
	if !failed {
		c.read(made, r)
	}
	c.repeat(made, outcome, failed)
}

// changed reports whether a call is something new.
func (c *Checker) changed(made *call, outcome events.Digest, failed bool) bool {
	writes := slices.ContainsFunc(made.accesses, func(a files.Access) bool { return a.Kind == files.KindWrite })
	if made.looks || failed && writes && !c.table.Shell(made.tool) {
		return false
	}
	key := events.DigestOf(made.key.String(), outcome.String())
	if failed { // its output may contain times or addresses
		key = made.key
	}
	if c.seen[key] {
		return false
	}
	c.seen[key] = true
	return true
}

// repeat applies the rules loop and failing.
func (c *Checker) repeat(made *call, outcome events.Digest, failed bool) {
	now := c.runs[made.key]
	if now == nil || now.news != c.news || now.failed != failed || !failed && now.outcome != outcome {
		if now != nil {
			c.endRun(now)
		}
		rule := Loop
		if failed {
			rule = Failing
		}
		now = &run{sighting: sighting{Finding{Rule: rule, Tool: made.tool, Subject: made.subject}}, news: c.news, failed: failed, outcome: outcome}
		c.runs[made.key] = now
	}
	if !failed && made.looks && slices.ContainsFunc(made.accesses, func(a files.Access) bool { return a.Kind == files.KindRead }) {
		return // the rule for rereads covers it
	}
	now.add(made.Position)
}

func (c *Checker) endRun(r *run) {
	if r.failed && r.Count >= FailedCalls || !r.failed && r.Count >= LoopCalls {
		c.report(r.Finding)
	}
}

// read applies the rule rereads.
func (c *Checker) read(made *call, r *graph.ToolResult) {
	for _, a := range made.accesses {
		f := c.files[a.Path]
		if a.Kind == files.KindWrite && f != nil {
			c.endReads(f)
			delete(c.files, a.Path)
			c.room += len(f.lines)
		}
		if a.Kind != files.KindRead || !made.looks || len(made.accesses) > 1 {
			continue // a command that also does something else, or reads several files
		}
		if f == nil {
			f = &reads{sighting: sighting{Finding{Rule: Reread, Tool: made.tool, Subject: a.Path}}, first: made.Position, lines: map[uint64]int{}}
			c.files[a.Path] = f
		}
		before := len(f.lines)
		if f.known(r.Result.Text, c.room) {
			f.add(made.Position)
		}
		c.room -= len(f.lines) - before
	}
}

// minLines is the least number of lines of a text that can be a repeated read: a shorter text may be a message.
const minLines = 5

// known reports whether nine of ten lines of a text were read before, and remembers the text unless it has more than
// room new lines. If three of four were read Reads-1 times before, it sets again.
func (f *reads) known(text string, room int) bool {
	lines, known, often := 0, 0, 0
	own := map[uint64]bool{}
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); len(line) < 4 {
			continue
		}
		h := xxhash.Sum64String(line)
		if own[h] {
			continue
		}
		own[h] = true
		lines++
		if f.lines[h] > 0 {
			known++
		}
		if f.lines[h] >= Reads-1 {
			often++
		}
	}
	if lines-known <= room {
		for h := range own {
			f.lines[h]++
		}
	}
	if lines < minLines || known*10 < lines*9 {
		return false
	}
	f.again = f.again || often*4 >= lines*3
	return true
}

func (c *Checker) endReads(f *reads) {
	if !f.again || f.Count < Reads-1 {
		return
	}
	found := f.Finding
	found.Seqs = append([]uint64{f.first.Seq}, found.Seqs[:min(len(found.Seqs), MaxSeqs-1)]...)
	found.FirstSeq, found.Turn = f.first.Seq, f.first.Turn
	c.report(found)
}

func (c *Checker) endTurn() {
	if c.turn.Count >= TurnSteps {
		c.turn.Seqs = []uint64{c.turn.FirstSeq, c.turn.LastSeq}
		c.report(c.turn.Finding)
	}
	c.turn = turn{}
}

func (c *Checker) report(f Finding) {
	f.Subject = plain.Clip(plain.Flat(f.Subject), maxSubject)
	f.Seqs = slices.Clone(f.Seqs)
	c.found = append(c.found, f)
}

// Findings ends the conversation and returns what is odd about it, in log order. Add must not be called
// after it.
func (c *Checker) Findings() []Finding {
	c.endTurn()
	for _, r := range c.runs {
		c.endRun(r)
	}
	for _, f := range c.files {
		c.endReads(f)
	}
	if c.asked != nil {
		c.report(c.asked.Finding)
	}
	slices.SortFunc(c.found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.FirstSeq, b.FirstSeq), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.LastSeq, b.LastSeq))
	})
	return c.found
}

// beside are names of arguments that say nothing about what a call does.
var beside = []string{"description", "explanation", "timeout", "timeout_ms", "timeout_sec", "run_in_background"}

// shown matches the end of a command that only selects a part of its output.
var shown = regexp.MustCompile(`(\s*2>&1)?(\s*\|\s*(head|tail)(\s+-?\w+)*)*\s*$`)

// identify returns the part by which calls count as equal, and how to show it.
func identify(t *graph.ToolCall) (key events.Digest, subject string) {
	text := t.Arguments.Text
	subject = text
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &members) == nil {
		for _, name := range beside {
			delete(members, name)
		}
		var b bytes.Buffer
		for i, name := range slices.Sorted(maps.Keys(members)) {
			if i > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(name + "=")
			var s string
			if json.Unmarshal(members[name], &s) == nil {
				b.WriteString(shown.ReplaceAllString(s, ""))
			} else {
				b.Write(members[name])
			}
			b.WriteByte(0)
		}
		text = b.String()
		subject = strings.ReplaceAll(text, "\x00", "")
		if len(members) == 1 {
			_, subject, _ = strings.Cut(subject, "=")
		}
	}
	if !t.Arguments.Recorded() {
		text = t.Arguments.Hash.String()
	}
	return events.DigestOf(t.ToolName, text), subject
}

// digestOf returns a result's fingerprint.
func digestOf(r *graph.ToolResult) events.Digest {
	if r.Result.Recorded() {
		return events.DigestOf(r.Result.Text, r.Error)
	}
	return events.DigestOf(r.Result.Hash.String(), r.Error)
}
