package connect

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// hooksYAMLFile is the config.yaml of Hermes Agent, which gets the MCP server and a hook for each event:
//
//	hooks:
//	  pre_llm_call:
//	    - command: "…/mneme-hook hermes"
//	      timeout: 3
//
// Hermes Agent may write the file again, so a hook is recognised by its command alone.
type hooksYAMLFile struct{ *agent }

func hooksAndServersYAML(a *agent) format { return hooksYAMLFile{a} }

var (
	noHooks     = emptyMapping("hooks")
	errHookYAML = errors.New("its hooks can't be edited safely, so nothing was changed: write hooks as a block, with each event on a line of its own and below it a list of hooks with a dash, or edit the file by hand")
)

// yamlHook is a hook of the file, and where it is.
type yamlHook struct {
	event, command string
	timeout        int
	key            *yaml.Node // of the event
	list           *yaml.Node
	item           *yaml.Node
}

// yamlHooks is the part of the file with the hooks. Its nodes are nil if they are not there.
type yamlHooks struct {
	key, events *yaml.Node
	ours        []yamlHook
}

func (f hooksYAMLFile) parse(raw []byte) (h yamlHooks, err error) {
	top, err := topOfYAML(raw)
	if top == nil || err != nil {
		return h, err
	}
	if h.key, h.events = member(top, "hooks"); h.key == nil || h.events.Tag == "!!null" {
		return h, nil
	}
	if h.events.Kind != yaml.MappingNode {
		return h, errors.New("hooks is not a mapping of events, so nothing was changed: correct it first")
	}
	for i := 0; i+1 < len(h.events.Content); i += 2 {
		key, list := h.events.Content[i], h.events.Content[i+1]
		if list.Kind != yaml.SequenceNode {
			continue
		}
		for _, item := range list.Content {
			var hook struct {
				Command string `yaml:"command"`
				Timeout int    `yaml:"timeout"`
			}
			if _ = item.Decode(&hook); f.isHook(wordsOf(hook.Command)) { // what does not fit is not ours
				h.ours = append(h.ours, yamlHook{key.Value, hook.Command, hook.Timeout, key, list, item})
			}
		}
	}
	return h, nil
}

// read implements [format].
func (f hooksYAMLFile) read(raw []byte) (c Commands, _ int, err error) {
	if c, _, err = hermesYAML.read(raw); err != nil {
		return c, 0, err
	}
	h, err := f.parse(raw)
	if err != nil {
		return c, 0, err
	}
	at := map[string]bool{}
	for _, hook := range h.ours {
		c.Hook = wordsOf(hook.command)
		at[hook.event] = true
	}
	return c, f.eventsIn(at), nil
}

// write implements [format].
func (f hooksYAMLFile) write(raw []byte, want Commands) ([]byte, error) {
	h, err := f.parse(raw)
	if err != nil {
		return nil, err
	}
	before, err := hermesYAML.write(raw, want)
	if err != nil {
		return nil, err
	}
	line := ""
	if want.Hook != nil {
		if line, err = CommandLine(want.Hook); err != nil {
			return nil, err
		}
	}
	if f.has(h, line) {
		return before, nil
	}
	for _, keep := range []bool{false, true} { // without the key, a comment after it might become part of a text before it
		after, err := f.edited(before, line, keep)
		if err != nil {
			return nil, errHookYAML // the file itself is valid
		}
		if h, err := f.parse(after); err == nil && f.has(h, line) && f.same(before, after) {
			return after, nil
		}
	}
	return nil, errHookYAML
}

// edited returns the file with hooks that run a command in place of ours, or without ours for no command.
func (f hooksYAMLFile) edited(raw []byte, command string, keep bool) (after []byte, err error) {
	after, err = f.without(raw, keep, command != "")
	for i := len(f.events) - 1; i >= 0 && err == nil && command != ""; i-- { // from the last one on, because each is put before the others
		after, err = f.with(after, f.events[i], command)
	}
	return after, err
}

// has reports whether our hooks are those of all events with a command, or none for no command.
func (f hooksYAMLFile) has(h yamlHooks, command string) bool {
	left := map[string]int{}
	for _, e := range f.events {
		if command != "" {
			left[e.name] = e.timeout
		}
	}
	for _, hook := range h.ours {
		if left[hook.event] != hook.timeout || hook.command != command {
			return false
		}
		delete(left, hook.event)
	}
	return len(left) == 0
}

