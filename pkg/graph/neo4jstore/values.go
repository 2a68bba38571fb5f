package neo4jstore

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
)

// props lists properties of a node in the order in which they are read. Empty ones are not
// stored, and missing ones are read as empty.
type props []string

// create returns the map for a CREATE from the row r.
func (p props) create() string {
	parts := make([]string, len(p))
	for i, name := range p {
		parts[i] = name + ": r." + name
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// set returns the list for a SET on a node from the row r.
func (p props) set(node string) string {
	parts := make([]string, len(p))
	for i, name := range p {
		parts[i] = node + "." + name + " = r." + name
	}
	return strings.Join(parts, ", ")
}

// list returns the list expression for reading a node. A literal of the properties, [n.seq, n.turn], reads about as fast,
// but Neo4j's planner looks for a common type of all its elements, which takes 10 ms and more for each of them.
func (p props) list(node string) string {
	return "[property IN ['" + strings.Join(p, "', '") + "'] | " + node + "[property]]"
}

// Row holds the parameters of one node. Leave out empty values: Neo4j has no empty properties.
type Row map[string]any

func (r Row) text(name, value string) {
	if value != "" {
		r[name] = value
	}
}

func (r Row) count(name string, value int) {
	if value != 0 {
		r[name] = value
	}
}

func (r Row) texts(name string, list []string) {
	if len(list) > 0 {
		r[name] = list
	}
}

func (r Row) flag(name string, value bool) {
	if value {
		r[name] = true
	}
}

func (r Row) body(name, bytes, chars, digest string, b *graph.Body) {
	r.text(name, b.Text)
	r.count(bytes, b.Bytes)
	r.count(chars, b.Chars)
	if b.Hash != (events.Digest{}) {
		r[digest] = b.Hash.String()
	}
}

// values reads the values of a list of [props] in order. The first value of an unexpected
// type sets the error.
type values struct {
	list []any
	next int
	err  error
}

// valuesOf opens a list that the server returned.
func valuesOf(list any) *values {
	l, ok := list.([]any)
	if !ok {
		return &values{err: fmt.Errorf("the server returned %T, not a list", list)}
	}
	return &values{list: l}
}

// scanRows calls scan for each row, up to the first that it can't read.
func scanRows(rows [][]any, scan func(*values)) error {
	for _, row := range rows {
		v := &values{list: row}
		if scan(v); v.err != nil {
			return v.err
		}
	}
	return nil
}

func take[T any](v *values) (value T) {
	if v.next >= len(v.list) {
		if v.err == nil {
			v.err = fmt.Errorf("the server returned %d values, expected more", len(v.list))
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

// optional returns nil for a missing value.
func optional[T any](v *values) *T {
	if v.next < len(v.list) && v.list[v.next] == nil {
		v.next++
		return nil
	}
	return new(take[T](v))
}

// json decodes a text; a missing value leaves dst unchanged.
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
		v.err = fmt.Errorf("value %d is not a digest: %w", v.next, err)
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
