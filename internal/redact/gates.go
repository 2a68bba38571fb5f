package redact

import "strings"

// gates finds in one pass where the expressions of rules can match.
type gates struct {
	list  []rule
	begin [1 << 16]uint16 // by the first two bytes: 1 + the index in at of the gates that begin so
	at    [][]gate
	short []gate // of one byte
}

type gate struct {
	text string
	rule int
}

func newGates(list []rule) *gates {
	g := &gates{list: list}
	for i, r := range list {
		for _, text := range r.gates {
			if len(text) < 2 {
				g.short = append(g.short, gate{text, i})
				continue
			}
			pair := uint16(text[0])<<8 | uint16(text[1])
			if g.begin[pair] == 0 {
				g.at = append(g.at, nil)
				g.begin[pair] = uint16(len(g.at))
			}
			at := g.begin[pair] - 1
			g.at[at] = append(g.at[at], gate{text, i})
		}
	}
	return g
}

// in returns for each rule where its gates are in a text, in order. For a rule whose matches need not begin at a gate it
// is one place at most.
func (g *gates) in(text string) [][]int {
	places := make([][]int, len(g.list))
	for _, s := range g.short {
		if i := strings.Index(text, s.text); i >= 0 {
			places[s.rule] = []int{i}
		}
	}
	for i := 0; i+1 < len(text); i++ {
		pair := uint16(text[i])<<8 | uint16(text[i+1])
		n := g.begin[pair]
		if n == 0 {
			continue
		}
		for _, c := range g.at[n-1] {
			if (places[c.rule] == nil || g.list[c.rule].before != nil) && strings.HasPrefix(text[i:], c.text) {
				places[c.rule] = append(places[c.rule], i)
			}
		}
	}
	return places
}
