package files

import (
	"bytes"
	"strings"

	json "github.com/go-json-experiment/json/v1"

	"mneme.dev/mneme/events"
)

// FromCall lists the files that a call's arguments name, in the order of the rule and the
// arguments, each path once with its strongest kind (write, read, search, list). It returns
// nothing for a tool that the table does not know, and for arguments that are not the JSON
// that the tool takes.
//
// If a tool's result says which file is open ([FormOpen]), FromCall leaves a relative path
// without a known cwd to FromResult, which can resolve it.
func (t *Table) FromCall(c Call) []Access {
	r, known := t.rule(c.Tool)
	if !known {
		return nil
	}
	return r.fromCall(c, decode(c.Arguments), nil)
}

// Did is what a call says without its result. It must not be modified.
type Did struct {
	Accesses []Access // as of [Table.FromCall]
	Ran      []Ran    // as of [Table.Ran]
	Kept     *Call    // as of [Table.Keep], nil if it is not worth keeping
}

// didKey is the memo key of [Table.Did]: tables with one fingerprint find the same.
type didKey struct{ fingerprint, cwd string }

// Did returns what an event that is an [*events.ToolCalled] says, in a conversation with this working directory. It
// decodes the arguments and parses a script only once, for all readers of a shared event (see [events.Memo]).
func (t *Table) Did(e *events.Recorded, cwd string) *Did {
	return events.Memo(e, didKey{t.fingerprint, cwd}, func() *Did {
		p := e.Payload.(*events.ToolCalled)
		c := Call{Tool: p.ToolName, Arguments: p.Arguments, Cwd: cwd}
		r, known := t.rule(c.Tool)
		if !known {
			return &Did{}
		}
		args, trees := decode(c.Arguments), scripts{}
		return &Did{r.fromCall(c, args, trees), r.ran(c, args, trees), r.keep(c, args, trees)}
	})
}

func (r *Rule) fromCall(c Call, args arguments, trees scripts) []Access {
	found := r.named(c, args, trees)
	if r.Result == FormOpen {
		found, _ = byPlace(found)
	}
	return found
}

// byPlace separates accesses with a known place from relative ones, whose folder is
// unknown.
func byPlace(all []Access) (placed, relative []Access) {
	for _, a := range all {
		if rooted(a.Path) {
			placed = append(placed, a)
		} else {
			relative = append(relative, a)
		}
	}
	return placed, relative
}

// folder returns the directory that a call works in, "" if it is unknown.
func (r *Rule) folder(c Call, args arguments) string {
	base := c.Cwd
	if !rooted(base) {
		base = ""
	}
	for _, name := range r.Folder {
		if dir := args.text(name); dir != "" {
			base = join(base, dir)
		}
	}
	return base
}

// named lists the files that the arguments name.
func (r *Rule) named(c Call, args arguments, trees scripts) []Access {
	kind := r.Kind
	if r.Verb != "" {
		kind = r.Verbs[args.text(r.Verb)]
	}
	base := r.folder(c, args)
	var found collection
	if kind != "" {
		for _, name := range r.Paths {
			for _, p := range args.paths(name) {
				found.add(base, p, kind)
			}
		}
		if p := operand(args.text(r.Line), r.Operand); p != "" {
			found.add(base, p, kind)
		}
	}
	for _, name := range r.Patch {
		found.patched(base, args.text(name))
	}
	if len(r.Patch) > 0 {
		found.patched(base, args.whole)
	}
	for _, words := range r.commands(args) {
		shell{found: &found, trees: trees}.run(base, words)
	}
	return found.list
}

// commands returns the commands that a call runs in a shell. A single word is a script, several are a program and its
// arguments.
func (r *Rule) commands(args arguments) (list [][]string) {
	if len(r.Shell) > 0 && args.whole != "" {
		list = append(list, []string{args.whole})
	}
	for _, name := range r.Shell {
		if words := args.words(name); len(words) > 0 {
			list = append(list, words)
		}
	}
	for _, name := range r.Shells {
		list = append(list, args.scripts(name)...)
	}
	return list
}

