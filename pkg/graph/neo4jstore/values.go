package neo4jstore

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"mneme/events"
	"mneme/pkg/graph"
)

// props are properties of a node in the order in which they are read. Those that are
// empty are not stored, and what is not stored is read as empty.
type props []string

// create is the map of a CREATE whose row is r.
func (p props) create() string {
	parts := make([]string, len(p))
	for i, name := range p {
		parts[i] = name + ": r." + name
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// set is the list of a SET on a node whose row is r.
func (p props) set(node string) string {
	parts := make([]string, len(p))
	for i, name := range p {
		parts[i] = node + "." + name + " = r." + name
	}
	return strings.Join(parts, ", ")
}

// list is the list of what a node has.
func (p props) list(node string) string {
	parts := make([]string, len(p))
	for i, name := range p {
		parts[i] = node + "." + name
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// row is the parameters of one node.
type row map[string]any

func (r row) text(name, value string) {
	if value != "" {
		r[name] = value
	}
}

func (r row) count(name string, value int) {
	if value != 0 {
		r[name] = value
	}
}

func (r row) texts(name string, list []string) {
	if len(list) > 0 {
		r[name] = list
	}
}

func (r row) flag(name string, value bool) {
	if value {
		r[name] = true
	}
}

func (r row) body(name, bytes, chars, digest string, b *graph.Body) {
	r.text(name, b.Text)
	r.count(bytes, b.Bytes)
	r.count(chars, b.Chars)
	if b.Hash != (events.Digest{}) {
		r[digest] = b.Hash.String()
	}
}

// values takes the values of a list of [props] one after the other. The first that is
// of another type than the one asked for is the error.
type values struct {
	list []any
	next int
	err  error
}

// valuesOf opens a list that the server has answered.
func valuesOf(list any) *values {
	l, ok := list.([]any)
	if !ok {
		return &values{err: fmt.Errorf("the server answered %T, not a list", list)}
	}
	return &values{list: l}
}

func take[T any](v *values) (value T) {
	if v.next >= len(v.list) {
		if v.err == nil {
			v.err = fmt.Errorf("the server answered %d values, more are needed", len(v.list))
		}
		return value
	}
	raw := v.list[v.next]
	v.next++
	if raw == nil {
		return value
	}
	value, ok := raw.(T)
	if !ok && v.err == nil {
		v.err = fmt.Errorf("value %d is %T, not %T", v.next, raw, value)
	}
	return value
}

func (v *values) text() string { return take[string](v) }
func (v *values) int() int     { return int(take[int64](v)) }
func (v *values) seq() uint64  { return uint64(take[int64](v)) }
func (v *values) flag() bool   { return take[bool](v) }

// optional is nil for what is not stored.
func optional[T any](v *values) *T {
	if v.next < len(v.list) && v.list[v.next] == nil {
		v.next++
		return nil
	}
	value := take[T](v)
	return &value
}

// json decodes a text; what is not stored leaves dst as it is.
func (v *values) json(dst any) {
	if text := v.text(); text != "" {
		if err := json.Unmarshal([]byte(text), dst); err != nil && v.err == nil {
			v.err = err
		}
	}
}

func (v *values) digest() (d events.Digest) {
	text := v.text()
	if text == "" {
		return d
	}
	raw, err := hex.DecodeString(text)
	if err == nil && len(raw) != len(d) {
		err = fmt.Errorf("%d bytes", len(raw))
	}
	if err != nil && v.err == nil {
		v.err = fmt.Errorf("value %d is no digest: %w", v.next, err)
	}
	copy(d[:], raw)
	return d
}

func (v *values) strings() (list []string) {
	raw := take[[]any](v)
	if raw == nil {
		return nil
	}
	list = make([]string, 0, len(raw))
	for _, one := range raw {
		text, ok := one.(string)
		if !ok && v.err == nil {
			v.err = fmt.Errorf("value %d holds %T, not texts", v.next, one)
		}
		list = append(list, text)
	}
	return list
}

func (v *values) body() (b graph.Body) {
	return graph.Body{Text: v.text(), Bytes: v.int(), Chars: v.int(), Hash: v.digest()}
}
