package connect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
	"mvdan.cc/sh/v3/syntax"
)

// jsonFile is a file of JSON with hooks, MCP servers, or both. For most agents it looks like this:
//
//	{"hooks": {EVENT: [{"hooks": [{"type": "command", "command": …}]}]},
//	 "mcpServers": {NAME: {"command": …, "args": […]}}}
//
// The agent's shape describes deviations.
type jsonFile struct {
	*agent
	hooks, servers bool
}

func hooks(a *agent) format { return jsonFile{agent: a, hooks: true} }

// topHooks is a file with nothing but hooks: its events are members of the file.
func topHooks(a *agent) format {
	top := *a
	top.shape.top = true
	return hooks(&top)
}

func servers(a *agent) format         { return jsonFile{agent: a, servers: true} }
func hooksAndServers(a *agent) format { return jsonFile{agent: a, hooks: true, servers: true} }

// group is an entry of an event's list.
type group struct {
	Hooks []handler `json:"hooks"`
}

// handler is one hook.
type handler struct {
	Name    string   `json:"name,omitempty"`
	Type    string   `json:"type,omitempty"`
	Command string   `json:"command"`
	Args    []string `json:"args,omitempty"`
	Timeout int      `json:"timeout"`
	Async   bool     `json:"async,omitempty"`
}

// server is an MCP server.
type server struct {
	Type    string   `json:"type,omitempty"`
	Command string   `json:"command"`
	Args    []string `json:"args"`
	Tools   []string `json:"tools,omitempty"` // that the agent may use
	// Exposure "direct" has pi tell its model of the tools from the start.
	Exposure string `json:"exposure,omitempty"`
	// Always has Qwen Code do so.
	Always bool `json:"alwaysLoadTools,omitempty"`
}

// serverOf returns our MCP server in the agent's form.
func (a *agent) serverOf(command []string) server {
	s := a.server
	s.Command, s.Args = command[0], command[1:]
	return s
}

// handler returns the hook of an event.
func (f jsonFile) handler(command []string, e event) (handler, error) {
	h := handler{f.shape.label, "command", command[0], command[1:], e.timeout, e.async}
	if f.shape.flat {
		h.Type = "" // there is only this one
	}
	if !f.shape.shell {
		return h, nil
	}
	line, err := CommandLine(command)
	h.Command, h.Args = line, nil
	return h, err
}

// CommandLine returns a command as a shell reads it. It fails if a word holds what no shell can read.
func CommandLine(command []string) (string, error) {
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
	return wordsOf(h.Command)
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
	seen := map[string]bool{}
	if f.hooks {
		list, err := f.container(d)
		if err != nil {
			return c, 0, err
		}
		err = f.each(list, func(at place) {
			if c.Hook == nil {
				c.Hook = at.command
			}
			if e := f.event(at.event); e != nil {
				seen[e.name] = true
			}
		})
		if err != nil {
			return c, 0, err
		}
	}
	if !f.servers {
		return c, len(seen), nil
	}
	servers, err := d.top.find("mcpServers")
	if err != nil || servers == nil {
		return c, len(seen), err
	}
	_, c.MCP, err = ownServer(servers)
	return c, len(seen), err
}

// container returns the object whose members are events, nil if there is none.
func (f jsonFile) container(d *document) (*object, error) {
	found, err := d.top.find("hooks")
	if found == nil && err == nil && f.shape.top {
		return d.top, nil
	}
	return found, err
}

// event returns the event of a name, nil if it is not one of ours. An agent with names like session_start also takes SessionStart.
func (f jsonFile) event(name string) *event {
	i := slices.IndexFunc(f.events, func(e event) bool {
		return e.name == name || f.shape.top && strings.ReplaceAll(e.name, "_", "") == strings.ToLower(name)
	})
	if i < 0 {
		return nil
	}
	return &f.events[i]
}

// place is where a hook of ours is.
type place struct {
	event                  string
	events, groups, hooks  items // groups is nil if the agent has none
	atEvent, atGroup, atIt int
	command                []string
}

