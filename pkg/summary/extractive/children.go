package extractive

import (
	"strings"

	"mneme.dev/mneme/pkg/recall"
	"mneme.dev/mneme/pkg/summary"
)

// fromChildren collects the material for a summary of summaries.
func fromChildren(children []summary.Draft) material {
	m := material{done: tally{}, findings: []*sentence{}}
	labels := speakers(children)
	m.among = len(labels) > 0 && !labels[user] && !labels[assistant]
	topics := map[string]int{}
	for group, child := range children {
		for line := range strings.Lines(child.Conversation) {
			speaker := ""
			if label, rest, ok := strings.Cut(line, ": "); ok && labels[label] {
				speaker, line = oneLine(label), rest
			}
			for text := range recall.Sentences(line) {
				s := newSentence(text, speaker, group)
				s.user = speaker == user
				switch {
				case m.among:
				case s.user:
					s.prior = request
				case speaker == assistant && announces(text):
					s.prior = announcing
				case speaker == assistant:
					s.prior = concluding
				}
				m.sentences = append(m.sentences, s)
			}
		}
		for text := range recall.Sentences(m.done.merge(child.Actions)) {
			m.actions = append(m.actions, newSentence(text, "", group))
		}
		for _, finding := range child.Findings {
			m.findings = append(m.findings, newSentence(finding, "", group))
		}
		for _, topic := range child.Topics {
			topics[oneLine(topic)]++
		}
	}
	m.topics = byCount(topics)
	return m
}

// speakers returns the labels that begin lines of the children's conversations: those of
// this package, and names that begin several lines.
func speakers(children []summary.Draft) map[string]bool {
	const long = 60 // characters
	counts := map[string]int{user: 0, assistant: 0, system: 0}
	for _, child := range children {
		for line := range strings.Lines(child.Conversation) {
			if label, _, ok := strings.Cut(line, ": "); ok && length(label) <= long {
				counts[label]++
			}
		}
	}
	labels := map[string]bool{}
	for label, n := range counts {
		if n > 1 || n == 1 && (label == user || label == assistant || label == system) {
			labels[label] = true
		}
	}
	return labels
}
