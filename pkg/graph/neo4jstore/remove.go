package neo4jstore

import (
	"context"
	"errors"
)

// removal says how to find a generation's nodes of a label.
type removal struct{ label, where string }

const ofKey = "n.key STARTS WITH $prefix"

func ofConversation(by ...string) string { return "n.conversation STARTS WITH $prefix" + areThere(by) }

// removals lists, by projection, first the nodes that readers look at first, then children
// before their parents, because parents have more relationships.
var removals = map[string][]removal{
	"graph": {
		{"GraphCheckpoint", ofKey}, {"GraphSettled", ofKey},
		{"Condensed", ofConversation("seq")}, {"Summary", ofConversation("seq")},
		{"ToolResult", ofConversation("seq")}, {"ToolCall", ofConversation("seq")}, {"Message", ofConversation("seq")}, {"Version", ofConversation("seq")},
		{"Scope", ofKey}, {"Conversation", ofKey}, {"GraphFailedEvent", "n.generation = $generation AND n.seq >= 0"},
	},
	"files": {
		{"FilesCheckpoint", ofKey}, {"FilesSettled", ofKey},
		{"FilesEvent", ofConversation("seq")}, {"FileAccess", ofConversation("at")}, {"File", ofKey}, {"TrackedCall", ofKey}, {"EarlyResult", ofKey},
		{"FilesConversation", ofKey}, {"FilesFailedEvent", "n.generation = $generation AND n.seq >= 0"},
	},
	"summaries": {
		{"SummariesCheckpoint", ofKey}, {"SummariesSettled", ofKey},
		{"SummariesState", ofConversation("seq")}, {"SummariesEvent", ofConversation("seq")},
		{"SummariesConversation", ofKey}, {"SummariesFailedEvent", "n.generation = $generation AND n.seq >= 0"},
	},
	"embeddings": {
		{"EmbeddingsCheckpoint", ofKey}, {"EmbeddingsSettled", ofKey},
		{"Passage", ofConversation("seq", "part")}, {"EmbeddingsEvent", ofConversation("seq")},
		{"EmbeddingsConversation", ofKey}, {"EmbeddingsFailedEvent", "n.generation = $generation AND n.seq >= 0"},
	},
}

// Remove deletes everything that the projections have written in a generation, in
// transactions of some thousand nodes. Nobody may be writing it; its readers see fewer and
// fewer rows. It keeps the schema and the record of which generation serves. For generations
// of programs use [Generations.Discard] instead.
func Remove(ctx context.Context, c Config, generation int) (err error) {
	d, err := openWriter(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	for name := range removals {
		if err := d.remove(ctx, name, generation, fast); err != nil {
			return err
		}
	}
	return nil
}

// remove deletes everything that a projection has written in a generation.
func (d *db) remove(ctx context.Context, projection string, generation int, by pace) error {
	s := &store{db: d, generation: generation}
	params := map[string]any{"prefix": s.prefix(), "generation": generation}
	for _, r := range removals[projection] {
		if err := s.drain(ctx, "MATCH (n:"+r.label+") WHERE "+r.where+" WITH n LIMIT $limit DETACH DELETE n RETURN count(*)", params, by); err != nil {
			return err
		}
	}
	return nil
}

// Reset deletes every generation that programs write, the record of which one serves, and
// the cache of embeddings. Afterwards only the schema shows that mneme used the server.
// Nobody may be reading or writing meanwhile.
func Reset(ctx context.Context, c Config) (err error) {
	g, err := OpenGenerations(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	for name := range removals {
		builds, err := g.Builds(ctx, name)
		if err != nil {
			return err
		}
		for _, generation := range append(builds.Others, builds.Serving) {
			if err := g.remove(ctx, name, generation, fast); err != nil {
				return err
			}
		}
		if _, err := g.write(ctx, labelled(name, deleteServing), map[string]any{"key": name}); err != nil {
			return classify(err)
		}
	}
	s := &store{db: g.db}
	return s.drain(ctx, "MATCH (n:CachedEmbedding) WHERE n.key > '' WITH n LIMIT $limit DELETE n RETURN count(*)", map[string]any{}, fast)
}
