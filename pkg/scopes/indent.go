package scopes

import "strings"

// cutIndented cuts a file in which declarations reach as far as their indentation.
func cutIndented(s *source, lang *language) (list []Scope) {
	masked := string(mask(s.text, &lang.syntax))
	m := &source{text: masked, lines: s.lines}
	type open struct {
		index, indent int
		kind          Kind
	}
	var stack []open
	last := 0 // after the last line that is not blank
	for i := range m.lines {
		line := m.at(i)
		trimmed := strings.TrimLeft(line, " \t")
		if strings.TrimSpace(trimmed) == "" {
			if !s.blank(i) && len(stack) > 0 && indentOf(s.at(i)) > stack[len(stack)-1].indent {
				last = i + 1 // a comment or a string
			}
			continue
		}
		indent := indentOf(line)
		for len(stack) > 0 && indent <= stack[len(stack)-1].indent {
			top := stack[len(stack)-1]
			end := last
			if indent == top.indent && closes(trimmed, lang.syntax.closers) {
				end = i + 1
			} else if indent == top.indent && continues(trimmed, lang) {
				break
			}
			list[top.index].End = max(end, list[top.index].Start)
			stack = stack[:len(stack)-1]
		}
		last = i + 1
		name, kind := declaredIn(trimmed, lang)
		if name == "" || len(stack) >= maxNesting || len(stack) > 0 && stack[len(stack)-1].kind == Function {
			continue
		}
		if len(stack) > 0 {
			name = list[stack[len(stack)-1].index].Name + "." + name
		}
		start := i
		for start > 0 && above(s.at(start-1), indent) {
			start--
		}
		stack = append(stack, open{len(list), indent, kind})
		list = append(list, Scope{Name: name, Kind: kind, Start: start + 1, End: i + 1})
	}
	for _, o := range stack {
		list[o.index].End = last
	}
	return list
}

// continues reports whether a line at the indentation of a declaration is still part of it: the end of parameters over
// several lines, or a branch of its body.
func continues(line string, lang *language) bool {
	return line[0] == ')' || lang.syntax.closers != nil && closes(line, []string{"rescue", "ensure", "else", "elsif", "elseif", "catch", "after"})
}

// above reports whether a line belongs to the declaration below it: a decorator or a comment.
func above(line string, indent int) bool {
	trimmed := strings.TrimLeft(line, " \t")
	return indentOf(line) == indent && trimmed != "" && (trimmed[0] == '@' || trimmed[0] == '#' || strings.HasPrefix(trimmed, "--")) && !strings.HasPrefix(trimmed, "#!")
}

func closes(line string, closers []string) bool {
	for _, word := range closers {
		if rest, ok := strings.CutPrefix(line, word); ok && (rest == "" || !isWord(rest[0])) {
			return true
		}
	}
	return false
}

// indentOf counts the columns before a line; a tab reaches the next multiple of 8.
func indentOf(line string) (n int) {
	for i := range len(line) {
		switch line[i] {
		case ' ':
			n++
		case '\t':
			n += 8 - n%8
		default:
			return n
		}
	}
	return n
}

// declaredIn returns what a line declares, "" if nothing.
func declaredIn(line string, lang *language) (name string, kind Kind) {
	for {
		word := wordAt(line)
		rest := strings.TrimLeft(line[len(word):], " ")
		if kind, ok := lang.words[word]; ok {
			name, _, _ := strings.Cut(rest, "(")
			name, _, _ = strings.Cut(name, ":")
			if name = strings.TrimSpace(name); lang.name == "lua" {
				name = strings.TrimSpace(rest[:min(len(rest), strings.IndexByte(rest+"(", '('))])
			}
			name, _, _ = strings.Cut(name, " ")
			name, _, _ = strings.Cut(name, ",")
			name, _, _ = strings.Cut(name, "[")
			return strings.TrimPrefix(name, "self."), kind
		}
		switch word {
		case "async", "local", "private", "cdef", "cpdef":
			line = rest
		default:
			return "", ""
		}
	}
}

func wordAt(text string) string {
	i := 0
	for i < len(text) && isWord(text[i]) {
		i++
	}
	return text[:i]
}
