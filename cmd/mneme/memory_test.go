package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/importer"
	"mneme.dev/mneme/internal/mnemetest"
)

// limited makes a control group that kills its processes beyond a size in bytes, and returns the file to which a
// process writes to join it. It skips the test where control groups can't be made.
func limited(t *testing.T, bytes int64) (tasks string) {
	t.Helper()
	for _, version := range []struct{ parent, limit, tasks string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "tasks"},
		{"/sys/fs/cgroup", "memory.max", "cgroup.procs"},
	} {
		group, err := os.MkdirTemp(version.parent, "mneme-test-")
		if err != nil {
			continue
		}
		t.Cleanup(func() { _ = os.Remove(group) }) // runs after the server has ended
		if os.WriteFile(filepath.Join(group, version.limit), []byte(strconv.FormatInt(bytes, 10)), 0o600) == nil {
			return filepath.Join(group, version.tasks)
		}
	}
	const reason = "control groups can't be made here: it takes root, and a file system of groups that is writable"
	t.Skip("NOT RUN: " + reason)
	return ""
}

// Events are imported in a container of 256 MiB: a million with make test-all, otherwise thousands.
func TestAnImportFitsInASmallContainer(t *testing.T) {
	mnemetest.Long(t)
	t.Parallel()
	turns := 20
	if mnemetest.All {
		turns = 2000
	}
	tasks := limited(t, 256<<20)
	file := filepath.Join(t.TempDir(), "recording.jsonl")
	lines := recording(t, file, 9, 60, turns)
	s := &server{Server: mnemetest.UpUnder(t, "echo $$ >"+tasks+"; export MNEME_MEMORY=230", "--data", t.TempDir()), t: t}
	inside, err := os.ReadFile(tasks)
	require.NoError(t, err)
	require.Contains(t, strings.Fields(string(inside)), strconv.Itoa(s.PID()))

	path, err := mnemetest.Binary()
	require.NoError(t, err)
	var report importer.Report
	imported, err := exec.CommandContext(t.Context(), path, "import", file, "--wait", "--json", "--url", s.HTTP, "--nats-url", s.NATS).Output() // has no time limit
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(imported, &report))
	require.Equal(t, lines, report.Published)
	status := read[httpapi.Status](s, "status")
	require.EqualValues(t, lines, status.Stream.Head)
	for _, p := range status.Projections {
		require.Equal(t, "live", p.State, "%s: %s", p.Name, p.Error)
	}
	t.Logf("%d events imported", lines)
	require.Zero(t, s.stop())
}
