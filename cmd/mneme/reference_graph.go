package main

import (
	"fmt"
	"strings"

	"mneme.dev/mneme/pkg/graph/neo4jstore"
)

// graphTopics are the pages of labels, which the last label of each ends.
var graphTopics = []struct{ key, title, last string }{
	{"conversations", "Conversations and messages", "Message"},
	{"tool-calls", "Tool calls and results", "Condensed"},
	{"summaries", "Summaries and code", "Scope"},
	{"files", "Files", "FilesEvent"},
	{"summaries-due", "Which summaries are due", "SummariesEvent"},
	{"embeddings", "Embeddings of an endpoint", "CachedEmbedding"},
	{"projects", "Projects", "ProjectsEvent"},
	{"insight", "What conversations did, day by day", "InsightEvent"},
	{"code", "Indexes of code", ""},
}

// graphPages describe the graph for people who query it with Cypher.
func graphPages() map[string]string {
	pages := map[string]string{"graph/questions.md": graphQuestionsPage(), "graph/indexes.md": graphIndexesPage()}
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
	out.WriteString("Your queries can see part of a commit in progress; mneme's own reads of a conversation see all of it or nothing.\n\n" +
		"[Questions in Cypher](graph/questions.md) are a good start; [constraints and indexes](graph/indexes.md) say what is fast.\n\n" +
		"## Labels\n\n| label | |\n|---|---|\n")
	labels := neo4jstore.Labels()
	for _, topic := range graphTopics {
		path := "graph/" + topic.key + ".md"
		var page strings.Builder
		fmt.Fprintf(&page, "# The graph: %s\n\n%s[All labels and relationships](../graph.md).\n\n", topic.title, generated)
		for len(labels) > 0 {
			l := labels[0]
			labels = labels[1:]
			fmt.Fprintf(&out, "| [%s](%s#%s) | %s |\n", l.Name, path, strings.ToLower(l.Name), cellText(l.Is))
			page.WriteString(labelSection(l))
			if l.Name == topic.last {
				break
			}
		}
		pages[path] = page.String()
	}
	out.WriteString("\nThe engine's own labels begin with the projection's name: GraphCheckpoint, FilesCheckpoint, SummariesCheckpoint and EmbeddingsCheckpoint (positions), " +
		"GraphSettled and so on (what readers see), GraphFailedEvent and so on (events that were skipped, as `mneme failed list` shows them), and MnemeSchema.\n\n")
	out.WriteString("## Relationships\n\n| relationship | meaning |\n|---|---|\n")
	for _, r := range neo4jstore.Relationships() {
		fmt.Fprintf(&out, "| `(:%s)-[:%s]->(:%s)` | %s |\n", r.From, r.Type, r.To, cellText(r.Is))
	}
	pages["graph.md"] = out.String()
	return pages
}

func labelSection(l neo4jstore.Label) string {
	text := fmt.Sprintf("## %s\n\n%s\n\n| property | meaning |\n|---|---|\n", l.Name, l.Is)
	for _, p := range l.Properties {
		text += fmt.Sprintf("| `%s` | %s |\n", p.Name, cellText(p.Is))
	}
	return text + "\n"
}

func graphQuestionsPage() string {
	text := "# The graph: questions in Cypher\n\n" + generated +
		"The parameter `$listed` is generation and tenant, `'1/default'` for the tenant default in generation 1. `$vector` is a list of floats, " +
		"the vector that the embedding model computes for a text. [The labels and relationships](../graph.md).\n\n"
	for _, q := range neo4jstore.Queries() {
		text += fmt.Sprintf("## %s\n\n```cypher\n%s\n```\n\n", q.Question, strings.TrimSpace(q.Cypher))
	}
	return text
}

func graphIndexesPage() string {
	text := "# The graph: constraints and indexes\n\n" + generated + "[The labels and relationships](../graph.md).\n\n| name | statement |\n|---|---|\n"
	for _, i := range neo4jstore.Indexes() {
		text += fmt.Sprintf("| `%s` | `%s` |\n", i.Name, cellText(strings.ReplaceAll(i.Statement, "`", "")))
	}
	return text
}
