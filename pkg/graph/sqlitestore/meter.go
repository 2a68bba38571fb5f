package sqlitestore

import (
	"cmp"
	"database/sql/driver"
	"slices"
	"strings"
	"time"
)

// Meter adds up what a writer's statements cost. It belongs to one writer, and is read when that is
// closed or idle. The zero value is ready.
type Meter struct{ kinds map[string]*Statements }

// Statements is the cost of all statements of one kind.
type Statements struct {
	Kind  string        `json:"kind"` // such as INSERT message, or COMMIT
	Count int           `json:"count"`
	Rows  int64         `json:"rows"`    // written or deleted
	Took  time.Duration `json:"took_ns"` // of a query, until its first row
}

// Measure makes the writer report its statements to a meter from now on. Call it before the store is
// used.
func (d *db) Measure(m *Meter) { d.writer.meter = m }

// Statements returns the kinds of statements, the costliest first.
func (m *Meter) Statements() (list []Statements) {
	for _, s := range m.kinds {
		list = append(list, *s)
	}
	slices.SortFunc(list, func(a, b Statements) int {
		return cmp.Or(cmp.Compare(b.Took, a.Took), cmp.Compare(a.Kind, b.Kind))
	})
	return list
}

func (m *Meter) begin() (t time.Time) {
	if m != nil {
		t = time.Now()
	}
	return t
}

func (m *Meter) end(statement string, r driver.Result, began time.Time) {
	if m == nil {
		return
	}
	if m.kinds == nil {
		m.kinds = map[string]*Statements{}
	}
	kind, writes := kindOf(statement)
	s := m.kinds[kind]
	if s == nil {
		s = &Statements{Kind: kind}
		m.kinds[kind] = s
	}
	s.Count++
	s.Took += time.Since(began)
	if r != nil && writes {
		rows, _ := r.RowsAffected()
		s.Rows += rows
	}
}

// kindOf returns the verb and the table of a statement, and whether it writes rows.
func kindOf(statement string) (kind string, writes bool) {
	words := strings.Fields(statement)
	writes = words[0] == "INSERT" || words[0] == "UPDATE" || words[0] == "DELETE"
	for i, before := range words[:len(words)-1] {
		switch before {
		case "INTO", "FROM", "UPDATE", "JOIN": // JOIN, if FROM has the keys of a lookup
			if table := words[i+1]; table[0] != '(' {
				return words[0] + " " + table, writes
			}
		}
	}
	return words[0], writes
}
