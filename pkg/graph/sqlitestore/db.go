package sqlitestore

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/gofrs/flock"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"mneme.dev/mneme/pkg/projection"
)

// ErrLocked means that another process writes to this read model.
var ErrLocked = errors.New("the read model is in use by another process")

// schemaVersion is the version of the tables; a file of another version is not opened.
const schemaVersion = 5

// readers limits the connections for reads.
const readers = 8

// Path is the file of one generation of a projection's read model.
func Path(dir, projection string, generation int) string {
	return filepath.Join(dir, fmt.Sprintf("%s-%d.db", projection, generation))
}

// db is one file: a writer's connection, unless it was opened read-only, and a pool of readers.
type db struct {
	path string
	lock *flock.Flock // nil when read only

	write   *sql.DB
	writer  *conn      // the only connection of write
	writing sync.Mutex // one transaction at a time

	read   *sql.DB
	free   chan struct{} // a token for each reader that may still be taken
	mu     sync.Mutex
	idle   []*conn // opened readers not in use
	closed chan struct{}
	once   sync.Once
}

// conn is a connection with its prepared statements. Only one goroutine at a time uses it.
type conn struct {
	*sql.Conn
	stmts  map[string]*sql.Stmt // queries
	execs  map[string]execStmt  // statements without rows
	values []driver.NamedValue  // of the current statement
	meter  *Meter               // nil unless somebody measures
}

// execStmt is a statement of the driver itself. A statement of database/sql converts and copies each
// value once more, which is several percent of writing.
type execStmt interface {
	driver.Stmt
	driver.StmtExecContext
}

func newConn(c *sql.Conn) *conn {
	return &conn{Conn: c, stmts: map[string]*sql.Stmt{}, execs: map[string]execStmt{}}
}

// openTables opens or creates a file with tables of a version for writing.
func openTables(ctx context.Context, path, schema string, shape int) (_ *db, err error) {
	d := &db{path: path, closed: make(chan struct{})}
	defer func() {
		if err != nil {
			_ = d.close()
			err = d.trouble(err)
		}
	}()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("the folder of the read models can't be made: %w", err)
	}
	d.lock = flock.New(path + ".lock")
	locked, err := d.lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if !locked {
		d.lock = nil
		return nil, fmt.Errorf("%s: %w", path, ErrLocked)
	}
	if d.write, err = sql.Open("sqlite", WriterDSN(path)); err != nil {
		return nil, err
	}
	d.write.SetMaxOpenConns(1)
	c, err := d.write.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	d.writer = newConn(c)
	var version int
	if err := c.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	var tables int // reads the schema, because damage to it would make every statement fail
	if err := c.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	switch version {
	case shape:
		if err := writable(ctx, c, shape); err != nil {
			return nil, fmt.Errorf("open %s for writing: %w", path, err)
		}
	case 0:
		script := "BEGIN IMMEDIATE;" + schema + fmt.Sprintf("PRAGMA user_version=%d; COMMIT;", shape)
		if _, err := c.ExecContext(ctx, script); err != nil {
			return nil, fmt.Errorf("create tables in %s: %w", path, err)
		}
	default:
		return nil, fmt.Errorf("%s has tables of version %d, this program makes version %d: %w (%s)", path, version, shape, projection.ErrRebuild, otherTables(path))
	}
	return d, d.openReaders()
}

// writable returns an error if the file of a connection can only be read: SQLite then opens it for reading, and the connection
// stays that way when the file may be written again. BEGIN IMMEDIATE alone would not tell.
func writable(ctx context.Context, c *sql.Conn, version int) error {
	_, err := c.ExecContext(ctx, fmt.Sprintf("PRAGMA busy_timeout=0; BEGIN IMMEDIATE; PRAGMA user_version=%d; ROLLBACK", version))
	var e *sqlite.Error
	if errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_BUSY { // another program writes it; a batch will wait for that
		err = nil
	}
	_, restored := c.ExecContext(ctx, "PRAGMA busy_timeout=10000")
	return cmp.Or(err, restored)
}

