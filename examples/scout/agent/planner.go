package agent

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	maxRead    = 3  // files to read around their best line
	maxPlaces  = 5  // places named in an answer
	maxLearned = 2  // names to search for after reading
	readBefore = 40 // lines read before a file's best line
	readAfter  = 20 // lines read after it
	sentence   = 4  // from this many words on, a question is a sentence, not a list of words to find
)

// planner decides the next step from the results of the tools. It takes the place of a
// model: it sees only the question and the results.
type planner struct {
	question string
	words    []word
	tools    *toolbox // only for the files that it skipped
	phase    int

	hasModule bool
	known     map[string]map[int]string // the lines seen so far, by file
	read      map[string][]readFile     // the parts read, by file
	learned   []word
	checked   string // the file
	format    string // what gofmt says about it
	places    []Place
}

func newPlanner(question string, tools *toolbox) *planner {
	return &planner{
		question: question, words: keywords(question), tools: tools,
		known: map[string]map[int]string{}, read: map[string][]readFile{},
	}
}

// phases lists the planner's phases in order; a phase with nothing to do is skipped.
var phases = []func(*planner) (step, bool){
	(*planner).look, (*planner).search, (*planner).searchAgain, (*planner).narrow,
	(*planner).readBest, (*planner).follow, (*planner).readFound, (*planner).check,
}

func (p *planner) next() step {
	for p.phase < len(phases) {
		p.phase++
		if s, ok := phases[p.phase-1](p); ok {
			return s
		}
	}
	return p.answer()
}

// saw processes the result of a call.
func (p *planner) saw(c call, result any, failure error) {
	switch c := c.(type) {
	case listDirectory:
		list, _ := result.(string)
		p.hasModule = p.hasModule || strings.Contains("\n"+list, "\n[FILE] go.mod\n")
	case grepFiles:
		hits, _ := result.([]hit)
		for _, h := range hits {
			p.learnLine(h.File, h.Line, h.Text)
		}
	case readFile:
		if failure != nil {
			return
		}
		p.read[c.Path] = append(p.read[c.Path], c)
		content, _ := result.(string)
		for line := range strings.Lines(content) {
			number, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			if n, err := strconv.Atoi(number); err == nil {
				p.learnLine(c.Path, n, text)
			}
		}
	case runCommand:
		out, _ := result.(string)
		switch {
		case failure != nil:
			p.format = "fails: " + complaint(out, failure)
		case out != "":
			p.format = "would change it"
		default:
			p.format = "finds nothing to change"
		}
	}
}

func (p *planner) learnLine(file string, line int, text string) {
	if len(strings.Fields(p.question)) >= sentence && strings.Contains(strings.ToLower(text), strings.ToLower(p.question)) {
		return // a file that repeats the question has no answer
	}
	if p.known[file] == nil {
		p.known[file] = map[int]string{}
	}
	p.known[file][line] = text
}

// complaint returns the line of a command's output that names the error.
func complaint(out string, failure error) string {
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return firstLine(failure.Error())
}

func (p *planner) look() (step, bool) {
	because := "The question has no word that could be searched for; the names of the files are all there is to go by."
	if len(p.words) > 0 {
		because = fmt.Sprintf("I have not seen this folder yet. From the question I keep %s.", texts(p.words))
	}
	return step{
		says:    "I look at what is in the folder.",
		because: because,
		calls:   []call{listDirectory{Path: "."}},
	}, true
}

func (p *planner) search() (step, bool) {
	return step{
		says:    fmt.Sprintf("I search all files for %s.", texts(p.words)),
		because: "A file that holds many of the words, and the rare ones among them, is most likely where the answer is.",
		calls:   searches(p.words),
	}, len(p.words) > 0
}

