package connect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// openClawFile is the file of OpenClaw's settings, which is JSON5. It lets the plugin in the folder of extensions see prompts,
// and names the MCP server:
//
//	{"plugins": {"allow": […, "mneme"], "entries": {"mneme": {"enabled": true, "hooks": {"allowConversationAccess": true}}}},
//	 "mcp": {"servers": {"mneme": {"command": …, "args": […]}}}}
//
// The list of plugins that may be loaded only gets our name if there is such a list. A file that is changed has its names and
// strings in the form of JSON from then on, until it is restored.
type openClawFile struct{ *agent }

func openClawSettings(a *agent) format { return openClawFile{a} }

const openClawPlugin = "mneme" // its id

// openClawEntry are the settings of our plugin.
type openClawEntry struct {
	Enabled bool `json:"enabled"`
	Hooks   struct {
		Access bool `json:"allowConversationAccess"`
	} `json:"hooks"`
}

// onlyJSON5 matches what a parser of JSON says about a number that only JSON5 has.
var onlyJSON5 = regexp.MustCompile(`invalid literal: ([+-]?(?:0[xX][[:xdigit:]]+|(?:\.\d+|(?:0|[1-9]\d*)(?:\.\d*)?)(?:[eE][+-]?\d+)?|Infinity|NaN))$`)

func parseJSON5(raw []byte) (*document, error) {
	d, err := parse(fromJSON5(raw))
	if err == nil {
		return d, nil
	}
	if number := onlyJSON5.FindStringSubmatch(strings.TrimSuffix(err.Error(), ")")); number != nil {
		return nil, fmt.Errorf("it has the number %s, a form of JSON5 that mneme cannot keep, so nothing was changed: write it as JSON does, such as 16 for 0x10", number[1])
	}
	return nil, err
}

// read implements [format].
func (f openClawFile) read(raw []byte) (c Commands, _ int, err error) {
	d, err := parseJSON5(raw)
	if err != nil {
		return c, 0, err
	}
	mcp, err := d.top.find("mcp")
	if mcp == nil || err != nil {
		return c, 0, err
	}
	servers, err := mcp.find("servers")
	if servers == nil || err != nil {
		return c, 0, err
	}
	_, c.MCP, err = ownServer(servers)
	return c, 0, err
}

// write implements [format].
func (f openClawFile) write(raw []byte, want Commands) ([]byte, error) {
	d, err := parseJSON5(raw)
	if err != nil {
		return nil, err
	}
	before := d.root.Pack()
	if err := f.writePlugin(d, want.MCP != nil); err != nil {
		return nil, err
	}
	if err := f.writeServer(d, want.MCP); err != nil {
		return nil, err
	}
	after := d.root.Pack()
	if bytes.Equal(before, after) {
		return raw, nil
	}
	if _, err := hujson.Parse(after); err != nil {
		return nil, fmt.Errorf("the file can't be edited safely: add by hand what docs/agents.md shows (%w)", err)
	}
	return append(slices.Clone(d.mark), after...), nil
}

// within returns an object in an object in the file, and makes them if it is to.
func within(d *document, outer, inner string, make bool) (o *object, err error) {
	at := d.top
	for depth, name := range []string{outer, inner} {
		if make {
			at, err = d.ensure(at, name, depth+1)
		} else {
			at, err = at.find(name)
		}
		if at == nil || err != nil {
			return nil, err
		}
	}
	return at, nil
}

