package main

import (
	"bytes"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares with a file of testdata; -update writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "go test ./cmd/mneme -run Help -update writes it")
}

func TestHelpGolden(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"help.txt":               {"--help"},
		"help_up.txt":            {"up", "--help"},
		"help_conversations.txt": {"conversations", "--help"},
		"help_messages.txt":      {"messages", "--help"},
		"help_tail.txt":          {"tail", "--help"},
	} {
		stdout, stderr, code := mnemeWith(t, []string{"COLUMNS=80"}, args...)
		require.Zero(t, code, stderr)
		golden(t, name, stdout)
	}
	bare, _, code := mnemeWith(t, []string{"COLUMNS=80"})
	require.Zero(t, code)
	golden(t, "help.txt", bare)
}

func TestHelpAndVersionAreFoundUnderTheirUsualNames(t *testing.T) {
	t.Parallel()
	for usual, ours := range map[string]string{
		"help": "--help", "help tail": "tail --help", "help conversations list": "conversations list --help",
		"--version --local": "version --local", "--version --json": "version --json",
	} {
		want, _, _ := mneme(t, append(strings.Fields(ours), "--url", "http://127.0.0.1:1")...)
		out, stderr, code := mneme(t, append(strings.Fields(usual), "--url", "http://127.0.0.1:1")...)
		require.Zero(t, code, stderr)
		require.Equal(t, want, out, usual)
	}
	_, stderr, code := mneme(t, "help", "nothing")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "nothing")
}

func TestEveryCommandsExampleParses(t *testing.T) {
	t.Parallel()
	var commands CLI
	parser, err := newParser(&commands)
	require.NoError(t, err)
	for _, node := range parser.Model.Leaves(true) {
		path := strings.TrimPrefix(node.FullPath(), "mneme ")
		require.NotNil(t, node.ClosestGroup(), "%s is under no heading", path)
		require.Contains(t, node.Detail, "Example", path)
		examples := 0
		for line := range strings.Lines(node.Detail) {
			_, command, found := strings.Cut(strings.ReplaceAll(line, "(", " "), " mneme ")
			if !strings.HasPrefix(line, "    ") || !found {
				continue
			}
			for _, end := range []string{"   ", " |", " <", " >", " ||", "'", ")"} {
				command, _, _ = strings.Cut(command, end)
			}
			var scratch CLI
			parser, err := newParser(&scratch)
			require.NoError(t, err)
			_, err = parser.Parse(words(command))
			require.NoError(t, err, "%s: %s", path, line)
			examples++
		}
		require.Positive(t, examples, path)
	}
}

// words splits an example as a shell would, quotes included.
func words(line string) (list []string) {
	for i, part := range strings.Split(strings.TrimSpace(line), `"`) {
		if i%2 == 1 {
			list = append(list, part)
		} else {
			list = append(list, strings.Fields(part)...)
		}
	}
	return list
}

func TestTheReferencePagesAreCurrent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	recording, err := os.ReadFile(filepath.Join("../../docs", recordedScout))
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "examples"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, recordedScout), recording, 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "../deploy/nats"), 0o700)) // where the permissions of NATS go
	_, stderr, code := mneme(t, "reference", dir)
	require.Zero(t, code, stderr)
	seen := 0
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		seen++
		name, err := filepath.Rel(dir, path)
		require.NoError(t, err)
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Join("../../docs", name))
		require.NoError(t, err, "go generate ./cmd/mneme makes it")
		require.True(t, bytes.Equal(want, got), "docs/%s is not what the code says: go generate ./cmd/mneme makes it", name)
		return nil
	}))
	require.Greater(t, seen, 30)
	for _, folder := range []string{"commands", "settings", "graph", "nats-roles"} {
		pages, err := os.ReadDir(filepath.Join("../../docs", folder))
		require.NoError(t, err)
		for _, page := range pages {
			require.FileExists(t, filepath.Join(dir, folder, page.Name()), "docs/%s/%s is no longer made: delete it", folder, page.Name())
		}
	}
}
