package redact

import "strings"

// gates finds in one pass the rules whose expressions can match.
type gates struct {
	rules int
	begin [1 << 16]bool // the first two bytes of a gate
	list  map[uint16][]gate
	short []gate // of one byte
}

type gate struct {
	text string
	rule int
}

func newGates(list []rule) *gates {
	g := &gates{rules: len(list), list: map[uint16][]gate{}}
	for i, r := range list {
		for _, text := range r.gates {
			if len(text) < 2 {
				g.short = append(g.short, gate{text, i})
				continue
			}
			pair := uint16(text[0])<<8 | uint16(text[1])
			g.begin[pair] = true
			g.list[pair] = append(g.list[pair], gate{text, i})
		}
	}
	return g
}

// in reports for each rule whether a text has one of its gates.
func (g *gates) in(text string) []bool {
	there := make([]bool, g.rules)
	for _, s := range g.short {
		there[s.rule] = there[s.rule] || strings.Contains(text, s.text)
	}
	for i := 0; i+1 < len(text); i++ {
		pair := uint16(text[i])<<8 | uint16(text[i+1])
		if !g.begin[pair] {
			continue
		}
		for _, c := range g.list[pair] {
			if !there[c.rule] && strings.HasPrefix(text[i:], c.text) {
				there[c.rule] = true
			}
		}
	}
	return there
}
