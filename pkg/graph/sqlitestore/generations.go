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
	"time"

	"github.com/gofrs/flock"

	"mneme.dev/mneme/pkg/projection"
)

// Generations manages the generations in a directory. The files themselves record which one serves:
// each may hold a row that it has begun to serve, and the highest such file serves. If none has the
// row, the lowest serves, because a file being built always has an older one below it. So the other
// files can be deleted in any order, even if the process dies in between. A damaged file counts as
// one without the row, so it serves only if no file is below it.
type Generations struct{ dir string }

var _ projection.Generations = Generations{}

// NewGenerations opens a directory, which need not exist yet.
func NewGenerations(dir string) Generations { return Generations{dir} }

// Close implements projection.Generations.
func (Generations) Close() error { return nil }

// gone is appended to the name of a file that is being deleted.
const gone = ".gone"

// files lists the generations that have a file, and those with leftovers, by number.
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
	for i := len(list) - 1; i > 0; i-- {
		path := Path(g.dir, name, list[i])
		came, err := cameToServe(ctx, path)
		if errors.Is(err, projection.ErrDamaged) {
			continue // the ones below it can be read, or it is the only one
		}
		if err != nil {
			if _, e := os.Stat(path); errors.Is(e, fs.ErrNotExist) { // deleted just now
				return g.Builds(ctx, name)
			}
			return b, err
		}
		if came {
			b.Serving = list[i]
			break
		}
	}
	b.Others = slices.DeleteFunc(append(list, leaving...), func(n int) bool { return n == b.Serving })
	slices.Sort(b.Others)
	b.Others = slices.Compact(b.Others)
	for _, n := range append(b.Others, b.Serving) {
		b.Last = max(b.Last, n)
	}
	return b, nil
}

// cameToServe reports whether a file has begun to serve. The table is made together with its row.
func cameToServe(ctx context.Context, path string) (came bool, err error) {
	d, err := sql.Open("sqlite", dsn(path, "ro", "busy_timeout(10000)", "query_only(1)"))
	if err != nil {
		return false, err
	}
	defer func() { _ = d.Close() }()
	if err := d.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema WHERE name = 'came_to_serve'").Scan(&came); err != nil {
		return false, (&db{path: path}).trouble(fmt.Errorf("%s: %w", path, err))
	}
	return came, nil
}

// Supersede implements projection.Generations.
func (g Generations) Supersede(ctx context.Context, name string, from, to int) error {
	return g.alone(ctx, name, func() error {
		b, err := g.Builds(ctx, name)
		switch {
		case err != nil:
			return err
		case b.Serving == to:
			return nil
		case b.Serving != from || to < from || !slices.Contains(b.Others, to):
			return fmt.Errorf("%w: generation %d of %s cannot replace %d: %d serves, and %v exist too", projection.ErrSuperseded, to, name, from, b.Serving, b.Others)
		}
		return comesToServe(ctx, Path(g.dir, name, to), "rw", from)
	})
}

// comesToServe records in a file that it has begun to serve. Not even a power cut may undo this, or
// what the file has applied, because the old file is deleted later.
func comesToServe(ctx context.Context, path, mode string, from int) error {
	d, err := sql.Open("sqlite", dsn(path, mode, "busy_timeout(10000)", "synchronous(full)"))
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	if _, err := d.ExecContext(ctx, "BEGIN IMMEDIATE; CREATE TABLE came_to_serve (after INTEGER NOT NULL); INSERT INTO came_to_serve VALUES (?); COMMIT", from); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// Replace lets an empty generation serve in place of one with a damaged file, and sets that file
// aside (see [SetAside]). The empty one has another number, so readers in other processes notice
// and release the old file. It returns projection.ErrSuperseded if another generation serves, and
// [ErrLocked] while a writer has the file open.
func (g Generations) Replace(ctx context.Context, name string, damaged int) (empty int, to string, err error) {
	err = g.alone(ctx, name, func() error {
		b, err := g.Builds(ctx, name)
		if err != nil {
			return err
		}
		if b.Serving != damaged {
			return fmt.Errorf("%w: generation %d of %s serves, not %d", projection.ErrSuperseded, b.Serving, name, damaged)
		}
		empty = b.Last + 1
		if err := comesToServe(ctx, Path(g.dir, name, empty), "rwc", damaged); err != nil {
			return err
		}
		to, err = SetAside(Path(g.dir, name, damaged))
		return err
	})
	return empty, to, err
}

// lockPoll is how often a change of generations checks whether another one has ended.
const lockPoll = 10 * time.Millisecond

// alone serializes the changes of a projection's generations.
func (g Generations) alone(ctx context.Context, name string, change func() error) (err error) {
	if _, err := os.Stat(g.dir); errors.Is(err, fs.ErrNotExist) {
		return change() // of nothing
	}
	lock := flock.New(filepath.Join(g.dir, name+".lock"))
	if _, err := lock.TryLockContext(ctx, lockPoll); err != nil {
		return fmt.Errorf("lock %s: %w", lock.Path(), err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	return change()
}

// Discard implements projection.Generations. It returns [ErrLocked] while a writer has
// the file open.
func (g Generations) Discard(ctx context.Context, name string, generation int) (err error) {
	return g.alone(ctx, name, func() error {
		b, err := g.Builds(ctx, name)
		switch {
		case err != nil:
			return err
		case b.Serving == generation:
			return fmt.Errorf("discard generation %d of %s: %w", generation, name, projection.ErrServing)
		case !slices.Contains(b.Others, generation):
			return nil
		}
		return remove(Path(g.dir, name, generation))
	})
}

// remove deletes a file that no writer has open.
func remove(path string) (err error) {
	lock := flock.New(path + ".lock")
	locked, err := lock.TryLock()
	if err != nil {
		return fmt.Errorf("lock %s: %w", path, err)
	}
	if !locked {
		return fmt.Errorf("%s: %w", path, ErrLocked)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	// Nobody opens the file under its new name. It is removed last: while it is there, its number is not used again and
	// its generation can be discarded again. A log left alone would be taken for that of the next file of that name.
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
	s := &store{db: d, projection: name}
	list, err := s.Checkpoints(ctx)
	return list, errors.Join(err, s.Close())
}
