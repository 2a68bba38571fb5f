package project

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"mneme.dev/mneme/pkg/plain"
)

// How much a digest holds of a conversation. Beyond a limit the oldest go: a digest is read whole, for each of the
// [MaxSessions] conversations that a context is made of.
const (
	maxFiles    = 80
	maxCommands = 24
	maxTaught   = 12
	maxNotes    = 128
	maxFixes    = 8
	maxTroubles = 8
	maxOpen     = 24 // calls without a result, and results without a call
	maxTodos    = 16
	maxFindings = 6
	maxAliases  = 4_096

	maxRequest = 400 // characters
	maxAnswer  = 700
	minReport  = 120
	maxSummary = 700
	maxTodo    = 160
	maxTitle   = 160
)

// marked is how many messages there are between two marks.
const marked = 48

// Searched returns the sequence from which on the conversation's messages are searched: the newest 48 to 144.
func (d *Digest) Searched() uint64 {
	if len(d.Marks) < 2 {
		return 0
	}
	return d.Marks[0]
}

// Said is a text of a message.
type Said struct {
	Text string `json:"x"`
	Seq  uint64 `json:"s,omitempty"`
	Turn int    `json:"n,omitempty"`
	Time string `json:"t,omitempty"` // the producer's, RFC 3339
	Key  string `json:"k,omitempty"` // of the event that taught it, see eventKey
}

// File is a file that the conversation touched.
type File struct {
	Path   string `json:"p"` // see Place.Relative
	Reads  int    `json:"r,omitempty"`
	Writes int    `json:"w,omitempty"`
	First  uint64 `json:"f,omitempty"` // sequence of the first call
	Seq    uint64 `json:"s,omitempty"` // of the newest
	Turn   int    `json:"n,omitempty"`
}

// Run sums up the runs of a command.
type Run struct {
	Command string `json:"c"`
	Runs    int    `json:"n"`
	Good    int    `json:"g,omitempty"` // known to have succeeded
	Bad     int    `json:"b,omitempty"` // known to have failed
	BadLast bool   `json:"l,omitempty"` // the newest run with a known outcome failed
	GoodSeq uint64 `json:"q,omitempty"` // of the newest result that is known to be a success
	Seq     uint64 `json:"s,omitempty"`
	Turn    int    `json:"t,omitempty"`
}

// Fix is a failure and what solved it.
type Fix struct {
	Command string   `json:"c"` // the command that succeeded
	Trouble string   `json:"e"`
	Failed  string   `json:"f,omitempty"` // the command that failed, if it was another
	Changed []string `json:"w,omitempty"` // files changed in between, the last first
	Seq     uint64   `json:"s,omitempty"` // of the success
	Turn    int      `json:"t,omitempty"`
	Key     string   `json:"k,omitempty"` // of the event that taught it
}

// Trouble is a command that failed and has not succeeded since.
type Trouble struct {
	Command string   `json:"c"`
	Error   string   `json:"e"`
	Changed []string `json:"w,omitempty"`
	Seq     uint64   `json:"s,omitempty"`
	Turn    int      `json:"t,omitempty"`
}

// Todo is an item of the agent's list of things to do.
type Todo struct {
	ID    string `json:"i,omitempty"`
	Text  string `json:"x"`
	State string `json:"s,omitempty"` // pending, in_progress, completed
}

// Summary is the newest summary of the highest level.
type Summary struct {
	Level    int      `json:"l"`
	Text     string   `json:"x"`
	Findings []string `json:"f,omitempty"`
	Seq      uint64   `json:"s,omitempty"`
	Last     int      `json:"t,omitempty"` // its last turn
	ByModel  bool     `json:"m,omitempty"` // a model wrote it
	Key      string   `json:"k,omitempty"` // of the event that wrote it
}

// call is a tool call that waits for its result.
type call struct {
	ID      string   `json:"i"`
	Touched []Touch  `json:"t,omitempty"`
	Runs    []RunOf  `json:"r,omitempty"`
	Task    string   `json:"k,omitempty"` // the text of a todo item that the result numbers
	Early   bool     `json:"e,omitempty"` // the result came before the call
	Outcome *Outcome `json:"o,omitempty"` // of a result that came before its call
}

