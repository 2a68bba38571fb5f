package connect

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// fromJSON5 writes in JSON what JSON5 may write otherwise: names without quotes, and strings in single quotes or over several
// lines. Comments, trailing commas and everything else stay, so that what is not valid remains so. JSON stays as it is.
func fromJSON5(raw []byte) []byte {
	var out bytes.Buffer
	for at := 0; at < len(raw); {
		rest := raw[at:]
		r, n := utf8.DecodeRune(rest)
		switch {
		case bytes.HasPrefix(rest, []byte("//")):
			n = len(rest)
			if end := bytes.IndexByte(rest, '\n'); end >= 0 {
				n = end
			}
			out.Write(rest[:n])
		case bytes.HasPrefix(rest, []byte("/*")):
			n = len(rest)
			if end := bytes.Index(rest, []byte("*/")); end >= 0 {
				n = end + 2
			}
			out.Write(rest[:n])
		case r == '"', r == '\'':
			n = fromString5(&out, rest)
		case isName(r):
			if n = bytes.IndexFunc(rest, func(r rune) bool { return !isName(r) && !unicode.IsDigit(r) }); n < 0 {
				n = len(rest)
			}
			name := string(rest[:n])
			if bytes.HasPrefix(bytes.TrimLeft(rest[n:], blanks), []byte(":")) {
				name = `"` + name + `"`
			}
			out.WriteString(name)
		case unicode.IsDigit(r): // the letter in 1e5 begins no name
			if n = bytes.IndexFunc(rest, func(r rune) bool { return !isName(r) && !unicode.IsDigit(r) }); n < 0 {
				n = len(rest)
			}
			out.Write(rest[:n])
		default:
			out.Write(rest[:n])
		}
		at += n
	}
	return out.Bytes()
}

func isName(r rune) bool { return r == '_' || r == '$' || unicode.IsLetter(r) }

// fromString5 writes the string with which a text begins, and returns its length.
func fromString5(out *bytes.Buffer, text []byte) int {
	quote := text[0]
	out.WriteByte('"')
	for at := 1; at < len(text); at++ {
		c := text[at]
		switch {
		case c == quote:
			out.WriteByte('"')
			return at + 1
		case c == '"':
			out.WriteString(`\"`)
		case c != '\\' || at+1 == len(text):
			out.WriteByte(c)
		default:
			at++
			switch next := text[at]; {
			case next == '\r' && at+1 < len(text) && text[at+1] == '\n':
				at++
			case next == '\n', next == '\r': // the string continues on the next line
			case next == 'x' && at+2 < len(text):
				out.WriteString(`\u00` + string(text[at+1:at+3]))
				at += 2
			case next == 'v':
				out.WriteString(`\u000b`)
			case next == '0':
				out.WriteString(`\u0000`)
			case strings.IndexByte(`"\/bfnrtu`, next) >= 0:
				out.Write([]byte{'\\', next})
			default:
				out.WriteByte(next)
			}
		}
	}
	return len(text)
}