// without returns the file without our hooks, and without the events that would have none; with refill, our events stay, so
// that other hooks take the same places. The key of the hooks goes too if it would have no event, unless keep is set.
func (f hooksYAMLFile) without(raw []byte, keep, refill bool) ([]byte, error) {
	for {
		h, err := f.parse(raw)
		if err != nil || len(h.ours) == 0 {
			return raw, err
		}
		last := h.ours[len(h.ours)-1]
		lines := slices.Collect(bytes.Lines(raw))
		from, end, ok := itemLines(lines, last.item)
		if !ok {
			return nil, errHookYAML
		}
		stays := refill && slices.ContainsFunc(f.events, func(e event) bool { return e.name == last.event })
		if at := last.key.Line - 1; !stays && len(last.list.Content) == 1 && at < from {
			from = at
			if at := h.key.Line - 1; !keep && len(h.events.Content) == 2 && at < from && !bytes.Contains(lines[at], []byte("#")) {
				from = at
			}
		}
		raw = bytes.Join(slices.Replace(lines, from, end, commentsOf(lines[from:end])...), nil)
	}
}

// itemLines returns the lines of an item of a list. ok is false if it has no lines of its own.
func itemLines(lines [][]byte, item *yaml.Node) (from, end int, ok bool) {
	from = item.Line - 1
	if from >= len(lines) || !bytes.HasPrefix(bytes.TrimLeft(lines[from], " "), []byte("-")) {
		return 0, 0, false
	}
	for end = from + 1; end < len(lines) && len(bytes.TrimSpace(lines[end])) > 0 && indentOf(lines[end]) > indentOf(lines[from]); {
		end++
	}
	return from, withoutComments(lines, end), true
}

// with returns the file with a hook at an event: after the others of that event, or at the top of the hooks.
func (f hooksYAMLFile) with(raw []byte, e event, command string) ([]byte, error) {
	h, err := f.parse(raw)
	if err != nil {
		return nil, err
	}
	lines := slices.Collect(bytes.Lines(raw))
	hook := func(indent int) string {
		dash := strings.Repeat(" ", indent)
		return fmt.Sprintf("%s- command: %s\n%s  timeout: %d\n", dash, quoted(command), dash, e.timeout)
	}
	at, indent, text := len(lines), 2, ""
	switch {
	case h.key == nil:
		text = "hooks:\n"
	case h.events.Kind != yaml.MappingNode || len(h.events.Content) == 0:
		if at = h.key.Line; h.events.Kind == yaml.MappingNode {
			found := noHooks.FindSubmatch(lines[at-1])
			if found == nil {
				return nil, errHookYAML
			}
			lines[at-1] = bytes.Replace(lines[at-1], found[1], nil, 1)
		}
	case h.events.Style&yaml.FlowStyle != 0:
		return nil, errHookYAML
	default:
		at, indent = h.key.Line, h.events.Content[0].Column-1
	}
	var key, list *yaml.Node
	if h.events != nil {
		key, list = member(h.events, e.name)
	}
	switch {
	case key == nil:
		text += strings.Repeat(" ", indent) + e.name + ":\n" + hook(indent+2)
	case list.Tag == "!!null":
		at, text = key.Line, hook(key.Column+1)
	case list.Kind == yaml.SequenceNode && len(list.Content) > 0:
		from, end, ok := itemLines(lines, list.Content[len(list.Content)-1])
		if !ok {
			return nil, errHookYAML
		}
		at, text = end, hook(indentOf(lines[from]))
	default:
		return nil, errHookYAML
	}
	if at > 0 && !bytes.HasSuffix(lines[at-1], []byte("\n")) {
		text = "\n" + text
	}
	if bytes.Contains(raw, []byte("\r\n")) {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	return bytes.Join(slices.Insert(lines, at, []byte(text)), nil), nil
}

// same reports whether two files differ in nothing but our hooks.
func (f hooksYAMLFile) same(before, after []byte) bool {
	a, ok := f.foreign(before)
	b, also := f.foreign(after)
	return ok && also && (len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b))
}

// foreign returns what a file holds besides our hooks; ok is false if that can't be determined.
func (f hooksYAMLFile) foreign(raw []byte) (all map[string]any, ok bool) {
	decoder := yaml.NewDecoder(bytes.NewReader(raw))
	if err := decoder.Decode(&all); err != nil && !errors.Is(err, io.EOF) {
		return nil, false
	}
	if err := decoder.Decode(new(any)); !errors.Is(err, io.EOF) { // a second document
		return nil, false
	}
	events, _ := all["hooks"].(map[string]any)
	for name, value := range events {
		list, isList := value.([]any)
		list = slices.DeleteFunc(list, func(item any) bool {
			hook, _ := item.(map[string]any)
			command, _ := hook["command"].(string)
			return f.isHook(wordsOf(command))
		})
		switch {
		case value == nil, isList && len(list) == 0:
			delete(events, name)
		case isList:
			events[name] = list
		}
	}
	if value, there := all["hooks"]; there && (value == nil || events != nil && len(events) == 0) {
		delete(all, "hooks")
	}
	return all, true
}