// Digest is what a project's context knows about one conversation, as of a sequence. It is the sum
// of [Change]s: the same changes in the same order give the same digest, in a reducer and in a
// reader.
type Digest struct {
	Place    Place  `json:"p"`
	Agent    string `json:"a,omitempty"`
	Title    string `json:"ti,omitempty"`
	TitleSeq uint64 `json:"tq,omitempty"` // of the event that gave the title
	FirstSeq uint64 `json:"fs,omitempty"`
	LastSeq  uint64 `json:"ls,omitempty"`
	Began    string `json:"ft,omitempty"` // times of the producer
	Ended    string `json:"lt,omitempty"`
	Turns    int    `json:"n,omitempty"` // counted as the graph counts them, so that a turn named here is that turn there
	Requests int    `json:"rn,omitempty"`

	First       *Said `json:"f,omitempty"`
	Request     *Said `json:"q,omitempty"`  // the newest
	Answer      *Said `json:"w,omitempty"`  // the newest text of the assistant
	Report      *Said `json:"wr,omitempty"` // the newest text that ended a turn and is long enough to say what was done
	Worked      bool  `json:"wo,omitempty"` // the agent called a tool after its newest text, which was then no answer
	Interrupted bool  `json:"x,omitempty"`  // the user stopped the agent, and has said nothing since

	Summary  *Summary  `json:"sm,omitempty"`
	Taught   []Said    `json:"l,omitempty"` // corrections and instructions of the user
	Fixes    []Fix     `json:"o,omitempty"`
	Troubles []Trouble `json:"e,omitempty"`
	Todos    []Todo    `json:"d,omitempty"`
	TodoSeq  uint64    `json:"ds,omitempty"`
	Tasks    int       `json:"k,omitempty"` // todo items that were made one by one
	Files    []File    `json:"i,omitempty"`
	Runs     []Run     `json:"r,omitempty"`

	Aliases []Alias `json:"al,omitempty"` // of the conversation that holds a tenant's aliases

	Memory []MemoryFile `json:"me,omitempty"` // of the conversation that holds a project's memory, sorted by path

	Insight *Insight `json:"in,omitempty"`
	Chapter *Chapter `json:"ch,omitempty"` // of a conversation that holds a chapter of a story

	Withdrawn []Withdrawal `json:"wd,omitempty"` // the newest
	Replaced  []Found      `json:"rf,omitempty"` // of summaries and insights, the newest: a withdrawal may come after a newer one

	Open []call `json:"c,omitempty"`

	// Said counts messages with a text, and Marks has the sequences of every [marked]th of them, the newest two: where a
	// search begins to read.
	Said  int      `json:"mn,omitempty"`
	Marks []uint64 `json:"mk,omitempty"`

	// Placed is where the conversation was last entered in the list of its project, see [Member].
	Placed uint64 `json:"m,omitempty"`

	memo *memo // of a digest that readers share, else nil
}

// Alias says that Project is another name for the project Into.
type Alias struct {
	Project string `json:"p"`
	Into    string `json:"i"`
}

// Touch is a file that a call touches.
type Touch struct {
	Path  string `json:"p"`
	Write bool   `json:"w,omitempty"`
}

// RunOf is a command that a call runs. Decides is as in files.Ran.
type RunOf struct {
	Command string `json:"c"`
	Decides bool   `json:"d,omitempty"`
}

// Outcome is what a result says about its call.
type Outcome struct {
	Call    string  `json:"i"`
	Success *bool   `json:"s,omitempty"`
	Refused bool    `json:"x,omitempty"` // the user did not let it happen, or it did not run; Success is false then
	Error   string  `json:"e,omitempty"` // what went wrong, of a failed command
	Number  string  `json:"n,omitempty"` // of a todo item
	Touched []Touch `json:"t,omitempty"` // what the runtime reports
}

// Called is a tool call.
type Called struct {
	ID      string  `json:"i"`
	Touched []Touch `json:"t,omitempty"`
	Runs    []RunOf `json:"r,omitempty"`
	Task    string  `json:"k,omitempty"` // a new todo item
	Todos   []Todo  `json:"d,omitempty"` // changed items, or the whole list
	Whole   bool    `json:"w,omitempty"`
}

// Change is what one event changes in the digest of its conversation, computed from that event and the digest before
// it. The read model stores changes.
type Change struct {
	Time    string   `json:"t,omitempty"`
	Place   *Place   `json:"p,omitempty"`
	Agent   string   `json:"a,omitempty"`
	Title   string   `json:"ti,omitempty"`
	Turn    bool     `json:"u,omitempty"` // a message in the role of the user, which begins a turn whoever wrote it
	Request *Said    `json:"q,omitempty"`
	Stopped bool     `json:"x,omitempty"`
	Taught  []string `json:"l,omitempty"`
	Answer  *Said    `json:"w,omitempty"`
	Summary *Summary `json:"sm,omitempty"`
	Called  *Called  `json:"c,omitempty"`
	Worked  bool     `json:"wo,omitempty"` // a call of which nothing else is kept
	Outcome *Outcome `json:"o,omitempty"`
	Alias   *Alias   `json:"al,omitempty"`
	Memory  *Memory  `json:"me,omitempty"`
	Insight *Insight `json:"in,omitempty"`
	Chapter *Chapter `json:"ch,omitempty"`
	Placed  bool     `json:"m,omitempty"`

	Key       string `json:"k,omitempty"`  // of the event, if it may teach something
	Withdrawn string `json:"wd,omitempty"` // the key of the event whose lines are withdrawn
}

