package scopes

import "strings"

// heading is the text before a bracket.
type heading struct {
	lang   *language
	text   string
	inType bool
}

// modifiers are words before a word that declares, or before a name.
var modifiers = func() map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(`public private protected internal static final abstract sealed partial virtual override async await
		export default declare readonly pub unsafe const extern inline constexpr explicit friend typedef open data inner companion suspend
		lateinit operator infix external synchronized native strictfp default non transient volatile fileprivate mutating nonisolated
		indirect final lazy case implicit abstract get set new ref base interface`) {
		set[word] = true
	}
	delete(set, "interface")
	return set
}()

// control are words before parentheses that declare nothing.
var control = func() map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(`if else for foreach while do switch case catch try finally return throw new with using lock synchronized
		sizeof typeof defined elif unless until match guard defer await yield when select function super this`) {
		set[word] = true
	}
	return set
}()

// read returns what the head declares, "" if nothing that is known.
func (h *heading) read() (Kind, string) {
	text := h.text
	for n := 0; n < 64; n++ {
		text = strings.TrimLeft(text, " \t\n*")
		if text == "" {
			return "", ""
		}
		switch {
		case text[0] == '@':
			text = strings.TrimLeft(text[1:], " ")
			for text != "" && (isWord(text[0]) || text[0] == '.' || text[0] == ':') {
				text = text[1:]
			}
			if rest := strings.TrimLeft(text, " \n\t"); strings.HasPrefix(rest, "(") {
				text = rest[closing(rest):]
			}
			continue
		case strings.HasPrefix(text, "#["), strings.HasPrefix(text, "#!["), text[0] == '[':
			text = text[strings.IndexByte(text, '['):]
			text = text[closing(text):]
			continue
		}
		word := wordAt(text)
		rest := strings.TrimLeft(text[len(word):], " \t\n")
		kind, declares := h.lang.words[word]
		switch {
		case word == "":
			return h.bare(text)
		case word == "template":
			text = rest[closing(rest):]
		case (word == "const" || word == "let" || word == "var" || word == "val") && h.assigned(rest) != "":
			return Function, h.assigned(rest)
		case declares && !strings.HasPrefix(rest, "(") || declares && kind == Function || declares && word == "extern":
			return h.declared(word, kind, rest)
		case modifiers[word] && !strings.HasPrefix(rest, "="):
			if strings.HasPrefix(rest, "(") {
				if word != "pub" && word != "private" {
					return h.bare(text)
				}
				rest = rest[closing(rest):]
			}
			text = rest
		default:
			return h.bare(text)
		}
	}
	return "", ""
}

// assigned returns the name of a variable whose value is a function.
func (h *heading) assigned(rest string) string {
	name := wordAt(rest)
	_, value, ok := strings.Cut(rest[len(name):], "=")
	value = strings.TrimSpace(value)
	if !ok || name == "" {
		return ""
	}
	value = strings.TrimSpace(strings.TrimPrefix(value, "async"))
	if strings.HasPrefix(value, "function") || strings.HasSuffix(value, "=>") {
		return name
	}
	return ""
}

// declared reads what follows a word that declares.
func (h *heading) declared(word string, kind Kind, rest string) (Kind, string) {
	if kind == Block {
		switch word {
		case "impl":
			if strings.HasPrefix(rest, "<") {
				rest = strings.TrimLeft(rest[closing(rest):], " ")
			}
			if i := strings.Index(rest, " for "); i >= 0 {
				rest = rest[i+len(" for "):]
			}
			return Block, lastPart(nameAt(strings.TrimLeft(rest, " &")))
		case "extern":
			if strings.TrimSpace(rest) != "" {
				return h.bare(rest)
			}
		}
		return Block, nameAt(rest)
	}
	if kind == Type && h.lang.bare == everywhere && parenthesesOf(rest) >= 0 { // struct a *f(int b)
		if k, name := h.bare(rest); k == Function {
			return k, name
		}
	}
	for range 3 { // enum class A, class EXPORTED A
		next := nameAt(rest)
		after := strings.TrimLeft(rest[min(len(rest), len(next)):], " ")
		if _, again := h.lang.words[next]; !again && (!isShout(next) || wordAt(after) == "" || isControlWord(wordAt(after))) {
			break
		}
		if wordAt(after) == "" {
			break
		}
		rest = after
	}
	if h.lang.name == "go" && strings.HasPrefix(rest, "(") {
		of := strings.Trim(rest[1:max(1, closing(rest)-1)], " *")
		of = of[strings.LastIndexAny(of, " *")+1:]
		rest = strings.TrimLeft(rest[closing(rest):], " ")
		return kind, of + "." + nameAt(rest)
	}
	if strings.HasPrefix(rest, "<") { // fun <T> name
		rest = strings.TrimLeft(rest[closing(rest):], " ")
	}
	name := nameAt(strings.TrimLeft(rest, "*& "))
	switch {
	case name == "" && kind == Function && !strings.HasPrefix(rest, "("):
		return "", ""
	case name == "" && (word == "init" || word == "deinit" || word == "constructor"):
		name = word
	case name == "extends" || name == "implements":
		name = ""
	case kind == Type && word == "type" && !strings.Contains(rest, "="):
		return "", ""
	}
	return kind, name
}

