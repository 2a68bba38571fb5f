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

// units are the services, each with the name of an instance.
var units = map[string]string{"mneme.service": "mneme.service", "mneme@.service": "mneme@ingestor.service", "mneme-backup.service": "mneme-backup.service"}

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

func TestTheTimerStartsTheBackup(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("NOT RUN: systemd-analyze is not installed, so the timer was not checked")
	}
	dir := t.TempDir()
	for _, file := range []string{"mneme-backup.service", "mneme-backup.timer"} {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), raw, 0o600))
	}
	out, err := exec.Command(analyze, "verify", "--man=no", filepath.Join(dir, "mneme-backup.timer")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NotContains(t, string(out), dir, "systemd complains")
}

// It runs the command of the unit as systemd would, with a program that prints its arguments.
func TestEachBackupHasAFolderOfItsOwn(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("mneme-backup.service")
	require.NoError(t, err)
	found := regexp.MustCompile(`(?m)^ExecStart=/bin/sh -c '(.*)'$`).FindStringSubmatch(string(raw))
	require.NotNil(t, found)
	script := strings.NewReplacer("%%", "%", "$$", "$", "/usr/local/bin/mneme", "/bin/echo").Replace(found[1])
	out, err := exec.Command("/bin/sh", "-c", strings.TrimPrefix(script, "exec ")).Output()
	require.NoError(t, err)
	require.Regexp(t, `^backup create --out /var/lib/mneme-backup/20\d\d-\d\d-\d\dT\d{6} --keep 14\n$`, string(out))
}

func TestTheVariablesOfTheUnitsExist(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, p := range settings.Programs() {
		for _, f := range settings.Fields(p.New()) {
			known[f.Variable] = true
		}
	}
	for _, variable := range settings.FileVariables() {
		known[variable] = true
	}
	seen := 0
	for _, file := range []string{"mneme.service", "mneme@.service", "mneme-backup.service", "mneme.env"} {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, variable := range regexp.MustCompile(`MNEME_[A-Z0-9_]+`).FindAllString(string(raw), -1) {
			require.True(t, known[variable], "%s has %s, which no program knows", file, variable)
			seen++
		}
	}
	require.Greater(t, seen, 10)
}

func TestTheUnitsAreConfinedAlike(t *testing.T) {
	t.Parallel()
	confined := func(file, from string) string {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		_, text, found := strings.Cut(string(raw), from)
		require.True(t, found)
		text, _, _ = strings.Cut(text, "[Install]")
		return strings.TrimSpace(text)
	}
	require.Equal(t, confined("mneme.service", "\nDynamicUser="), confined("mneme@.service", "\nDynamicUser="))
	require.Equal(t, confined("mneme.service", "\nCapabilityBoundingSet="), confined("mneme-backup.service", "\nCapabilityBoundingSet="))
}
