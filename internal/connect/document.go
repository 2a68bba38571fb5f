package connect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// document is a file of JSON, perhaps with comments and trailing commas. New parts follow the formatting of the file.
type document struct {
	root    hujson.Value
	top     *object
	mark    []byte // the byte order mark, if there is one
	newline string
	indent  string
	flat    bool // all on one line
}

// byteOrderMark begins files that some editors write.
var byteOrderMark = []byte("\uFEFF")

// parse reads a file. An empty one is an empty object.
func parse(raw []byte) (*document, error) {
	d := &document{newline: newlineOf(raw), indent: "  "}
	text, marked := bytes.CutPrefix(raw, byteOrderMark)
	if marked {
		d.mark = byteOrderMark
	}
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}" + d.newline)
	}
	root, err := hujson.Parse(slices.Clone(text))
	if err != nil {
		return nil, fmt.Errorf("it is not valid JSON, so nothing was changed: correct it first (%s)", strings.TrimPrefix(err.Error(), "hujson: "))
	}
	top, ok := root.Value.(*hujson.Object)
	if !ok {
		return nil, errors.New("it is not a JSON object, so nothing was changed: it must begin with {")
	}
	d.root, d.top = root, &object{top, ""}
	d.flat = !bytes.Contains(text, []byte("\n"))
	if len(top.Members) > 0 {
		before := string(top.Members[0].Name.BeforeExtra)
		if at := strings.LastIndexByte(before, '\n'); at >= 0 && at+1 < len(before) && strings.Trim(before[at+1:], " \t") == "" {
			d.indent = before[at+1:]
		}
	}
	return d, nil
}

// object is an object of the file, and its path for errors.
type object struct {
	*hujson.Object
	path string
}

func (o *object) name(i int) string { return o.Members[i].Name.Value.(hujson.Literal).String() }

// member returns the path of a member, for errors.
func (o *object) member(name string) string { return strings.TrimPrefix(o.path+"."+name, ".") }

// value returns the value of a member, nil if there is none.
func (o *object) value(name string) *hujson.Value {
	for i := range o.Members {
		if o.name(i) == name {
			return &o.Members[i].Value
		}
	}
	return nil
}

// find returns a member that must be an object, nil if there is none. A duplicate name is an error, because programs
// disagree about which one counts.
func (o *object) find(name string) (*object, error) {
	n := 0
	for i := range o.Members {
		if o.name(i) == name {
			n++
		}
	}
	path := o.member(name)
	switch v := o.value(name); {
	case n == 0:
		return nil, nil
	case n > 1:
		return nil, fmt.Errorf("%s is there twice: remove one", path)
	default:
		inner, ok := v.Value.(*hujson.Object)
		if !ok {
			return nil, fmt.Errorf("%s is not an object: correct it first", path)
		}
		return &object{inner, path}, nil
	}
}

// remove removes a member.
func (o *object) remove(name string) {
	for i := range o.Members {
		if o.name(i) == name {
			remove(members{o.Object}, i)
			return
		}
	}
}

// removeSilent removes a member, unless a comment is in it.
func (o *object) removeSilent(name string) {
	for i := range o.Members {
		if o.name(i) == name && (members{o.Object}).commented(i) {
			return
		}
	}
	o.remove(name)
}

// ensure returns a member that is an object, and adds it if there is none.
func (d *document) ensure(o *object, name string, depth int) (*object, error) {
	found, err := o.find(name)
	if found != nil || err != nil {
		return found, err
	}
	d.member(o.Object, name, struct{}{}, depth)
	return o.find(name)
}

// value returns a value as it is written at a depth of the file.
func (d *document) value(v any, depth int) hujson.ValueTrimmed {
	var w bytes.Buffer
	e := json.NewEncoder(&w)
	e.SetEscapeHTML(false)
	if !d.flat {
		e.SetIndent(strings.Repeat(d.indent, depth), d.indent)
	}
	if err := e.Encode(v); err != nil {
		panic(err) // strings, numbers and lists of them
	}
	text := bytes.ReplaceAll(bytes.TrimSpace(w.Bytes()), []byte("\n"), []byte(d.newline))
	parsed, err := hujson.Parse(text)
	if err != nil {
		panic(err) // it is JSON
	}
	return parsed.Value
}

// member appends a member to an object.
func (d *document) member(o *hujson.Object, name string, v any, depth int) {
	before, after := d.room(members{o}, depth)
	o.Members = append(o.Members, hujson.ObjectMember{
		Name:  hujson.Value{BeforeExtra: before, Value: hujson.String(name)},
		Value: hujson.Value{BeforeExtra: hujson.Extra(" "), Value: d.value(v, depth), AfterExtra: after},
	})
}

// set gives a member another value, or appends it.
func (d *document) set(o *object, name string, v any, depth int) {
	if found := o.value(name); found != nil {
		found.Value = d.value(v, depth)
		return
	}
	d.member(o.Object, name, v, depth)
}

