package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// blocks are the fenced blocks of a language in the README.
func blocks(t *testing.T, language string) (list []string) {
	raw, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	for _, match := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(raw), -1) {
		list = append(list, match[1])
	}
	require.NotEmpty(t, list)
	return list
}

func TestTheReadmesCommandsExist(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, block := range blocks(t, "sh") {
		for line := range strings.Lines(block) {
			line, _, _ = strings.Cut(line, "#")
			args := words(line)
			if len(args) == 0 || args[0] != "mneme" {
				continue
			}
			parser, err := newParser(&CLI{})
			require.NoError(t, err)
			_, err = parser.Parse(args[1:])
			require.NoError(t, err, line)
			seen++
		}
	}
	require.GreaterOrEqual(t, seen, 8)
}

func TestTheReadmesGoProgramPublishes(t *testing.T) {
	t.Parallel()
	s := up(t, filepath.Join(t.TempDir(), "data"))
	dir, err := os.MkdirTemp(".", "readme-") // inside of the module
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	program := strings.Replace(blocks(t, "go")[0], "nats://127.0.0.1:4222", s.ready.NATS, 1)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o644))
	out, err := exec.Command("go", "run", "./"+dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, "stored at sequence 1\n", string(out))

	if _, err := exec.LookPath("curl"); err != nil {
		t.Log("curl is not installed: the README's curl commands did not run")
		return
	}
	script := ""
	for _, block := range blocks(t, "sh") {
		if strings.Contains(block, "curl") {
			script += strings.ReplaceAll(block, "http://127.0.0.1:8420", s.ready.HTTP)
		}
	}
	shell := exec.Command("sh", "-ec", script)
	shell.Dir = t.TempDir() // it writes files
	out, err = shell.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), `{"events":[{"id":"event-2","seq":2,"duplicate":false}],"seq":2}`)
	require.Contains(t, string(out), "In the same transaction.")
	require.NotContains(t, string(out), `"detail":`, "a problem")
}
