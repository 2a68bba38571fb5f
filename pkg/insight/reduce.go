package insight

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/harness"
	"mneme.dev/mneme/pkg/plain"
	"mneme.dev/mneme/pkg/project"
	"mneme.dev/mneme/pkg/projection"
)

// maxName is the longest name of a tool, and maxPath that of a file, in characters.
const (
	maxName = 100
	maxPath = 300
)

// maxMS is the longest believable duration of a call: 30 days.
const maxMS = 30 * 24 * 60 * 60 * 1000

// gather is how long events gather for a batch: a batch writes whole rows, however few events it has.
const gather = 300 * time.Millisecond

type reducer struct{ table *files.Table }

// Projection declares the read model "insight".
func Projection(table *files.Table) projection.Projection[*Unit] {
	r := reducer{table}
	return projection.Projection[*Unit]{
		Name:     "insight",
		Version:  7,
		Gather:   gather,
		Settings: table.Fingerprint(),
		Reducers: map[string]projection.Reducer[*Unit]{
			events.TypeConversationStarted: r.started,
			events.TypeConversationDeleted: r.deleted,
			events.TypeMessageCreated:      r.message,
			events.TypeToolCalled:          r.called,
			events.TypeToolReturned:        r.returned,
		},
	}
}

func (reducer) deleted(u *Unit, e *events.Recorded) error {
	u.Delete(e)
	return nil
}

func (reducer) started(u *Unit, e *events.Recorded) error {
	p := e.Payload.(*events.ConversationStarted)
	m := &u.touch(e).Memory
	if p.Project != "" || p.Repository != "" || p.Cwd != "" {
		m.Place = project.PlaceOf(p.Project, p.Repository, p.Cwd)
	}
	if p.Agent != "" {
		m.Agent = plain.Speaker(p.Agent)
	}
	if p.Model != "" {
		m.Model = plain.Speaker(p.Model)
	}
	return nil
}

func (reducer) message(u *Unit, e *events.Recorded) error {
	p := e.Payload.(*events.MessageCreated)
	s := u.touch(e)
	m := &s.Memory
	if p.Role == "assistant" && p.Model != "" {
		m.Model = plain.Speaker(p.Model)
	}
	of := s.day(e).model(m.Model)
	of.Chars += int64(plain.Length(p.Content) + plain.Length(p.Reasoning))
	if p.Origin == events.OriginCompaction {
		of.Compactions++
		of.CompactedSteps += m.Steps
		of.CompactedTokens += m.Context
		m.Steps, m.Context = 0, 0
	}
	if harness.Asks(p.Role, p.Origin, p.Content) {
		of.Turns++
	}
	if p.Role == "assistant" {
		of.Steps++
		m.Steps++
		if t, ok := TokensOf(p.Usage); ok {
			of.Tokens.add(t)
			m.Context = t.In()
		} else {
			of.NoUsage++
		}
	}
	return nil
}

// inParts are the arguments by which tools pick a part of a file. In files, each file can come with its lines.
var inParts = []string{"offset", "limit", "view_range", "start_line", "end_line", "line_start", "line_end", "startLine", "endLine", "line_offset", "n_lines", "pages", "lines", "ranges", "line_ranges", "files"}

// partOf returns which part of a file a call reads, "" for all of it. Reads of the same part have equal arguments.
func partOf(arguments json.RawMessage, inShell bool) string {
	if inShell {
		return string(arguments)
	}
	var args map[string]json.RawMessage
	if json.Unmarshal(arguments, &args) != nil {
		return string(arguments)
	}
	var parts []string
	for _, name := range inParts {
		if v := args[name]; v != nil && string(v) != "null" {
			parts = append(parts, name, string(v))
		}
	}
	return strings.Join(parts, " ")
}

func (r reducer) called(u *Unit, e *events.Recorded) error {
	p := e.Payload.(*events.ToolCalled)
	s := u.touch(e)
	m, d := &s.Memory, s.day(e)
	of := d.model(m.Model)
	o := open{ID: p.ToolCallID, Tool: plain.Clip(plain.Line(p.ToolName), maxName), Model: m.Model}
	if timed(e) {
		o.At = e.Time.UnixMilli()
	}
	of.Chars += int64(plain.Length(p.Text()))
	of.tool(o.Tool).Count++

	did := r.table.Did(e, m.Place.Folder)
	for _, ran := range did.Ran {
		command := project.Command(ran, m.Place)
		if command == "" || slices.Contains(o.Commands, command) {
			continue
		}
		if d.Detail.command(command) == nil {
			d.Detail.Left.Commands++
			continue
		}
		d.Detail.command(command).Count++
		if o.Commands = append(o.Commands, command); ran.Decides {
			o.Decides = command
		}
	}
	part := ""
	if slices.ContainsFunc(did.Accesses, func(a files.Access) bool { return a.Kind == files.KindRead }) {
		part = partOf(p.Arguments, len(did.Ran) > 0)
	}
	m.Calls++
	for _, a := range did.Accesses {
		if a.Kind == files.KindRead || a.Kind == files.KindWrite {
			path := plain.Clip(m.Place.Relative(a.Path), maxPath)
			if o.Touched = append(o.Touched, touched(path, a.Kind == files.KindWrite)); len(o.Touched) > maxOfCall {
				o.Touched = o.Touched[1:]
			}
			s.access(e, of, d, path, part, a.Kind == files.KindWrite)
		}
	}
	if i := slices.IndexFunc(m.Early, func(r early) bool { return r.ID == o.ID }); i >= 0 {
		d.ended(&o, m.Early[i].outcome)
		m.Early = slices.Delete(m.Early, i, i+1)
		return nil
	}
	if len(m.Open) >= maxOpen {
		m.Open = slices.Delete(m.Open, 0, 1)
	}
	m.Open = append(m.Open, o)
	return nil
}

