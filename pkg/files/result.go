package files

import (
	"encoding/json"
	"strings"

	"mneme.dev/mneme/events"
)

// reportedKinds maps the operations of [events.FileOp].
var reportedKinds = map[string]Kind{"read": KindRead, "write": KindWrite, "edit": KindWrite, "search": KindSearch, "list": KindList}

// FromResult lists the files that the result of a call adds: first those that the runtime
// reported, then search hits and listed files in the order of the result. result is the
// text as the agent read it; it may be JSON. For a tool that the table does not know, only
// the reported files count.
//
// Don't pass the result of a failed call: its text is an error message.
func (t *Table) FromResult(c Call, result string, reported []events.FileOp) []Access {
	var found collection
	base := c.Cwd
	if !rooted(base) {
		base = ""
	}
	for _, op := range reported {
		if kind := reportedKinds[op.Op]; kind != "" {
			found.add(base, op.Path, kind)
		}
	}
	r, known := t.rule(c.Tool)
	if !known || r.Result == FormNone {
		return found.list
	}
	named := r.named(c, decode(c.Arguments), nil)
	if r.Result == FormOpen {
		r.opened(&found, named, result)
		return found.list
	}
	kind := r.Kind
	if r.Result == FormView {
		kind = KindList // the text of a file adds nothing
	}
	if r.Below && len(named) > 0 {
		base = named[0].Path
	}
	if len(result) > MaxResultBytes {
		result = result[:MaxResultBytes]
		if i := strings.LastIndexByte(result, '\n'); i >= 0 {
			result = result[:i] // half a line would be another path
		}
	}
	if start := strings.TrimSpace(result); r.Result != FormView && startsJSON(start) {
		found.fromJSON(base, start, kind)
		return found.list
	}
	for _, p := range extract[r.Result](result) {
		found.add(base, p, kind)
	}
	return found.list
}

// opened adds the file that the result names at its top, if the call did not say where the
// file is.
func (r *Rule) opened(found *collection, named []Access, result string) {
	placed, relative := byPlace(named)
	if len(placed) > 0 {
		return
	}
	if p := openedFile(result); p != "" {
		found.add("", p, r.Kind)
		return
	}
	for _, a := range relative {
		found.add("", a.Path, a.Kind)
	}
}

// startsJSON tells JSON from text that begins with a bracket, such as "[FILE] a.go".
func startsJSON(s string) bool {
	if s == "" || s[0] != '[' && s[0] != '{' {
		return false
	}
	rest := strings.TrimLeft(s[1:], " \t\r\n")
	return rest != "" && strings.IndexByte(`"{[]}`, rest[0]) >= 0
}

// maxJSONDepth limits how deep files are searched for in a JSON result.
const maxJSONDepth = 6

// listMembers are the members whose list of strings is a list of files. A top-level list is
// one too.
var listMembers = map[string]bool{"": true, "files": true, "filenames": true, "paths": true, "matches": true, "results": true}

var fileMembers = map[string]bool{"path": true, "file": true, "file_path": true, "filePath": true, "filename": true}

// fromJSON adds the files that a JSON text names. It reads a stream, so what comes before
// an error or the limit counts.
func (c *collection) fromJSON(base, text string, kind Kind) {
	type level struct {
		list  bool
		key   string // the current member, or the member that holds the list
		isKey bool   // the next string is a member name
	}
	var stack []level
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	for !c.full() {
		token, err := d.Token()
		if err != nil { // io.EOF or invalid JSON, treated alike
			return
		}
		top := len(stack) - 1
		switch v := token.(type) {
		case json.Delim:
			switch v {
			case '[', '{':
				if len(stack) == maxJSONDepth {
					return
				}
				key := ""
				if top >= 0 {
					key = stack[top].key
					stack[top].isKey = !stack[top].list
				}
				stack = append(stack, level{list: v == '[', key: key, isKey: v == '{'})
			default:
				stack = stack[:top]
			}
			continue
		case string:
			if top >= 0 && stack[top].isKey {
				stack[top].key, stack[top].isKey = v, false
				continue
			}
			if top >= 0 && (stack[top].list && listMembers[stack[top].key] || !stack[top].list && fileMembers[stack[top].key]) {
				c.add(base, v, kind)
			}
		}
		if top >= 0 {
			stack[top].isKey = !stack[top].list
		}
	}
}