// about reports whether a change is only about the conversation, and may come when nobody works in it any longer: a summary,
// an insight, a title, or a withdrawal.
func (c *Change) about() bool {
	return c.Insight != nil || c.Summary != nil || c.Withdrawn != "" || c.Title != "" && c.Time == "" && c.Agent == "" && c.Place == nil
}

// Apply applies the change that the event at seq made.
func (d *Digest) Apply(c *Change, seq uint64) {
	d.FirstSeq = cmp.Or(d.FirstSeq, seq)
	if d.LastSeq == 0 || !c.about() {
		d.LastSeq = seq
	}
	if c.Time != "" {
		d.Began, d.Ended = cmp.Or(d.Began, c.Time), c.Time
	}
	d.Agent = cmp.Or(c.Agent, d.Agent)
	if c.Title != "" {
		d.Title, d.TitleSeq = c.Title, seq
	}
	if c.Place != nil {
		d.Place = *c.Place
	}
	if c.Placed {
		d.Placed = seq
	}
	if c.Turn {
		d.Turns++
	}
	if c.Request != nil {
		if d.Answer != nil && !d.Worked && plain.Length(d.Answer.Text) >= minReport {
			d.Report = d.Answer
		}
		d.Requests++
		d.Interrupted = false
		said := Said{Text: c.Request.Text, Seq: seq, Turn: d.Turns, Time: c.Time}
		if d.Request = &said; d.First == nil {
			d.First = &said
		}
	}
	if c.Stopped {
		d.Interrupted = true
	}
	for _, text := range c.Taught {
		d.Taught = append(d.Taught, Said{Text: text, Seq: seq, Turn: d.Turns, Key: c.Key})
	}
	if d.Request == nil { // it holds the notes of a project, which may come over years
		d.Taught = newest(d.Taught, maxNotes)
	} else {
		d.Taught = newest(d.Taught, maxTaught)
	}
	if c.Answer != nil {
		d.Answer = &Said{Text: c.Answer.Text, Seq: seq, Turn: d.Turns, Time: c.Time}
		d.Worked = false
	}
	if s := c.Summary; s != nil && (d.Summary == nil || s.Level >= d.Summary.Level) {
		if old := d.Summary; old != nil {
			d.replace(foundBy(old.Key, old.Seq, old.Findings))
		}
		d.Summary = &Summary{Level: s.Level, Text: s.Text, Findings: s.Findings, Seq: seq, Last: s.Last, ByModel: s.ByModel, Key: c.Key}
	}
	if c.Request != nil || c.Answer != nil || len(c.Taught) > 0 && c.Outcome == nil {
		if d.Said++; d.Said%marked == 0 {
			d.Marks = newest(append(d.Marks, seq), 2)
		}
	}
	if c.Called != nil {
		d.called(c.Called, seq)
	}
	d.Worked = d.Worked || c.Worked || c.Called != nil
	if c.Outcome != nil {
		d.returned(c.Outcome, seq, c.Key)
	}
	if c.Alias != nil {
		d.alias(*c.Alias)
	}
	if c.Insight != nil {
		if old := d.Insight; old != nil {
			d.replace(foundBy(old.Key, old.Seq, old.Findings))
		}
		insight := *c.Insight
		insight.Seq, insight.Key = seq, c.Key
		d.Insight = &insight
	}
	if c.Chapter != nil {
		chapter := *c.Chapter
		chapter.Seq = seq
		d.Chapter = &chapter
	}
	if c.Memory != nil {
		d.remember(*c.Memory, seq)
	}
	if c.Withdrawn != "" {
		d.Withdrawn = newest(append(d.Withdrawn, Withdrawal{Key: c.Withdrawn, Seq: seq}), maxWithdrawn)
	}
	if key := cmp.Or(c.Withdrawn, c.Key); key != "" {
		d.withdraw(key)
	}
}

func newest[T any](list []T, n int) []T { return list[max(0, len(list)-n):] }

