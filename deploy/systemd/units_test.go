// Package systemd tests the units of mneme with systemd's own tool.
package systemd

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

// units are the units, each with the name of an instance.
var units = map[string]string{"mneme.service": "mneme.service", "mneme@.service": "mneme@ingestor.service"}

func TestSystemdTakesTheUnitsAndFindsThemWellConfined(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("NOT RUN: systemd-analyze is not installed, so the units were not checked")
	}
	dir := t.TempDir()
	for file, instance := range units {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		// systemd wants the programs to exist.
		text := regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/\S+`).ReplaceAllString(string(raw), "ExecStart=/bin/true")
		path := filepath.Join(dir, file)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		out, err := exec.Command(analyze, "verify", "--man=no", filepath.Join(dir, instance)).CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.NotContains(t, string(out), dir, "systemd complains")
		// 2.0 of 10 points; a unit without any of these settings has 9.6.
		out, err = exec.Command(analyze, "security", "--no-pager", "--offline=true", "--threshold=20", path).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
}

func TestTheVariablesOfTheUnitsExist(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, p := range settings.Programs() {
		for _, f := range settings.Fields(p.New()) {
			known[f.Variable] = true
		}
	}
	seen := 0
	for _, file := range []string{"mneme.service", "mneme@.service", "mneme.env"} {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, variable := range regexp.MustCompile(`MNEME_[A-Z0-9_]+`).FindAllString(string(raw), -1) {
			require.True(t, known[variable], "%s has %s, which no program knows", file, variable)
			seen++
		}
	}
	require.Greater(t, seen, 10)
}

func TestBothUnitsAreConfinedAlike(t *testing.T) {
	t.Parallel()
	confined := func(file string) string {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		_, text, found := strings.Cut(string(raw), "\nDynamicUser=")
		require.True(t, found)
		return text
	}
	require.Equal(t, confined("mneme.service"), confined("mneme@.service"))
}
