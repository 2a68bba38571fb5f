package files

import (
	"bytes"
	"strings"

	json "github.com/go-json-experiment/json/v1"
)

// FromCall lists the files that a call's arguments name, in the order in which the
// rule and the arguments name them, each path once with its strongest kind
// (write, read, search, list). It returns nothing for a tool that the table
// does not know and for arguments that are not the JSON the tool takes.
//
// Where the result of a tool says which file is open ([FormOpen]), a relative path
// without a known cwd is left to FromResult, which can place it.
func (t *Table) FromCall(c Call) []Access {
	r, known := t.rule(c.Tool)
	if !known {
		return nil
	}
	found := r.named(c)
	if r.Result == FormOpen {
		found, _ = byPlace(found)
	}
	return found
}

// byPlace parts accesses into those that are surely placed and relative ones,
// whose folder is unknown.
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

// named lists what the arguments name.
func (r *Rule) named(c Call) []Access {
	args := decode(c.Arguments)
	kind := r.Kind
	if r.Verb != "" {
		kind = r.Verbs[args.text(r.Verb)]
	}
	base := c.Cwd
	if !rooted(base) {
		base = ""
	}
	for _, name := range r.Folder {
		if dir := args.text(name); dir != "" {
			base = join(base, dir)
		}
	}
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
	for _, name := range r.Shell {
		shell{found: &found}.run(base, args.words(name))
	}
	if len(r.Shell) > 0 && args.whole != "" {
		shell{found: &found}.run(base, []string{args.whole})
	}
	return found.list
}

// arguments are a call's arguments, decoded as far as its members. whole is set
// instead if they were one text that is no JSON object, as of a tool that takes
// free text.
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

// text is a member that is a string, else "".
func (a arguments) text(name string) string {
	var s string
	if raw, ok := a.members[name]; ok && len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &s) == nil {
		return s
	}
	return ""
}

// maxListBytes is how long a list among the arguments may be to be looked at.
const maxListBytes = 256 << 10

// words is a member that is a command: a list of words, or one text as a list of
// one.
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

// paths is a member that names files in one of the ways that Rule.Paths lists.
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

// Keep makes the small call that a caller stores until the result comes: the
// same tool and cwd, and of the arguments only what [Table.FromResult] looks at. It
// returns false if the result can add nothing but what the runtime reports.
func (t *Table) Keep(c Call) (Call, bool) {
	r, known := t.rule(c.Tool)
	if !known || r.Result == FormNone {
		return Call{}, false
	}
	named := r.named(c)
	if placed, _ := byPlace(named); r.Result == FormOpen && len(placed) > 0 {
		return Call{}, false
	}
	args := decode(c.Arguments)
	kept := map[string]string{}
	for _, name := range append([]string{r.Verb, r.Line}, r.Paths...) {
		if s := args.text(name); s != "" && len(s) <= MaxPathBytes && name != "" {
			kept[name] = s
		}
	}
	c.Arguments, _ = json.Marshal(kept) // strings always marshal
	return c, true
}

// operand is the n-th word, counted from 1, after the command's name on the
// first line.
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
