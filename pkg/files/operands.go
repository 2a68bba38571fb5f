package files

import (
	"path"
	"slices"
	"strings"
)

// operands adds the files among the arguments of a known command.
func (s *shell) operands(c *command, args []word) {
	list, opts := c.split(args)
	if opts.refused {
		return
	}
	skip, kind := c.Skip, c.Kind
	if opts.given {
		skip = 0
	}
	if opts.inPlace {
		kind = KindWrite
	}
	list = list[min(skip, len(list)):]
	if c.Copies {
		s.copies(kind, list)
		return
	}
	for _, w := range list {
		if w.literal && !isLineNumber(w.text) {
			s.add(w.text, kind)
		}
	}
}

// isLineNumber reports whether an operand is a line number, as in "tail +20".
func isLineNumber(s string) bool {
	return strings.HasPrefix(s, "+") && strings.Trim(s[1:], "0123456789") == ""
}

// copies adds the sources of a copy and the files it writes: the target, or files in the
// target if that is certainly a folder.
func (s *shell) copies(kind Kind, list []word) {
	if len(list) < 2 {
		return
	}
	sources, target := list[:len(list)-1], list[len(list)-1]
	intoFolder := len(sources) > 1 || strings.HasSuffix(target.text, "/") || target.text == "." || target.text == ".."
	for _, w := range sources {
		if !w.literal {
			continue
		}
		if kind == KindRead {
			s.add(w.text, KindRead)
		}
		if intoFolder && target.literal {
			s.add(target.text+"/"+path.Base(w.text), KindWrite)
		}
	}
	if !intoFolder && target.literal {
		s.add(target.text, KindWrite)
	}
}

// options holds what the given options mean for the operands.
type options struct{ given, inPlace, refused bool }

// split separates the arguments of a command into operands and options.
func (c *command) split(args []word) (operands []word, opts options) {
	for i := 0; i < len(args); i++ {
		w := args[i]
		switch {
		case !w.literal || w.text == "-" || !strings.HasPrefix(w.text, "-"):
			if c.Until && w.literal && strings.Trim(w.text, "()!") == "" {
				return operands, opts
			}
			operands = append(operands, w)
		case c.Until:
			return operands, opts
		case w.text == "--":
			return append(operands, args[i+1:]...), opts
		default:
			takesNext := c.option(w.text, &opts)
			bare := opts.inPlace && slices.Contains(c.InPlace, w.text)
			if takesNext || bare && i+1 < len(args) && args[i+1] == (word{literal: true}) { // sed -i '' of BSD
				i++
			}
		}
	}
	return operands, opts
}

// option records the meaning of one option word and reports whether its value is the next
// word. A word such as -rn holds one option per letter.
func (c *command) option(text string, opts *options) (takesNext bool) {
	if strings.HasPrefix(text, "--") {
		name, _, hasValue := strings.Cut(text, "=")
		opts.note(c, name)
		return !hasValue && slices.Contains(c.Valued, name)
	}
	for i := 1; i < len(text); i++ {
		name := "-" + text[i:i+1]
		opts.note(c, name)
		if slices.Contains(c.Valued, name) {
			return i == len(text)-1
		}
		if slices.Contains(c.InPlace, name) {
			return false // the rest is a suffix
		}
	}
	return false
}

func (o *options) note(c *command, name string) {
	o.given = o.given || slices.Contains(c.Given, name)
	o.inPlace = o.inPlace || slices.Contains(c.InPlace, name)
	o.refused = o.refused || slices.Contains(c.Refuse, name)
}
