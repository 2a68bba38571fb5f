package main

import (
	"fmt"
	"strings"

	"mneme/pkg/graph/neo4jstore"
)

// graphPage describes the graph for people who ask it in Cypher.
func graphPage() string {
	var out strings.Builder
	out.WriteString("# The graph in Neo4j\n\n" + generated)
	out.WriteString("With `MNEME_STORE=neo4j` the read models are a graph that anyone may read. Nobody but mneme should write to it: what is derived is made anew from the log. " +
		"A property that would be empty is not there. Rows of a conversation have its key, `<generation>/<tenant>/<id>`, as `conversation`. The generation is 1 until something was rebuilt; `MATCH (s:GraphServing) RETURN coalesce(s.generation, 1)` is the one that serves, " +
		"of files `FilesServing`, of summaries `SummariesServing`, of embeddings `EmbeddingsServing`. During a rebuild, and a while after it, there are two. " +
		"A tenant is escaped as in a URL.\n\n")
	out.WriteString("```\n(:Conversation)-[:HAS_MESSAGE]->(:Message)-[:HAS_TOOL_CALL]->(:ToolCall)-[:HAS_RESULT]->(:ToolResult)\n" +
		"                                (:Message)-[:REFERENCES_CODE]->(:Scope)      (:ToolResult)-[:CONDENSED_TO]->(:Condensed)\n" +
		"(:Conversation)-[:HAS_SUMMARY]->(:Summary)-[:CONSOLIDATES]->(:Summary)\n(:Conversation)-[:HAS_VERSION]->(:Version)\n(:Conversation)-[:HAS_BRANCH]->(:Conversation)\n" +
		"(:FileAccess)-[:OF_FILE]->(:File)\n```\n\n")
	out.WriteString("What a commit in progress has written can show to such a query; mneme's own reads of a conversation see it as a whole or not at all.\n\n## Questions\n\n" +
		"The parameter `$listed` is generation and tenant, `'1/default'` for the tenant default in generation 1. `$vector` is a list of floats, " +
		"what the model of the embeddings makes of a text.\n\n")
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
	out.WriteString("The engine has labels of its own, which begin with the projection's name: GraphCheckpoint, FilesCheckpoint, SummariesCheckpoint and EmbeddingsCheckpoint (positions), " +
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
