package bench

import (
	"fmt"
	"slices"
)

// row is what an event made.
type row struct {
	seq    uint64
	values []value
}

// value is one decoded column. Like a loader of typed rows, this one turns it into the driver's
// argument when it writes.
type value struct {
	kind byte // i, f, s, b, t (i is 0 or 1), l, or 0 for NULL
	i    int64
	f    float64
	s    string
	b    []byte
	l    []any
}

// Scan implements sql.Scanner.
func (v *value) Scan(src any) error {
	switch src := src.(type) {
	case nil:
		*v = value{}
	case int64:
		*v = value{kind: 'i', i: src}
	case float64:
		*v = value{kind: 'f', f: src}
	case string:
		*v = value{kind: 's', s: src}
	case []byte:
		*v = value{kind: 'b', b: slices.Clone(src)}
	case bool:
		*v = value{kind: 't'}
		if src {
			v.i = 1
		}
	case []any:
		*v = value{kind: 'l', l: src}
	default:
		return fmt.Errorf("a column of type %T", src)
	}
	return nil
}

func (v *value) arg() any {
	switch v.kind {
	case 'i':
		return v.i
	case 'f':
		return v.f
	case 's':
		return v.s
	case 'b':
		return v.b
	case 't':
		return v.i == 1
	case 'l':
		return v.l
	}
	return nil
}
