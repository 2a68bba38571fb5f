package sdk

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest"
)

func TestTheProgramsOfTheReadmeRun(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	s := mnemetest.Up(t, filepath.Join(t.TempDir(), "data"))
	python, err := filepath.Abs("../.cache/sdk/bin/python")
	require.NoError(t, err)
	source, err := filepath.Abs("python/src")
	require.NoError(t, err)
	client, err := filepath.Abs("typescript")
	require.NoError(t, err)
	for language, run := range map[string][]string{"python": {python, "program.py"}, "js": {"node", "program.mjs"}} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(run[0]); err != nil {
				t.Skipf("NOT RUN: the program in %s is not tested: %v", language, err)
			}
			program := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindSubmatch(page)
			require.NotNil(t, program)
			dir := t.TempDir()
			require.NoError(t, os.Mkdir(filepath.Join(dir, "node_modules"), 0o755))
			require.NoError(t, os.Symlink(client, filepath.Join(dir, "node_modules", "mneme")))
			require.NoError(t, os.WriteFile(filepath.Join(dir, run[1]), program[1], 0o644))
			cmd := exec.CommandContext(t.Context(), run[0], run[1])
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "PYTHONPATH="+source, "MNEME_URL="+s.HTTP, "MNEME_TENANT="+language)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Contains(t, string(out), "Tool used: grep")
			require.Contains(t, string(out), "Where is the checkpoint written?'")
		})
	}
}
