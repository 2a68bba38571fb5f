package indexes

import (
	"slices"
	"sync"

	"mneme/pkg/recall"
)

// texts is the index of the texts of a conversation that are no messages and were ranked
// last: summaries, which change seldom and of which there are few.
type texts struct {
	mu    sync.Mutex
	list  []string
	index *recall.Index // of list; never changed
	made  map[string]text
}

// text is what an index needs of one.
type text struct {
	bag     recall.Bag
	vectors []recall.Vector
}

// of is the index of a list of texts, in which each has its place, from 1 on, as sequence,
// and about what is kept in bytes. What was made for the last list is used again.
func (t *texts) of(list []string, byMeaning bool) (index *recall.Index, bytes int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.index == nil || !slices.Equal(t.list, list) {
		t.make(list, byMeaning)
	}
	bytes = 2 * t.index.Bytes() // the bags are about as large
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
			_ = t.index.SetVectors(uint64(i+1), one.vectors) // one of each passage
		}
	}
}