// otherTables says what to do about a file with tables of another version. The other read models have them too.
func otherTables(path string) string {
	if projectionOf(path) == "" {
		return "stop mneme, move it away, start again: what it holds is computed again"
	}
	return fmt.Sprintf("stop mneme, move %s away, start again: all read models are rebuilt from the log", filepath.Join(filepath.Dir(path), "*-[0-9]*.db*"))
}

// makeIndexes runs statements that create indexes which the file may lack.
func (d *db) makeIndexes(ctx context.Context, script string) error {
	if _, err := d.writer.Conn.ExecContext(ctx, script); err != nil {
		return d.trouble(fmt.Errorf("create indexes in %s: %w", d.path, err))
	}
	return nil
}

// openReader opens an existing file for reading. Until a writer has made the file and its tables, the error
// is fs.ErrNotExist.
func openReader(path string) (*db, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	d := &db{path: path, closed: make(chan struct{})}
	if err := d.openReaders(); err != nil {
		return nil, err
	}
	var version int
	if err := d.read.QueryRow("PRAGMA user_version").Scan(&version); err != nil {
		_ = d.close()
		return nil, d.trouble(fmt.Errorf("open %s: %w", path, err))
	}
	if version == 0 { // a writer is making it, or died while doing so
		return nil, errors.Join(fmt.Errorf("%s has no tables yet: %w", path, fs.ErrNotExist), d.close())
	}
	if version != schemaVersion {
		_ = d.close()
		return nil, fmt.Errorf("%s has tables of version %d, this program reads version %d: %w", path, version, schemaVersion, projection.ErrRebuild)
	}
	return d, nil
}

func (d *db) openReaders() (err error) {
	d.read, err = sql.Open("sqlite", dsn(d.path, "ro", "busy_timeout(10000)", "query_only(1)", cacheSize(d.path, readers), "temp_store(memory)"))
	if err != nil {
		return err
	}
	d.free = make(chan struct{}, readers)
	for range readers {
		d.free <- struct{}{}
	}
	return nil
}

// WriterDSN returns the writer's data source name, with every setting that affects its speed and
// safety.
func WriterDSN(path string) string {
	return dsn(path, "rwc",
		"journal_mode(wal)", "synchronous(normal)", "busy_timeout(10000)", cacheSize(path, 1),
		"temp_store(memory)", "wal_autocheckpoint(4000)", "journal_size_limit(67108864)", "foreign_keys(0)")
}

func dsn(path, mode string, pragmas ...string) string {
	q := url.Values{"mode": {mode}, "_pragma": pragmas, "_txlock": {"deferred"}}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode()
}

// close waits for the current transaction and for running reads, and releases the file. It is
// idempotent, and legal on a half-opened db.
func (d *db) close() (err error) {
	d.once.Do(func() { err = d.release() })
	return err
}

func (d *db) release() error {
	d.writing.Lock()
	defer d.writing.Unlock()
	close(d.closed)
	var errs []error
	for range cap(d.free) {
		<-d.free
	}
	for _, c := range d.idle {
		errs = append(errs, c.close())
	}
	if d.read != nil {
		errs = append(errs, d.read.Close())
	}
	if d.writer != nil {
		errs = append(errs, d.writer.close())
	}
	if d.write != nil {
		errs = append(errs, d.write.Close())
	}
	if d.lock != nil {
		errs = append(errs, d.lock.Unlock())
	}
	return errors.Join(errs...)
}

func (d *db) isClosed() error {
	select {
	case <-d.closed:
		return fmt.Errorf("%s is closed", d.path)
	default:
		return nil
	}
}

// transact runs fn in one write transaction.
func (d *db) transact(ctx context.Context, fn func() error) (err error) {
	if d.writer == nil {
		return fmt.Errorf("%s was opened read-only", d.path)
	}
	d.writing.Lock()
	defer d.writing.Unlock()
	if err := errors.Join(d.isClosed(), ctx.Err()); err != nil {
		return err
	}
	defer func() { err = d.trouble(err) }()
	if _, err := d.writer.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			// SQLite has ended the transaction itself if the disk was the cause.
			if _, rollback := d.writer.exec(ctx, "ROLLBACK"); rollback != nil && !isNoTransaction(rollback) {
				err = errors.Join(err, rollback)
			}
		}
	}()
	if err := fn(); err != nil {
		return err
	}
	_, err = d.writer.exec(ctx, "COMMIT")
	return err
}

