// Package jsonmarks bounds how many values JSON has, without decoding it: decoded, a value takes hundreds of times the 2
// bytes that it may take in a body.
package jsonmarks

import "strings"

// Exceed reports whether JSON has more than most of some of its marks, such as "{" or ",{[", outside of texts. It leaves it
// to the decoder to refuse what is malformed.
func Exceed(data []byte, marks string, most int) bool {
	inText := false
	for i := 0; i < len(data) && most >= 0; i++ {
		switch c := data[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case !inText && strings.IndexByte(marks, c) >= 0:
			most--
		}
	}
	return most < 0
}
