package agent

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// maxWords is how many of a question's words are searched for.
const maxWords = 6

// word is something to search for.
type word struct {
	text   string  // as in the question
	stem   string  // the search term: lower case, without ending
	weight float64 // 1 for a plain word
}

var (
	quoted     = regexp.MustCompile("`([^`]+)`|\"([^\"]+)\"|“([^”]+)”")
	token      = regexp.MustCompile(`[\p{L}\p{N}_]+(?:[-./:]+[\p{L}\p{N}_]+)*`)
	subword    = regexp.MustCompile(`\p{Lu}+(?:\p{Ll}|\p{N})*|(?:\p{Ll}|\p{N})+|\p{L}+`)
	identifier = regexp.MustCompile(`[-./:_\p{N}]|\p{Ll}\p{Lu}`)
)

// keywords extracts the search terms of a question: quoted texts, whole identifiers, stems
// of other words, and last the parts of identifiers. Words that are common in every program
// ("function", "call") count only if there are no others.
func keywords(question string) []word {
	var list, parts, poor []word
	for _, m := range quoted.FindAllStringSubmatch(question, -1) {
		text := strings.TrimSpace(m[1] + m[2] + m[3])
		list = append(list, word{text, strings.ToLower(text), 1.5})
	}
	for _, text := range token.FindAllString(quoted.ReplaceAllString(question, " "), -1) {
		lower := strings.ToLower(text)
		switch {
		case len(lower) < 2 || stop[lower]:
		case plenty[lower]:
			poor = append(poor, word{text, stem(lower), 1})
		case identifier.MatchString(text):
			list = append(list, word{text, lower, 1.5})
			for _, part := range subword.FindAllString(text, -1) {
				if part := strings.ToLower(part); len(part) > 2 && !stop[part] && !plenty[part] {
					parts = append(parts, word{part, stem(part), 0.4})
				}
			}
		default:
			list = append(list, word{text, stem(lower), 1})
		}
	}
	if list = append(list, parts...); len(list) == 0 {
		list = poor
	}
	return distinct(list)
}

func distinct(list []word) []word {
	var kept []word
	known := map[string]bool{"": true}
	for _, w := range list {
		if !known[w.stem] && len(kept) < maxWords {
			known[w.stem] = true
			kept = append(kept, w)
		}
	}
	return kept
}

var irregular = map[string]string{
	"sent": "send", "built": "build", "kept": "keep", "found": "find", "held": "hold", "chosen": "choos", "lost": "los", "ran": "run",
}

// stem removes the ending of an English word but leaves at least four letters: written,
// writes and writing all become writ.
func stem(s string) string {
	if to, ok := irregular[s]; ok {
		return to
	}
	for _, ending := range []string{"ations", "ation", "ings", "ing", "ies", "ied", "ed", "es", "en", "ly", "s", "e"} {
		rest, ok := strings.CutSuffix(s, ending)
		if !ok || len(rest) < 4 || ending == "s" && strings.HasSuffix(rest, "s") {
			continue
		}
		if n := len(rest); rest[n-1] == rest[n-2] && rest[n-1] < utf8.RuneSelf && !strings.Contains("lsfz", rest[n-1:]) {
			return rest[:n-1] // stopped, written
		}
		return rest
	}
	return s
}

// in reports whether a word of a line, or a part of a camelCase name, begins with the word:
// "stor" is in fileStore but not in history. After a short stem only an ending may follow:
// "leas" is in leases but not in least.
func (w word) in(line string) bool {
	lower := strings.ToLower(line)
	if len(lower) != len(line) {
		return strings.Contains(lower, w.stem)
	}
	for from := 0; ; {
		i := strings.Index(lower[from:], w.stem)
		if i < 0 {
			return false
		}
		at := from + i
		end := at + len(w.stem)
		begins := at == 0 || !isLetter(line[at-1]) || isLower(line[at-1]) && !isLower(line[at])
		for end < len(line) && isLower(line[end]) {
			end++
		}
		if begins && (len(w.stem) >= longStem || ending.MatchString(line[at+len(w.stem):end])) {
			return true
		}
		from = at + 1
	}
}

const longStem = 5

var ending = regexp.MustCompile(`^(?:[a-z]?(?:e|es|ed|er|ers|en|ing|ings)|s|y|or|ors|ion|ions|able)?$`)

func isLetter(c byte) bool { return isLower(c) || 'A' <= c && c <= 'Z' || c >= 0x80 }
func isLower(c byte) bool  { return 'a' <= c && c <= 'z' }

func set(list string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		m[w] = true
	}
	return m
}

// stop lists question words and connectives, in English and some in French. plenty lists
// words that are common in every program: they are searched for only if a question has no
// others.
var (
	stop = set(`a about after all also am an and any are as at be been being between both but by can could did do does doing done each
		either else every for from get gets give go goes got had happen happens has have having he her here him his how i if in
		into is isn it its just like made make makes many may me mean means might more most much must my no nor not of on one only
		or other our out over please shall she should show so some such tell than that the their them then there these they this
		those through to too under up us use used uses using very want was way we were what when where whether which while who
		whom whose why will with would you your explain describe exactly actually
		où est sont le la les un une des du de dans sur par pour avec que qui quoi quel quelle comment
		pourquoi quand ce cette il elle et ou se`)
	plenty = set(`call called calls class code declare declared define defined definition definitions directory file files find
		folder function functions implement implementation implemented know knows line lines list located look method methods object
		package part parts place places program project repo repository return returned returns source thing things type types
		value values variable work works`)
)
