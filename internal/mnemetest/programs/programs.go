// Package programs builds the programs that tests run as separate processes. The tests of
// all packages share one folder, and a program that is up to date is not linked again,
// because linking takes most of the build time.
package programs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
)

// Build builds programs, by the path of their package ("mneme.dev/mneme/cmd/mneme"), and returns the
// folder of the binaries, .cache/programs of this repository.
func Build(packages ...string) (dir string, err error) {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "mneme.dev/mneme").Output()
	if err != nil {
		return "", fmt.Errorf("go list: %w", err)
	}
	dir = filepath.Join(strings.TrimSpace(string(root)), ".cache", "programs")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	// Tests of several packages run at the same time.
	lock := flock.New(filepath.Join(dir, ".lock"))
	if err := lock.Lock(); err != nil {
		return "", fmt.Errorf("lock %s: %w", dir, err)
	}
	defer func() { _ = lock.Unlock() }()
	out, err := exec.Command("go", append([]string{"build", "-ldflags=-s -w", "-o", dir + string(filepath.Separator)}, packages...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return dir, nil
}
