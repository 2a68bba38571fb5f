package transcript

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
)

// vscodeLine is a line of a session of VS Code's chat: the whole session, or a change of a part of it. Up to version 1.108 a
// file is one JSON value, which is the session.
type vscodeLine struct {
	Kind  *int              `json:"kind"`
	Value json.RawMessage   `json:"v"`
	Path  []json.RawMessage `json:"k"` // names of members and places in lists
	From  *int              `json:"i"` // what the list has from here on gives way to the new elements
}

// What a line does.
const (
	vscodeWhole  = 0
	vscodeSet    = 1
	vscodePush   = 2
	vscodeDelete = 3
)

// vscode replays the changes of a session, and turns it into items at the end.
type vscode struct {
	folder  string
	state   any
	lines   []int        // on which the requests were added
	refused []*LineError // in order
}

func newVSCode(name string) converter { return &vscode{folder: vscodeFolder(name)} }

// isVSCode recognizes the first line of a session, or a session that is one value.
func isVSCode(p *probe) bool {
	if p.list {
		return false
	}
	if p.Kind == "0" && isObject(p.Value) {
		p = probeOf(p.Value)
	}
	return p != nil && p.SessionID != "" && isList(p.Requests)
}

const (
	maxWorkspace = 1 << 20 // bytes of the file that names a folder
	maxDepth     = 100     // of a change in a session; those of VS Code are a few members deep
)

// vscodeFolder returns the folder that was open, which a file beside the folder of the sessions names.
func vscodeFolder(name string) string {
	var workspace struct {
		Folder string `json:"folder"`
	}
	if !readBeside(filepath.Join(filepath.Dir(filepath.Dir(name)), "workspace.json"), &workspace) {
		return ""
	}
	path, _ := pathIn(workspace.Folder)
	return path
}

// readBeside reads a small file of JSON beside a recording, and reports whether it could.
func readBeside(path string, into any) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxWorkspace {
		return false
	}
	raw, err := os.ReadFile(path)
	return err == nil && json.Unmarshal(raw, into) == nil
}

// refuse keeps a refusal, so that it comes in the order of the lines.
func (v *vscode) refuse(out *batch, err error) {
	var b batch
	b.line = out.line
	b.refuse(err)
	v.refused = append(v.refused, b.items[0].Err)
}

func (v *vscode) value(out *batch, raw []byte) error {
	var l vscodeLine
	if err := json.Unmarshal(raw, &l); err != nil {
		return err
	}
	if l.Kind == nil {
		l.Value = raw
	}
	var value any
	if len(l.Value) > 0 {
		if err := json.Unmarshal(l.Value, &value); err != nil {
			return err
		}
	}
	switch {
	case l.Kind == nil || *l.Kind == vscodeWhole:
		v.state, v.lines = value, nil
		v.count(out.line)
		return nil
	case *l.Kind == vscodeSet, *l.Kind == vscodePush, *l.Kind == vscodeDelete:
		changed, err := v.state, errPath
		if len(l.Path) <= maxDepth {
			changed, err = vscodeChange(v.state, l.Path, &l, value)
		}
		if err != nil { // the session is read as it is without
			out.skip(vscodeFormat, "", "change of what is not there")
			return nil
		}
		v.state = changed
		v.count(out.line)
		return nil
	}
	out.skip(vscodeFormat, "", "line of kind "+strconv.Itoa(*l.Kind))
	return nil
}

// all returns the members of the session, and its requests.
func (v *vscode) all() (session map[string]any, requests []any) {
	session, _ = v.state.(map[string]any)
	requests, _ = session["requests"].([]any)
	return session, requests
}

// count notes the line on which requests were added.
func (v *vscode) count(line int) {
	_, requests := v.all()
	v.lines = v.lines[:min(len(v.lines), len(requests))]
	for len(v.lines) < len(requests) {
		v.lines = append(v.lines, line)
	}
}

// flush adds the refusals of lines up to one.
func (v *vscode) flush(out *batch, line int) {
	for len(v.refused) > 0 && v.refused[0].Line <= line {
		out.line = v.refused[0].Line
		out.refuse(v.refused[0])
		v.refused = v.refused[1:]
	}
}

var errPath = errors.New("the path leads nowhere")

// vscodeChange returns a value with the change of a line at a path.
func vscodeChange(at any, path []json.RawMessage, l *vscodeLine, value any) (any, error) {
	if len(path) == 0 && *l.Kind != vscodePush {
		return value, nil
	}
	if len(path) == 0 {
		list, isList := at.([]any)
		added, areElements := value.([]any)
		if at != nil && !isList || value != nil && !areElements {
			return at, errPath
		}
		if l.From != nil {
			if *l.From < 0 || *l.From > len(list) {
				return at, errPath
			}
			list = list[:*l.From]
		}
		return append(list, added...), nil
	}
	var name string
	var i int
	switch holder := at.(type) {
	case map[string]any:
		if json.Unmarshal(path[0], &name) != nil {
			return at, errPath
		}
		if len(path) == 1 && (*l.Kind == vscodeDelete || *l.Kind == vscodeSet && value == nil) {
			delete(holder, name)
			return holder, nil
		}
		changed, err := vscodeChange(holder[name], path[1:], l, value)
		if err == nil {
			holder[name] = changed
		}
		return holder, err
	case []any:
		if json.Unmarshal(path[0], &i) != nil || i < 0 || i > len(holder) || i == len(holder) && len(path) > 1 {
			return at, errPath
		}
		if i == len(holder) {
			holder = append(holder, nil)
		}
		changed, err := vscodeChange(holder[i], path[1:], l, value)
		if err == nil {
			holder[i] = changed
		}
		return holder, err
	}
	return at, errPath
}
