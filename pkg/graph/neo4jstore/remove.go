package neo4jstore

import (
	"context"
	"errors"
)

// bySeq are the properties of an index on conversation and sequence.
var bySeq = []string{"seq"}

const ofKey = "n.key STARTS WITH $prefix"

// removals returns the labels of a read model, each with the condition for its nodes of a
// generation: first the nodes that readers look at first, then children before their parents,
// because parents have more relationships.
func (l Layout) removals() (list [][2]string) {
	p := prefix(l.Projection)
	list = append(list, [2]string{p + "Checkpoint", ofKey}, [2]string{p + "Settled", ofKey})
	for _, n := range l.Nodes {
		where := ofKey
		if len(n.By) > 0 {
			where = "n.conversation STARTS WITH $prefix" + areThere(n.By)
		}
		list = append(list, [2]string{n.Label, where})
	}
	return append(list, [2]string{l.Conversation, ofKey}, [2]string{p + "FailedEvent", "n.generation = $generation AND n.seq >= 0"})
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
	for _, l := range ours() {
		if err := d.remove(ctx, l, generation, fast); err != nil {
			return err
		}
	}
	return nil
}

// remove deletes everything that a projection has written in a generation.
func (d *db) remove(ctx context.Context, l Layout, generation int, by pace) error {
	s := &store{db: d, generation: generation}
	params := map[string]any{"prefix": s.prefix(), "generation": generation}
	for _, r := range l.removals() {
		if err := s.drain(ctx, "MATCH (n:"+r[0]+") WHERE "+r[1]+" WITH n LIMIT $limit DETACH DELETE n RETURN count(*)", params, by); err != nil {
			return err
		}
	}
	return nil
}

// Reset deletes every generation that programs write, the record of which one serves, and
// the cache of embeddings. Afterwards only the schema shows that mneme used the server.
// Nobody may read or write at the same time.
func Reset(ctx context.Context, c Config) (err error) {
	g, err := OpenGenerations(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	for _, l := range g.layouts {
		name := l.Projection
		builds, err := g.Builds(ctx, name)
		if err != nil {
			return err
		}
		for _, generation := range append(builds.Others, builds.Serving) {
			if err := g.remove(ctx, l, generation, fast); err != nil {
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
