package transcript

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// overlap is how far [ReadDatabase] goes back before the time up to which a database was read. Agents write a row some
// time after the time in the row, and the clock may be set.
const overlap = 10 * time.Minute

// unfinished is how long a session waits for its last message to be finished, measured by the newest time in the
// database. Until then the session is open and read again each time: a tool may run for an hour.
const unfinished = 24 * time.Hour

// IsDatabase reports whether a file is a SQLite database, for which there is [ReadDatabase]. It reads from the file's
// start.
func IsDatabase(file io.ReaderAt) bool {
	const magic = "SQLite format 3\x00"
	head := make([]byte, len(magic))
	_, err := file.ReadAt(head, 0)
	return err == nil && string(head) == magic
}

// store reads the sessions of a database.
type store interface {
	// sessions lists those that changed at or after a time, in milliseconds, the oldest first. Each statement is a
	// transaction of its own, see [inTransaction].
	sessions(ctx context.Context, db *sql.DB, since int64) ([]stored, error)
	// session adds the items of one, all read in one transaction.
	session(ctx context.Context, tx *sql.Tx, s stored, out *batch) error
}

// stored is a session in a database.
type stored struct {
	id      string
	changed int64 // Unix time in milliseconds
	parent  string
	folder  string
	title   string
	created int64
}

// ReadDatabase yields the items of a recording that is a SQLite database, session by session. The items of the last
// message of a session are open, see [Item], until its agent has finished the message or other sessions are a day
// newer. It never writes to the database and never creates one.
//
// until is the time up to which the database was read. If it is passed as since the next time, only sessions that have
// changed after that, or in the ten minutes before, are read. A zero since reads all.
//
// The errors are those of [Read], or those of SQLite.
func ReadDatabase(ctx context.Context, path, format string, since time.Time, yield func(Item) error, options ...Option) (until time.Time, err error) {
	s := session{name: path, yield: yield}
	for _, set := range options {
		set(&s)
	}
	db, still, err := openDatabase(ctx, path)
	if err != nil {
		return since, fmt.Errorf("%s: %w", path, err)
	}
	defer func() { _ = db.Close() }()
	now, from := time.Now(), int64(0)
	if since.After(now) { // an earlier version took the time of a clock that was ahead
		since = time.Time{}
	}
	if !since.IsZero() {
		from = since.Add(-overlap).UnixMilli()
	}
	f, err := databaseFormat(ctx, db, format)
	if err != nil {
		return since, fmt.Errorf("%s: %w", path, err)
	}
	s.format = f.Name
	st := f.store(path)
	list, err := st.sessions(ctx, db, from)
	if err != nil {
		return since, fmt.Errorf("%s: %w", path, err)
	}
	newest, waits := max(since.UnixMilli(), 0), int64(0)
	for _, one := range list {
		newest = max(newest, min(one.changed, now.UnixMilli())) // a clock that was ahead must not hide what comes after it was set right
	}
	for _, one := range list {
		if err := inTransaction(ctx, db, func(tx *sql.Tx) error { return st.session(ctx, tx, one, &s.out) }); err != nil {
			return since, fmt.Errorf("%s: session %s: %w", path, one.id, err)
		}
		switch n := len(s.out.items); {
		case n == 0 || !s.out.items[n-1].Open:
		case one.changed <= newest-unfinished.Milliseconds(): // its agent was stopped
			for i := range s.out.items {
				s.out.items[i].Open = false
			}
		case waits == 0 || one.changed < waits:
			waits = one.changed
		}
		if err := s.flush(); err != nil {
			return since, err
		}
	}
	if still {
		if rests, err := atRest(path); err != nil || !rests {
			return since, errors.Join(fmt.Errorf("%s: its agent wrote to it while it was being read: try again", path), err)
		}
	}
	if waits > 0 {
		newest = min(newest, waits)
	}
	return time.UnixMilli(newest), nil
}

// inTransaction reads in a transaction. Each is as short as can be: while one lasts, the agent can't write to a database
// without a write-ahead log, and a log that there is only grows.
func inTransaction(ctx context.Context, db *sql.DB, read func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	return read(tx)
}

