package main

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/doctor"
	"mneme.dev/mneme/internal/httpapi"
)

func TestDoctorExitsWith3AndSaysWhatToDo(t *testing.T) {
	t.Parallel()
	s := up(t, filepath.Join(t.TempDir(), "data"))
	good := read[httpapi.Diagnosis](s, "doctor", "--data", s.ready.Data)
	require.True(t, good.OK)

	out, stderr, code := mneme(t, "doctor", "--json", "--url", "http://127.0.0.1:1", "--nats-url", s.ready.NATS)
	require.Equal(t, exitDifference, code, stderr)
	require.Empty(t, stderr)
	var d httpapi.Diagnosis
	require.NoError(t, json.Unmarshal([]byte(out), &d))
	require.False(t, d.OK)
	for _, f := range d.Checks {
		switch f.Check {
		case "http":
			require.Equal(t, doctor.Failed, f.Level)
			require.Contains(t, f.Remedy, "mneme up")
		case "log", "nats":
			require.Equal(t, doctor.OK, f.Level)
		}
	}
	shown := s.person(70, nil, "doctor", "--data", filepath.Join(t.TempDir(), "gone"))
	require.Contains(t, uncolored(shown), "failed   data  ")
	require.Contains(t, uncolored(shown), "→ name the data directory with --data")
	require.Contains(t, shown, "\x1b[31mfailed")
}

func TestVersionShowsClientAndServer(t *testing.T) {
	t.Parallel()
	s := up(t, filepath.Join(t.TempDir(), "data"))
	v := read[versions](s, "version")
	require.NotEmpty(t, v.Go)
	require.Equal(t, &v.Info, v.Server)
	out, _, code := mneme(t, "version", "--url", "http://127.0.0.1:1")
	require.Zero(t, code, "an unreachable server is not a failure")
	require.Contains(t, out, "server\tno answer")
	local, _, code := mneme(t, "version", "--local")
	require.Zero(t, code)
	require.NotContains(t, local, "server")
}
