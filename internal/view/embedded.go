package view

import (
	"context"

	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/recall"
)

// Embedded is what searches know about the meaning of a message.
type Embedded struct {
	Model    string // "" if searches rank by words alone
	Passages []recall.Passage
	Vectors  []recall.Vector // of the passages, nil for one without a vector; empty if there are none yet
}

// Embedded reads the vectors of the message at a sequence. A message without a text has no passages.
// It returns what [graph.CheckEmbeddings] does if the vectors are of another model.
func (v *View) Embedded(ctx context.Context, seq uint64) (e Embedded, err error) {
	cache := v.pins.views.Cache
	if cache != nil {
		e.Model = cache.Model()
	}
	one := graph.BagQuery{From: seq, Before: seq + 1, Limit: 1}
	bags, err := v.Graph().Bags(ctx, v.ID, one)
	if err != nil || len(bags) == 0 {
		return e, err
	}
	bag, vectors, _, err := bags[0].Decode()
	if err != nil {
		return e, err
	}
	e.Passages = bag.Passages
	switch {
	case e.Model == "":
	case !cache.Remote():
		e.Vectors = vectors
	default:
		stored, err := v.embeddings(ctx)
		if err != nil {
			return e, err
		}
		list, err := stored.Embeddings(ctx, v.ID, one)
		if err != nil || len(list) == 0 {
			return e, err
		}
		e.Vectors, err = list[0].Decode()
		return e, err
	}
	return e, nil
}
