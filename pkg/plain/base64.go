package plain

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

const (
	// leastData is from how many characters on base64 is named instead of shown. Less is rarely a file, and does not fill
	// a context.
	leastData = 1_000
	// leastLine is how many characters base64 has on a line, if it has more than one. Programs break it after 60, 64 or 76.
	leastLine = 40
)

// Both alphabets of base64, and with the backslash of JSON, which writes + / = and line ends as \u002b \/ \u003d and \n.
var letters, escaped = func() (is, orEscapes [256]bool) {
	for _, c := range `ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_` {
		is[c], orEscapes[c] = true, true
	}
	orEscapes['\\'] = true
	return is, orEscapes
}()

// word is a sequence of letters of base64 in a text, with the padding behind it.
type word struct {
	start, end int
	letters    int
	padded     bool
}

// run is base64 in a text: one long word, or lines of equal length and a shorter one.
type run struct {
	start, end int
	letters    int
	// before is a word on the line right before the first one, which is shorter or longer. It is the first line of the
	// base64 if that begins in the middle of a line.
	before word
}

// nextRun returns the first run from a place on that has enough letters, see [leastData]. It reads little more than every
// thousandth character of a text without long words.
func nextRun(text string, from int) (r run, ok bool) {
	for {
		sample, found := 0, false
		if from, sample, found = nextSample(text, from); !found {
			return run{}, false
		}
		if r, from, ok = runAt(text, from, sample); ok {
			return r, true
		}
	}
}

// nextSample finds a place in a line that is long enough for a run. No run begins between the old and the new from.
func nextSample(text string, from int) (newFrom, sample int, ok bool) {
	for from+leastData <= len(text) {
		at := from + leastData - 1
		start := at
		for start >= from && escaped[text[start]] {
			start--
		}
		start++
		if start == from {
			return from, at, true
		}
		for start < len(text) && !utf8.RuneStart(text[start]) {
			start++
		}
		if at = start; longEnough(text, start) {
			return from, at, true
		}
		if next := afterIndent(text, start); next > start && longEnough(text, next) {
			return from, next, true
		}
		from = start
	}
	return len(text), 0, false
}

func longEnough(text string, start int) bool {
	end := start
	for end < len(text) && end-start < leastLine && escaped[text[end]] {
		end++
	}
	return end-start == leastLine
}

// runAt looks for a run that begins at from or later and is not after sample. Otherwise next is where to go on, after from.
func runAt(text string, from, sample int) (r run, next int, ok bool) {
	var before word
	for w := nextWord(text, from); ; {
		if w.start > sample || w.start == w.end {
			if before.start > from {
				return run{}, before.start, false
			}
			return run{}, max(from+1, w.start), false
		}
		r, last := run{w.start, w.end, w.letters, before}, w
		line, joined := nextLine(text, w)
		for joined && line.letters == w.letters && w.letters >= leastLine && !last.padded {
			r.end, r.letters, last = line.end, r.letters+line.letters, line
			line, joined = nextLine(text, line)
		}
		if r.letters >= leastData {
			if last != w && !last.padded && joined && line.letters < w.letters && r.endsWith(text, line) {
				r.end, r.letters = line.end, r.letters+line.letters
			}
			return r, r.end, true
		}
		if joined {
			before, w = last, line
		} else {
			before, w = word{}, nextWord(text, last.end)
		}
	}
}

// endsWith tells the last line of base64 from a word of the text behind it.
func (r *run) endsWith(text string, line word) bool {
	n := r.letters + line.letters
	if line.padded || n%4 != 0 && (n+r.before.letters)%4 != 0 {
		return line.padded
	}
	small, mixed := false, false
	for i := line.start; i < line.end; i++ {
		c := text[i]
		mixed = mixed || c < 'A' || small && c <= 'Z'
		small = c >= 'a'
	}
	return mixed
}

// nextWord returns the first word from a place on, an empty one at the end if there is none.
func nextWord(text string, at int) word {
	for at < len(text) {
		if letters[text[at]] {
			return wordAt(text, at)
		}
		if text[at] != '\\' {
			at++
			continue
		}
		if _, n := escape(text, at); n > 0 {
			at += n
		} else {
			at = afterBackslashes(text, at)
		}
	}
	return word{start: len(text), end: len(text)}
}

