package files

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// word is one word of a command line. Its text is known only if literal is true.
type word struct {
	text    string
	literal bool
}

// literalWords converts a command that came as a list.
func literalWords(list []string) []word {
	words := make([]word, len(list))
	for i, s := range list {
		words[i] = word{text: s, literal: true}
	}
	return words
}

// parsedWords converts the words of a parsed command, removing quotes.
func parsedWords(args []*syntax.Word) []word {
	words := make([]word, len(args))
	for i, a := range args {
		words[i] = parsedWord(a)
	}
	return words
}

// parsedWord returns a word as literal if every shell reads it alike: without variable,
// substitution, glob or brace list outside quotes.
func parsedWord(w *syntax.Word) word {
	if w == nil {
		return word{}
	}
	var text strings.Builder
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			s, plain := unescape(p.Value)
			if !plain {
				return word{}
			}
			text.WriteString(s)
		case *syntax.SglQuoted:
			if p.Dollar && strings.Contains(p.Value, `\`) {
				return word{}
			}
			text.WriteString(p.Value)
		case *syntax.DblQuoted:
			for _, inner := range p.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok {
					return word{}
				}
				text.WriteString(unescapeQuoted(lit.Value))
			}
		default:
			return word{}
		}
	}
	return word{text: text.String(), literal: true}
}

// unescape removes the backslashes from text outside quotes. It returns false if the text
// is a pattern or a brace list.
func unescape(s string) (string, bool) {
	if !strings.ContainsAny(s, `\*?[{`) {
		return s, true
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\\':
			if i++; i < len(s) && s[i] != '\n' {
				b.WriteByte(s[i])
			}
		case '*', '?', '[':
			return "", false
		case '{':
			if strings.Contains(s, ",") || strings.Contains(s, "..") {
				return "", false
			}
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), true
}

// unescapeQuoted removes the backslashes that act as escapes inside double quotes.
func unescapeQuoted(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && strings.IndexByte("$`\"\\\n", s[i+1]) >= 0 {
			if i++; s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// hereText returns the body of a here-document, with a $ in place of each expansion.
func hereText(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	var text strings.Builder
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			text.WriteString(p.Value)
		default:
			text.WriteByte('$') // an expansion names nothing, but the lines must stay apart
		}
	}
	return text.String()
}

// maxNesting limits how deep brackets nest in a command. The parser is recursive, and a
// stack overflow would end the process.
const maxNesting = 200

// parse parses a script. It returns nil if the script is too long, nests too deep, or is
// not valid shell.
func parse(script string) *syntax.File {
	if len(script) > MaxCommandBytes {
		return nil
	}
	open := 0
	for i := 0; i < len(script); i++ {
		switch script[i] {
		case '(', '[', '{':
			if open++; open > maxNesting {
				return nil
			}
		case ')', ']', '}':
			open = max(open-1, 0)
		}
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), "")
	if err != nil {
		return nil
	}
	return file
}

// scripts remembers parsed scripts by their text; nil remembers nothing. A parsed tree is never modified.
type scripts map[string]*syntax.File

func (s scripts) parse(script string) *syntax.File {
	file, ok := s[script]
	if !ok {
		if file = parse(script); s != nil {
			s[script] = file
		}
	}
	return file
}

// splitCommand returns the words of a line with one simple command, up to the first word
// that is not literal.
func splitCommand(line string) []string {
	file := parse(line)
	if file == nil || len(file.Stmts) != 1 {
		return nil
	}
	call, ok := file.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok {
		return nil
	}
	var words []string
	for _, w := range parsedWords(call.Args) {
		if !w.literal {
			break
		}
		words = append(words, w.text)
	}
	return words
}
