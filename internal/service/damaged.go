package service

import (
	"errors"
	"log/slog"

	"mneme/pkg/graph/sqlitestore"
	"mneme/pkg/projection"
)

// replaced opens a file that this process writes. One that is damaged is moved aside, and
// an empty one opened in its place: a read model is derived, its projector fills it from
// the log. A file of other tables is not damaged, and stays.
func replaced[S any](logger *slog.Logger, path string, open func() (S, error)) (S, error) {
	store, err := open()
	if !errors.Is(err, projection.ErrDamaged) {
		return store, err
	}
	to, failed := sqlitestore.SetAside(path)
	if failed != nil {
		return store, errors.Join(err, failed)
	}
	logger.Error("a damaged file was moved aside: an empty one takes its place and is filled again; delete the copy when nobody needs it",
		"file", path, "moved_to", to, "error", err)
	return open()
}
