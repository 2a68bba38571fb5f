package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// gitWithin is how long git may take to say what it tracks.
const gitWithin = 10 * time.Second

// shipped reports whether a data directory belongs to the files of the git repository that it is in: then its log came with
// a clone, and whoever committed it decides what agents are told. Without git, and outside of repositories, it is false.
func shipped(ctx context.Context, dir string) bool {
	whole, err := filepath.Abs(dir)
	if err != nil {
		return false
	}
	if _, err := os.Lstat(whole); err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, gitWithin)
	defer cancel()
	// A repository's own settings must start no program here, and where names have no case .Mneme is .mneme.
	tracked, err := exec.CommandContext(ctx, "git", "-C", filepath.Dir(whole), "-c", "core.fsmonitor=false", "ls-files", "--", ":(icase,literal)"+filepath.Base(whole)).Output()
	return err == nil && len(tracked) > 0
}
