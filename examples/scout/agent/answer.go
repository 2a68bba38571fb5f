package agent

import (
	"fmt"
	"strconv"
	"strings"

	"mneme.dev/mneme/events"
)

func (p *planner) answer() step {
	p.places = p.rank(2, maxPlaces)
	if len(p.places) == 0 {
		return step{says: p.nothing(), because: "No search gave a line."}
	}
	best := p.places[0]
	var b strings.Builder
	fmt.Fprintf(&b, "Most likely %s", best)
	if best.Name != "" {
		fmt.Fprintf(&b, ", in `%s`", best.Name)
	}
	if missing := p.missing(best); len(missing) > 0 {
		fmt.Fprintf(&b, " (not near it: %s)", texts(missing))
	}
	b.WriteString(".\n\n")
	refs := make([]events.Reference, len(p.places))
	for i, place := range p.places {
		fmt.Fprintf(&b, "%d. %s: %s\n", i+1, place, place.Text)
		refs[i] = events.Reference{File: place.File, StartLine: place.Line, EndLine: place.Line, Name: place.Name}
	}
	if p.format != "" {
		fmt.Fprintf(&b, "\ngofmt -l %s %s.", p.checked, strings.TrimSuffix(p.format, "."))
	}
	b.WriteString(p.remarks())
	return step{
		says:       strings.TrimSpace(b.String()),
		because:    fmt.Sprintf("Of %s with hits these rank first by %s.", count(len(p.known), "file"), texts(append(p.words, p.learned...))),
		references: refs,
	}
}

func (p *planner) nothing() string {
	if len(p.words) == 0 {
		return "I found nothing: the question holds no word that I could search for."
	}
	return strings.TrimSpace(fmt.Sprintf("I found nothing in this folder for %s.", texts(p.words)) + p.remarks())
}

// remarks says what the searches did not cover.
func (p *planner) remarks() string {
	s := ""
	if n := len(p.tools.unreadable); n > 0 {
		s += fmt.Sprintf("\n%s could not be read.", count(n, "file"))
	}
	if p.tools.cut {
		s += fmt.Sprintf("\nThe folder is larger than I search through (%s); the rest was not seen.", count(MaxFiles, "file"))
	}
	return s
}

// missing returns the question's words that are neither near a place nor in its path.
func (p *planner) missing(place Place) []word {
	var list []word
	for _, w := range p.words {
		if w.weight >= 1 && !w.in(place.File) && !p.near(w, place.File, place.Line) {
			list = append(list, w)
		}
	}
	return list
}

func texts(words []word) string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = strconv.Quote(w.text)
	}
	return join(list)
}

func join(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + " and " + list[len(list)-1]
}
