package plain

import (
	"fmt"
	"unicode/utf8"
)

// Clip cuts a text to n characters and makes the last one "…".
func Clip(s string, n int) string {
	if Length(s) <= n {
		return s
	}
	return Prefix(s, n-1) + "…"
}

// Length counts the characters of a text, eight bytes at a time while it is ASCII, as most texts
// begin.
func Length(s string) (n int) {
	for ; len(s) >= 8; s, n = s[8:], n+8 {
		eight := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		if eight&0x8080808080808080 != 0 {
			break
		}
	}
	return n + utf8.RuneCountInString(s)
}

// Prefix returns the first n characters of s.
func Prefix(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i]
		}
	}
	return s
}

// Suffix returns the last n characters of s.
func Suffix(s string, n int) string {
	from := len(s)
	for ; n > 0 && from > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:from])
		from -= size
	}
	return s[from:]
}

// CutMark returns the mark at the end of a cut text. It says how many characters were left out, and that the event at
// seq in the log has the whole text.
func CutMark(left, of int, seq uint64) string {
	return fmt.Sprintf("[… %d of %d characters left out; whole: sequence %d in the log]", left, of, seq)
}

// ShortCutMark is the mark for very little room. It only says that something was left out.
const ShortCutMark = "[… cut]"
