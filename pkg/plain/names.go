package plain

import "unicode"

// SameName reports whether two names are one in different spellings: they differ at most in case and in what is neither
// a letter nor a digit, as "Claude Code" and "claude_code" do.
func SameName(a, b string) bool {
	if a == b {
		return true
	}
	as, bs := []rune(a), []rune(b)
	for same := false; ; same = true {
		as, bs = fromLetter(as), fromLetter(bs)
		if len(as) == 0 || len(bs) == 0 {
			return same && len(as) == len(bs) // without any letter or digit, only equal names are one
		}
		if unicode.ToLower(as[0]) != unicode.ToLower(bs[0]) {
			return false
		}
		as, bs = as[1:], bs[1:]
	}
}

func fromLetter(name []rune) []rune {
	for len(name) > 0 && !unicode.IsLetter(name[0]) && !unicode.IsDigit(name[0]) {
		name = name[1:]
	}
	return name
}
