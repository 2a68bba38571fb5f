// Package openclaw finds the files of OpenClaw where OpenClaw looks for them itself.
package openclaw

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// StateDir returns the folder of OpenClaw: $OPENCLAW_STATE_DIR, else .openclaw in $OPENCLAW_HOME or in the user's home.
func StateDir() (string, error) {
	if dir := env("OPENCLAW_STATE_DIR"); dir != "" {
		return Path(dir)
	}
	return Path("~/.openclaw")
}

// Path returns a path in OpenClaw's environment as an absolute one. ~ at its beginning is $OPENCLAW_HOME, else the user's home.
func Path(path string) (string, error) {
	path, err := inHome(strings.TrimSpace(path), home)
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

func home() (string, error) {
	if dir := env("OPENCLAW_HOME"); dir != "" {
		return inHome(dir, os.UserHomeDir)
	}
	return os.UserHomeDir()
}

// inHome replaces ~ at the beginning of a path.
func inHome(path string, home func() (string, error)) (string, error) {
	rest, ok := strings.CutPrefix(path, "~")
	if !ok || rest != "" && !strings.HasPrefix(rest, "/") && !strings.HasPrefix(rest, `\`) {
		return path, nil
	}
	dir, err := home()
	if err == nil && !filepath.IsAbs(dir) {
		err = errors.New("the home folder is not an absolute path")
	}
	return filepath.Join(dir, rest), err
}

func env(name string) string { return strings.TrimSpace(os.Getenv(name)) }
