package worker

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"

	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/projection"
)

// replace starts an empty generation to replace one whose file can't be opened. A read
// model is derived, so nothing is lost: the projector fills the new one from the log. The
// damaged file is kept. A file with tables of another version is not damaged.
func (c *Consumer[U, S]) replace(ctx context.Context, damaged int, cause error) (*build[U, S], error) {
	generation, to, err := sqlitestore.NewGenerations(c.Stores.place.Dir).Replace(ctx, c.declared.Name(), damaged)
	if err != nil {
		return nil, errors.Join(cause, err)
	}
	c.slog.Error("the read model's file is damaged: it was moved aside, and the read model is being rebuilt from the log; delete the copy when you no longer need it",
		"moved_to", to, "generation", generation, "error", cause)
	return c.build(ctx, generation)
}

// isDeleted reports whether somebody has deleted the file of a generation. Until the process ends the store goes on with
// a file that has no name, so nothing else tells.
func (c *Consumer[U, S]) isDeleted(generation int) bool {
	path := c.Stores.Path(c.declared.Name(), generation)
	if path == "" {
		return false
	}
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// emptied opens a cache. It moves a damaged one aside and creates an empty one.
func emptied[S any](logger *slog.Logger, path string, open func() (S, error)) (S, error) {
	store, err := open()
	if !errors.Is(err, projection.ErrDamaged) {
		return store, err
	}
	to, failed := sqlitestore.SetAside(path)
	if failed != nil {
		return store, errors.Join(err, failed)
	}
	logger.Error("a cache is damaged: it was moved aside and replaced by an empty one; delete the copy when you no longer need it", "moved_to", to, "error", err)
	return open()
}
