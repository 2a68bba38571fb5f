package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/internal/settings"
)

// ReferenceCmd writes the generated pages.
type ReferenceCmd struct {
	Dir string `arg:"" help:"The folder docs."`
}

// Run writes them.
func (c *ReferenceCmd) Run(ctx context.Context) error {
	var commands CLI
	parser, err := newParser(&commands)
	if err != nil {
		return err
	}
	pages := map[string]string{"settings.md": settingsPage(), "graph.md": graphPage(), "access.md": accessPage(), "nats-roles.md": natsRolesPage()}
	maps.Copy(pages, commandPages(parser.Model))
	for name, page := range pages {
		path := filepath.Join(c.Dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			return err
		}
	}
	permissions, err := natsdeploy.RenderPermissions("default")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(c.Dir, "../deploy/nats/permissions.conf"), []byte(permissions), 0o644); err != nil {
		return err
	}
	return writeContexts(ctx, c.Dir)
}

const generated = "<!-- Made by go generate from the code; do not edit. -->\n\n"

// commandPages describes every command, on a page for each group, and lists them all in commands.md.
func commandPages(app *kong.Application) map[string]string {
	pages := map[string]string{}
	var index strings.Builder
	index.WriteString("# The commands of mneme\n\n" + generated)
	index.WriteString(strings.TrimSpace(strings.TrimPrefix(description, "Event-sourced memory for AI agents.\n")) + "\n\n")
	for _, group := range groups {
		title := strings.TrimSuffix(group.Title, ":")
		path := "commands/" + group.Key + ".md"
		page := &strings.Builder{}
		for _, node := range app.Leaves(true) {
			if g := node.ClosestGroup(); g == nil || g.Key != group.Key {
				continue
			}
			if page.Len() == 0 {
				fmt.Fprintf(page, "# Commands: %s\n\n%s[All commands](../commands.md), and [the flags that every command has](../commands.md#flags-of-every-command).\n\n", title, generated)
				fmt.Fprintf(&index, "## %s\n\n| command | |\n|---|---|\n", title)
			}
			name := strings.TrimPrefix(node.FullPath(), "mneme ")
			fmt.Fprintf(&index, "| [`%s`](%s#%s) | %s |\n", name, path, strings.ReplaceAll(name, " ", "-"), cellText(node.Help))
			commandSection(page, app.Name, name, node)
		}
		if page.Len() > 0 {
			index.WriteString("\n")
			pages[path] = strings.TrimRight(page.String(), "\n") + "\n"
		}
	}
	index.WriteString("## Flags of every command\n\n")
	values := []*kong.Value{}
	for _, flag := range app.Flags {
		values = append(values, flag.Value)
	}
	index.WriteString(valueTable(values))
	pages["commands.md"] = strings.TrimRight(index.String(), "\n") + "\n"
	return pages
}

// commandSection writes the section of a command.
func commandSection(out *strings.Builder, program, name string, node *kong.Node) {
	fmt.Fprintf(out, "## %s\n\n    %s %s\n\n%s\n\n", name, program, commandLine(node), node.Help)
	if node.Detail != "" {
		out.WriteString(node.Detail + "\n\n")
	}
	values := slices.Clone(node.Positional)
	for _, flag := range ownFlags(node) {
		values = append(values, flag.Value)
	}
	out.WriteString(valueTable(values))
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
				name += "=" + strings.ToUpper(strings.ReplaceAll(v.Name, "-", "_"))
				if v.Flag.PlaceHolder != "" {
					name = "--" + v.Name + "=" + v.Flag.PlaceHolder
				}
			}
			if v.Flag.Short != 0 {
				name = "-" + string(v.Flag.Short) + ", " + name
			}
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s |\n", name, cellText(helpOf(v)), code(v.Default))
	}
	return out.String() + "\n"
}

// settingsPage describes every setting of every program.
func settingsPage() string {
	var out strings.Builder
	out.WriteString("# Settings\n\n" + generated)
	out.WriteString("Programs are configured by environment variables. For the commands of mneme they are flags too, and a flag goes first. " +
		"`mneme config PROGRAM` shows the settings in effect and the source of each; `mneme doctor` finds unknown names.\n\n")
	for _, p := range settings.Programs() {
		fmt.Fprintf(&out, "## %s\n\n%s %s\n\n| variable | meaning | default |\n|---|---|---|\n", p.Name, p.Name, p.Does)
		for _, f := range settings.Fields(p.New()) {
			name := "`" + f.Variable + "`"
			if p.Flags {
				name += ", `--" + settings.Flag(f.Variable) + "`"
			}
			fmt.Fprintf(&out, "| %s | %s | %s |\n", name, cellText(f.Desc), code(f.Default))
		}
		out.WriteString("\n")
	}
	return strings.TrimRight(out.String(), "\n") + "\n"
}

// cellText escapes text for a cell of a Markdown table.
func cellText(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "|", `\|`), "\n", " ")
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}
