package redact

import (
	"regexp"
	"slices"
	"strings"
)

// assigned calls yield for each value that a text assigns to a name: name=value, "name": 'value',
// name := "value", name => "value", also with the escaped quotes of JSON in a text. The value is without its quotes.
func assigned(text string, yield func(start, end int, name string, quoted bool)) {
	for i := 0; i < len(text); i++ {
		if c := text[i]; c != '=' && c != ':' {
			continue
		}
		name := nameBefore(text[:i])
		if name == "" || !ofSecret(name) {
			continue
		}
		start, end, quoted := valueAfter(text, i+1)
		if end > start && end-start <= maxValue {
			yield(start, end, name, quoted)
		}
		if end > start && !quoted { // one in quotes can hold assignments, as JSON does
			i = end - 1
			// The value can hold another, as in secret: password="…" and password: https://host/?token=…. Only its last
			// sign is read again, so that the time is linear.
			if n := strings.LastIndexAny(text[start:end], "=:"); n >= 0 {
				i = start + n - 1
			}
		}
	}
}

const (
	maxName   = 80
	maxValue  = 4096 // tokens of a session of AWS have more than a thousand
	maxPhrase = 100
)

// bareStop are the characters that end a value without quotes, besides blanks and ends of lines.
const bareStop = "\"'`,;<>(){}[]\\&|\x1b"

// nameEnds are the ends that [memberName] accepts.
var nameEnds = []string{"password", "passwd", "passphrase", "passcode", "pass", "pwd", "secret", "key", "key_base", "key-base", "keybase", "token"}

// nameBefore returns the name at the end of a text, "" if it is not one of a secret for certain. Blanks may follow
// it, as where assignments are aligned.
func nameBefore(text string) string {
	text = uncoloured(strings.TrimRight(text, " \t"))
	text = uncoloured(strings.TrimRight(text, `"'\]`))
	if !slices.ContainsFunc(nameEnds, func(end string) bool {
		return len(text) >= len(end) && strings.EqualFold(text[len(text)-len(end):], end)
	}) {
		return ""
	}
	at := len(text)
	for at > 0 && len(text)-at <= maxName && isNameByte(text[at-1]) {
		at--
	}
	if len(text)-at > maxName {
		return ""
	}
	// The colour of a terminal before the name is no part of it.
	if m, rest, ok := strings.Cut(text[at:], "m"); ok && strings.Trim(m, "0123456789") == "" && escaped.MatchString(text[max(0, at-18):at+len(m)+1]) {
		return rest
	}
	return unescaped(text[:at], text[at:])
}

// unescaped returns a name without the end of an escape before it: of \n in JSON that is itself a text, or of %0A in a URL.
func unescaped(before, name string) string {
	sign := byte(0)
	if before != "" {
		sign = before[len(before)-1]
	}
	switch {
	case sign != '\\' && sign != '%' || memberName.MatchString(name): // as in C:\token
	case sign == '\\' && strings.IndexByte("nrt", name[0]) >= 0:
		return name[1:]
	case sign == '%' && hexByte.MatchString(name):
		return name[2:]
	}
	return name
}

var hexByte = regexp.MustCompile(`^[0-9A-Fa-f]{2}`)

var colourFirst = regexp.MustCompile(`^\x1b\[[0-9;]{0,12}m`)

var colour = regexp.MustCompile(`\x1b\[[0-9;]{0,12}m$`)

// uncoloured returns a text without the sign at its end that changes the colour of a terminal.
func uncoloured(text string) string {
	if !strings.HasSuffix(text, "m") {
		return text
	}
	return text[:len(text)-len(colour.FindString(text[max(0, len(text)-16):]))]
}

func isNameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '.' || c == '-'
}

// valueAfter returns the place of the value that follows an = or : before at. A value longer than maxValue is cut after
// one more character.
func valueAfter(text string, at int) (start, end int, quoted bool) {
	if at < len(text) && (text[at-1] == ':' && text[at] == '=' || text[at-1] == '=' && text[at] == '>') {
		at++
	}
	for at < len(text) && (text[at] == ' ' || text[at] == '\t') {
		at++
	}
	if at < len(text) && text[at] == '\x1b' {
		at += len(colourFirst.FindString(text[at:min(len(text), at+16)]))
	}
	for at < len(text) && text[at] == '\\' {
		at++
	}
	if at == len(text) {
		return at, at, false
	}
	stop := " \t\r\n" + bareStop
	if q := text[at]; q == '"' || q == '\'' {
		at++
		quoted, stop = true, " \t\r\n\\"+string(q)
	}
	rest := text[at:min(len(text), at+maxValue+1)]
	n := strings.IndexAny(rest, stop)
	if n < 0 {
		n = len(rest)
	}
	return at, at + n, quoted
}

// callee matches the name of a function: at most three digits stand in it, at one place, as in hmacSHA256.
var callee = regexp.MustCompile(`^[A-Za-z_][A-Za-z_.]*\d{0,3}[A-Za-z_.]*$`)

// phraseEnd returns the end of a quoted value of several words, of which the first ends at end. It returns end if the
// quotes are not closed in the same line.
func phraseEnd(text string, start, end int) int {
	if end == len(text) || end > start+maxPhrase || text[end] != ' ' && text[end] != '\t' {
		return end
	}
	quote := text[start-1 : start]
	rest := text[end:min(len(text), start+maxPhrase+1)]
	n := strings.IndexAny(rest, "\r\n\\"+quote)
	if n < 0 || !strings.HasPrefix(strings.TrimLeft(rest[n:], `\`), quote) {
		return end
	}
	return end + n
}

// following returns the words between the first word of a quoted value, which is from start to end, and the end of the
// quotes or of the line. Where there is much text it is not all of them.
func following(text string, start, end int) []string {
	if end == len(text) || text[end] != ' ' && text[end] != '\t' {
		return nil
	}
	rest, quote := text[end:min(len(text), end+maxPhrase)], text[start-1:start]
	if start < 2 || text[start-2] != '\\' { // quotes inside of the value
		rest = strings.ReplaceAll(rest, `\`+quote, "  ")
	}
	if n := strings.IndexAny(rest, "\r\n"+quote); n >= 0 {
		rest = rest[:n]
	} else if end+maxPhrase < len(text) {
		rest = rest[:strings.LastIndexAny(rest, " \t")] // the last word may be cut
	}
	return strings.Fields(rest)
}

// verdict is a name that can stand before the result of a test as well as before a password, as in PASS: TestTypeCheck.
// Only values in quotes count after it.
const verdict = "pass"

// assignments adds the values that are secrets.
func (r *rule) assignments(text string, f *findings) {
	assigned(text, func(start, end int, name string, quoted bool) {
		value := text[start:end]
		if !quoted {
			if strings.EqualFold(name, verdict) {
				return
			}
			call := end < len(text) && text[end] == '(' && callee.MatchString(value)
			if len(value) >= 8 && !call && bare(value) {
				f.add(Finding{r.kind, start, end})
			}
			return
		}
		if whole := phraseEnd(text, start, end); strings.TrimSpace(text[end:whole]) != "" && phrase(text[start:whole]) {
			end = whole
		} else if !first(value, following(text, start, end)) {
			return
		}
		f.add(Finding{r.kind, start, end})
	})
}