// arguments holds a call's arguments, decoded down to the members. If they were a string
// that is not a JSON object, as for a tool that takes free text, whole is set instead.
type arguments struct {
	members map[string]json.RawMessage
	whole   string
}

func decode(raw []byte) arguments {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || len(raw) > MaxArgumentBytes {
		return arguments{}
	}
	var a arguments
	if raw[0] != '"' {
		if json.Unmarshal(raw, &a.members) != nil {
			return arguments{}
		}
		return a
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return arguments{}
	}
	if json.Unmarshal([]byte(text), &a.members) != nil {
		return arguments{whole: text}
	}
	return a
}

// text returns a member that is a string, else "".
func (a arguments) text(name string) string {
	var s string
	if raw, ok := a.members[name]; ok && len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &s) == nil {
		return s
	}
	return ""
}

// maxListBytes limits the size of a list among the arguments; longer ones are ignored.
const maxListBytes = 256 << 10

// words returns a member that is a command: a list of words, or a text as a list of one.
func (a arguments) words(name string) []string {
	if s := a.text(name); s != "" {
		return []string{s}
	}
	var list []string
	if raw := a.members[name]; len(raw) == 0 || len(raw) > maxListBytes || json.Unmarshal(raw, &list) != nil {
		return nil
	}
	return list
}

// scripts returns the commands of a member that is a list of them; one that has another form is an empty script.
func (a arguments) scripts(name string) (found [][]string) {
	var list []json.RawMessage
	if raw := a.members[name]; len(raw) == 0 || len(raw) > maxListBytes || json.Unmarshal(raw, &list) != nil {
		return nil
	}
	for _, item := range list[:min(len(list), MaxAccesses)] {
		var script string
		var program struct {
			Command string   `json:"command"`
			Args    []string `json:"args"`
		}
		if json.Unmarshal(item, &script) != nil && json.Unmarshal(item, &program) == nil {
			script = program.Command
		}
		found = append(found, append([]string{script}, program.Args...))
	}
	return found
}

// paths returns the files that a member names in one of the forms that Rule.Paths accepts.
func (a arguments) paths(name string) []string {
	if s := a.text(name); s != "" {
		return []string{s}
	}
	var list []json.RawMessage
	if raw := a.members[name]; len(raw) == 0 || len(raw) > maxListBytes || json.Unmarshal(raw, &list) != nil {
		return nil
	}
	var found []string
	for _, item := range list[:min(len(list), MaxAccesses)] {
		var s string
		if json.Unmarshal(item, &s) == nil {
			found = append(found, s)
			continue
		}
		object := decode(item)
		for _, member := range pathMembers {
			if p := object.text(member); p != "" {
				found = append(found, p)
			}
		}
	}
	return found
}

// Keep returns a small copy of a call to store until its result comes: tool, cwd, and only
// those arguments that [Table.FromResult] uses. It returns false if the result can add only
// what the runtime reports.
func (t *Table) Keep(c Call) (Call, bool) {
	r, known := t.rule(c.Tool)
	if !known {
		return Call{}, false
	}
	kept := r.keep(c, decode(c.Arguments), nil)
	if kept == nil {
		return Call{}, false
	}
	return *kept, true
}

func (r *Rule) keep(c Call, args arguments, trees scripts) *Call {
	if r.Result == FormNone {
		return nil
	}
	if r.Result == FormOpen {
		if placed, _ := byPlace(r.named(c, args, trees)); len(placed) > 0 {
			return nil
		}
	}
	kept := map[string]string{}
	for _, name := range append([]string{r.Verb, r.Line}, r.Paths...) {
		if s := args.text(name); s != "" && len(s) <= MaxPathBytes && name != "" {
			kept[name] = s
		}
	}
	c.Arguments, _ = json.Marshal(kept) // strings always marshal
	return &c
}

// operand returns the n-th word, counted from 1, after the command's name in the first
// line.
func operand(line string, n int) string {
	if n == 0 {
		return ""
	}
	line, _, _ = strings.Cut(line, "\n")
	words := splitCommand(line)
	if n >= len(words) {
		return ""
	}
	return words[n]
}
