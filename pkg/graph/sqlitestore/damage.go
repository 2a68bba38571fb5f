package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gofrs/flock"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"mneme.dev/mneme/pkg/projection"
)

// trouble names what SQLite says of a damaged file and of a disk that does not work.
// Every error of a db passes through it, on its way out.
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
	}
	return err
}

// isNoTransaction tells whether there was no transaction to roll back.
func isNoTransaction(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code() == sqlite3.SQLITE_ERROR
}

// projectionOf is the projection whose read model has a path, "" if none has (see [Path]).
func projectionOf(path string) string {
	name := filepath.Base(path)
	return name[:max(strings.LastIndexByte(name, '-'), 0)]
}

// aside is what the name of a damaged file ends in, before a number.
const aside = ".damaged-"

// SetAside renames a damaged file, and what belongs to it, so that its name is free and
// what it holds is kept. The new name ends in the lowest number that nothing has yet. It
// returns [ErrLocked] while a writer has the file open.
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
	// The database goes last: a log without it would be taken for that of the next file.
	for _, suffix := range []string{"-wal", "-shm", ""} {
		if err := os.Rename(path+suffix, to+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return to, nil
}

// exists tells whether there is a file of a name, or something that belongs to one.
func exists(path string) bool {
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if _, err := os.Lstat(path + suffix); !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
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

// Check reads the file of a read model to its end and looks whether its structure is
// whole, which takes about a second a gigabyte. It does not compare what the rows say:
// a verification does. It returns a [*projection.DamagedError], and ctx's error if the
// time did not suffice.
func Check(ctx context.Context, path string) error {
	d, err := sql.Open("sqlite", dsn(path, "ro", "busy_timeout(10000)", "query_only(1)", readerCache))
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