// writePlugin has OpenClaw load the plugin, or takes out what says so.
func (f openClawFile) writePlugin(d *document, on bool) error {
	entries, err := within(d, "plugins", "entries", on)
	if entries == nil || err != nil {
		return err
	}
	plugins, err := d.top.find("plugins")
	if err != nil {
		return err
	}
	list := elements{&hujson.Array{}}
	if v := plugins.value("allow"); v != nil {
		a, ok := v.Value.(*hujson.Array)
		if !ok {
			return errors.New("plugins.allow is not a list: correct it first")
		}
		list.a = a
	}
	at := slices.IndexFunc(list.a.Elements, func(v hujson.Value) bool {
		name, ok := v.Value.(hujson.Literal)
		return ok && name.Kind() == '"' && name.String() == openClawPlugin
	})
	there, err := entries.find(openClawPlugin)
	if err != nil {
		return err
	}
	switch {
	case !on:
		if at >= 0 {
			remove(list, at)
		}
		entries.remove(openClawPlugin)
		if len(entries.Members) == 0 {
			plugins.removeSilent("entries")
		}
		if len(plugins.Members) == 0 {
			d.top.removeSilent("plugins")
		}
		return nil
	case at < 0 && len(list.a.Elements) > 0:
		d.append(list.a, openClawPlugin, 3)
	}
	var entry openClawEntry
	if there == nil {
		entry.Enabled, entry.Hooks.Access = true, true
		d.member(entries.Object, openClawPlugin, entry, 3)
		return nil
	}
	if json.Unmarshal(standard(entries.value(openClawPlugin)), &entry) != nil || !entry.Enabled || !entry.Hooks.Access {
		d.set(there, "enabled", true, 4)
		hooks, err := d.ensure(there, "hooks", 4)
		if err != nil {
			return err
		}
		d.set(hooks, "allowConversationAccess", true, 5)
	}
	return nil
}

// writeServer adds the MCP server, brings it up to date, or removes it.
func (f openClawFile) writeServer(d *document, want []string) error {
	servers, err := within(d, "mcp", "servers", want != nil)
	if servers == nil || err != nil {
		return err
	}
	v, command, err := ownServer(servers)
	switch {
	case err != nil:
		return err
	case want != nil && v == nil:
		d.member(servers.Object, "mneme", f.serverOf(want), 3)
	case want != nil && command == nil:
		return errors.New("mcp.servers.mneme is another server: rename it, or remove it")
	case want != nil && !slices.Equal(command, want):
		d.renew(v, want[0], want[1:], 3)
	case want == nil && command != nil:
		servers.remove("mneme")
		mcp, err := d.top.find("mcp")
		if err != nil {
			return err
		}
		if len(servers.Members) == 0 {
			mcp.removeSilent("servers")
		}
		if len(mcp.Members) == 0 {
			d.top.removeSilent("mcp")
		}
	}
	return nil
}

// openClawForbids says why OpenClaw does not load the plugin, whatever connecting wrote into its settings, and what to do about
// it; both are "" if it does. These settings are the user's decision.
func openClawForbids(path string) (why, remedy string) {
	d := openClawDocument(path)
	if d == nil {
		return "", ""
	}
	plugins, err := d.top.find("plugins")
	if plugins == nil || err != nil {
		return "", ""
	}
	var enabled *bool
	var denied []string
	for name, into := range map[string]any{"enabled": &enabled, "deny": &denied} {
		if v := plugins.value(name); v != nil {
			_ = json.Unmarshal(standard(v), into) // OpenClaw refuses a file in which they are of another kind
		}
	}
	switch {
	case enabled != nil && !*enabled:
		return "plugins.enabled in " + path + " turns all plugins off", "set it to true"
	case slices.ContainsFunc(denied, func(name string) bool { return strings.EqualFold(strings.TrimSpace(name), openClawPlugin) }):
		return "plugins.deny in " + path + " names the plugin", "take " + openClawPlugin + " out of that list"
	}
	return "", ""
}

// openClawAdmits reports whether a settings file lets the plugin see prompts.
func openClawAdmits(path string) bool {
	d := openClawDocument(path)
	if d == nil {
		return false
	}
	entries, err := within(d, "plugins", "entries", false)
	if err != nil || entries == nil || entries.value(openClawPlugin) == nil {
		return false
	}
	var entry openClawEntry
	return json.Unmarshal(standard(entries.value(openClawPlugin)), &entry) == nil && entry.Enabled && entry.Hooks.Access
}

// openClawDocument reads a settings file, nil if it can't be read.
func openClawDocument(path string) *document {
	file, err := load(path)
	if err != nil {
		return nil
	}
	d, err := parseJSON5(file.raw)
	if err != nil {
		return nil
	}
	return d
}