func (d *Digest) alias(a Alias) {
	d.Aliases = slices.DeleteFunc(d.Aliases, func(old Alias) bool { return old.Project == a.Project })
	if a.Into != "" {
		d.Aliases = newest(append(d.Aliases, a), maxAliases)
	}
}

// called applies a call: it touches its files and runs its commands at once, because it may never return.
func (d *Digest) called(c *Called, seq uint64) {
	d.touch(c.Touched, seq)
	for _, r := range c.Runs {
		d.run(r.Command, seq).Runs++
	}
	d.trim()
	d.plan(c, seq)
	open := call{ID: c.ID, Touched: c.Touched, Runs: c.Runs, Task: c.Task}
	if i := slices.IndexFunc(d.Open, func(o call) bool { return o.ID == c.ID && o.Early }); i >= 0 {
		early := d.Open[i].Outcome
		d.Open = slices.Delete(d.Open, i, i+1)
		d.settle(open, early, seq, "") // it failed, so it solved nothing
		return
	}
	if len(c.Touched)+len(c.Runs) > 0 || c.Task != "" {
		d.Open = newest(append(d.Open, open), maxOpen)
	}
}

func (d *Digest) returned(o *Outcome, seq uint64, key string) {
	i := slices.IndexFunc(d.Open, func(c call) bool { return c.ID == o.Call && !c.Early })
	failed := o.Success != nil && !*o.Success
	switch {
	case i < 0 && failed: // the call may still come, and must then touch nothing
		d.Open = newest(append(d.Open, call{ID: o.Call, Early: true, Outcome: o}), maxOpen)
		return
	case i < 0:
		d.touch(o.Touched, seq)
		d.trim()
		return
	}
	c := d.Open[i]
	d.Open = slices.Delete(d.Open, i, i+1)
	d.settle(c, o, seq, key)
}

// settle applies the result of a call. A failed call touched nothing, and a refused one ran nothing.
func (d *Digest) settle(c call, o *Outcome, seq uint64, key string) {
	failed := o.Success != nil && !*o.Success
	if failed {
		d.untouch(c.Touched)
	}
	if o.Refused {
		d.unrun(c.Runs)
		return
	}
	if !failed {
		d.touch(o.Touched, seq)
	}
	for _, r := range c.Runs {
		if o.Success == nil || !r.Decides && failed || !r.Decides && len(c.Runs) == 1 {
			continue // the outcome of this one is unknown
		}
		run := d.run(r.Command, seq)
		if run.BadLast = failed; failed {
			run.Bad++
			d.troubled(r.Command, o.Error, seq)
			continue
		}
		run.Good++
		run.GoodSeq = seq
		d.solved(r.Command, seq, key)
	}
	if c.Task != "" && !failed {
		d.Tasks++
		d.Todos = newest(append(d.Todos, Todo{ID: cmp.Or(o.Number, strconv.Itoa(d.Tasks)), Text: c.Task, State: "pending"}), maxTodos)
		d.TodoSeq = seq
	}
	d.trim()
}

func (d *Digest) touch(list []Touch, seq uint64) {
	for _, t := range list {
		i := slices.IndexFunc(d.Files, func(f File) bool { return f.Path == t.Path })
		if i < 0 {
			i = len(d.Files)
			d.Files = append(d.Files, File{Path: t.Path, First: seq})
		}
		f := &d.Files[i]
		if f.Seq, f.Turn = seq, d.Turns; t.Write {
			f.Writes++
			for k := range d.Troubles {
				changed := slices.DeleteFunc(d.Troubles[k].Changed, func(p string) bool { return p == t.Path })
				d.Troubles[k].Changed = append([]string{t.Path}, changed[:min(len(changed), 2)]...)
			}
		} else {
			f.Reads++
		}
	}
}

func (d *Digest) untouch(list []Touch) {
	for _, t := range list {
		i := slices.IndexFunc(d.Files, func(f File) bool { return f.Path == t.Path })
		if i < 0 {
			continue
		}
		f := &d.Files[i]
		if t.Write {
			f.Writes = max(0, f.Writes-1)
		} else {
			f.Reads = max(0, f.Reads-1)
		}
		if f.Reads+f.Writes == 0 {
			d.Files = slices.Delete(d.Files, i, i+1)
		}
	}
}

func (d *Digest) run(command string, seq uint64) *Run {
	i := slices.IndexFunc(d.Runs, func(r Run) bool { return r.Command == command })
	if i < 0 {
		i = len(d.Runs)
		d.Runs = append(d.Runs, Run{Command: command})
	}
	d.Runs[i].Seq, d.Runs[i].Turn = seq, d.Turns
	return &d.Runs[i]
}

