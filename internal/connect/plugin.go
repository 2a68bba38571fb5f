package connect

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
)

// pluginFile is a plugin of an agent that runs programs of JavaScript, which is all ours:
//
//	// Written by mneme connect; mneme disconnect opencode removes it.
//	import { spawn } from "node:child_process"
//
//	const command = ["…/mneme-hook", "opencode"]
//	…
type pluginFile struct {
	*agent
	parts []string // the files in plugins that it is made of
}

func plugin(a *agent) format {
	parts := []string{"hook.js", a.name + ".js"}
	if a.name == OpenCode || a.name == Kilo { // Kilo is made of opencode
		parts = append(parts, "sessions.js")
	}
	return pluginFile{a, parts}
}

// manifest is the file in which OpenClaw reads what a plugin is, before it loads the plugin. It is JSON5, so the command can
// stand in a comment.
func manifest(a *agent) format { return pluginFile{a, []string{a.name + ".plugin.json"}} }

//go:generate go run ./plugingen ../../deploy/plugins

//go:embed plugins
var plugins embed.FS

// pluginCommand is the command in plugins/hook.js, with which each plugin begins.
const pluginCommand = `const command = ["mneme-hook"]`

// pluginLine matches the line with the command of the hook.
var pluginLine = regexp.MustCompile(`(?m)^const command = (\[.*\])\r?$`)

// mark returns the first line of the file.
func (f pluginFile) mark() string {
	return "// Written by mneme connect; mneme disconnect " + f.name + " removes it."
}

// read implements [format].
func (f pluginFile) read(raw []byte) (c Commands, events int, err error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return c, 0, nil
	}
	if !bytes.HasPrefix(bytes.TrimPrefix(raw, byteOrderMark), []byte(f.mark())) {
		return c, 0, errors.New("mneme connect did not write it, so nothing was changed: give it another name first")
	}
	m := pluginLine.FindSubmatch(raw)
	if m == nil || json.Unmarshal(m[1], &c.Hook) != nil || !f.isHook(c.Hook) {
		return Commands{}, 0, errors.New("it no longer names the program of the hook: remove the file, and connect again")
	}
	return c, len(f.events), nil
}

// write implements [format].
func (f pluginFile) write(raw []byte, want Commands) ([]byte, error) {
	if _, _, err := f.read(raw); err != nil {
		return nil, err
	}
	if want.Hook == nil {
		return nil, nil
	}
	text := []byte(f.mark() + "\n")
	for _, part := range f.parts {
		read, err := plugins.ReadFile("plugins/" + part)
		if err != nil {
			return nil, err
		}
		text = append(text, read...)
	}
	return bytes.Replace(text, []byte(pluginCommand), []byte("const command = "+quoted(want.Hook)), 1), nil
}

// ClaudePlugin returns the files of a plugin for Claude Code and of the marketplace that offers it, by their path in the
// marketplace's folder. The plugin runs the same hooks as [Connect] writes, and the MCP server, from PATH.
func ClaudePlugin() (map[string][]byte, error) {
	a, err := find(ClaudeCode)
	if err != nil {
		return nil, err
	}
	written, err := hooks(a).write(nil, Commands{Hook: []string{hookProgram, a.name}})
	if err != nil {
		return nil, err
	}
	const about = "Remembers what was said and done in earlier sessions, and shows what fits at the start of a session and at a prompt."
	files := map[string]any{
		".claude-plugin/marketplace.json": map[string]any{
			"name": "mneme", "owner": map[string]string{"name": "mneme"}, "description": "mneme's plugin for Claude Code",
			"plugins": []any{map[string]string{"name": "mneme", "source": "./claude-code", "description": about}},
		},
		"claude-code/.claude-plugin/plugin.json": map[string]any{
			"name": "mneme", "version": pluginVersion, "license": "Apache-2.0", "description": about, "author": map[string]string{"name": "mneme"},
		},
		"claude-code/.mcp.json": map[string]any{"mcpServers": map[string]any{"mneme": server{Command: "mneme", Args: []string{"mcp"}}}},
	}
	all := map[string][]byte{"claude-code/hooks/hooks.json": written}
	for name, content := range files {
		text, err := json.MarshalIndent(content, "", "  ")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all[name] = append(text, '\n')
	}
	return all, nil
}

// pluginVersion is the version of the plugin for Claude Code, which updates it only if this has changed.
const pluginVersion = "1.0.0"
