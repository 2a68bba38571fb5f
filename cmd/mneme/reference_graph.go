package main

import (
	"fmt"
	"strings"

	"mneme.dev/mneme/pkg/graph/neo4jstore"
)

// graphPage describes the graph for people who query it with Cypher.
func graphPage() string {
	var out strings.Builder
	out.WriteString("# The graph in Neo4j\n\n" + generated)
	out.WriteString("With `MNEME_STORE=neo4j` the read models are a graph that anyone may read. Only mneme should write to it, because a rebuild from the log discards other changes. " +
		"Empty properties are missing. Rows of a conversation have its key, `<generation>/<tenant>/<id>`, as `conversation`. The generation is 1 until the first rebuild; `MATCH (s:GraphServing) RETURN coalesce(s.generation, 1)` returns the one that serves; " +
		"every other read model has a node like it, such as `FilesServing`. During a rebuild, and for a while after it, there are two generations. " +
		"A tenant is escaped as in a URL.\n\n")
	out.WriteString("```\n(:Conversation)-[:HAS_MESSAGE]->(:Message)-[:HAS_TOOL_CALL]->(:ToolCall)-[:HAS_RESULT]->(:ToolResult)\n" +
		"                                (:Message)-[:REFERENCES_CODE]->(:Scope)      (:ToolResult)-[:CONDENSED_TO]->(:Condensed)\n" +
		"(:Conversation)-[:HAS_SUMMARY]->(:Summary)-[:CONSOLIDATES]->(:Summary)\n(:Conversation)-[:HAS_VERSION]->(:Version)\n(:Conversation)-[:HAS_BRANCH]->(:Conversation)\n" +
		"(:FileAccess)-[:OF_FILE]->(:File)\n```\n\n")
	out.WriteString("Your queries can see part of a commit in progress; mneme's own reads of a conversation see all of it or nothing.\n\n## Questions\n\n" +
		"The parameter `$listed` is generation and tenant, `'1/default'` for the tenant default in generation 1. `$vector` is a list of floats, " +
		"the vector that the embedding model computes for a text.\n\n")
	for _, q := range neo4jstore.Queries() {
		fmt.Fprintf(&out, "### %s\n\n```cypher\n%s\n```\n\n", q.Question, strings.TrimSpace(q.Cypher))
	}
	out.WriteString("## Labels\n\n")
	for _, l := range neo4jstore.Labels() {
		fmt.Fprintf(&out, "### %s\n\n%s\n\n| property | meaning |\n|---|---|\n", l.Name, l.Is)
		for _, p := range l.Properties {
			fmt.Fprintf(&out, "| `%s` | %s |\n", p.Name, cellText(p.Is))
		}
		out.WriteString("\n")
	}
	out.WriteString("The engine's own labels begin with the projection's name: GraphCheckpoint, FilesCheckpoint, SummariesCheckpoint and EmbeddingsCheckpoint (positions), " +
		"GraphSettled and so on (what readers see), GraphFailedEvent and so on (events that were skipped, as `mneme failed list` shows them), and MnemeSchema.\n\n")
	out.WriteString("## Relationships\n\n| relationship | meaning |\n|---|---|\n")
	for _, r := range neo4jstore.Relationships() {
		fmt.Fprintf(&out, "| `(:%s)-[:%s]->(:%s)` | %s |\n", r.From, r.Type, r.To, cellText(r.Is))
	}
	out.WriteString("\n## Constraints and indexes\n\n| name | statement |\n|---|---|\n")
	for _, i := range neo4jstore.Indexes() {
		fmt.Fprintf(&out, "| `%s` | `%s` |\n", i.Name, cellText(strings.ReplaceAll(i.Statement, "`", "")))
	}
	return out.String()
}