func (d *Digest) unrun(list []RunOf) {
	for _, r := range list {
		if i := slices.IndexFunc(d.Runs, func(old Run) bool { return old.Command == r.Command }); i >= 0 {
			if d.Runs[i].Runs--; d.Runs[i].Runs <= 0 {
				d.Runs = slices.Delete(d.Runs, i, i+1)
			}
		}
	}
}

// trim removes what is over the limits: first the files that were touched once and longest ago.
func (d *Digest) trim() {
	for len(d.Files) > maxFiles {
		oldest := 0
		weight := func(f *File) (n int) { return min(2, f.Reads+2*f.Writes) }
		for i := range d.Files {
			a, b := &d.Files[i], &d.Files[oldest]
			if cmp.Or(cmp.Compare(weight(a), weight(b)), cmp.Compare(a.Seq, b.Seq)) < 0 {
				oldest = i
			}
		}
		d.Files = slices.Delete(d.Files, oldest, oldest+1)
	}
	for len(d.Runs) > maxCommands {
		oldest := 0
		for i := range d.Runs {
			a, b := &d.Runs[i], &d.Runs[oldest]
			if cmp.Or(cmp.Compare(min(a.Runs, 2), min(b.Runs, 2)), cmp.Compare(a.Seq, b.Seq)) < 0 {
				oldest = i
			}
		}
		d.Runs = slices.Delete(d.Runs, oldest, oldest+1)
	}
}

func (d *Digest) troubled(command, trouble string, seq uint64) {
	if trouble == "" {
		return
	}
	d.Troubles = slices.DeleteFunc(d.Troubles, func(t Trouble) bool { return t.Command == command })
	d.Troubles = newest(append(d.Troubles, Trouble{Command: command, Error: trouble, Seq: seq, Turn: d.Turns}), maxTroubles)
}

// solved ends the troubles of a command, and of commands of the same family. Only the newest becomes a fix, and only if
// something changed: a file, or the command.
func (d *Digest) solved(command string, seq uint64, key string) {
	var last *Trouble
	d.Troubles = slices.DeleteFunc(d.Troubles, func(t Trouble) bool {
		same := t.Command == command || family(t.Command) == family(command)
		if same {
			last = &Trouble{Command: t.Command, Error: t.Error, Changed: t.Changed}
		}
		return same
	})
	if last == nil || last.Command == command && len(last.Changed) == 0 {
		return
	}
	fix := Fix{Command: command, Trouble: last.Error, Changed: last.Changed, Seq: seq, Turn: d.Turns, Key: key}
	if last.Command != command {
		fix.Failed = last.Command
	}
	d.Fixes = slices.DeleteFunc(d.Fixes, func(f Fix) bool { return f.Trouble == fix.Trouble })
	d.Fixes = newest(append(d.Fixes, fix), maxFixes)
}

// plan applies changes of the todo list.
func (d *Digest) plan(c *Called, seq uint64) {
	if c.Whole {
		d.Todos, d.TodoSeq = c.Todos, seq
		return
	}
	for _, t := range c.Todos {
		if i := slices.IndexFunc(d.Todos, func(old Todo) bool { return old.ID != "" && old.ID == t.ID }); i >= 0 {
			d.Todos[i].Text, d.Todos[i].State, d.TodoSeq = cmp.Or(t.Text, d.Todos[i].Text), cmp.Or(t.State, d.Todos[i].State), seq
		}
	}
}

// Undone lists the todo items that are not done.
func (d *Digest) Undone() (list []Todo) {
	for _, t := range d.Todos {
		if t.State != "completed" && t.State != "done" && t.State != "cancelled" && t.State != "deleted" {
			list = append(list, t)
		}
	}
	return list
}

// IsBrief reports whether the newest text is too short to say what was done, such as "Done."
func (d *Digest) IsBrief() bool { return d.Answer != nil && plain.Length(d.Answer.Text) < minReport }

// Unanswered reports whether the newest request has no answer yet.
func (d *Digest) Unanswered() bool {
	return d.Request != nil && (d.Answer == nil || d.Answer.Seq < d.Request.Seq)
}

// About is the text that a query is compared with: the conversation's title and what its user asked.
func (d *Digest) About() string {
	parts := []string{d.Title}
	if d.First != nil {
		parts = append(parts, d.First.Text)
	}
	if d.Request != nil && d.Request.Seq != d.First.Seq {
		parts = append(parts, plain.Prefix(d.Request.Text, maxRequest/2))
	}
	return strings.TrimSpace(strings.Join(parts, "\n"))
}
