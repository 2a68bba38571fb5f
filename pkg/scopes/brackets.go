package scopes

import "strings"

// cutBrackets cuts a file at its curly brackets. Where a declaration is possible, the text since the last bracket or
// semicolon is the head of the block that a bracket opens. It says whether the block is a function, which is skipped, a
// type, whose inside is read too, or anything else.
func cutBrackets(s *source, lang *language) []Scope {
	c := &brackets{source: s, lang: lang, code: mask(s.text, &lang.syntax)}
	c.read()
	return c.list
}

type brackets struct {
	*source
	lang  *language
	code  []byte // without strings and comments
	list  []Scope
	stack []outer
}

// outer is what surrounds a declaration.
type outer struct {
	scope int    // index in list, -1 for a namespace
	name  string // before the names of what is inside
	kind  Kind
}

func (c *brackets) read() {
	from, round := 0, 0 // where the head begins; how many parentheses are open
	head, read := -1, 0 // the head that was read last, and how often
	for at := 0; at < len(c.code); at++ {
		switch c.code[at] {
		case '(', '[':
			round++
		case ')', ']':
			round = max(0, round-1)
		case ';':
			if round == 0 {
				if c.lang.syntax.statement {
					c.statement(from, at)
				}
				from = at + 1
			}
		case '}':
			c.leave(at)
			from, round = at+1, 0
		case '{':
			if round > 0 || c.initializes(from, at) || c.isType(from, at) {
				at = c.match(at)
				continue
			}
			kind, name, start := c.declaration(from, at)
			if (kind == Type || kind == Block) && len(c.stack) < maxNesting {
				c.enter(kind, name, start, at)
				from = at + 1
				continue
			}
			end := c.match(at)
			if kind == Function || kind == Type {
				c.add(kind, name, start, end)
			}
			if head != from {
				head, read = from, 0
			}
			if read++; kind != "" || read == maxRead || !c.goesOn(end) {
				from = end + 1
			}
			at = end
		}
	}
	for len(c.stack) > 0 {
		c.leave(len(c.code) - 1)
	}
}

// match returns the bracket that closes the one at a place, or the last byte.
func (c *brackets) match(at int) int {
	for depth := 0; at < len(c.code); at++ {
		switch c.code[at] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return at
			}
		}
	}
	return len(c.code) - 1
}

// initializes reports whether a bracket holds the value of a member before the body of a C++ constructor, as in
// Foo() : a{1} {}.
func (c *brackets) initializes(from, at int) bool {
	if c.lang.name != "cpp" || at == 0 || !isWord(c.code[at-1]) {
		return false
	}
	head := string(c.code[max(from, at-maxHead):at])
	paren := strings.IndexByte(head, ')')
	return paren >= 0 && strings.HasPrefix(strings.TrimLeft(head[paren+1:], " \n\t"), ":")
}

// isType reports whether a bracket opens a type inside a head, as in f(): Promise<{a: string}> {.
func (c *brackets) isType(from, at int) bool {
	for at--; c.lang.syntax.script && at > from; at-- {
		switch c.code[at] {
		case ' ', '\t', '\n':
		case '<', ':', '|', '&', ',':
			return true
		default:
			return false
		}
	}
	return false
}

// goesOn reports whether a declaration can continue after a bracket that opened nothing known, as in const {a, b} = ….
func (c *brackets) goesOn(end int) bool {
	for at := end + 1; at < len(c.code); at++ {
		switch c.code[at] {
		case ' ', '\t':
		case '=', ',', ')', ':', '|', '&':
			return true
		default:
			return false
		}
	}
	return false
}

func (c *brackets) enter(kind Kind, name string, start, at int) {
	o := outer{scope: -1, name: c.full(name), kind: kind}
	if kind == Block && c.lang.name != "rust" {
		o.name = c.full("") // a namespace is not part of a name
	}
	if kind == Type {
		o.scope = len(c.list)
		c.add(kind, name, start, at)
	}
	c.stack = append(c.stack, o)
}