func touched(path string, write bool) string {
	if write {
		return "w" + path
	}
	return "r" + path
}

// access counts a read or a write of a file.
func (s *State) access(e *events.Recorded, of *Model, d *Day, path, part string, write bool) {
	m, f := &s.Memory, d.Detail.file(path)
	if !write {
		of.Reads++
		f.Reads++
		if (*seen)(&m.Seen).read(path, part) {
			of.Rereads++
			f.Rereads++
		}
		return
	}
	of.Writes++
	f.Writes++
	(*seen)(&m.Seen).written(path)
	if m.Changed {
		return
	}
	m.Changed = true
	of.FirstChanges++
	of.FirstCalls.Add(m.Calls)
	if after := e.Time.UnixMilli() - m.Began; timed(e) && m.Began != 0 && after >= 0 {
		of.FirstSeconds.Add(after / 1000)
	}
}

// errorOf returns what went wrong, normalised: the most telling line, else the beginning of the text.
func errorOf(p *events.ToolReturned) string {
	return Normalise(cmp.Or(project.TroubleOf(p), p.Error, plain.Prefix(plain.NameData(p.Text()), 4*maxError)))
}

func (r reducer) returned(u *Unit, e *events.Recorded) error {
	p := e.Payload.(*events.ToolReturned)
	s := u.touch(e)
	m, d := &s.Memory, s.day(e)
	i := slices.IndexFunc(m.Open, func(o open) bool { return o.ID == p.ToolCallID })
	model := m.Model
	if i >= 0 {
		model = m.Open[i].Model
	}
	of := d.model(model)
	of.Chars += int64(plain.Length(p.Text()))
	out := outcome{Success: p.Success, MS: -1}
	if p.DurationMS != nil && *p.DurationMS >= 0 && *p.DurationMS <= maxMS {
		out.MS = int64(*p.DurationMS)
	} else if i >= 0 && timed(e) && m.Open[i].At != 0 {
		if ms := e.Time.UnixMilli() - m.Open[i].At; ms >= 0 && ms <= maxMS {
			out.MS = ms
		}
	}
	if p.Success != nil && !*p.Success {
		text := cmp.Or(p.Error, p.Text())
		if _, out.Refused = harness.Refusal(text); out.Refused {
			out.MS = -1 // how long the user thought about it
		} else if harness.NotRun(text) {
			out.Success, out.MS = nil, -1
		} else {
			out.Error = errorOf(p)
		}
	}
	for _, f := range p.Files {
		if f.Op != "read" && f.Op != "write" && f.Op != "edit" {
			continue
		}
		at := files.Normalise(m.Place.Folder, f.Path)
		if at == "" {
			continue
		}
		path, write := plain.Clip(m.Place.Relative(at), maxPath), f.Op != "read"
		if i < 0 || !slices.Contains(m.Open[i].Touched, touched(path, write)) {
			s.access(e, of, d, path, "", write)
		}
	}
	if i >= 0 {
		o := m.Open[i]
		m.Open = slices.Delete(m.Open, i, i+1)
		d.ended(&o, out)
		return nil
	}
	if len(m.Early) >= maxOpen {
		m.Early = slices.Delete(m.Early, 0, 1)
		d.Detail.Left.Results++
	}
	m.Early = append(m.Early, early{p.ToolCallID, out})
	return nil
}

// ended counts the end of a call.
func (d *Day) ended(o *open, out outcome) {
	d.model(o.Model).tool(o.Tool).ended(out)
	for _, command := range o.Commands {
		c := d.Detail.command(command)
		switch {
		case c == nil: // the run was counted on another day
			d.Detail.Left.Commands++
		case command == o.Decides || out.Refused:
			c.ended(out)
		default:
			c.ended(outcome{MS: -1}) // one of several commands, whose exit status is lost
		}
	}
	if out.Success != nil && !*out.Success && !out.Refused {
		d.Detail.failed(o.Tool, out.Error)
	}
}

func (c *Calls) ended(out outcome) {
	switch {
	case out.Refused:
		c.Refused++
	case out.Success == nil:
		c.Untold++
	case *out.Success:
		c.Succeeded++
	default:
		c.Failed++
	}
	if out.MS >= 0 {
		c.MS.Add(out.MS)
	}
}
