package connect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
	"mvdan.cc/sh/v3/shell"
	"mvdan.cc/sh/v3/syntax"
)

// jsonFile is a file of JSON with hooks, as the three agents have it:
//
//	{"hooks": {EVENT: [{"hooks": [{"type": "command", "command": …}]}]}}
type jsonFile struct{ *agent }

// group is an entry of an event's list.
type group struct {
	Hooks []handler `json:"hooks"`
}

// handler is one hook.
type handler struct {
	Name    string   `json:"name,omitempty"`
	Type    string   `json:"type"`
	Command string   `json:"command"`
	Args    []string `json:"args,omitempty"`
	Timeout int      `json:"timeout"`
	Async   bool     `json:"async,omitempty"`
}

// server is an MCP server.
type server struct {
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

// handler returns the hook of an event.
func (f jsonFile) handler(command []string, e event) (handler, error) {
	h := handler{f.label, "command", command[0], command[1:], e.timeout, e.async}
	if !f.shell {
		return h, nil
	}
	line, err := commandLine(command)
	h.Command, h.Args = line, nil
	return h, err
}

// commandLine returns a command as a shell reads it.
func commandLine(command []string) (string, error) {
	words := make([]string, len(command))
	for i, word := range command {
		quoted, err := syntax.Quote(word, syntax.LangPOSIX)
		if err != nil {
			return "", fmt.Errorf("%q can't be written for a shell: %w", word, err)
		}
		words[i] = quoted
	}
	return strings.Join(words, " "), nil
}

// command returns the command of a hook, nil if it runs none.
func (f jsonFile) command(v *hujson.Value) []string {
	var h handler
	if json.Unmarshal(standard(v), &h) != nil || h.Command == "" {
		return nil
	}
	if h.Args != nil {
		return append([]string{h.Command}, h.Args...)
	}
	words, err := shell.Fields(h.Command, func(string) string { return "" })
	if err != nil {
		return nil
	}
	return words
}

// standard returns a value without comments and trailing commas.
func standard(v *hujson.Value) []byte {
	c := v.Clone()
	c.Standardize()
	return c.Pack()
}

// read implements [format].
func (f jsonFile) read(raw []byte) (c Commands, events int, err error) {
	d, err := parse(raw)
	if err != nil {
		return c, 0, err
	}
	hooks, err := d.top.find("hooks")
	if err != nil {
		return c, 0, err
	}
	seen := map[string]bool{}
	err = f.each(hooks, func(at place) {
		if c.Hook == nil {
			c.Hook = at.command
		}
		if _, known := f.event(at.event); known {
			seen[at.event] = true
		}
	})
	if err != nil || !f.servers {
		return c, len(seen), err
	}
	servers, err := d.top.find("mcpServers")
	if err != nil || servers == nil {
		return c, len(seen), err
	}
	_, c.MCP, err = ownServer(servers)
	return c, len(seen), err
}

func (f jsonFile) event(name string) (event, bool) {
	i := slices.IndexFunc(f.events, func(e event) bool { return e.name == name })
	if i < 0 {
		return event{}, false
	}
	return f.events[i], true
}

// place is where a hook of ours is.
type place struct {
	event                  string
	events, groups, hooks  items
	atEvent, atGroup, atIt int
	command                []string
}

// each calls a function with each hook of ours, the last one first, so that the function may cut it out.
func (f jsonFile) each(hooks *object, see func(place)) error {
	if hooks == nil {
		return nil
	}
	for e := len(hooks.Members) - 1; e >= 0; e-- {
		name := hooks.name(e)
		if hooks.value(name) != &hooks.Members[e].Value {
			return fmt.Errorf("hooks.%s is there twice: remove one", name)
		}
		list, ok := hooks.Members[e].Value.Value.(*hujson.Array)
		if !ok {
			if _, known := f.event(name); known {
				return fmt.Errorf("hooks.%s is not a list: correct it first", name)
			}
			continue
		}
		for g := len(list.Elements) - 1; g >= 0; g-- {
			one, ok := list.Elements[g].Value.(*hujson.Object)
			if !ok {
				continue
			}
			inner := (&object{one, ""}).value("hooks")
			if inner == nil {
				continue
			}
			handlers, ok := inner.Value.(*hujson.Array)
			if !ok {
				continue
			}
			for h := len(handlers.Elements) - 1; h >= 0; h-- {
				if command := f.command(&handlers.Elements[h]); f.isHook(command) {
					see(place{name, members{hooks.Object}, elements{list}, elements{handlers}, e, g, h, command})
				}
			}
		}
	}
	return nil
}

// write implements [format].
func (f jsonFile) write(raw []byte, want Commands) ([]byte, error) {
	d, err := parse(raw)
	if err != nil {
		return nil, err
	}
	before := d.root.Pack()
	hooks, err := d.top.find("hooks")
	if err != nil {
		return nil, err
	}
	if err := f.drop(d, hooks, want); err != nil {
		return nil, err
	}
	if want.Hook != nil {
		if err := f.add(d, want); err != nil {
			return nil, err
		}
	}
	if f.servers {
		if err := f.writeServer(d, want); err != nil {
			return nil, err
		}
	}
	after := d.root.Pack()
	if bytes.Equal(before, after) {
		return raw, nil
	}
	if _, err := hujson.Parse(after); err != nil {
		return nil, fmt.Errorf("the file can't be edited safely: add the hooks by hand (%w)", err)
	}
	return append(slices.Clone(d.mark), after...), nil
}

// drop removes the hooks of ours, except for the first one of each event that is wanted, which it brings up to date. Lists and
// objects that become empty go with them.
func (f jsonFile) drop(d *document, hooks *object, want Commands) error {
	if hooks == nil {
		return nil
	}
	first := map[string]place{}
	if err := f.each(hooks, func(at place) { first[at.event] = at }); err != nil {
		return err
	}
	var failed error
	cut := false
	err := f.each(hooks, func(at place) {
		e, known := f.event(at.event)
		if p := first[at.event]; want.Hook != nil && known && p.atGroup == at.atGroup && p.atIt == at.atIt {
			if slices.Equal(at.command, want.Hook) {
				return
			}
			h, err := f.handler(want.Hook, e)
			if err != nil {
				failed = err
				return
			}
			at.hooks.value(at.atIt).Value = d.value(h, 5)
			return
		}
		cut = true
		remove(at.hooks, at.atIt)
		if at.hooks.len() > 0 {
			return
		}
		remove(at.groups, at.atGroup)
		if at.groups.len() == 0 {
			remove(at.events, at.atEvent)
		}
	})
	if cut && len(hooks.Members) == 0 {
		d.top.remove("hooks")
	}
	return errors.Join(err, failed)
}

// add appends the hooks that are not there.
func (f jsonFile) add(d *document, want Commands) error {
	hooks, err := d.ensure(d.top, "hooks", 1)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	if err := f.each(hooks, func(at place) { there[at.event] = true }); err != nil {
		return err
	}
	for _, e := range f.events {
		if there[e.name] {
			continue
		}
		h, err := f.handler(want.Hook, e)
		if err != nil {
			return err
		}
		entry := group{[]handler{h}}
		if list := hooks.value(e.name); list != nil {
			array := list.Value.(*hujson.Array) // each has looked
			d.append(array, entry, 3)
			continue
		}
		d.member(hooks.Object, e.name, []group{entry}, 2)
	}
	return nil
}

// ownServer returns the MCP server with our name, and its command if it is ours.
func ownServer(servers *object) (*hujson.Value, []string, error) {
	if _, err := servers.find("mneme"); err != nil {
		return nil, nil, fmt.Errorf("mcpServers: %w", err)
	}
	v := servers.value("mneme")
	if v == nil {
		return nil, nil, nil
	}
	var s server
	if json.Unmarshal(standard(v), &s) != nil {
		return v, nil, nil
	}
	if command := append([]string{s.Command}, s.Args...); isServer(command) {
		return v, command, nil
	}
	return v, nil, nil
}

// writeServer adds the MCP server, brings it up to date, or removes it.
func (f jsonFile) writeServer(d *document, want Commands) error {
	servers, err := d.top.find("mcpServers")
	if err != nil {
		return err
	}
	if servers == nil && want.MCP == nil {
		return nil
	}
	if servers == nil {
		if servers, err = d.ensure(d.top, "mcpServers", 1); err != nil {
			return err
		}
	}
	v, command, err := ownServer(servers)
	switch {
	case err != nil:
		return err
	case want.MCP == nil:
		if command != nil {
			servers.remove("mneme")
			if len(servers.Members) == 0 {
				d.top.remove("mcpServers")
			}
		}
	case v == nil:
		d.member(servers.Object, "mneme", server{want.MCP[0], want.MCP[1:]}, 2)
	case command == nil:
		return errors.New("mcpServers.mneme is another server: rename it, or remove it")
	case !slices.Equal(command, want.MCP):
		v.Value = d.value(server{want.MCP[0], want.MCP[1:]}, 2)
	}
	return nil
}
