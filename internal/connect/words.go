package connect

import (
	"os"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// wordsOf returns the words of a command line as a shell would read them, with the home directory for ~ and $HOME, and
// nothing for other variables; nil if it is more than words, or if a word is made by another command. It runs and expands
// nothing else, because any line may stand in the settings.
func wordsOf(line string) (words []string) {
	for word, err := range syntax.NewParser().WordsSeq(strings.NewReader(line)) {
		if err != nil {
			return nil
		}
		text, ok := literal(word.Parts, false)
		if !ok {
			return nil
		}
		if first, ok := word.Parts[0].(*syntax.Lit); ok && strings.HasPrefix(first.Value, "~/") {
			text = home() + text[1:]
		}
		words = append(words, text)
	}
	return words
}

func home() string {
	folder, _ := os.UserHomeDir() // without one there is nothing to write
	return folder
}

// literal joins the parts of a word. In a text without quotes a backslash takes the meaning of every character,
// in double quotes only of some.
func literal(parts []syntax.WordPart, quoted bool) (string, bool) {
	var text strings.Builder
	for _, part := range parts {
		switch part := part.(type) {
		case *syntax.Lit:
			text.WriteString(unescaped(part.Value, quoted))
		case *syntax.SglQuoted:
			if part.Dollar {
				return "", false
			}
			text.WriteString(part.Value)
		case *syntax.DblQuoted:
			inner, ok := literal(part.Parts, true)
			if part.Dollar || !ok {
				return "", false
			}
			text.WriteString(inner)
		case *syntax.ParamExp:
			if part.Param.Value == "HOME" && part.Exp == nil {
				text.WriteString(home())
			}
		default:
			return "", false
		}
	}
	return text.String(), true
}

// unescaped removes the backslashes that escape something.
func unescaped(text string, quoted bool) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) && (!quoted || strings.IndexByte("$`\"\\\n", text[i+1]) >= 0) {
			if i++; text[i] == '\n' { // the line continues
				continue
			}
		}
		out.WriteByte(text[i])
	}
	return out.String()
}
