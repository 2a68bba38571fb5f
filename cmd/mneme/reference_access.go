package main

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/mcp"
)

// accessPage lists what each route needs.
func accessPage() string {
	var out strings.Builder
	out.WriteString("# What each route needs\n\n" + generated)
	out.WriteString("A server that requires tokens decides by this table alone. A role includes the ones before it: read, write, operate, admin. " +
		"[Security](security.md#another-tenant) says what tokens are, and [operations](operations/access.md#tokens) what to do with them.\n\n" +
		"The scope says which tokens may use a route:\n\n" +
		"- `project`: those of one project too, for conversations of that project;\n" +
		"- `tenant`: those of the tenant;\n" +
		"- `all`: only those of all tenants.\n\n")
	out.WriteString("The [audit log](audit.md) keeps changes before they take effect, and reads across conversations.\n\n")
	out.WriteString("| route | role | scope | audited | |\n|---|---|---|---|---|\n")
	for _, r := range httpapi.Routes() {
		need := access.Routes[r.ID]
		note := need.Note
		if note != "" {
			note = strings.ToUpper(note[:1]) + note[1:] + "."
		}
		fmt.Fprintf(&out, "| `%s %s` | %s | %s | %s | %s |\n", r.Method, r.Path, need.Role, need.Scope, need.Audit, note)
	}
	out.WriteString("\n## Tools\n\nThe [tools for agents](mcp.md) are all called with `POST /mcp`. A resource or a prompt needs the same rights as the tool that gives the same answer; lists and completions need those of `memory_search`:\n\n| tool | role | scope | audited |\n|---|---|---|---|\n")
	for _, tool := range mcp.Definitions(true) {
		need := access.Tools[tool.Name]
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", tool.Name, need.Role, need.Scope, need.Audit)
	}
	fmt.Fprintf(&out, "\n## OpenTelemetry\n\nThe ports of `--otlp-listen`, HTTP and gRPC, need the role %s and the scope %s for all that an [exporter](otlp.md) sends.\n", access.Exporters.Role, access.Exporters.Scope)
	out.WriteString("\n## Open paths\n\nThese need no token, and show nothing of any tenant:\n\n| path | why |\n|---|---|\n")
	for _, path := range slices.Sorted(maps.Keys(access.Open)) {
		fmt.Fprintf(&out, "| `%s %s` | %s |\n", http.MethodGet, path, access.Open[path])
	}
	return out.String()
}
