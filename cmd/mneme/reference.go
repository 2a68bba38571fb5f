package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/internal/settings"
)

// ReferenceCmd writes the generated pages.
type ReferenceCmd struct {
	Dir string `arg:"" help:"The folder docs."`
}

func (c *ReferenceCmd) Run(ctx context.Context) error {
	var commands CLI
	parser, err := newParser(&commands)
	if err != nil {
		return err
	}
	pages := map[string]string{"access.md": accessPage()}
	for _, more := range []map[string]string{commandPages(parser.Model), settingsPages(), graphPages(), natsRolesPages()} {
		maps.Copy(pages, more)
	}
	for name, page := range pages {
		path := filepath.Join(c.Dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(strings.TrimRight(page, "\n")+"\n"), 0o644); err != nil {
			return err
		}
	}
	permissions, err := natsdeploy.Permissions{Tenants: []string{"default"}}.Render()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(c.Dir, "../deploy/nats/permissions.conf"), []byte(permissions), 0o644); err != nil {
		return err
	}
	return writeContexts(ctx, c.Dir)
}

const generated = "<!-- Made by go generate from the code; do not edit. -->\n\n"

// settingsPages describes every setting of every program, on a page for each program.
func settingsPages() map[string]string {
	var index strings.Builder
	index.WriteString("# Settings\n\n" + generated)
	index.WriteString("Programs are configured by environment variables. For the commands of mneme they are flags too, and a flag takes precedence over a variable. " +
		"`mneme config PROGRAM` shows the settings in effect and the source of each; `mneme doctor` finds unknown names.\n\n" +
		"Passwords, keys and MNEME_NATS_URL can be read from files, as Docker and Kubernetes mount secrets: the variable with `_FILE` appended names the file. " +
		"Line breaks at the end of the file are not part of the value. The program reads the file when it starts.\n\n| program | |\n|---|---|\n")
	pages := map[string]string{}
	for _, p := range settings.Programs() {
		fmt.Fprintf(&index, "| [%s](settings/%s.md) | %s |\n", p.Name, p.Name, cellText(sentence(p.Does)))
		var out strings.Builder
		fmt.Fprintf(&out, "# Settings of %s\n\n%s%s [The other programs](../settings.md).\n\n| variable | meaning | default |\n|---|---|---|\n", p.Name, generated, sentence(p.Does))
		for _, f := range settings.Fields(p.New()) {
			name := "`" + f.Variable + "`"
			if p.Flags {
				name += ", `--" + settings.Flag(f.Variable) + "`"
			}
			fmt.Fprintf(&out, "| %s | %s | %s |\n", name, cellText(f.Desc), code(f.Default))
		}
		pages["settings/"+p.Name+".md"] = out.String()
	}
	pages["settings.md"] = index.String()
	return pages
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