// wordAt returns the word that begins at a place.
func wordAt(text string, at int) word {
	w := word{start: at, end: at}
	for {
		from := w.end
		for w.end < len(text) && letters[text[w.end]] {
			w.end++
		}
		w.letters += w.end - from
		c, n := escape(text, w.end)
		if c != '/' && c != '+' {
			break
		}
		w.end += n
		w.letters++
	}
	for range 2 {
		c, n := escape(text, w.end)
		if c != '=' {
			break
		}
		w.end += n
		w.padded = true
	}
	return w
}

// nextLine returns the word at the beginning of the line after another word, which nothing may follow on its own line.
func nextLine(text string, after word) (line word, ok bool) {
	at, ends := after.end, 0
	for at < len(text) {
		c, n := escape(text, at)
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			break
		}
		if at += n; c == '\n' {
			ends++
		}
	}
	if ends != 1 || at == len(text) {
		return word{}, false
	}
	if at = afterNumber(text, at); at == len(text) || !letters[text[at]] && text[at] != '\\' {
		return word{}, false
	}
	line = wordAt(text, at)
	return line, line.letters > 0
}

// afterIndent returns the place after line ends, white space and the number of a line.
func afterIndent(text string, at int) int {
	const most = 100 // without it, blank text would be read again and again
	for end := min(len(text), at+most); at < end && strings.IndexByte(" \t\r\n", text[at]) >= 0; at++ {
	}
	return afterNumber(text, at)
}

// afterNumber returns the place after the number of a line, as cat -n and the tools of agents print it: before a tab or an arrow.
func afterNumber(text string, at int) int {
	end := at
	for end < len(text) && end-at < 8 && text[end] >= '0' && text[end] <= '9' {
		end++
	}
	if end == at || end == len(text) {
		return at
	}
	if rest, ok := strings.CutPrefix(text[end:], "→"); ok {
		return len(text) - len(rest)
	}
	if c, n := escape(text, end); c == '\t' {
		return end + n
	}
	return at
}

// escape returns the character at a place and how many bytes it takes. It may be escaped as in JSON, also in JSON inside JSON.
// c is 0 for an escaped character that is of no interest, and n is 0 if it is none.
func escape(text string, at int) (c byte, n int) {
	if at >= len(text) {
		return 0, 0
	}
	if text[at] != '\\' {
		return text[at], 1
	}
	i := afterBackslashes(text, at)
	if i == len(text) {
		return 0, 0
	}
	n = i + 1 - at
	switch text[i] {
	case '/':
		return '/', n
	case 'n':
		return '\n', n
	case 'r':
		return '\r', n
	case 't':
		return '\t', n
	case 'b', 'f', '"':
		return 0, n
	case 'u':
		if i+5 > len(text) {
			return 0, 0
		}
		switch strings.ToLower(text[i+1 : i+5]) {
		case "002b":
			c = '+'
		case "002f":
			c = '/'
		case "003d":
			c = '='
		}
		return c, n + 4
	}
	return 0, 0
}

func afterBackslashes(text string, at int) int {
	for at < len(text) && text[at] == '\\' {
		at++
	}
	return at
}

// decoded returns the first bytes of the file that base64 holds, nil if it is none.
func decoded(text string, start, end int) []byte {
	head := make([]byte, 0, 684) // whole groups of four letters
	for at := start; at < end && len(head) < cap(head); {
		c, n := escape(text, at)
		switch {
		case c == '-':
			c = '+'
		case c == '_':
			c = '/'
		case !letters[c]:
			line, ok := nextLine(text, word{end: at})
			if !ok { // padding
				end = at
			}
			at = line.start
			continue
		}
		head, at = append(head, c), at+n
	}
	head = head[:len(head)&^3]
	n, err := base64.StdEncoding.Decode(head, head)
	if err != nil {
		return nil
	}
	return head[:n]
}
