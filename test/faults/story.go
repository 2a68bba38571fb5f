package main

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/summary"
)

// story is the part of a conversation in the log that matters to its summaries and its title. It
// determines independently what a summary must cover.
type story struct {
	first  uint64 // sequence of the first event
	budget int    // of its contexts, in characters
	turn   int    // user messages so far
	lines  []line // messages, calls and results, in order
	told   []told // summaries, in the order of the log

	asked    string // the first user message
	answered bool   // from an assistant, later
	named    bool   // from another source than a summarizer
	titles   int    // from summarizers
	renamed  int    // from summarizers, although it had one
}

// line is a message, a call or a result.
type line struct {
	seq   uint64
	turn  int
	chars int  // as far as a summary reads them
	step  bool // it begins a step or a turn
}

// told is a summary in the log.
type told struct {
	covering
	children            []string
	firstTurn, lastTurn int
	charsIn             int
	how                 string // what is unusual about how it was written, in one word or two; "" if nothing
}

// covering is a summary as every read model has it.
type covering struct {
	seq         uint64 // of its event
	id          string
	level       int
	first, last uint64 // the range of sequences
	charsOut    int
}

// The most characters that a summary reads of a message, and of a call or a result.
const (
	mostOfMessage = 20_000
	mostOfTool    = 2_000
)

// tell adds an event that the read models apply.
func (o *oracle) tell(r events.Recorded) {
	s := o.stories[r.Subject]
	if s == nil {
		s = &story{first: r.Seq, budget: contextChars}
		o.stories[r.Subject] = s
	}
	switch p := r.Payload.(type) {
	case *events.ConversationStarted:
		s.named = s.named || p.Title != ""
		if p.MaxContextChars > 0 {
			s.budget = p.MaxContextChars
		}
	case *events.ConversationUpdated:
		switch own := r.Source == summary.Source; {
		case own && s.named:
			s.renamed++
		case own:
			s.titles++
		default:
			s.named = s.named || p.Title != nil
		}
	case *events.MessageCreated:
		s.message(r.Seq, p)
	case *events.ToolCalled:
		s.add(line{seq: r.Seq, chars: atMost(p.Text(), mostOfTool)})
	case *events.ToolReturned:
		s.add(line{seq: r.Seq, chars: atMost(p.Text(), mostOfTool)})
	case *events.SummaryWritten:
		s.summary(r.Seq, p)
	}
}

func (s *story) message(seq uint64, p *events.MessageCreated) {
	switch {
	case p.Role == "user":
		if s.turn++; s.turn == 1 {
			s.asked = p.Content
		}
	case p.Role == "assistant" && s.turn > 0:
		s.answered = true
	}
	s.add(line{seq: seq, chars: atMost(p.Content, mostOfMessage), step: p.Role != "system"})
}

func (s *story) add(l line) {
	l.turn = s.turn
	s.lines = append(s.lines, l)
}

func (s *story) summary(seq uint64, p *events.SummaryWritten) {
	t := told{
		covering: covering{seq, p.SummaryID, p.Level, p.FirstSeq, p.LastSeq, p.CharsOut},
		children: p.Children, firstTurn: p.FirstTurn, lastTurn: p.LastTurn, charsIn: p.CharsIn,
	}
	if p.Method != "extractive" || p.FallbackReason != "" || p.Supersedes != "" {
		t.how = strings.TrimSpace(p.Method + " " + p.FallbackReason + " " + p.Supersedes)
	}
	s.told = append(s.told, t)
}

func atMost(text string, most int) int { return min(utf8.RuneCountInString(text), most) }

// nameless reports whether the conversation should have a title and has none. It does not know what
// markup leaves of a message.
func (s *story) nameless() bool {
	words := strings.IndexFunc(s.asked, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) >= 0
	return s.answered && !s.named && s.titles == 0 && words && !strings.Contains(s.asked, "<")
}
