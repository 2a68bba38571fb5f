package hook

import (
	"regexp"
	"strings"
	"unicode"

	"mneme.dev/mneme/pkg/plain"
)

// Which passages fit a prompt well enough. The search says which passages fit best, but its scores are relative:
// something is always best. So a passage is shown only if it names something that the prompt names too, such as a file
// or an identifier. Shared words alone prove nothing. When they counted too, `mneme bench hook` found that the hook
// spoke at 45 % of the prompts, and 27 % of these touched what it had shown; by names alone it speaks at 15 %, and 56 %
// do.

// name matches what may be the name of a file or of something in code. It has only letters of the scripts that have capitals:
// Chinese, Japanese, Korean and others write their words right before and after a name, without a space.
var name = regexp.MustCompile(`[\p{Latin}\p{Greek}\p{Cyrillic}_][\p{Latin}\p{Greek}\p{Cyrillic}\pN_./-]{3,}`)

// isName reports whether a word is written as prose never is: with a dot, an underscore or a slash inside, or with
// capitals inside.
func isName(word string) bool {
	if strings.ContainsAny(word, "._/") {
		return true
	}
	lower := false
	for _, r := range word {
		if unicode.IsUpper(r) && lower {
			return true
		}
		lower = unicode.IsLower(r)
	}
	return false
}

// namesIn calls a function with each name in a text. For a path that is its last part.
func namesIn(text string, f func(string)) {
	for _, word := range name.FindAllString(text, -1) {
		word = strings.Trim(word, "./-_")
		if !isName(word) || len(word) < 5 {
			continue
		}
		word = word[strings.LastIndexByte(word, '/')+1:]
		if len(word) >= 4 {
			f(strings.ToLower(word))
		}
	}
}

// namesOf returns what a prompt names. Without a name, nothing fits.
func namesOf(prompt string) map[string]bool {
	names := map[string]bool{}
	namesIn(prompt, func(n string) { names[n] = true })
	return names
}

// fits reports whether a passage names one of the names, in its text or as a file.
func fits(names map[string]bool, p Passage) bool {
	named := false
	see := func(n string) { named = named || names[n] }
	namesIn(p.Text, see)
	for _, f := range p.Files {
		namesIn(f, see)
	}
	return named
}

// around returns a text from shortly before the first of the names, if that name would otherwise not be visible.
func around(text string, names map[string]bool) string {
	for _, at := range name.FindAllStringIndex(text, -1) {
		found := false
		namesIn(text[at[0]:at[1]], func(n string) { found = found || names[n] })
		if !found {
			continue
		}
		if plain.Length(text[:at[1]]) < maxChars {
			break
		}
		from := max(0, at[0]-maxChars/2)
		if _, rest, ok := strings.Cut(text[from:at[0]], " "); ok { // no half a word
			return "… " + rest + text[at[0]:]
		}
		return "… " + text[at[0]:]
	}
	return text
}