// openDatabase opens a database for reading. When an agent closes a database, its write-ahead log is removed. A usual
// open would create a new log, so the database is then read as a file that does not change.
func openDatabase(ctx context.Context, path string) (db *sql.DB, still bool, err error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, false, err
	}
	open := func(more string) (*sql.DB, error) {
		dsn := "file:" + (&url.URL{Path: filepath.ToSlash(absolute)}).EscapedPath() + "?mode=ro&_pragma=busy_timeout(5000)&_pragma=query_only(1)" + more
		db, err := sql.Open("sqlite", dsn)
		if err != nil {
			return nil, err
		}
		db.SetMaxOpenConns(1)
		var n int
		if err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&n); err != nil {
			_ = db.Close()
			return nil, err
		}
		return db, nil
	}
	if still, err = atRest(absolute); err != nil {
		return nil, false, err
	}
	if !still {
		db, err = open("")
		if err == nil || ctx.Err() != nil {
			return db, false, err
		}
	}
	// There is no log; or SQLite would have to create a file, and the folder is not writable.
	db, again := open("&immutable=1")
	if again != nil {
		return nil, false, errors.Join(err, again)
	}
	return db, still, nil
}

// atRest reports whether a database uses a write-ahead log and has none now.
func atRest(path string) (bool, error) {
	const inLog = 2 // the version of the format in which it is written
	file, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer func() { _ = file.Close() }()
	head := make([]byte, 20)
	if _, err := file.ReadAt(head, 0); err != nil {
		return false, err
	}
	_, err = os.Stat(path + "-wal")
	return head[18] == inLog && errors.Is(err, fs.ErrNotExist), nil
}

// queryer is a database or a transaction.
type queryer interface {
	QueryContext(ctx context.Context, statement string, arguments ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, statement string, arguments ...any) *sql.Row
}

// databaseFormat returns the format whose tables a database has.
func databaseFormat(ctx context.Context, q queryer, name string) (*Format, error) {
	for i := range formats {
		f := &formats[i]
		if f.store == nil || name != Auto && name != "" && name != f.Name {
			continue
		}
		for _, columns := range f.tables {
			if ok, err := hasColumns(ctx, q, columns); err != nil {
				return nil, err
			} else if ok {
				return f, nil
			}
		}
	}
	return nil, fmt.Errorf("%w: it is a SQLite database without the tables of a known agent", ErrUnknownFormat)
}

// hasColumns reports whether a database has these columns, by table.
func hasColumns(ctx context.Context, q queryer, columns map[string][]string) (bool, error) {
	for table, names := range columns {
		for _, name := range names {
			var there int
			if err := q.QueryRowContext(ctx, "SELECT count(*) FROM pragma_table_info(?) WHERE name = ?", table, name).Scan(&there); err != nil {
				return false, err
			}
			if there == 0 {
				return false, nil
			}
		}
	}
	return true, nil
}

// columnOr returns an expression for a column that a database may lack, or have without a value: otherwise stands for it.
func columnOr(ctx context.Context, q queryer, table, column, otherwise string) (string, error) {
	ok, err := hasColumns(ctx, q, map[string][]string{table: {column}})
	if !ok {
		return otherwise, err
	}
	return "coalesce(" + column + ", " + otherwise + ")", nil
}

// changedSince lists the sessions of a SELECT that changed at or after a time. Its columns are the fields, of which created
// and changed have these names.
func changedSince(ctx context.Context, q queryer, since int64, sessions string, fields func(*stored) []any) (list []stored, err error) {
	err = query(ctx, q, func(scan func(...any) error) error {
		var s stored
		err := scan(fields(&s)...)
		list = append(list, s)
		return err
	}, "SELECT * FROM ("+sessions+") WHERE changed >= ? OR ? = 0 ORDER BY created, 1", since, since)
	return list, err
}

// query calls row for each row.
func query(ctx context.Context, q queryer, row func(scan func(...any) error) error, statement string, arguments ...any) (err error) {
	rows, err := q.QueryContext(ctx, statement, arguments...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}
