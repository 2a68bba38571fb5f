package connect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"go.yaml.in/yaml/v3"
)

// untrusted returns the events of our hooks that Codex skips. Its user trusts a hook with /hooks, which Codex records in
// config.toml under the file, the event and the place of the hook:
//
//	[hooks.state."/home/me/.codex/hooks.json:session_start:0:0"]
//	trusted_hash = "…"
//
// A hook that has moved or changed since must be trusted again. A change can't be seen here, because the hash is Codex's own.
func untrusted(targets []target) (events []string) {
	list, err := load(targets[0].path)
	if err != nil {
		return nil
	}
	config, err := load(targets[1].path)
	if err != nil {
		return nil
	}
	var noted struct {
		Hooks struct {
			State map[string]struct {
				Hash string `toml:"trusted_hash"`
			} `toml:"state"`
		} `toml:"hooks"`
	}
	if toml.Unmarshal(bytes.TrimPrefix(config.raw, byteOrderMark), &noted) != nil {
		return nil
	}
	trusted := map[string]bool{}
	for key, state := range noted.Hooks.State {
		if place, ours := strings.CutPrefix(key, targets[0].path+":"); ours && state.Hash != "" {
			trusted[strings.ToLower(strings.ReplaceAll(place, "_", ""))] = true
		}
	}
	d, err := parse(list.raw)
	if err != nil {
		return nil
	}
	f := targets[0].format.(jsonFile)
	hooks, err := f.container(d)
	if err != nil {
		return nil
	}
	_ = f.each(hooks, func(at place) { // mistakes in the file are reported elsewhere
		if !trusted[fmt.Sprintf("%s:%d:%d", strings.ToLower(at.event), at.atGroup, at.atIt)] {
			events = append(events, at.event)
		}
	})
	slices.Reverse(events)
	return events
}

// allowedFile is where Hermes Agent notes the hooks that its user allows, each by its event and its command.
const allowedFile = "shell-hooks-allowlist.json"

// unapproved returns the events of our hooks that Hermes Agent skips until its user allows them.
func (a *agent) unapproved(home string, config target) (events []string) {
	file, err := load(config.path)
	if err != nil {
		return nil
	}
	hooks, err := hooksYAMLFile{a}.parse(file.raw)
	if err != nil {
		return nil
	}
	var all struct {
		Accept bool `yaml:"hooks_auto_accept"`
	}
	if yaml.Unmarshal(file.raw, &all) == nil && all.Accept {
		return nil
	}
	type approval struct {
		Event   string `json:"event"`
		Command string `json:"command"`
	}
	var noted struct {
		Approvals []approval `json:"approvals"`
	}
	if allowed, err := load(filepath.Join(home, allowedFile)); err == nil {
		_ = json.Unmarshal(allowed.raw, &noted) // without notes nothing is allowed
	}
	for _, h := range hooks.ours {
		if !slices.Contains(noted.Approvals, approval{h.event, strings.TrimSpace(h.command)}) {
			events = append(events, h.event)
		}
	}
	return events
}
