package extractive

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"mneme.dev/mneme/pkg/recall"
)

// topicsOf returns phrases of one or two words that recur in several messages, best first.
// A pair of words counts more than a name, which is the only kind of single word that
// counts (after K. Frantzi et al., Automatic Recognition of Multi-Word Terms, 2000).
func topicsOf(all []*sentence) []string {
	const enough = 2 // messages
	type phrase struct {
		text   string // as first written
		stems  []string
		groups int
		last   int
		names  bool
	}
	phrases := map[string]*phrase{}
	var order []*phrase
	count := func(text string, stems []string, group int, names bool) {
		key := strings.Join(stems, " ")
		p := phrases[key]
		if p == nil {
			p = &phrase{text: text, stems: stems, last: -1, names: names}
			phrases[key] = p
			order = append(order, p)
		}
		if p.last != group {
			p.groups++
			p.last = group
		}
	}
	for _, s := range all {
		var before, stemBefore string
		spoken, _, _ := strings.Cut(s.text, "[") // brackets hold captions
		for word := range strings.FieldsSeq(spoken) {
			trimmed := strings.TrimFunc(word, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
			trimmed = strings.TrimSuffix(strings.TrimSuffix(trimmed, "'s"), "’s")
			stem := topicStem(trimmed)
			if stem == "" {
				before = ""
				continue
			}
			if isName(trimmed) {
				count(trimmed, []string{stem}, s.group, true)
			}
			if before != "" && stem != stemBefore {
				count(before+" "+trimmed, []string{stemBefore, stem}, s.group, false)
			}
			before, stemBefore = trimmed, stem
			if !strings.HasSuffix(word, trimmed) { // punctuation or a genitive ends a phrase
				before = ""
			}
		}
	}
	score := func(p *phrase) int {
		if p.names {
			return p.groups * 2
		}
		return p.groups * 3
	}
	order = slices.DeleteFunc(order, func(p *phrase) bool { return p.groups < enough })
	slices.SortStableFunc(order, func(a, b *phrase) int { return cmp.Compare(score(b), score(a)) })
	var topics []string
	var used []string
	for _, p := range order {
		if len(topics) == 2*maxTopics {
			break
		}
		if slices.ContainsFunc(p.stems, func(stem string) bool { return slices.Contains(used, stem) }) {
			continue
		}
		used = append(used, p.stems...)
		topics = append(topics, p.text)
	}
	return topics
}

// topicStem returns the stem of a word that may be part of a topic, else "".
func topicStem(word string) string {
	if len(word) < 3 || word[0] >= '0' && word[0] <= '9' {
		return ""
	}
	terms := recall.AppendTerms(nil, word)
	if len(terms) == 0 || empty[terms[0]] {
		return ""
	}
	return terms[0]
}

// empty are terms that occur in all conversations and name no subject.
var empty = termSet(`let need want make made see look check use get add change also one two like thing way new
	go good great got know think sure would could may might still even back work really much lot time
	come take say said tell show seem happen start keep try give help right yes okay thanks please hey
	wow cool awesome amazing glad hope love thought done run pass return read update move first next last`)
