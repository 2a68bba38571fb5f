package redact

import (
	"regexp"
	"strings"
)

const (
	// beginKey and endKey match the lines around a private key.
	beginKey = `-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----`
	endKey   = `-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----`
)

var (
	// keyLine matches the beginning of a line of a key: what a tool or a diff puts before it, and its base64.
	keyLine = regexp.MustCompile(`^[ \t]*(?:\d+[→:|\t ])?[-+>|#*"' \t]*([A-Za-z0-9+/=]*)`)
	// keyBreak matches the end of a line, also of one in a string of a program.
	keyBreak = regexp.MustCompile(`^["'+, \t]*(?:\\r)?(?:\\n|\r?\n)`)
	// keyHeader matches a header of a key, as DEK-Info: AES-128-CBC,….
	keyHeader = regexp.MustCompile(`^[ \t]*[A-Z][A-Za-z-]+: [^\r\n\\]*`)
)

const (
	fullLine = 40 // characters of base64 that a line of a key has at least, except the last
	leastKey = 64 // characters of base64 with which what follows a BEGIN line is a key
	mostKey  = 20_000
)

// cutKey returns the end of a key without an END line, as the output of a tool that was cut has it: of the lines of
// base64 that follow the BEGIN line before at. It returns at if there is no key.
func cutKey(text string, at int) int {
	text = text[:min(len(text), at+mostKey)]
	end, count := at, 0
	for here := at; here < len(text); {
		if m := keyHeader.FindString(text[here:]); m != "" && count == 0 {
			here += len(m)
		} else {
			m := keyLine.FindStringSubmatchIndex(text[here:])
			n := m[3] - m[2]
			rest := text[here+m[3]:]
			if n > 0 && n < fullLine && (count == 0 || !endsLine(rest)) {
				break
			}
			if n > 0 {
				end, count = here+m[3], count+n
			}
			if n > 0 && n < fullLine {
				break
			}
			here += m[3]
		}
		m := keyBreak.FindString(text[here:])
		if m == "" {
			break
		}
		here += len(m)
	}
	if count < leastKey {
		return at
	}
	return end
}

// endsLine reports whether a line ends here, or a text that was cut.
func endsLine(rest string) bool {
	rest = strings.TrimLeft(rest, " \t\"'`")
	return rest == "" || strings.ContainsAny(rest[:1], "\r\n\\[<(") || strings.HasPrefix(rest, "...") || strings.HasPrefix(rest, "…")
}
