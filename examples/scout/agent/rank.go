package agent

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Place is a line that answers.
type Place struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Text string `json:"text"`
	Name string `json:"name,omitempty"` // the enclosing function or type, if known

	score float64
}

func (p Place) String() string { return fmt.Sprintf("%s:%d", p.File, p.Line) }

// The weights of a word; on the line itself it counts 1.
const (
	nearLines    = 3
	countsNear   = 0.4 // within nearLines
	countsInPath = 0.3
	countsInFile = 0.15
	defines      = 1.15 // factor for a line that defines the word
	learnedWord  = 0.2  // a learned word, not in the question
	describes    = 0.95 // factor for a comment line
	wholeLine    = 160  // characters; on a longer line words are together by chance
)

// rank returns the best places among the lines seen so far, at most each per file. A word
// weighs more if fewer files contain it. A line scores for the distinct words on it, less
// for words around it or in the file's name, and more if fewer words are missing. Ties are
// ordered by name.
func (p *planner) rank(each, limit int) []Place {
	words := slices.Concat(p.words, p.learned)
	weight := make([]float64, len(words))
	for i, w := range words {
		weight[i] = w.weight / math.Log2(float64(2+p.filesWith(w)))
	}
	var all []Place
	for _, file := range slices.Sorted(maps.Keys(p.known)) {
		factor := kindFactor(file)
		for _, line := range slices.Sorted(maps.Keys(p.known[file])) {
			text := p.known[file][line]
			score, here, onLine := 0.0, 0, false
			for i, w := range words {
				switch {
				case w.in(text):
					score, here, onLine = score+weight[i], here+1, true
				case p.near(w, file, line):
					score, here = score+weight[i]*countsNear, here+1
				case w.in(file):
					score, here = score+weight[i]*countsInPath, here+1
				case p.inFile(w, file):
					score += weight[i] * countsInFile
				}
			}
			if !onLine {
				continue
			}
			if m := definition.FindStringSubmatch(text); m != nil && slices.ContainsFunc(p.words, func(w word) bool { return w.in(m[1]) }) {
				score *= defines
			}
			if comment.MatchString(strings.TrimSpace(text)) {
				score *= describes
			}
			score *= factor * float64(here) / float64(len(words)) * min(1, wholeLine/float64(len(text)))
			all = append(all, Place{File: file, Line: line, Text: strings.TrimSpace(text), score: score})
		}
	}
	slices.SortStableFunc(all, func(a, b Place) int { return cmp.Compare(b.score, a.score) })
	return p.pick(all, each, limit)
}

// pick takes the first places, at most each per file, and no two next to each other.
func (p *planner) pick(all []Place, each, limit int) []Place {
	best := []Place{} // JSON shows an empty list, not null
	taken := map[string][]int{}
	for _, place := range all {
		lines := taken[place.File]
		beside := slices.ContainsFunc(lines, func(n int) bool { return max(n-place.Line, place.Line-n) <= nearLines })
		if len(best) == limit || len(lines) == each || beside {
			continue
		}
		taken[place.File] = append(lines, place.Line)
		place.Name = p.enclosing(place.File, place.Line)
		best = append(best, place)
	}
	return best
}

// kindFactor prefers code to tests and documentation.
func kindFactor(file string) float64 {
	factor := 1.0
	switch path.Ext(file) {
	case ".md", ".txt", ".rst", ".adoc", ".html", "":
		factor = 0.6
	case ".json", ".jsonl", ".csv", ".sum", ".lock", ".svg", ".xml", ".log":
		factor = 0.3
	}
	if aside.MatchString(file) {
		factor *= 0.6
	}
	return factor
}

var aside = regexp.MustCompile(`(?i)(?:^|/)(?:tests?|testdata|__tests__|fixtures?|examples?|docs?|third_party|bench|benchmarks?)/|_test\.\w+$|\.(?:test|spec)\.\w+$|(?:^|/)test_\w+\.py$`)

// definition matches a line that defines a name, in languages with a keyword for it.
var definition = regexp.MustCompile(`^\s*(?:(?:export|default|public|private|protected|internal|static|final|abstract|async|pub(?:\([a-z]+\))?|unsafe|override|open)\s+)*` +
	`(?:func|function|fn|fun|def|class|struct|interface|trait|enum|type|module|namespace|sub|proc)\s+(?:\([^)]*\)\s*)?([A-Za-z_]\w*)`)

var comment = regexp.MustCompile(`^(?://|#|/?\*|--|;|"""|''')`)

// enclosing returns the name of the definition that a line belongs to, as far as the lines
// around it were read: the definition on the line, the nearest less indented one above, or
// the one below if the line is its comment.
func (p *planner) enclosing(file string, line int) string {
	lines := p.known[file]
	indented := indent(lines[line])
	for n := line; ; n++ {
		text, ok := lines[n]
		if m := definition.FindStringSubmatch(text); m != nil && indent(text) <= indented {
			return m[1]
		}
		if !ok || !comment.MatchString(strings.TrimSpace(text)) {
			break
		}
	}
	for n := line - 1; indented > 0; n-- {
		text, ok := lines[n]
		if !ok {
			break
		}
		if strings.TrimSpace(text) == "" || indent(text) >= indented {
			continue
		}
		if m := definition.FindStringSubmatch(text); m != nil {
			return m[1]
		}
		indented = indent(text) // an outer block; a closing bracket has no indentation at all
	}
	return ""
}

func indent(s string) int { return len(s) - len(strings.TrimLeft(s, " \t")) }

// filesWith returns the number of files known to contain a word.
func (p *planner) filesWith(w word) int {
	n := 0
	for file := range p.known {
		if p.inFile(w, file) {
			n++
		}
	}
	return n
}

func (p *planner) inFile(w word, file string) bool {
	for _, text := range p.known[file] {
		if w.in(text) {
			return true
		}
	}
	return false
}

func (p *planner) near(w word, file string, line int) bool {
	for n := line - nearLines; n <= line+nearLines; n++ {
		if text, ok := p.known[file][n]; ok && w.in(text) {
			return true
		}
	}
	return false
}

var name = regexp.MustCompile(`[A-Za-z_]\w{4,}`)

// learn collects names that contain a word of the question and are longer than it: names of
// the definitions around the best places, and names that these places mention.
func (p *planner) learn() []word {
	type candidate struct {
		name  string
		score float64
	}
	var list []candidate
	for i, place := range p.rank(2, maxPlaces) {
		if !p.wasRead(place) {
			continue
		}
		for _, n := range append(name.FindAllString(place.Text, -1), place.Name) {
			score := 0.0
			for _, w := range p.words {
				if w.in(n) && identifier.MatchString(n) && len(n) > len(w.text)+2 {
					score += w.weight
				}
			}
			known := slices.ContainsFunc(list, func(c candidate) bool { return strings.EqualFold(c.name, n) })
			if score == 0 || known || len(n) < 5 {
				continue
			}
			list = append(list, candidate{n, score - float64(i)/10})
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int { return cmp.Compare(b.score, a.score) })
	var words []word
	for _, c := range list[:min(len(list), maxLearned)] {
		words = append(words, word{c.name, strings.ToLower(c.name), learnedWord})
	}
	return words
}
