package connect

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// hooksTOMLFile is Kimi Code's config.toml, which gets a table for each event at its end:
//
//	# Written by mneme connect; mneme disconnect kimi-code removes it.
//	[[hooks]]
//	event = "SessionStart"
//	command = "…/mneme-hook kimi-code"
//	timeout = 5
//
// Kimi Code writes the file again when the user changes a setting, so a table is recognised by its command alone.
// An empty list, hooks = [], gives way to the tables, and does not come back.
type hooksTOMLFile struct{ *agent }

func hooksTOML(a *agent) format { return hooksTOMLFile{a} }

// tomlHook is a table of the list.
type tomlHook struct {
	Event   string `toml:"event"`
	Command string `toml:"command"`
	Timeout int    `toml:"timeout"`
}

// tomlTable matches a line that begins a table, tomlHooks one that begins a hook.
var (
	tomlTable = regexp.MustCompile(`^[ \t]*\[`)
	tomlHooks = regexp.MustCompile(`^[ \t]*\[\[[ \t]*hooks[ \t]*\]\]`)
)

func (f hooksTOMLFile) mark() string {
	return "# Written by mneme connect; mneme disconnect " + f.name + " removes it."
}

func parseHooks(raw []byte) (hooks []tomlHook, err error) {
	raw = bytes.TrimPrefix(raw, byteOrderMark)
	var whole map[string]any
	if err = toml.Unmarshal(raw, &whole); err != nil {
		return nil, fmt.Errorf("it is not valid TOML, so nothing was changed: correct it first (%s)", strings.TrimPrefix(err.Error(), "toml: "))
	}
	var all struct {
		Hooks []tomlHook `toml:"hooks"`
	}
	if toml.Unmarshal(raw, &all) != nil {
		return nil, errors.New("its hooks are not a list of tables [[hooks]], each with the texts event and command and a whole number timeout, so nothing was changed: correct them first")
	}
	return all.Hooks, nil
}

func (f hooksTOMLFile) isOurs(h tomlHook) bool { return f.isHook(wordsOf(h.Command)) }

// read implements [format].
func (f hooksTOMLFile) read(raw []byte) (c Commands, _ int, err error) {
	hooks, err := parseHooks(raw)
	if err != nil {
		return c, 0, err
	}
	at := map[string]bool{}
	for _, h := range hooks {
		if f.isOurs(h) {
			c.Hook = wordsOf(h.Command)
			at[h.Event] = true
		}
	}
	return c, f.eventsIn(at), nil
}

// wanted returns the hooks that run a command, none for no command.
func (f hooksTOMLFile) wanted(command []string) (list []tomlHook, err error) {
	if command == nil {
		return nil, nil
	}
	line, err := CommandLine(command)
	if err != nil {
		return nil, err
	}
	for _, e := range f.events {
		list = append(list, tomlHook{e.name, line, e.timeout})
	}
	return list, nil
}

// write implements [format].
func (f hooksTOMLFile) write(raw []byte, want Commands) ([]byte, error) {
	hooks, err := parseHooks(raw)
	if err != nil {
		return nil, err
	}
	wanted, err := f.wanted(want.Hook)
	if err != nil {
		return nil, err
	}
	ours := slices.DeleteFunc(slices.Clone(hooks), func(h tomlHook) bool { return !f.isOurs(h) })
	if slices.Equal(ours, wanted) {
		return raw, nil
	}
	for _, from := range [][]byte{raw, withoutEmptyList(raw)} {
		if after := withHooks(f.without(from), f.mark(), wanted); f.same(raw, after, wanted) {
			return after, nil
		}
	}
	return nil, errors.New("the hooks of the file can't be edited safely: write each as a table [[hooks]], or edit the file by hand")
}

// withHooks returns a file with hooks at its end, after a line that says whose they are.
func withHooks(file []byte, mark string, hooks []tomlHook) []byte {
	if len(hooks) == 0 {
		return file
	}
	newline, block := newlineOf(file), mark+"\n"
	for _, h := range hooks {
		block += fmt.Sprintf("[[hooks]]\nevent = %s\ncommand = %s\ntimeout = %d\n", quoted(h.Event), quoted(h.Command), h.Timeout)
	}
	return appended(file, newline, strings.ReplaceAll(block, "\n", newline))
}

// emptyList matches a list of no hooks, beside which there can be no table of one.
var emptyList = regexp.MustCompile(`(?m)^[ \t]*hooks[ \t]*=[ \t]*\[[ \t]*\][ \t]*(#[^\n]*)?\r?(\n|\z)`)

func withoutEmptyList(file []byte) []byte {
	if at := emptyList.FindIndex(file); at != nil {
		return slices.Concat(file[:at[0]], file[at[1]:])
	}
	return file
}

// without returns the file without our hooks.
func (f hooksTOMLFile) without(raw []byte) []byte {
	lines := slices.Collect(bytes.Lines(raw))
	kept := make([]byte, 0, len(raw))
	for i := 0; i < len(lines); i++ {
		switch {
		case string(bytes.TrimSpace(lines[i])) == f.mark():
			if before, ok := bytes.CutSuffix(kept, []byte("\r\n\r\n")); ok {
				kept = append(before, "\r\n"...)
			} else if before, ok := bytes.CutSuffix(kept, []byte("\n\n")); ok {
				kept = append(before, '\n')
			}
			continue
		case tomlHooks.Match(lines[i]):
			end := i + 1
			for end < len(lines) && !tomlTable.Match(lines[end]) {
				end++
			}
			for blank := end - 1; blank > i; blank-- { // blank lines and comments belong to what follows
				if line := bytes.TrimSpace(lines[blank]); len(line) > 0 && line[0] != '#' {
					break
				}
				end = blank
			}
			if hooks, err := parseHooks(bytes.Join(lines[i:end], nil)); err == nil && len(hooks) == 1 && f.isOurs(hooks[0]) {
				i = end - 1
				continue
			}
		}
		kept = append(kept, lines[i]...)
	}
	return kept
}

// same reports whether a file differs from another one in nothing but our hooks, which are the ones wanted.
func (f hooksTOMLFile) same(before, after []byte, wanted []tomlHook) bool {
	old, new := map[string]any{}, map[string]any{}
	if toml.Unmarshal(bytes.TrimPrefix(before, byteOrderMark), &old) != nil || toml.Unmarshal(bytes.TrimPrefix(after, byteOrderMark), &new) != nil {
		return false
	}
	foreign := func(all map[string]any) (list []any) {
		hooks, _ := all["hooks"].([]any)
		for _, h := range hooks {
			table, _ := h.(map[string]any)
			command, _ := table["command"].(string)
			if !f.isOurs(tomlHook{Command: command}) {
				list = append(list, h)
			}
		}
		delete(all, "hooks")
		return list
	}
	oldHooks, newHooks := foreign(old), foreign(new)
	got, err := parseHooks(after)
	got = slices.DeleteFunc(got, func(h tomlHook) bool { return !f.isOurs(h) })
	return err == nil && slices.Equal(got, wanted) && reflect.DeepEqual(oldHooks, newHooks) && reflect.DeepEqual(old, new)
}