// Snapshot runs reads that must see one state of the file. Any number may run at once.
func (d *db) Snapshot(ctx context.Context, fn func(q Queryer) error) (err error) {
	defer func() { err = d.trouble(err) }()
	select {
	case <-d.free:
		defer func() { d.free <- struct{}{} }()
	case <-d.closed:
		return d.isClosed()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := errors.Join(d.isClosed(), ctx.Err()); err != nil {
		return err
	}
	c, err := d.reader(ctx)
	if err != nil {
		return err
	}
	defer d.put(c)
	if _, err := c.exec(ctx, "BEGIN"); err != nil {
		return err
	}
	defer func() { _, _ = c.exec(ctx, "ROLLBACK") }()
	return fn(func(query string, args ...any) (*sql.Rows, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return c.query(ctx, query, args...)
	})
}

// reader takes the most recently used reader, whose cache is the warmest, or opens one. So there
// are never more caches than there were concurrent reads.
func (d *db) reader(ctx context.Context) (*conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if last := len(d.idle) - 1; last >= 0 {
		c := d.idle[last]
		d.idle = d.idle[:last]
		return c, nil
	}
	opened, err := d.read.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", d.path, err)
	}
	return newConn(opened), nil
}

func (d *db) put(c *conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.idle = append(d.idle, c)
}

// prepare prepares a query once. Like exec and query it is for use inside a transaction, and
// ignores the caller's cancellation: statements are short, and having the driver watch a context
// costs more than the statement.
func (c *conn) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	if s := c.stmts[query]; s != nil {
		return s, nil
	}
	// SQLite uses the value of a bound LIMIT in its plan, and so plans again for each binding. It
	// ignores the value of an expression.
	s, err := c.PrepareContext(ctx, strings.ReplaceAll(query, "LIMIT ?", "LIMIT ? + 0"))
	if err != nil {
		return nil, fmt.Errorf("prepare %q: %w", query, err)
	}
	c.stmts[query] = s
	return s, nil
}

func (c *conn) exec(ctx context.Context, query string, args ...any) (r driver.Result, err error) {
	err = c.Raw(func(opened any) error {
		s := c.execs[query]
		if s == nil {
			prepared, err := opened.(driver.Conn).Prepare(query)
			if err != nil {
				return fmt.Errorf("prepare %q: %w", query, err)
			}
			s = prepared.(execStmt)
			c.execs[query] = s
		}
		defer func() { clear(c.values) }() // keep no texts
		if err := c.convert(args); err != nil {
			return err
		}
		began := c.meter.begin()
		r, err = s.ExecContext(context.WithoutCancel(ctx), c.values)
		c.meter.end(query, r, began)
		return err
	})
	return r, classify(err)
}

// convert sets the values of the current statement.
func (c *conn) convert(args []any) (err error) {
	c.values = c.values[:0]
	for i, arg := range args {
		v := driver.NamedValue{Ordinal: i + 1}
		switch arg := arg.(type) {
		case string, []byte, int64, bool, nil:
			v.Value = arg
		case int:
			v.Value = int64(arg)
		default:
			if v.Value, err = driver.DefaultParameterConverter.ConvertValue(arg); err != nil {
				return fmt.Errorf("value %d: %w", i+1, err)
			}
		}
		c.values = append(c.values, v)
	}
	return nil
}

func (c *conn) query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	ctx = context.WithoutCancel(ctx)
	s, err := c.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	began := c.meter.begin()
	rows, err := s.QueryContext(ctx, args...)
	c.meter.end(query, nil, began)
	return rows, classify(err)
}

func (c *conn) close() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	if len(c.execs) > 0 {
		errs = append(errs, c.Raw(func(any) error {
			var errs []error
			for _, s := range c.execs {
				errs = append(errs, s.Close())
			}
			return errors.Join(errs...)
		}))
	}
	return errors.Join(append(errs, c.Conn.Close())...)
}

// Queryer runs one query and returns its rows, for [Each]. It belongs to a snapshot, and must not be
// used after it.
type Queryer func(query string, args ...any) (*sql.Rows, error)

