package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"mneme.dev/mneme/internal/codeindex"
)

// How often watch looks whether files of an indexed folder have changed: every lookEvery, but so that looking takes at
// most one part in lookShare of the time. It walks through the folders, because the system would need a watch for each
// of them.
const (
	lookEvery = 10 * time.Second
	lookShare = 20
)

// codeFollower keeps folders indexed.
type codeFollower struct {
	folders []*codeFolder
	log     *remoteLog
	logger  *slog.Logger
	files   int // published, or published as removed
}

// codeFolder is a folder that is kept indexed.
type codeFolder struct {
	codeindex.Options
	due time.Time
	err error // of the last look
}

// folders returns the folders to keep indexed.
func (c *WatchCmd) folders(ctx context.Context, g *Globals, api *client) (list []*codeFolder, err error) {
	for _, path := range c.Index {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, usageError("%s: no such file or folder; name the folder of a project", path)
		}
		command := IndexCmd{Path: path, MaxFiles: codeindex.DefaultMaxFiles, Redacting: c.Redacting}
		options, err := command.options(ctx, g)
		if err != nil {
			return nil, err
		}
		options.Known, options.Erased = api.indexed, api.erased
		list = append(list, &codeFolder{Options: options})
	}
	return list, nil
}

// follow looks at the folders again and again, until ctx ends.
func (f *codeFollower) follow(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for ctx.Err() == nil && len(f.folders) > 0 {
		f.look(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// look indexes what has changed in the folders that are due. A failure is retried at the next look, and logged when it
// first occurs and when it changes.
func (f *codeFollower) look(ctx context.Context) {
	for _, folder := range f.folders {
		if time.Now().Before(folder.due) {
			continue
		}
		began := time.Now()
		report, err := f.index(ctx, folder)
		ended := time.Now()
		folder.due = ended.Add(max(lookEvery, lookShare*ended.Sub(began)))
		changed := report.Indexed + report.Removed
		f.files += changed
		if ctx.Err() != nil { // the next run continues
			return
		}
		switch {
		case err != nil && fmt.Sprint(err) != fmt.Sprint(folder.err):
			f.logger.Warn("code is not indexed; trying again", "folder", folder.Root, "error", err)
		case err == nil && changed > 0:
			f.logger.Info("indexed code", "project", report.Project, "files", report.Indexed, "removed", report.Removed)
		}
		folder.err = err
	}
}

func (f *codeFollower) index(ctx context.Context, folder *codeFolder) (codeindex.Report, error) {
	_, release, err := claimed("index", folder.State)
	if err != nil {
		return codeindex.Report{}, err
	}
	defer release()
	o := folder.Options
	o.Log = f.log
	return codeindex.Run(ctx, o)
}

// trouble returns why folders could not be indexed when they were last read.
func (f *codeFollower) trouble() error {
	var list []error
	for _, folder := range f.folders {
		if folder.err != nil {
			list = append(list, fmt.Errorf("%s: %w", folder.Root, folder.err))
		}
	}
	return errors.Join(list...)
}
