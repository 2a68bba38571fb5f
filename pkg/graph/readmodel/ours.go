package readmodel

import (
	"slices"

	"mneme.dev/mneme/pkg/codebase"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/neo4jstore"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/insight"
	"mneme.dev/mneme/pkg/project"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/summary"
)

// Info is what the API, the commands and the checks need to know about a read model of mneme.
type Info struct {
	Name    string
	Program string // the separate program that writes it
	Needs   string // the setting without which nothing writes it, "" if it always is
	Model   string // begins the names of the settings of the model that computes its texts or vectors, "" if none does
	// Absent says what is missing while the read model does not exist. If it is empty, contexts can't be
	// served without it.
	Absent string
	// Enriches: what it adds can always be computed later, so nothing waits for it.
	Enriches bool
	// Computed: a model outside of mneme computes its rows, so a replay of the log can't verify them, and
	// its fingerprint depends on the settings.
	Computed bool
	// Of returns its declaration. If it is Computed, use that only to read.
	Of func() Opener
}

// ours has the read models of mneme, in the order of every list.
var ours = []Info{
	{Name: Graph().Name(), Program: "ingestor", Of: func() Opener { return Graph() }},
	{Name: Files().Name(), Program: "file-tracker", Of: func() Opener { return Files() }},
	{Name: Summaries().Name(), Program: "summarizer", Of: func() Opener { return Summaries() }, Model: "MNEME_LLM_",
		Absent: "no summarizer has run yet, and without one nothing is summarized"},
	{Name: Embeddings(nil).Name(), Program: "summarizer", Of: func() Opener { return Embeddings(nil) },
		Needs: "MNEME_EMBEDDINGS=openai", Model: "MNEME_EMBEDDINGS_", Enriches: true, Computed: true, Absent: "searches rank by words alone"},
	{Name: Projects().Name(), Program: "ingestor", Of: func() Opener { return Projects() },
		Absent: "no ingestor of this version has run yet, and without one projects have no context"},
	{Name: Insight().Name(), Program: "file-tracker", Of: func() Opener { return Insight() },
		Absent: "no file-tracker of this version has run yet, and without one nothing is counted"},
	{Name: Code().Name(), Program: "ingestor", Of: func() Opener { return Code() },
		Absent: "no ingestor of this version has run yet, and without one no code of projects is found"},
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

// Always returns the names of those that are written whatever the settings, in the order of every list.
func Always() (names []string) {
	for _, m := range ours {
		if m.Needs == "" {
			names = append(names, m.Name)
		}
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
func Graph() *Typed[*graph.Unit, graph.Store] {
	return &Typed[*graph.Unit, graph.Store]{
		Spec[*graph.Unit]{graph.Projection(), &sqlitestore.GraphCodec, &neo4jstore.GraphCodec},
		func(s *sqlitestore.Store[*graph.Unit]) graph.Store { return &sqlitestore.Graph{Store: s} },
		func(s *neo4jstore.Store[*graph.Unit]) graph.Store { return &neo4jstore.Graph{Store: s} },
	}
}

// Files is the read model of touched files.
func Files() *Typed[*graph.FilesUnit, graph.FilesStore] {
	return &Typed[*graph.FilesUnit, graph.FilesStore]{
		Spec[*graph.FilesUnit]{graph.FilesProjection(files.DefaultTable()), &sqlitestore.FilesCodec, &neo4jstore.FilesCodec},
		func(s *sqlitestore.Store[*graph.FilesUnit]) graph.FilesStore { return &sqlitestore.Files{Store: s} },
		func(s *neo4jstore.Store[*graph.FilesUnit]) graph.FilesStore { return &neo4jstore.Files{Store: s} },
	}
}

// Summaries is the state of the summaries: what is due.
func Summaries() *Typed[*summary.Unit, summary.Store] {
	return &Typed[*summary.Unit, summary.Store]{
		Spec[*summary.Unit]{summary.Projection(), &sqlitestore.SummariesCodec, &neo4jstore.SummariesCodec},
		func(s *sqlitestore.Store[*summary.Unit]) summary.Store { return &sqlitestore.Summaries{Store: s} },
		func(s *neo4jstore.Store[*summary.Unit]) summary.Store { return &neo4jstore.Summaries{Store: s} },
	}
}

// Projects is the read model of what is known about projects from their conversations.
func Projects() *Typed[*project.Unit, project.Store] {
	return &Typed[*project.Unit, project.Store]{
		Spec[*project.Unit]{project.Projection(files.DefaultTable()), &sqlitestore.ProjectsCodec, &neo4jstore.ProjectsCodec},
		func(s *sqlitestore.Store[*project.Unit]) project.Store { return sqlitestore.NewProjects(s) },
		func(s *neo4jstore.Store[*project.Unit]) project.Store { return neo4jstore.NewProjects(s) },
	}
}

// Insight is the read model of what conversations did, day by day.
func Insight() *Typed[*insight.Unit, insight.Store] {
	return &Typed[*insight.Unit, insight.Store]{
		Spec[*insight.Unit]{insight.Projection(files.DefaultTable()), &sqlitestore.InsightCodec, &neo4jstore.InsightCodec},
		func(s *sqlitestore.Store[*insight.Unit]) insight.Store { return &sqlitestore.Insight{Store: s} },
		func(s *neo4jstore.Store[*insight.Unit]) insight.Store { return &neo4jstore.Insight{Store: s} },
	}
}

// Code is the read model of the indexes of projects' code.
func Code() *Typed[*codebase.Unit, codebase.Store] {
	return &Typed[*codebase.Unit, codebase.Store]{
		Spec[*codebase.Unit]{codebase.Projection(), &sqlitestore.CodebaseCodec, &neo4jstore.CodebaseCodec},
		func(s *sqlitestore.Store[*codebase.Unit]) codebase.Store { return &sqlitestore.Codebase{Store: s} },
		func(s *neo4jstore.Store[*codebase.Unit]) codebase.Store { return &neo4jstore.Codebase{Store: s} },
	}
}

// Embeddings is the read model of the vectors that an embedder computes. Without an embedder it can
// only be read.
func Embeddings(with graph.Embedder) *Typed[*graph.EmbeddingsUnit, graph.EmbeddingsStore] {
	declared := projection.Projection[*graph.EmbeddingsUnit]{Name: sqlitestore.EmbeddingsCodec.Projection}
	if with != nil {
		declared = graph.EmbeddingsProjection(with)
	}
	return &Typed[*graph.EmbeddingsUnit, graph.EmbeddingsStore]{
		Spec[*graph.EmbeddingsUnit]{declared, &sqlitestore.EmbeddingsCodec, &neo4jstore.EmbeddingsCodec},
		func(s *sqlitestore.Store[*graph.EmbeddingsUnit]) graph.EmbeddingsStore {
			return &sqlitestore.Embeddings{Store: s}
		},
		func(s *neo4jstore.Store[*graph.EmbeddingsUnit]) graph.EmbeddingsStore {
			return &neo4jstore.Embeddings{Store: s}
		},
	}
}
