// Command plugingen writes the plugin for Claude Code into the folder that it is given.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"mneme.dev/mneme/internal/connect"
	"mneme.dev/mneme/internal/writefile"
)

func main() {
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(folder string) error {
	files, err := connect.ClaudePlugin()
	if err != nil {
		return err
	}
	for name, content := range files {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := writefile.Write(path, bytes.NewReader(content)); err != nil {
			return err
		}
	}
	return nil
}
