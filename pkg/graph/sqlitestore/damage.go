package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gofrs/flock"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"mneme.dev/mneme/pkg/projection"
)

// trouble translates SQLite's errors about a damaged file or a failing disk. Every error that
// leaves a db passes through it.
func (d *db) trouble(err error) error {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return err
	}
	switch code := e.Code() & 0xff; {
	case code == sqlite3.SQLITE_CORRUPT, code == sqlite3.SQLITE_NOTADB, e.Code() == sqlite3.SQLITE_IOERR_SHORT_READ: // the file was cut
		return &projection.DamagedError{Projection: projectionOf(d.path), Err: err}
	case code == sqlite3.SQLITE_FULL, code == sqlite3.SQLITE_IOERR:
		return fmt.Errorf("%w: %w", projection.ErrDisk, err)
	case code == sqlite3.SQLITE_READONLY && e.Code() != sqlite3.SQLITE_READONLY_DBMOVED:
		return fmt.Errorf("%w: the file or its file system is read-only for this user: %w", projection.ErrDisk, err)
	}
	return err
}

// isNoTransaction reports whether there was no transaction to roll back.
func isNoTransaction(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code() == sqlite3.SQLITE_ERROR
}

// projectionOf returns the projection whose read model has a path, "" if none has (see [Path]).
func projectionOf(path string) string {
	name := filepath.Base(path)
	return name[:max(strings.LastIndexByte(name, '-'), 0)]
}

// aside ends the name of a damaged file, before a number.
const aside = ".damaged-"

// SetAside renames a damaged file and its companion files, so that its name is free and its content
// is kept. The new name ends in the lowest free number. It returns [ErrLocked] while a writer has
// the file open.
func SetAside(path string) (to string, err error) {
	lock := flock.New(path + ".lock")
	locked, err := lock.TryLock()
	if err != nil {
		return "", fmt.Errorf("lock %s: %w", path, err)
	}
	if !locked {
		return "", fmt.Errorf("%s: %w", path, ErrLocked)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	for n := 1; to == "" || exists(to); n++ {
		to = fmt.Sprintf("%s%s%d", path, aside, n)
	}
	// The database goes last: its log, left alone, would be taken for the log of the next database.
	for _, suffix := range []string{"-wal", "-shm", ""} {
		if err := os.Rename(path+suffix, to+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return to, nil
}

// exists reports whether there is a file of this name, or a companion of one.
func exists(path string) bool {
	return slices.ContainsFunc([]string{"", "-wal", "-shm"}, func(suffix string) bool {
		_, err := os.Lstat(path + suffix)
		return !errors.Is(err, fs.ErrNotExist)
	})
}

// AllSetAside lists the files of a directory that were set aside, sorted by name.
func AllSetAside(dir string) (list []string, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		_, number, isAside := strings.Cut(e.Name(), aside)
		if _, err := strconv.Atoi(number); isAside && err == nil {
			list = append(list, filepath.Join(dir, e.Name()))
		}
	}
	return list, err
}

// Check reads the file of a read model to its end and checks its structure, which takes about a
// second per gigabyte. It does not compare the content of rows; a verification does. It returns a
// [*projection.DamagedError], or ctx's error if time ran out.
func Check(ctx context.Context, path string) error {
	d, err := sql.Open("sqlite", dsn(path, "ro", "busy_timeout(10000)", "query_only(1)", cacheSize(path, readers)))
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	var found string
	err = d.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&found)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return (&db{path: path}).trouble(fmt.Errorf("check %s: %w", path, err))
	case found != "ok":
		return &projection.DamagedError{Projection: projectionOf(path), Err: fmt.Errorf("check %s: %s", path, strings.Join(strings.Fields(found), " "))}
	}
	return nil
}
