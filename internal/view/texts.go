package view

import (
	"slices"
	"sync"

	"mneme.dev/mneme/pkg/recall"
)

// texts indexes the texts of a conversation that are not messages: its summaries, which are
// few and rarely change. It holds the list that was ranked last.
type texts struct {
	mu    sync.Mutex
	list  []string
	index *recall.Index // of list; immutable
	made  map[string]text
}

// text is the indexed form of one text.
type text struct {
	bag     recall.Bag
	vectors []recall.Vector
}

// of returns the index of a list and its approximate size. The sequence of a text in the
// index is its place in the list, counted from 1. Work done for the previous list is
// reused.
func (t *texts) of(list []string, byMeaning bool) (index *recall.Index, bytes int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.index == nil || !slices.Equal(t.list, list) {
		t.make(list, byMeaning)
	}
	bytes = 2 * t.index.Bytes() // the bags are about as large as the index
	for _, one := range t.list {
		bytes += len(one)
	}
	return t.index, bytes
}

func (t *texts) make(list []string, byMeaning bool) {
	before := t.made
	t.list, t.index, t.made = slices.Clone(list), &recall.Index{}, make(map[string]text, len(list))
	for i, content := range list {
		one, ok := before[content]
		if !ok {
			one.bag = recall.NewBag(recall.Message{Content: content})
			for _, p := range one.bag.Passages {
				if byMeaning {
					one.vectors = append(one.vectors, embed(content[p.Start:p.End]))
				}
			}
		}
		t.made[content] = one
		_ = t.index.Add(uint64(i+1), one.bag) // in order
		if byMeaning {
			_ = t.index.SetVectors(uint64(i+1), one.vectors) // one vector for each passage
		}
	}
}
