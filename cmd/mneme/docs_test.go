package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/settings"
)

// blocks returns the fenced blocks of a language in a page of the repository.
func blocks(t *testing.T, page, language string) (list []string) {
	raw, err := os.ReadFile("../../" + page)
	require.NoError(t, err)
	for _, match := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(raw), -1) {
		list = append(list, match[1])
	}
	require.NotEmpty(t, list)
	return list
}

func TestTheCommandsInTheDocsExist(t *testing.T) {
	t.Parallel()
	seen := 0
	var all []string
	for _, page := range pages(t) {
		raw, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, match := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(raw), -1) {
			all = append(all, match[1])
		}
	}
	for _, block := range all {
		for line := range strings.Lines(block) {
			line, _, _ = strings.Cut(line, "#")
			line, _, _ = strings.Cut(line, " > ")
			args := words(line)
			for len(args) > 0 && strings.HasPrefix(args[0], "MNEME_") { // a setting
				args = args[1:]
			}
			if len(args) == 0 || args[0] != "mneme" && args[0] != "bin/mneme" {
				continue
			}
			parser, err := newParser(&CLI{})
			require.NoError(t, err)
			_, err = parser.Parse(args[1:])
			require.NoError(t, err, line)
			seen++
		}
	}
	require.GreaterOrEqual(t, seen, 80)
}

func TestTheProfilesInTheDocsAreValid(t *testing.T) {
	t.Parallel()
	s := settings.ForSummarizer()
	require.NoError(t, settings.Read(s))
	s.ProfilesFile = filepath.Join(t.TempDir(), "profiles.json")
	require.NoError(t, os.WriteFile(s.ProfilesFile, []byte(blocks(t, "docs/summaries.md", "json")[0]), 0o600))
	require.NoError(t, settings.Check(s))
	profiles, err := s.Profiles()
	require.NoError(t, err)
	require.Len(t, profiles, 3)
	for name, changed := range profiles {
		require.NotEqual(t, s.Summaries, changed, name)
	}
}

func TestTheProgramAndTheCommandsInTheDocsWork(t *testing.T) {
	t.Parallel()
	s := up(t, filepath.Join(t.TempDir(), "data"))
	s.publish("another", userMessage("x", "What the docs say fits a log that others write, too."))
	dir, err := os.MkdirTemp(".", "_readme-") // inside the module, but not in ./..., which other tests list
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	program := strings.Replace(blocks(t, "docs/publish.md", "go")[0], "nats://127.0.0.1:4222", s.ready.NATS, 1)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o644))
	out, err := exec.Command("go", "run", "./"+dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, "stored at sequence 2\n", string(out))

	for _, tool := range []string{"curl", "jq"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Logf("%s is not installed: the curl commands in the docs did not run", tool)
			return
		}
	}
	script := ""
	for _, block := range append(blocks(t, "docs/publish.md", "sh"), blocks(t, "docs/read.md", "sh")...) {
		if strings.Contains(block, "curl") {
			script += strings.ReplaceAll(block, "http://127.0.0.1:8420", s.ready.HTTP)
		}
	}
	shell := exec.Command("sh", "-ec", script+"echo sequences $first to $seq\n")
	shell.Dir = t.TempDir() // it writes files
	out, err = shell.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "sequences 2 to 3\n")
	require.Contains(t, string(out), "In the same transaction.")
	require.NotContains(t, string(out), `"detail":`, "a problem")
}

func TestTheGoProgramInTheDocsBuildsInItsOwnModule(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(blocks(t, "docs/publish.md", "go")[0]), 0o600))
	// With the versions of the project's go.mod no registry is needed.
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	own := strings.Replace(string(mod), "module mneme.dev/mneme", "module example.com/agent", 1) +
		"\nrequire mneme.dev/mneme v0.0.0\n\nreplace mneme.dev/mneme => " + root + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(own), 0o600))
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.sum"), sum, 0o600))
	run := func(args ...string) string {
		cmd := exec.Command("go", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod") // with other flags, all would be compiled again
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	run("build", "-o", os.DevNull, ".")
	require.NotContains(t, run("list", "-deps", "."), "nats-server", "a client links no server")
}