// each calls a function with each of our hooks, the last one first, so that the function may remove it.
func (f jsonFile) each(hooks *object, see func(place)) error {
	if hooks == nil {
		return nil
	}
	for e := len(hooks.Members) - 1; e >= 0; e-- {
		name := hooks.name(e)
		if hooks.value(name) != &hooks.Members[e].Value {
			return fmt.Errorf("%s is there twice: remove one", hooks.member(name))
		}
		list, ok := hooks.Members[e].Value.Value.(*hujson.Array)
		if !ok {
			if f.event(name) != nil {
				return fmt.Errorf("%s is not a list: correct it first", hooks.member(name))
			}
			continue
		}
		if f.shape.flat {
			for h := len(list.Elements) - 1; h >= 0; h-- {
				if command := f.command(&list.Elements[h]); f.isHook(command) {
					see(place{name, members{hooks.Object}, nil, elements{list}, e, 0, h, command})
				}
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
	if f.hooks {
		if err := f.drop(d, want); err != nil {
			return nil, err
		}
		if want.Hook != nil {
			if err := f.add(d, want); err != nil {
				return nil, err
			}
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

// depth returns how deeply a hook of an event is nested in the file, and how deeply the list of the
// event is.
func (f jsonFile) depth(hooks, top *object) (list, hook int) {
	list, hook = 2, 5
	if f.shape.flat {
		hook = 3
	}
	if hooks.Object == top.Object {
		list, hook = list-1, hook-1
	}
	return list, hook
}

// drop removes our hooks, except the first one of each wanted event, which it brings up to date. It also removes lists
// and objects that become empty, unless a comment is in them.
func (f jsonFile) drop(d *document, want Commands) error {
	hooks, err := f.container(d)
	if hooks == nil || err != nil {
		return err
	}
	first := map[string]place{}
	if err := f.each(hooks, func(at place) { first[at.event] = at }); err != nil {
		return err
	}
	_, depth := f.depth(hooks, d.top)
	var failed error
	cut := false
	err = f.each(hooks, func(at place) {
		e := f.event(at.event)
		if p := first[at.event]; want.Hook != nil && e != nil && p.atGroup == at.atGroup && p.atIt == at.atIt {
			if slices.Equal(at.command, want.Hook) {
				return
			}
			h, err := f.handler(want.Hook, *e)
			if err != nil {
				failed = err
				return
			}
			d.renew(at.hooks.value(at.atIt), h.Command, h.Args, depth)
			return
		}
		cut = true
		remove(at.hooks, at.atIt)
		if at.hooks.len() > 0 {
			return
		}
		if at.groups != nil {
			if at.groups.commented(at.atGroup) {
				return
			}
			if remove(at.groups, at.atGroup); at.groups.len() > 0 {
				return
			}
		}
		if !at.events.commented(at.atEvent) {
			remove(at.events, at.atEvent)
		}
	})
	if cut && len(hooks.Members) == 0 && hooks.Object != d.top.Object {
		d.top.removeSilent("hooks")
	}
	if cut && f.shape.version && len(d.top.Members) == 1 && d.top.name(0) == "version" {
		d.top.remove("version")
	}
	return errors.Join(err, failed)
}

// add appends the missing hooks.
func (f jsonFile) add(d *document, want Commands) error {
	if f.shape.version && len(d.top.Members) == 0 {
		d.member(d.top.Object, "version", 1, 1)
	}
	hooks, err := f.container(d)
	if hooks == nil && err == nil {
		hooks, err = d.ensure(d.top, "hooks", 1)
	}
	if err != nil {
		return err
	}
	there := map[string]bool{}
	if err := f.each(hooks, func(at place) { there[f.known(at.event)] = true }); err != nil {
		return err
	}
	depth, _ := f.depth(hooks, d.top)
	for _, e := range f.events {
		if there[e.name] {
			continue
		}
		h, err := f.handler(want.Hook, e)
		if err != nil {
			return err
		}
		var entry any = group{[]handler{h}}
		if f.shape.flat {
			entry = h
		}
		if list := f.list(hooks, e); list != nil {
			d.append(list, entry, depth+1)
			continue
		}
		d.member(hooks.Object, e.name, []any{entry}, depth)
	}
	return nil
}

// known returns the name of an event as we write it.
func (f jsonFile) known(name string) string {
	if e := f.event(name); e != nil {
		return e.name
	}
	return name
}

// list returns the list of an event, under whichever name, nil if there is none.
func (f jsonFile) list(hooks *object, e event) *hujson.Array {
	for i := range hooks.Members {
		if f.known(hooks.name(i)) == e.name {
			return hooks.Members[i].Value.Value.(*hujson.Array) // each has looked
		}
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
				d.top.removeSilent("mcpServers")
			}
		}
	case v == nil:
		d.member(servers.Object, "mneme", f.serverOf(want.MCP), 2)
	case command == nil:
		return errors.New("mcpServers.mneme is another server: rename it, or remove it")
	case !slices.Equal(command, want.MCP):
		d.renew(v, want.MCP[0], want.MCP[1:], 2)
	}
	return nil
}

// renew changes the command of a hook or a server. Its other members, such as a timeout, may be the user's choice.
// Without arguments, all of the command is in one text.
func (d *document) renew(v *hujson.Value, command string, arguments []string, depth int) {
	o := &object{v.Value.(*hujson.Object), ""} // it was decoded as one
	d.set(o, "command", command, depth+1)
	if arguments == nil {
		o.remove("args")
		return
	}
	d.set(o, "args", arguments, depth+1)
}
