package extractive

import (
	"cmp"
	"regexp"
	"strings"

	"mneme.dev/mneme/pkg/harness"
	"mneme.dev/mneme/pkg/summary"
)

// Speakers of entries without a name.
const (
	user      = "User"
	assistant = "Assistant"
	system    = "System"
)

// Priors of sentences. They rank kinds of sentences; the measured quality hardly depends on
// the values.
const (
	request    = 2.0 // the user's own words, among an agent's
	concluding = 1.5 // the last message of a turn
	leading    = 1.3 // first sentence of a turn's last message, which states the outcome
	question   = 0.5
	announcing = 0.1 // announces the next step; the section Actions shows it anyway
	opening    = 0.1 // ends with a colon; the text it introduces is not quoted
	consent    = 0.1 // "yes please" and "Perfect!" mean nothing without the question
)

// announcement matches what an assistant says before a call.
var announcement = regexp.MustCompile(`^(?i)(?:(?:now|next|ok|okay|good|great|perfect|excellent|alright|first|then|also|so|done|right|yes)[,.!:]* )*(?:now )?(?:let me|let's|let us|i'll|i will|i'm going to|i am going to|i need to|time to|moving on|i understand|i see|i have a)\b|^Now (?:run|commit|reply|update|add|check|fix|test|verify|look|the)\b`)

func announces(text string) bool { return announcement.MatchString(text) }

// consents are terms that only agree, refuse or greet.
var consents = termSet("yes yeah yep nope ok okay sure please thank thanks great good nice cool perfect continue go ahead proceed y n hi hello hey wow bye")

// fromEntries collects the material for a summary of level 1.
func fromEntries(entries []summary.Entry) material {
	m := material{done: tally{}, among: true}
	for _, e := range entries {
		if e.Kind == summary.KindCall || e.Kind == summary.KindResult || e.Kind == summary.KindUser && e.Name == "" {
			m.among = false
		}
	}
	last := lastOfTurns(entries)
	seen := newNames()
	for i, e := range entries {
		switch e.Kind {
		case summary.KindCall:
			m.done.call(e)
			seen.read(e.Text, i)
		case summary.KindResult:
			if e.Failed && !harness.NotRun(e.Text) {
				m.done.failure(e)
			}
			seen.read(e.Text, i)
		case summary.KindUser, summary.KindAssistant:
			m.message(e, i, last[i])
			seen.read(e.Text, i)
		}
	}
	if len(m.done) > 0 {
		seen.into(m.done)
	}
	if len(m.sentences) == 0 { // nobody spoke: system messages are better than nothing
		for i, e := range entries {
			if e.Kind == summary.KindSystem {
				m.message(e, i, true)
			}
		}
	}
	m.topics = topicsOf(m.sentences)
	return m
}

// lastOfTurns marks the last assistant message with text in each turn.
func lastOfTurns(entries []summary.Entry) []bool {
	last := make([]bool, len(entries))
	at := -1
	for i, e := range entries {
		if at >= 0 && entries[at].Turn != e.Turn {
			last[at], at = true, -1
		}
		if e.Kind == summary.KindAssistant && strings.TrimSpace(e.Text) != "" {
			at = i
		}
	}
	if at >= 0 {
		last[at] = true
	}
	return last
}

// message adds the sentences of a message; group is the number of its entry.
func (m *material) message(e summary.Entry, group int, last bool) {
	speaker := cmp.Or(e.Name, map[summary.Kind]string{summary.KindUser: user, summary.KindAssistant: assistant, summary.KindSystem: system}[e.Kind])
	speaker = clip(oneLine(speaker), 60)
	for i, text := range proseOf(e.Text) {
		if before, after, ok := strings.Cut(text, ": "); ok && e.Kind == summary.KindAssistant && announces(before) {
			text = after // "Let me look at the log: …"
		}
		s := newSentence(text, speaker, group)
		s.user = e.Kind == summary.KindUser
		s.prior = m.priorOf(s, i, last)
		m.sentences = append(m.sentences, s)
	}
}

// priorOf returns the prior of the i-th sentence of a message.
func (m *material) priorOf(s *sentence, i int, last bool) float64 {
	prior := 1.0
	switch {
	case m.among:
	case s.user:
		// A long message is a plan or a paste, with the request at its beginning.
		prior = request / (1 + float64(i)/10)
	case last && i == 0:
		prior = concluding * leading
	case last:
		prior = concluding
	}
	switch {
	case contents(s) == 0, contents(s) <= 1 && !s.user, contents(s) <= 2 && m.among, !s.user && !m.among && !strings.Contains(s.text, " "):
		prior *= consent
	case strings.HasSuffix(s.text, ":"):
		prior *= opening
	case announces(s.text) && !s.user && !m.among:
		prior *= announcing
	case strings.HasSuffix(s.text, "?") && (m.among || !s.user):
		prior *= question
	}
	return prior
}

// contents counts the terms of a sentence, except those that only agree, refuse, greet or pick an option by number.
func contents(s *sentence) (n int) {
	for _, term := range s.terms {
		if !consents[term] && strings.Trim(term, "0123456789") != "" {
			n++
		}
	}
	return n
}
