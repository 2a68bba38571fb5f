package codeindex

import "strings"

// matches reports whether a name, without slashes, matches a pattern as git's wildmatch does. It compares bytes, so ? is
// a part of a character that is not ASCII. A pattern that is wrong matches nothing.
func matches(pattern, name string) bool {
	// After a byte that does not fit, the last star takes one more.
	at, after, from := 0, -1, 0 // of the pattern; after its last star; how much that has taken
	for i := 0; i < len(name); {
		if at < len(pattern) && pattern[at] == '*' {
			at++
			after, from = at, i
			continue
		}
		if n := one(pattern[at:], name[i]); n > 0 {
			at += n
			i++
			continue
		}
		if after < 0 {
			return false
		}
		from++
		at, i = after, from
	}
	return strings.Trim(pattern[at:], "*") == ""
}

// one returns how much of a pattern is for a byte, 0 if it does not match.
func one(pattern string, c byte) int {
	switch {
	case pattern == "":
		return 0
	case pattern[0] == '?':
		return 1
	case pattern[0] == '[':
		return set(pattern, c)
	case pattern[0] == '\\' && len(pattern) > 1 && pattern[1] == c:
		return 2
	case pattern[0] == c && c != '\\':
		return 1
	}
	return 0
}

// set is as one, of a pattern that begins with a set such as [a-z_] or [![:digit:]].
func set(pattern string, c byte) int {
	i := 1
	negated := i < len(pattern) && (pattern[i] == '!' || pattern[i] == '^')
	if negated {
		i++
	}
	matched := false
	var last byte              // of the set so far, with which a range can begin; 0 after a range or a class
	for first := true; ; i++ { // a ] that comes first does not end the set
		if i >= len(pattern) {
			return 0
		}
		if pattern[i] == ']' && !first {
			break
		}
		first = false
		rest := pattern[i:]
		class, named := classOf(rest)
		switch {
		case rest[0] == '\\':
			if i++; i >= len(pattern) {
				return 0
			}
			last = pattern[i]
			matched = matched || c == last
		case rest[0] == '-' && last != 0 && len(rest) > 1 && rest[1] != ']':
			if i++; pattern[i] == '\\' {
				if i++; i >= len(pattern) {
					return 0
				}
			}
			matched = matched || last <= c && c <= pattern[i]
			last = 0
		case named:
			is := classes[class]
			if is == nil {
				return 0
			}
			matched = matched || is(c)
			i += len("[:") + len(class) + len(":]") - 1
			last = 0
		default:
			last = rest[0]
			matched = matched || c == last
		}
	}
	if matched == negated {
		return 0
	}
	return i + 1
}

// classOf returns the name of the class that a text begins with, as in [:alpha:].
func classOf(text string) (name string, ok bool) {
	text, ok = strings.CutPrefix(text, "[:")
	if !ok {
		return "", false
	}
	name, _, ok = strings.Cut(text, "]")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(name, ":")
}

// classes are the classes of ASCII; other bytes are in none.
var classes = map[string]func(c byte) bool{
	"alnum":  func(c byte) bool { return isLetter(c) || isDigit(c) },
	"alpha":  isLetter,
	"blank":  func(c byte) bool { return c == ' ' || c == '\t' },
	"cntrl":  func(c byte) bool { return c < ' ' || c == 0x7f },
	"digit":  isDigit,
	"graph":  isGraph,
	"lower":  func(c byte) bool { return 'a' <= c && c <= 'z' },
	"print":  func(c byte) bool { return c == ' ' || isGraph(c) },
	"punct":  func(c byte) bool { return isGraph(c) && !isLetter(c) && !isDigit(c) },
	"space":  func(c byte) bool { return strings.IndexByte(" \t\n\r", c) >= 0 },
	"upper":  func(c byte) bool { return 'A' <= c && c <= 'Z' },
	"xdigit": func(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' },
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isGraph(c byte) bool { return ' ' < c && c < 0x7f }