// searchAgain runs when nothing was found, and searches for shorter parts of the words.
func (p *planner) searchAgain() (step, bool) {
	var shorter []word
	for _, w := range p.words {
		if p.filesWith(w) > 0 {
			return step{}, false
		}
		if r := []rune(w.stem); len(r) > 4 {
			shorter = append(shorter, word{w.text, string(r[:max(4, len(r)*2/3)]), w.weight})
		}
	}
	s := step{
		says:    fmt.Sprintf("No file holds any of these words, so I search for the beginnings of %s.", texts(shorter)),
		because: "The folder may write them in another form.",
		calls:   searches(shorter),
	}
	if len(shorter) > 0 {
		p.words = shorter
	}
	return s, len(shorter) > 0
}

// narrow searches for lines that contain two words at once, because the single words may
// have more hits than a search returns.
func (p *planner) narrow() (step, bool) {
	var found []word
	for _, w := range p.words {
		if p.filesWith(w) > 0 && len(found) < 3 {
			found = append(found, w)
		}
	}
	var pairs []string
	for i, a := range found {
		for _, b := range found[i+1:] {
			x, y := regexp.QuoteMeta(a.stem), regexp.QuoteMeta(b.stem)
			pairs = append(pairs, x+".*"+y, y+".*"+x)
		}
	}
	return step{
		says:    fmt.Sprintf("I look for lines that hold two of %s.", texts(found)),
		because: "Each alone is in many places; where they stand together someone speaks of what was asked.",
		calls:   []call{grepFiles{Pattern: strings.Join(pairs, "|"), Path: "."}},
	}, len(pairs) > 0
}

func (p *planner) readBest() (step, bool) {
	var calls []call
	var names []string
	for _, place := range p.rank(1, maxRead) {
		calls = append(calls, around(place))
		names = append(names, place.File)
	}
	return step{
		says:    fmt.Sprintf("I read %s around the best hits.", join(names)),
		because: "These files hold most of the words, weighed by how rare each is; the lines around the hits show what they belong to.",
		calls:   calls,
	}, len(calls) > 0
}

func (p *planner) follow() (step, bool) {
	p.learned = p.learn()
	return step{
		says:    fmt.Sprintf("I look once more, for %s.", texts(p.learned)),
		because: "What I read is named so, and the question could not know these names: their other places may be nearer to the answer.",
		calls:   searches(p.learned),
	}, len(p.learned) > 0
}

func (p *planner) readFound() (step, bool) {
	best := p.rank(1, 1)
	if len(best) == 0 || p.wasRead(best[0]) {
		return step{}, false
	}
	return step{
		says:    fmt.Sprintf("Now %s comes first, and I read around it before I answer.", best[0]),
		because: "What I have learned since leads there, and I have seen no more of it than this line.",
		calls:   []call{around(best[0])},
	}, true
}

func (p *planner) check() (step, bool) {
	best := p.rank(1, 1)
	if !p.hasModule || len(best) == 0 || path.Ext(best[0].File) != ".go" {
		return step{}, false
	}
	p.checked = "./" + best[0].File
	return step{
		says:    fmt.Sprintf("I check that %s is Go, with gofmt.", p.checked),
		because: "An answer from a file that does not even parse would have to say so.",
		calls:   []call{runCommand{Command: "gofmt -l " + p.checked}},
	}, !strings.ContainsAny(p.checked, " \t\n")
}

func (p *planner) wasRead(place Place) bool {
	return slices.ContainsFunc(p.read[place.File], func(r readFile) bool { return r.StartLine <= place.Line && place.Line <= r.EndLine })
}

func around(place Place) readFile {
	return readFile{Path: place.File, StartLine: max(place.Line-readBefore, 1), EndLine: place.Line + readAfter}
}

func searches(words []word) []call {
	var calls []call
	for _, w := range words {
		pattern := w.stem
		if strings.EqualFold(w.text, w.stem) {
			pattern = w.text
		}
		calls = append(calls, grepFiles{Pattern: regexp.QuoteMeta(pattern), Path: "."})
	}
	return calls
}