// append appends an element to an array.
func (d *document) append(a *hujson.Array, v any, depth int) {
	before, after := d.room(elements{a}, depth)
	a.Elements = append(a.Elements, hujson.Value{BeforeExtra: before, Value: d.value(v, depth), AfterExtra: after})
}

const blanks = " \t\r\n"

// room returns what comes before and after a new last item, and makes room for it. A comment after the last item stays
// with that item. A trailing comma is kept.
func (d *document) room(list items, depth int) (before, after hujson.Extra) {
	end := list.end()
	comments := bytes.TrimRight(*end, blanks)
	rest := (*end)[len(comments):]
	before = slices.Concat(comments, d.line(depth))
	if list.len() == 0 || !bytes.Contains(rest, []byte("\n")) {
		rest = d.line(depth - 1)
	}
	if d.flat {
		before, rest = slices.Clone(comments), (*end)[len(comments):]
		if list.len() > 0 {
			before = append(before, ' ')
		}
	}
	*end = slices.Clone(rest)
	if n := list.len(); n > 0 && list.value(n-1).AfterExtra != nil {
		after = hujson.Extra{} // which means a comma
	}
	return before, after
}

func (d *document) line(depth int) []byte {
	if d.flat {
		return nil
	}
	return []byte(d.newline + strings.Repeat(d.indent, depth))
}

// items are the members of an object or the elements of an array.
type items interface {
	len() int
	before(i int) *hujson.Extra // blanks and comments before an item
	value(i int) *hujson.Value
	end() *hujson.Extra   // after the last one
	commented(i int) bool // whether a comment is in an item; those around it stay when it is removed
	cut(i int)
}

type members struct{ o *hujson.Object }

func (m members) len() int                   { return len(m.o.Members) }
func (m members) before(i int) *hujson.Extra { return &m.o.Members[i].Name.BeforeExtra }
func (m members) value(i int) *hujson.Value  { return &m.o.Members[i].Value }
func (m members) end() *hujson.Extra         { return &m.o.AfterExtra }
func (m members) commented(i int) bool {
	return isComment(m.o.Members[i].Name.AfterExtra) || isComment(m.o.Members[i].Value.BeforeExtra) || holdsComment(&m.o.Members[i].Value)
}
func (m members) cut(i int) { m.o.Members = slices.Delete(m.o.Members, i, i+1) }

type elements struct{ a *hujson.Array }

func (e elements) len() int                   { return len(e.a.Elements) }
func (e elements) before(i int) *hujson.Extra { return &e.a.Elements[i].BeforeExtra }
func (e elements) value(i int) *hujson.Value  { return &e.a.Elements[i] }
func (e elements) end() *hujson.Extra         { return &e.a.AfterExtra }
func (e elements) commented(i int) bool       { return holdsComment(&e.a.Elements[i]) }
func (e elements) cut(i int)                  { e.a.Elements = slices.Delete(e.a.Elements, i, i+1) }

func isComment(extra hujson.Extra) bool { return len(bytes.Trim(extra, blanks)) > 0 }

// holdsComment reports whether a comment is in a value.
func holdsComment(v *hujson.Value) bool {
	for inner := range v.All() {
		var end hujson.Extra
		switch list := inner.Value.(type) {
		case *hujson.Object:
			end = list.AfterExtra
		case *hujson.Array:
			end = list.AfterExtra
		}
		if isComment(end) || inner != v && (isComment(inner.BeforeExtra) || isComment(inner.AfterExtra)) {
			return true
		}
	}
	return false
}

// remove takes an item out. The comments before it stay, and those between it and its comma.
func remove(list items, i int) {
	before, own := *list.before(i), list.value(i).AfterExtra
	comments := bytes.TrimRight(before, blanks)
	toEnd := bytes.Contains(before[len(comments):], []byte("\n")) // the last one may reach to the end of its line
	if isComment(own) {
		between := " "
		if toEnd {
			between = "\n"
		}
		comments = slices.Concat(comments, []byte(between), bytes.Trim(own, blanks))
		toEnd = bytes.Contains(own, []byte("\n"))
	}
	next := list.end()
	if i < list.len()-1 {
		next = list.before(i + 1)
	} else if i > 0 { // the item before becomes the last one, and has a comma if this one has
		last := list.value(i - 1)
		if own == nil {
			*next = slices.Concat(last.AfterExtra, *next)
			last.AfterExtra = nil
		} else if last.AfterExtra == nil {
			last.AfterExtra = hujson.Extra{}
		}
	}
	if len(comments) > 0 {
		if toEnd && !bytes.HasPrefix(bytes.TrimLeft(*next, " \t\r"), []byte("\n")) {
			comments = append(slices.Clone(comments), '\n')
		}
		*next = slices.Concat(comments, *next)
	} else if list.len() == 1 && !isComment(*next) {
		*next = nil
	}
	list.cut(i)
}