// Each calls scan for every row of a query and closes the rows. Its first two arguments are what a
// [Queryer] or [Tx.Query] returned.
func Each(rows *sql.Rows, err error, scan func(*sql.Rows) error) error {
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// All returns what scan reads from every row of a query. Its first two arguments are those of [Each].
func All[T any](rows *sql.Rows, err error, scan func(*sql.Rows, *T) error) (list []T, _ error) {
	err = Each(rows, err, func(rows *sql.Rows) error {
		var row T
		err := scan(rows, &row)
		list = append(list, row)
		return err
	})
	return list, err
}

// classify maps SQLite's refusals of data to projection.ErrRejected.
func classify(err error) error {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		switch e.Code() & 0xff {
		case sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH:
			return fmt.Errorf("%w: %w", projection.ErrRejected, err)
		}
	}
	return err
}

// RowsPerStatement is how many rows one INSERT writes, and how many keys one lookup has. At 32 the
// fixed cost of a statement is negligible; larger statements take long to prepare.
const RowsPerStatement = 32

// inParts calls part for parts of n: parts of RowsPerStatement while enough rows are left, then
// parts of one. So only two statements need preparing, not one for each length.
func inParts(n int, part func(first, size int) error) error {
	for first, size := 0, RowsPerStatement; first < n; first += size {
		if n-first < RowsPerStatement {
			size = 1
		}
		if err := part(first, size); err != nil {
			return err
		}
	}
	return nil
}

// tuples returns parameters for n rows of VALUES.
func tuples(n, width int) string {
	row := "(" + strings.TrimSuffix(strings.Repeat("?,", width), ",") + ")"
	return "VALUES " + strings.TrimSuffix(strings.Repeat(row+",", n), ",")
}

// Insertion describes an INSERT of many rows.
type Insertion struct {
	Into     string // table (columns)
	Width    int    // number of columns
	Conflict string // ON CONFLICT clause; without one, a row that exists is projection.ErrRejected
}

// statement fails without undoing the rows before the refused one. To be able to undo them, SQLite
// would copy each page that it changes, and the transaction is rolled back anyway.
func (ins Insertion) statement(rows int) string {
	return "INSERT OR FAIL INTO " + ins.Into + " " + tuples(rows, ins.Width) + " " + ins.Conflict
}

// insert writes n rows whose values add appends, and returns how many it wrote.
func (c *conn) insert(ctx context.Context, ins Insertion, n int, add func(args []any, i int) []any) (written int64, err error) {
	args := make([]any, 0, min(n, RowsPerStatement)*ins.Width)
	err = inParts(n, func(first, size int) error {
		args = args[:0]
		for i := range size {
			args = add(args, first+i)
		}
		r, err := c.exec(ctx, ins.statement(size), args...)
		if err != nil {
			return err
		}
		affected, err := r.RowsAffected()
		written += affected
		return err
	})
	return written, err
}

// Selection describes a lookup of many rows by their keys.
type Selection struct {
	Columns, Table string
	Key            []string // columns of a unique index
}

func (sel Selection) statement(keys int) string {
	on := make([]string, len(sel.Key))
	for i, column := range sel.Key {
		on[i] = fmt.Sprintf("%s = k.column%d", column, i+2)
	}
	return "SELECT k.column1, " + sel.Columns + " FROM (" + tuples(keys, 1+len(sel.Key)) + ") AS k CROSS JOIN " + sel.Table + " ON " + strings.Join(on, " AND ")
}

// lookup looks up the rows of n keys whose values add appends, and calls scan for those that exist.
// The first column is the number of the key.
func (c *conn) lookup(ctx context.Context, sel Selection, n int, add func(args []any, i int) []any, scan func(*sql.Rows) error) error {
	return sel.lookup(func(query string, args ...any) (*sql.Rows, error) { return c.query(ctx, query, args...) }, n, add, scan)
}

// lookup does the same with any Queryer.
func (sel Selection) lookup(q Queryer, n int, add func(args []any, i int) []any, scan func(*sql.Rows) error) error {
	return inParts(n, func(first, size int) error {
		args := make([]any, 0, size*(1+len(sel.Key)))
		for i := range size {
			args = add(append(args, first+i), first+i)
		}
		rows, err := q(sel.statement(size), args...)
		return Each(rows, err, scan)
	})
}
