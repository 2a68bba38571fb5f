package recall

import (
	"strings"
)

// asked is what a query says of the message that is looked for, beside its words.
type asked struct {
	speaker int32 // who is named, -1 for none or several
	dates   []Date
	role    role // of messages that are nobody's by name
}

type role byte

const (
	otherRole role = iota
	userRole
	assistantRole
)

var roles = map[string]role{"user": userRole, "assistant": assistantRole}

// asked reads a query, with the names of who speaks in the first n messages.
func (x *Index) asked(query string, n int) asked {
	a := asked{speaker: -1, dates: Dates(query), role: userRole}
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

// ofAssistant tells whether a query asks for what the assistant has said: for what "you"
// did, which is no "could you". Else it is the user's words that are asked for most,
// which are fewer and say what is the case.
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

// beforeRequest are the words before a "you" of whom something is wanted now.
var beforeRequest = map[string]bool{
	"can": true, "could": true, "would": true, "will": true, "do": true, "should": true,
	"are": true, "if": true, "and": true,
}
