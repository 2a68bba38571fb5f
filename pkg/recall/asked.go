package recall

import (
	"strings"
)

// asked is what a query says about the wanted message, apart from its words.
type asked struct {
	speaker int32 // the speaker named, -1 for none or several
	dates   []Date
	role    role // wanted role, for messages without a speaker's name
}

type role byte

const (
	otherRole role = iota
	userRole
	assistantRole
)

var roles = map[string]role{"user": userRole, "assistant": assistantRole}

// asked reads a query, given the speakers of the first n messages.
func (x *Index) asked(query string, n int) asked {
	a := asked{speaker: -1, dates: datesIn(query), role: userRole}
	if ofAssistant(query) {
		a.role = assistantRole
	}
	named := 0
	for s, name := range x.participants(n) {
		if _, found := cutName(query, name); found {
			named++
			a.speaker = int32(s)
		}
	}
	if named != 1 {
		a.speaker = -1
	}
	return a
}

// ofAssistant reports whether a query asks for what the assistant said: it mentions what
// "you" did, and not as a request ("could you"). Most queries ask for the user's words,
// which are fewer and state facts.
func ofAssistant(query string) bool {
	before := ""
	for word := range strings.FieldsFuncSeq(strings.ToLower(query), func(r rune) bool { return !isWordRune(r) }) {
		if word == "you" && !beforeRequest[before] {
			return true
		}
		before = word
	}
	return false
}

// beforeRequest lists words before a "you" that make a request of it.
var beforeRequest = map[string]bool{
	"can": true, "could": true, "would": true, "will": true, "do": true, "should": true,
	"are": true, "if": true, "and": true,
}
