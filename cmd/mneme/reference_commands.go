package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// topic is a page of commands.
type topic struct {
	group, key, title string
	commands          []string // by their first words; none takes the rest of the group
}

// topics are short enough to be read as a page. The last topic of a group takes the commands that no other topic names.
var topics = []topic{
	{"start", "agents", "Coding agents", []string{"mcp", "hook", "connect", "disconnect", "connected", "watch"}},
	{"start", "start", "Start here", nil},
	{"read", "transcripts", "Contexts and transcripts", []string{"context", "contexts", "messages", "turns", "steps", "tool-calls"}},
	{"read", "read", "Conversations and projects", []string{"conversations", "projects"}},
	{"read", "insights", "Insights and tables", []string{"insights", "export"}},
	{"read", "search", "Search, events, files and summaries", nil},
	{"write", "publish", "Publish, summarize and analyze", []string{"import", "index", "publish", "summarize", "resummarize", "condense", "analyze"}},
	{"write", "write", "Change conversations and projects", nil},
	{"operate", "log", "The log, its read models and backups", []string{"status", "verify", "rebuild", "repair", "backup", "restore"}},
	{"operate", "tokens", "Tokens, users of NATS, and the audit log", []string{"tokens", "nats-config", "audit"}},
	{"operate", "config", "Configuration", []string{"config"}},
	{"operate", "operate", "Operate", nil},
	{"measure", "found", "Measure what is found", []string{"bench recall", "bench start", "bench hook", "bench need", "bench code"}},
	{"measure", "load", "Measure under load", []string{"bench summarize", "bench rebuild", "bench scale", "bench erase", "bench partitions"}},
	{"measure", "measure", "Measure", nil},
}

func (t topic) path() string { return "commands/" + t.key + ".md" }

// topicOf returns the topic of a command.
func topicOf(group, command string) topic {
	i := slices.IndexFunc(topics, func(t topic) bool {
		return t.group == group && (t.commands == nil || slices.ContainsFunc(t.commands, func(words string) bool {
			return command == words || strings.HasPrefix(command, words+" ")
		}))
	})
	return topics[i]
}

// commandPages describes every command, on a page for each topic, and lists them all in commands.md.
func commandPages(app *kong.Application) map[string]string {
	sections := map[string]string{} // by page
	var index strings.Builder
	index.WriteString("# The commands of mneme\n\n" + generated)
	index.WriteString(strings.TrimSpace(strings.TrimPrefix(description, "Event-sourced memory for AI agents.\n")) + "\n\n")
	for _, group := range groups {
		var rows string
		for _, node := range app.Leaves(true) {
			if g := node.ClosestGroup(); g == nil || g.Key != group.Key {
				continue
			}
			name := strings.TrimPrefix(node.FullPath(), "mneme ")
			topic := topicOf(group.Key, name)
			rows += fmt.Sprintf("| [`%s`](%s#%s) | %s |\n", name, topic.path(), strings.ReplaceAll(name, " ", "-"), cellText(node.Help))
			sections[topic.path()] += commandSection(app.Name, name, node)
		}
		if rows != "" {
			fmt.Fprintf(&index, "## %s\n\n| command | |\n|---|---|\n%s\n", strings.TrimSuffix(group.Title, ":"), rows)
		}
	}
	index.WriteString("## Flags of every command\n\n")
	values := []*kong.Value{}
	for _, flag := range app.Flags {
		values = append(values, flag.Value)
	}
	index.WriteString(valueTable(values))

	pages := map[string]string{"commands.md": index.String()}
	for _, topic := range topics {
		if text := sections[topic.path()]; text != "" {
			pages[topic.path()] = "# Commands: " + topic.title + "\n\n" + generated +
				"[All commands](../commands.md), and [the flags that every command has](../commands.md#flags-of-every-command).\n\n" + text
		}
	}
	return pages
}

// commandSection returns the section of a command.
func commandSection(program, name string, node *kong.Node) string {
	text := fmt.Sprintf("## %s\n\n    %s %s\n\n%s\n\n", name, program, commandLine(node), node.Help)
	if node.Detail != "" {
		text += node.Detail + "\n\n"
	}
	values := slices.Clone(node.Positional)
	neo4j := false
	for _, flag := range ownFlags(node) {
		if name != "up" && strings.HasPrefix(flag.Name, "neo4j-") {
			neo4j = true // eleven flags of many commands
			continue
		}
		values = append(values, flag.Value)
	}
	text += valueTable(values)
	if neo4j {
		text += "The flags `--neo4j-…` are those of [up](start.md#up).\n\n"
	}
	return text
}

// commandLine returns the command with its arguments.
func commandLine(node *kong.Node) string {
	line := strings.TrimPrefix(node.FullPath(), "mneme ")
	for _, p := range node.Positional {
		line += " " + p.Summary()
	}
	if len(ownFlags(node)) > 0 {
		line += " [flags]"
	}
	return line
}

// ownFlags returns the flags that are specific to a command.
func ownFlags(node *kong.Node) (list []*kong.Flag) {
	for _, flag := range node.Flags {
		if !flag.Hidden {
			list = append(list, flag)
		}
	}
	return list
}

// valueName returns what stands for the value of a flag.
func valueName(v *kong.Value) string {
	switch v.Target.Interface().(type) {
	case time.Duration:
		return cmp.Or(v.Flag.PlaceHolder, "DURATION")
	case int, int64, uint64, float64:
		return cmp.Or(v.Flag.PlaceHolder, "N")
	}
	return cmp.Or(v.Flag.PlaceHolder, strings.ToUpper(v.Name[strings.LastIndex(v.Name, "-")+1:]))
}

func valueTable(values []*kong.Value) string {
	if len(values) == 0 {
		return ""
	}
	var out strings.Builder
	out.WriteString("| argument or flag | meaning | default |\n|---|---|---|\n")
	for _, v := range values {
		name := v.Summary()
		if v.Flag != nil {
			name = "--" + v.Name
			if !v.IsBool() {
				name += "=" + valueName(v)
			}
			if v.Flag.Short != 0 {
				name = "-" + string(v.Flag.Short) + ", " + name
			}
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s |\n", name, cellText(helpOf(v)), code(v.Default))
	}
	return out.String() + "\n"
}
