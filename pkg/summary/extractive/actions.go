package extractive

import (
	"slices"
	"strconv"
	"strings"
)

// verbs are the sentences of Actions in order. What was changed and what failed matters
// more than what was read.
var verbs = []string{"Used", "Edited", "Ran", "Failed:", "Read", "Searched for", cameUp}

// cameUp is the verb for identifiers, whose counts are not shown.
const cameUp = "Names that came up:"

// most limits how many things each verb names; maxThings is the largest limit.
var most = map[string]int{"Used": 6, "Edited": 8, "Ran": 6, "Failed:": 3, "Read": 8, "Searched for": 3, cameUp: maxThings}

const maxThings = 12

// tally counts what was done: a list of things for each verb. It is written as one sentence
// per verb, and parsed again when summaries are consolidated.
type tally map[string]*things

type things struct {
	names  []string // in order of appearance
	counts map[string]int
	others bool // there were more, not named here
}

// add counts a thing n more times. It replaces ", " in the name, because ", " separates names.
func (t tally) add(verb, name string, n int) {
	name = strings.ReplaceAll(oneLine(name), ", ", "; ")
	if name == "" {
		return
	}
	list := t.of(verb)
	if list.counts[name] == 0 {
		list.names = append(list.names, name)
	}
	list.counts[name] += n
}

func (t tally) of(verb string) *things {
	if t[verb] == nil {
		t[verb] = &things{counts: map[string]int{}}
	}
	return t[verb]
}

const others = " and others"

// text writes the tally in at most room characters, most frequent things first. It adds one
// thing per verb in each round while there is room.
func (t tally) text(room int) string {
	for _, verb := range verbs {
		if list := t[verb]; list != nil {
			slices.SortStableFunc(list.names, func(a, b string) int { return list.counts[b] - list.counts[a] })
		}
	}
	shown := make([]int, len(verbs))
	text := ""
	for round := 1; round <= maxThings; round++ {
		for v, verb := range verbs {
			if t[verb] == nil || shown[v] != round-1 || round > min(most[verb], len(t[verb].names)) {
				continue
			}
			shown[v] = round
			if longer := t.write(shown); length(longer) <= room {
				text = longer
			} else {
				shown[v] = round - 1
			}
		}
	}
	return text
}

// write writes the first shown[v] things of each verb v.
func (t tally) write(shown []int) string {
	var out []string
	for v, verb := range verbs {
		list := t[verb]
		if list == nil || shown[v] == 0 {
			continue
		}
		names := slices.Clone(list.names[:shown[v]])
		more := list.others || len(list.names) > shown[v]
		for i, name := range names {
			// If children left things out, the sum of their counts would be wrong.
			if k := list.counts[name]; k > 1 && !list.others && verb != cameUp {
				names[i] = name + " (" + strconv.Itoa(k) + ")"
			}
		}
		s := verb + " " + strings.Join(names, ", ")
		if more {
			s += others
		}
		out = append(out, s+".")
	}
	return strings.Join(out, " ")
}

// merge parses sentences by write and adds their counts. It returns the rest, which a model
// wrote.
func (t tally) merge(text string) string {
	for text != "" {
		verb := verbOf(text)
		if verb == "" {
			return text
		}
		rest := text[len(verb)+1:]
		sentence, after, ok := cutSentence(rest)
		if !ok {
			return text
		}
		sentence, more := strings.CutSuffix(sentence, others)
		for item := range strings.SplitSeq(sentence, ", ") {
			name, n := item, 1
			if open := strings.LastIndex(item, " ("); open > 0 && strings.HasSuffix(item, ")") {
				if k, err := strconv.Atoi(item[open+2 : len(item)-1]); err == nil && k > 0 {
					name, n = item[:open], k
				}
			}
			t.add(verb, name, n)
		}
		if more {
			t.of(verb).others = true
		}
		text = after
	}
	return ""
}

func verbOf(text string) string {
	for _, verb := range verbs {
		if strings.HasPrefix(text, verb+" ") {
			return verb
		}
	}
	return ""
}

// cutSentence splits a text before the next sentence of a tally.
func cutSentence(text string) (sentence, after string, ok bool) {
	end := len(text)
	for _, verb := range verbs {
		if i := strings.Index(text, ". "+verb+" "); i >= 0 && i < end {
			end = i
		}
	}
	if end < len(text) {
		return text[:end], text[end+2:], true
	}
	sentence, ok = strings.CutSuffix(text, ".")
	return sentence, "", ok
}