func isShout(name string) bool { return name != "" && strings.ToUpper(name) == name && len(name) > 2 }

func isControlWord(word string) bool {
	return word == "extends" || word == "implements" || word == "final" || word == "where"
}

// bare reads a function that no word declares: a name before parentheses.
func (h *heading) bare(text string) (Kind, string) {
	if h.lang.bare == nowhere || h.lang.bare == inTypes && !h.inType {
		return "", ""
	}
	open := parenthesesOf(text)
	if open <= 0 {
		return "", ""
	}
	before := strings.TrimRight(text[:open], " \t\n")
	if strings.HasSuffix(before, ">") && h.lang.bare == inTypes { // name<T>(…)
		if i := strings.LastIndexByte(before, '<'); i > 0 {
			before = strings.TrimRight(before[:i], " ")
		}
	}
	from := len(before)
	for from > 0 && (isWord(before[from-1]) || before[from-1] == ':' || before[from-1] == '~' || before[from-1] == '#') {
		from--
	}
	name := strings.TrimLeft(before[from:], ":")
	if i := strings.LastIndex(before, "operator"); i >= 0 && h.lang.name == "cpp" {
		name = before[max(0, strings.LastIndexAny(before[:i], " *&\n")+1):]
	}
	lead, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	switch {
	case name == "" || control[name] || control[lead] || name[0] >= '0' && name[0] <= '9':
		return "", ""
	case strings.Contains(before, "operator"):
	case strings.ContainsAny(before[:from], "=;") || strings.ContainsAny(before[:from], ".,?!") && !strings.Contains(before, "<"):
		return "", ""
	}
	rest := strings.TrimSpace(text[open+closing(text[open:]):])
	if strings.HasPrefix(rest, "=>") || strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, "=") || strings.HasPrefix(rest, ",") {
		return "", ""
	}
	return Function, strings.ReplaceAll(name, "::", ".")
}

// parenthesesOf returns where the first parentheses outside of angle brackets open, -1 if none do.
func parenthesesOf(text string) int {
	angle := 0
	for i := range len(text) {
		switch text[i] {
		case '<':
			angle++
		case '>':
			angle = max(0, angle-1)
		case '(':
			if angle == 0 {
				return i
			}
		}
	}
	return -1
}

// nameAt reads a name, with the parts before it: A::B and a.b.
func nameAt(text string) string {
	i := 0
	for i < len(text) && (isWord(text[i]) || text[i] == ':' && i+1 < len(text) && text[i+1] == ':' || i > 0 && text[i] == ':' && text[i-1] == ':' ||
		i > 0 && text[i] == '.' && i+1 < len(text) && isWord(text[i+1]) || i > 0 && text[i] == '\\') {
		i++
	}
	return strings.ReplaceAll(text[:i], "::", ".")
}

func lastPart(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// closing returns the end of the brackets that a text begins with, or its length.
func closing(text string) int {
	if text == "" {
		return 0
	}
	open, shut := text[0], byte(')')
	switch open {
	case '<':
		shut = '>'
	case '[':
		shut = ']'
	case '(':
	default:
		return 0
	}
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case open:
			depth++
		case shut:
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(text)
}