func (c *brackets) leave(at int) {
	if len(c.stack) == 0 {
		return
	}
	if i := c.stack[len(c.stack)-1].scope; i >= 0 {
		c.list[i].End = 1 + c.line(at)
	}
	c.stack = c.stack[:len(c.stack)-1]
}

// full returns a name preceded by those of the surrounding types.
func (c *brackets) full(name string) string {
	if len(c.stack) == 0 || c.stack[len(c.stack)-1].name == "" {
		return name
	}
	if name == "" {
		return c.stack[len(c.stack)-1].name
	}
	return c.stack[len(c.stack)-1].name + "." + name
}

// add adds a scope, with the comment above it.
func (c *brackets) add(kind Kind, name string, start, end int) {
	first := c.line(start)
	for n := 0; first > 0 && n < maxComment; n++ {
		line := strings.TrimSpace(c.at(first - 1))
		if line == "" || !isComment(line) {
			break
		}
		first--
	}
	c.list = append(c.list, Scope{Name: c.full(name), Kind: kind, Start: first + 1, End: 1 + c.line(end)})
}

// maxComment is how many lines of the comment above a declaration belong to it, and how many lines of a head are tried.
const maxComment = 40

func isComment(line string) bool {
	for _, sign := range []string{"//", "/*", "*", "# "} {
		if strings.HasPrefix(line, sign) {
			return true
		}
	}
	return strings.HasSuffix(line, "*/")
}

// statement adds a declaration without a body that ends at a semicolon: type A = …;
func (c *brackets) statement(from, at int) {
	if len(c.stack) > 0 && c.stack[len(c.stack)-1].kind == Type {
		return
	}
	if kind, name, start := c.declaration(from, at); kind == Type && name != "" && c.line(at)-c.line(start) < maxBlockLines {
		if c.lang.bare == everywhere { // a variable of a type, or a mere mention of a type
			return
		}
		c.add(kind, name, start, at)
	}
}

// maxHead is how many bytes before a bracket can be the head of a declaration, and maxRead how often a head that goes on
// after a bracket is read.
const (
	maxHead = 4 << 10
	maxRead = 16
)

// declaration reads the head between two bytes. start is where the declaration begins. A head may hold earlier statements,
// because not every language ends them with a semicolon; so the lines at its end are tried first.
func (c *brackets) declaration(from, at int) (kind Kind, name string, start int) {
	from = max(from, at-maxHead)
	head := string(c.code[from:at])
	end := len(head)
	for n := 0; end > 0 && n < maxComment; n++ {
		begin := 1 + strings.LastIndexByte(head[:end-1], '\n')
		h := heading{lang: c.lang, text: head[begin:], inType: len(c.stack) > 0 && c.stack[len(c.stack)-1].kind == Type}
		if strings.TrimSpace(head[begin:end]) != "" && balanced(h.text) {
			if kind, name := h.read(); kind != "" {
				return kind, name, from + c.attributes(head, begin)
			}
		}
		if end = begin - 1; end <= 0 {
			break
		}
	}
	return "", "", 0
}

// balanced reports whether a text closes no parenthesis that it did not open.
func balanced(text string) bool {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '(', '[':
			depth++
		case ')', ']':
			if depth--; depth < 0 {
				return false
			}
		}
	}
	return true
}

// attributes returns where a declaration begins, with the lines above it that belong to it: @Override, #[test], template <T>,
// or the type that a function returns. Leading white space is not part of it.
func (c *brackets) attributes(head string, begin int) int {
	for begin > 0 {
		above := 1 + strings.LastIndexByte(head[:begin-1], '\n')
		line := strings.TrimSpace(head[above:begin])
		if line == "" || !strings.HasPrefix(line, "@") && !strings.HasPrefix(line, "#[") && !strings.HasPrefix(line, "[") && !strings.HasPrefix(line, "template") &&
			(c.lang.bare != everywhere || strings.ContainsAny(line, "=:")) {
			break
		}
		begin = above
	}
	return begin + len(head[begin:]) - len(strings.TrimLeft(head[begin:], " \t\n"))
}
