package bench

import (
	"cmp"
	"context"
	"database/sql"
	"runtime"
	"runtime/debug"
	"sort"
	"strings"
	"time"

	"mneme.dev/mneme/pkg/graph/sqlitestore"
)

// loadOnce writes the rows of one file into another and returns how long the writing took. It then
// releases the rows, because a heap that holds them would slow down the next measurement.
func loadOnce(ctx context.Context, ends []uint64, from, to string) (time.Duration, error) {
	defer runtime.GC()
	rows, err := readRows(ctx, from)
	if err != nil {
		return 0, err
	}
	runtime.GC()
	// A loader that reads its rows as it goes has no such heap to collect.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	return rows.load(ctx, ends, to)
}

// readModel is the content of a read model: the rows of each table, by sequence.
type readModel struct {
	names   []string
	inserts map[string]string // INSERT without VALUES, by table
	width   map[string]int
	rows    map[string][]row
}

// seqOf is the column with the sequence of the event that wrote a row.
var seqOf = map[string]string{"conversation": "first_seq"}

func readRows(ctx context.Context, path string) (*readModel, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	if err != nil {
		return nil, err
	}
	defer func() { _ = db.Close() }()
	m := &readModel{inserts: map[string]string{}, width: map[string]int{}, rows: map[string][]row{}}
	for _, name := range []string{"conversation", "version", "identity", "message", "bag", "reference", "tool_call", "tool_result", "summary", "condensed"} {
		by := cmp.Or(seqOf[name], "seq")
		if err := m.read(ctx, db, name, by); err != nil {
			return nil, err
		}
	}
	return m, m.readWords(ctx, db)
}

// readWords reads what the full-text indexes were given: the terms of each row, in order, because
// the indexes store no texts. A title's terms are loaded with its conversation.
func (m *readModel) readWords(ctx context.Context, db *sql.DB) error {
	conn, err := db.Conn(ctx) // FTS5's own tables for listing terms
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	for _, index := range []struct{ table, seq string }{{"words", "v.doc"}, {"title_words", "(SELECT c.first_seq FROM conversation AS c WHERE c.c = v.doc)"}} {
		table := index.table
		if _, err := conn.ExecContext(ctx, "CREATE VIRTUAL TABLE temp."+table+"_terms USING fts5vocab('main', '"+table+"', 'instance')"); err != nil {
			return err
		}
		found, err := conn.QueryContext(ctx, "SELECT "+index.seq+" AS seq, v.doc, group_concat(v.term, ' ') FROM temp."+table+"_terms AS v GROUP BY v.doc ORDER BY seq, v.doc")
		if err != nil {
			return err
		}
		if err := m.take(table, []string{"rowid", "text"}, found); err != nil {
			return err
		}
	}
	return nil
}

func (m *readModel) read(ctx context.Context, db *sql.DB, name, by string) error {
	found, err := db.QueryContext(ctx, "SELECT "+by+", * FROM "+name+" ORDER BY "+by)
	if err != nil {
		return err
	}
	columns, err := found.Columns()
	if err != nil {
		return err
	}
	return m.take(name, columns[1:], found)
}

// take reads the rows of a table: the sequence and the column values of each.
func (m *readModel) take(name string, columns []string, found *sql.Rows) error {
	defer func() { _ = found.Close() }()
	m.names = append(m.names, name)
	m.width[name] = len(columns)
	m.inserts[name] = "INSERT INTO " + name + " (" + strings.Join(columns, ", ") + ") VALUES "
	for found.Next() {
		r := row{values: make([]value, len(columns))}
		dst := []any{&r.seq}
		for i := range r.values {
			dst = append(dst, &r.values[i])
		}
		if err := found.Scan(dst...); err != nil {
			return err
		}
		m.rows[name] = append(m.rows[name], r)
	}
	return found.Err()
}

// load writes all rows into a new file, in transactions that end at the given sequences, and
// returns how long it took.
func (m *readModel) load(ctx context.Context, ends []uint64, path string) (time.Duration, error) {
	empty, err := sqlitestore.OpenGraph(ctx, path) // makes the tables
	if err != nil {
		return 0, err
	}
	if err := empty.Close(); err != nil {
		return 0, err
	}
	db, err := sql.Open("sqlite", sqlitestore.WriterDSN(path))
	if err != nil {
		return 0, err
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	conn, err := db.Conn(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	l := &bareLoader{conn: conn, ctx: context.WithoutCancel(ctx), stmts: map[string]*sql.Stmt{}}

	began := time.Now()
	next := map[string]int{}
	for _, last := range ends {
		if _, err := l.exec("BEGIN IMMEDIATE"); err != nil {
			return 0, err
		}
		for _, name := range m.names {
			rows := m.rows[name][next[name]:]
			n := sort.Search(len(rows), func(i int) bool { return rows[i].seq > last })
			if err := l.insert(m.inserts[name], m.width[name], rows[:n]); err != nil {
				return 0, err
			}
			next[name] += n
		}
		if _, err := l.exec("COMMIT"); err != nil {
			return 0, err
		}
	}
	return time.Since(began), nil
}

type bareLoader struct {
	conn  *sql.Conn
	ctx   context.Context
	stmts map[string]*sql.Stmt
	args  []any
}

func (l *bareLoader) exec(query string, args ...any) (sql.Result, error) {
	s := l.stmts[query]
	if s == nil {
		var err error
		if s, err = l.conn.PrepareContext(l.ctx, query); err != nil {
			return nil, err
		}
		l.stmts[query] = s
	}
	return s.ExecContext(l.ctx, args...)
}

// insert writes rows, as many per statement as the store does.
func (l *bareLoader) insert(into string, width int, rows []row) error {
	one := "(" + strings.TrimSuffix(strings.Repeat("?,", width), ",") + ")"
	many := into + strings.TrimSuffix(strings.Repeat(one+",", sqlitestore.RowsPerStatement), ",")
	for len(rows) > 0 {
		n, query := 1, into+one
		if len(rows) >= sqlitestore.RowsPerStatement {
			n, query = sqlitestore.RowsPerStatement, many
		}
		l.args = l.args[:0]
		for _, r := range rows[:n] {
			for i := range r.values {
				l.args = append(l.args, r.values[i].arg())
			}
		}
		if _, err := l.exec(query, l.args...); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}
