package readmodel

import (
	"slices"

	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/neo4jstore"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/summary"
)

// Info is what the API, the commands and the checks need to know about a read model of mneme.
type Info struct {
	Name    string
	Program string // the separate program that writes it
	Needs   string // the setting without which nothing writes it, "" if it always is
	// Absent says what is missing while the read model does not exist. If it is empty, contexts can't be
	// served without it.
	Absent string
	// Enriches: what it adds can always be computed later, so nothing waits for it.
	Enriches bool
	// Of returns its declaration. It is nil if that depends on a setting, as with [Embeddings].
	Of func() Model
}

// ours has the read models of mneme, in the order of every list.
var ours = []Info{
	{Name: Graph().Name(), Program: "ingestor", Of: func() Model { return Graph() }},
	{Name: Files().Name(), Program: "file-tracker", Of: func() Model { return Files() }},
	{Name: Summaries().Name(), Program: "summarizer", Of: func() Model { return Summaries() },
		Absent: "no summarizer has run yet, and without one nothing is summarized"},
	{Name: sqlitestore.EmbeddingsCodec.Projection, Program: "summarizer", Needs: "MNEME_EMBEDDINGS=openai", Enriches: true,
		Absent: "searches rank by words alone"},
}

// Ours returns the read models of mneme, in the order of every list.
func Ours() []Info { return slices.Clone(ours) }

// Names returns the names of [Ours].
func Names() []string {
	names := make([]string, len(ours))
	for i, m := range ours {
		names[i] = m.Name
	}
	return names
}

// Find returns a read model of mneme, a zero Info if there is none of this name.
func Find(name string) Info {
	for _, m := range ours {
		if m.Name == name {
			return m
		}
	}
	return Info{}
}

// Graph is the read model of conversations, messages, tool calls and summaries.
func Graph() *Spec[*graph.Unit] {
	return &Spec[*graph.Unit]{graph.Projection(), &sqlitestore.GraphCodec, &neo4jstore.GraphCodec}
}

// Files is the read model of touched files.
func Files() *Spec[*graph.FilesUnit] {
	return &Spec[*graph.FilesUnit]{graph.FilesProjection(files.DefaultTable()), &sqlitestore.FilesCodec, &neo4jstore.FilesCodec}
}

// Summaries is the state of the summaries: what is due.
func Summaries() *Spec[*summary.Unit] {
	return &Spec[*summary.Unit]{summary.Projection(), &sqlitestore.SummariesCodec, &neo4jstore.SummariesCodec}
}

// Embeddings is the read model of the vectors that an embedder computes.
func Embeddings(with graph.Embedder) *Spec[*graph.EmbeddingsUnit] {
	return &Spec[*graph.EmbeddingsUnit]{graph.EmbeddingsProjection(with), &sqlitestore.EmbeddingsCodec, &neo4jstore.EmbeddingsCodec}
}
