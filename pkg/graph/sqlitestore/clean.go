package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"

	"mneme.dev/mneme/pkg/projection"
)

// emptyWAL moves everything from the write-ahead log into the file, and empties the log.
const emptyWAL = "PRAGMA wal_checkpoint(TRUNCATE)"

// Clean implements projection.Cleaner. It merges the full-text indexes, whose segments keep deleted terms, rewrites the
// whole file, and empties its write-ahead log. secure_delete would not suffice: a page that was split keeps a copy of
// the rows that moved, until it is overwritten.
//
// The new file is built in the system's folder for temporary files (TMPDIR). Writers wait; readers continue to see the
// old state.
func (s *store) Clean(ctx context.Context) (projection.Cleaned, error) { return s.clean(ctx) }

func (d *db) clean(ctx context.Context) (c projection.Cleaned, err error) {
	if d.writer == nil {
		return c, fmt.Errorf("%s was opened read-only", d.path)
	}
	d.writing.Lock()
	defer d.writing.Unlock()
	if err := errors.Join(d.isClosed(), ctx.Err()); err != nil {
		return c, err
	}
	defer func() { err = d.trouble(err) }()
	c.BytesBefore = d.bytes()
	rows, err := d.writer.QueryContext(ctx, "SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL TABLE % USING fts5(%' ORDER BY name")
	indexes, err := All(rows, err, func(rows *sql.Rows, name *string) error { return rows.Scan(name) })
	if err != nil {
		return c, err
	}
	// By default, VACUUM builds the new file in temporary storage that is in memory.
	defer func() { _, _ = d.writer.ExecContext(context.WithoutCancel(ctx), "PRAGMA temp_store=memory") }()
	steps := []string{"PRAGMA temp_store=file", "VACUUM"}
	for i := len(indexes) - 1; i >= 0; i-- {
		steps = append([]string{fmt.Sprintf("INSERT INTO %s(%s) VALUES ('optimize')", indexes[i], indexes[i])}, steps...)
	}
	for _, step := range steps {
		if _, err := d.writer.ExecContext(ctx, step); err != nil {
			return c, fmt.Errorf("%s: %w", step, err)
		}
	}
	for {
		var busy, frames, done int
		if err := d.writer.QueryRowContext(ctx, emptyWAL).Scan(&busy, &frames, &done); err != nil {
			return c, err
		}
		if busy == 0 {
			break
		}
		select {
		case <-time.After(100 * time.Millisecond): // a reader still uses the old file
		case <-ctx.Done():
			return c, fmt.Errorf("empty the write-ahead log of %s, which a reader still uses: %w", d.path, ctx.Err())
		}
	}
	c.BytesAfter = d.bytes()
	return c, nil
}

// bytes is the size of the file and its write-ahead log.
func (d *db) bytes() (n int64) {
	for _, path := range []string{d.path, d.path + "-wal"} {
		if info, err := os.Stat(path); err == nil {
			n += info.Size()
		}
	}
	return n
}
