package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/gofrs/flock"

	"mneme/pkg/projection"
)

// Generations are the files of a directory. Which one serves is in the files: a row in
// the one says which other has superseded it. So from the lowest the way leads to the
// one that serves, and a file that nobody points to is not ready. Only the process that
// writes a projection may change its generations.
type Generations struct{ dir string }

var _ projection.Generations = Generations{}

// NewGenerations looks at the files of a directory, which need not be there yet.
func NewGenerations(dir string) Generations { return Generations{dir} }

// Close implements projection.Generations.
func (Generations) Close() error { return nil }

// gone is what is added to the name of a file that is on its way out.
const gone = ".gone"

// files lists the generations that have a file, and those of which something is left,
// by number.
func (g Generations) files(name string) (list, leaving []int, err error) {
	entries, err := os.ReadDir(g.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	for _, e := range entries {
		number, ok := strings.CutPrefix(e.Name(), name+"-")
		number, isLeaving := strings.CutSuffix(number, gone)
		number, isFile := strings.CutSuffix(number, ".db")
		switch n, err := strconv.Atoi(number); {
		case !ok || !isFile || err != nil || n < projection.FirstGeneration:
		case isLeaving:
			leaving = append(leaving, n)
		default:
			list = append(list, n)
		}
	}
	slices.Sort(list)
	return list, leaving, err
}

// Builds implements projection.Generations.
func (g Generations) Builds(ctx context.Context, name string) (projection.Builds, error) {
	list, leaving, err := g.files(name)
	if err != nil {
		return projection.Builds{}, err
	}
	b := projection.Builds{Serving: projection.FirstGeneration}
	if len(list) > 0 {
		b.Serving = list[0]
	}
	for len(list) > 1 {
		path := Path(g.dir, name, b.Serving)
		next, err := supersededBy(ctx, path)
		if err != nil {
			if _, e := os.Stat(path); errors.Is(e, fs.ErrNotExist) { // it goes just now, because the next one serves
				return g.Builds(ctx, name)
			}
			return b, err
		}
		if next <= b.Serving || !slices.Contains(list, next) {
			break
		}
		b.Serving = next
	}
	b.Others = slices.DeleteFunc(append(list, leaving...), func(n int) bool { return n == b.Serving })
	slices.Sort(b.Others)
	b.Others = slices.Compact(b.Others)
	for _, n := range append(b.Others, b.Serving) {
		b.Last = max(b.Last, n)
	}
	return b, nil
}

// supersededBy reads which generation has superseded a file's, 0 for none. The table is
// made together with its row.
func supersededBy(ctx context.Context, path string) (next int, err error) {
	if _, err := os.Stat(path); err != nil {
		return 0, err
	}
	d, err := sql.Open("sqlite", dsn(path, "ro", "busy_timeout(10000)", "query_only(1)"))
	if err != nil {
		return 0, err
	}
	defer func() { _ = d.Close() }()
	err = d.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema WHERE name = 'superseded'").Scan(&next)
	if err == nil && next > 0 {
		err = d.QueryRowContext(ctx, "SELECT generation FROM superseded").Scan(&next)
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return next, nil
}

// Supersede implements projection.Generations.
func (g Generations) Supersede(ctx context.Context, name string, from, to int) error {
	b, err := g.Builds(ctx, name)
	switch {
	case err != nil:
		return err
	case b.Serving == to:
		return nil
	case b.Serving != from || !slices.Contains(b.Others, to):
		return fmt.Errorf("%w: generation %d of %s can't take the place of %d: %d serves, there are %v beside it", projection.ErrSuperseded, to, name, from, b.Serving, b.Others)
	}
	path := Path(g.dir, name, from)
	// Not even a power cut may take this back: the old file is deleted later.
	d, err := sql.Open("sqlite", dsn(path, "rw", "busy_timeout(10000)", "synchronous(full)"))
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	d.SetMaxOpenConns(1)
	tx, err := d.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer func() { _ = tx.Rollback() }()
	for _, statement := range []string{
		"CREATE TABLE IF NOT EXISTS superseded (generation INTEGER NOT NULL)",
		"DELETE FROM superseded", // whose file is gone
		"INSERT INTO superseded VALUES (" + strconv.Itoa(to) + ")",
	} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// Discard implements projection.Generations. It returns [ErrLocked] while a writer has
// the file open.
func (g Generations) Discard(ctx context.Context, name string, generation int) (err error) {
	b, err := g.Builds(ctx, name)
	if err != nil {
		return err
	}
	if b.Serving == generation {
		return fmt.Errorf("discard generation %d of %s: %w", generation, name, projection.ErrServing)
	}
	if !slices.Contains(b.Others, generation) {
		return nil
	}
	path := Path(g.dir, name, generation)
	lock := flock.New(path + ".lock")
	locked, err := lock.TryLock()
	if err != nil {
		return fmt.Errorf("lock %s: %w", path, err)
	}
	if !locked {
		return fmt.Errorf("%s: %w", path, ErrLocked)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	// Under another name nobody opens it any more. That goes last: a log without its
	// database would be taken for that of the next file of the name.
	if err := os.Rename(path, path+gone); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, suffix := range []string{"-wal", "-shm", ".lock", gone} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Checkpoints implements projection.Generations.
func (g Generations) Checkpoints(ctx context.Context, name string, generation int) ([]projection.Checkpoint, error) {
	d, err := openReader(Path(g.dir, name, generation))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s := &store{d, name}
	list, err := s.Checkpoints(ctx)
	return list, errors.Join(err, s.Close())
}
