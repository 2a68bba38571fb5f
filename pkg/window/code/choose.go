package code

import (
	"cmp"
	"slices"
)

// Choose takes the best passages that each fit into the remaining room, and joins adjacent ones.
func (c *Search) Choose(room int) (list []*Passage, chars int) {
	place := map[string]int{}
	var chosen []*Passage
	for i := range c.Passages {
		p := &c.Passages[i]
		need := p.cost
		if _, ok := place[p.Path]; !ok {
			need += c.src.LabelCost(p.Path)
		}
		if need > room {
			continue
		}
		room -= need
		chosen = append(chosen, p)
		if _, ok := place[p.Path]; !ok {
			place[p.Path] = len(place)
		}
	}
	for _, p := range chosen {
		p.place = place[p.Path]
	}
	slices.SortStableFunc(chosen, func(a, b *Passage) int {
		return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.Start(), b.Start()), cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.from, b.from))
	})
	list = joined(chosen)
	for i, p := range list {
		if chars += c.Cost(p); i == 0 || list[i-1].Path != p.Path {
			chars += c.src.LabelCost(p.Path)
		}
	}
	return list, chars
}

// joined merges passages that are adjacent in what one call showed.
func joined(list []*Passage) (out []*Passage) {
	var own *Passage // the last one, if it is a copy
	for _, p := range list {
		if n := len(out) - 1; n >= 0 && out[n].Seq == p.Seq && out[n].Path == p.Path && out[n].part == p.part && out[n].to == p.from {
			if own == nil {
				own = new(Passage)
				*own = *out[n]
				out[n] = own
			}
			own.to, own.Score, own.cost = p.to, max(own.Score, p.Score), 0
			continue
		}
		out, own = append(out, p), nil
	}
	return out
}
