package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/mnemetest"
)

func TestABackupIsRestoredAndTheReadModelsCatchUp(t *testing.T) {
	t.Parallel()
	mnemetest.Long(t)
	folder := t.TempDir()
	s := up(t, filepath.Join(folder, "data"))
	recording(t, filepath.Join(folder, "r.jsonl"), 1, 3, 20)
	_, stderr, code := s.mneme("import", filepath.Join(folder, "r.jsonl"), "--wait")
	require.Zero(t, code, stderr)
	out, stderr, code := s.mneme("backup", "--json", "--out", filepath.Join(folder, "b"))
	require.Zero(t, code, stderr)
	var made backedUp
	require.NoError(t, json.Unmarshal([]byte(out), &made))
	require.NotZero(t, made.Events)
	_, _, code = s.mneme("backup", "--out", filepath.Join(folder, "b"))
	require.Equal(t, exitUsage, code, "an existing backup is not overwritten")
	_, stderr, code = s.mneme("restore", filepath.Join(folder, "b"))
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "the log is not empty")
	require.Contains(t, stderr, "restore into a new directory of mneme up with --data, or name another server with --nats-url")
	want := read[[]map[string]any](s, "conversations", "list")

	out, stderr, code = mneme(t, "backup", "verify", filepath.Join(folder, "b"))
	require.Zero(t, code, stderr)
	require.Contains(t, out, made.Content)

	// Into a server that runs, and into a directory without one.
	running := up(t, filepath.Join(folder, "second"))
	_, stderr, code = running.mneme("restore", filepath.Join(folder, "b"))
	require.Zero(t, code, stderr)
	running.stop()
	_, stderr, code = mneme(t, "restore", filepath.Join(folder, "b"), "--data", filepath.Join(folder, "third"), "--log-size", "256MiB")
	require.Zero(t, code, stderr)
	_, stderr, code = mneme(t, "restore", filepath.Join(folder, "b"), "--data", filepath.Join(folder, "third"))
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "name a new directory with --data, or move "+filepath.Join(folder, "third", "nats")+" away")
	require.NotContains(t, stderr, "stream rm", "there is no server to run it against")
	for _, data := range []string{"second", "third"} {
		s := up(t, filepath.Join(folder, data))
		require.Eventually(t, func() bool {
			for _, p := range read[httpapi.Status](s, "status").Projections {
				if p.Checkpoint < made.Last {
					return false
				}
			}
			return true
		}, mnemetest.Patience, 50*time.Millisecond)
		require.Equal(t, want, read[[]map[string]any](s, "conversations", "list"))
		_, stderr, code = s.mneme("verify")
		require.Zero(t, code, stderr)
		s.stop()
	}

	require.NoError(t, os.Truncate(filepath.Join(folder, "b", "stream.arc.s2"), made.Bytes-1))
	_, stderr, code = mneme(t, "backup", "verify", filepath.Join(folder, "b"))
	require.Equal(t, exitDifference, code)
	require.Contains(t, stderr, "at or after byte 0, after sequence")
	_, stderr, code = mneme(t, "restore", filepath.Join(folder, "b"), "--data", filepath.Join(folder, "fourth"))
	require.Equal(t, exitDifference, code, stderr)
}

// Who keeps only the newest backups would otherwise replace the last whole one without noticing.
func TestABackupOfALogThatHasLostEventsWarns(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := up(t, filepath.Join(folder, "data"))
	recording(t, filepath.Join(folder, "r.jsonl"), 1, 1, 2)
	_, stderr, code := s.mneme("import", filepath.Join(folder, "r.jsonl"))
	require.Zero(t, code, stderr)
	_, stderr, code = s.mneme("backup", "--out", filepath.Join(folder, "oldest"), "--keep", "1")
	require.Zero(t, code, stderr)
	_, stderr, code = s.mneme("backup", "--out", filepath.Join(folder, "whole"), "--keep", "1")
	require.Zero(t, code, stderr)
	require.NotContains(t, stderr, "warning")
	require.Contains(t, stderr, "removed "+filepath.Join(folder, "oldest"))
	require.NoDirExists(t, filepath.Join(folder, "oldest"))

	conn, err := nats.Connect(s.NATS, nats.Timeout(mnemetest.Handshake))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	require.NoError(t, err)
	stream, err := js.Stream(mnemetest.Context(t), natsdeploy.Stream)
	require.NoError(t, err)
	require.NoError(t, stream.DeleteMsg(mnemetest.Context(t), 2))
	out, stderr, code := s.mneme("backup", "--json", "--out", filepath.Join(folder, "b"), "--keep", "1")
	require.Zero(t, code, stderr)
	require.Contains(t, stderr, "the log has lost 1 event,")
	require.DirExists(t, filepath.Join(folder, "whole"), "it may be the last whole one")
	var made backedUp
	require.NoError(t, json.Unmarshal([]byte(out), &made))
	require.EqualValues(t, 1, made.Missing)
}

// A volume may be lost, and a timer goes on to back up the log that begins anew.
func TestBackupsOfAnotherLogAreNamedAndKept(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, name := range []string{"lost", "anew"} {
		s := up(t, filepath.Join(folder, "data of "+name))
		s.publish("c", userMessage("m1", "first"))
		_, stderr, code := s.mneme("backup", "--out", filepath.Join(folder, name), "--keep", "1")
		require.Zero(t, code, stderr)
		if name == "anew" {
			require.Contains(t, stderr, "warning: 1 backup of another log or damaged")
			require.Contains(t, stderr, filepath.Join(folder, "lost"))
		}
	}
	require.DirExists(t, filepath.Join(folder, "lost"))
}

// On Kubernetes, the pods of a job have the same name for its backup. The first may be killed, or fail, after it was made.
func TestARetriedJobKeepsTheBackupAndRemovesOlderOnes(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := up(t, filepath.Join(folder, "data"))
	s.publish("c", userMessage("m1", "first"))
	for _, name := range []string{"older", "night"} {
		_, stderr, code := s.mneme("backup", "--out", filepath.Join(folder, name))
		require.Zero(t, code, stderr)
	}
	retry := []string{"backup", "--out", filepath.Join(folder, "night"), "--keep", "1"}
	_, stderr, code := s.mneme(retry...)
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "already exists")
	require.DirExists(t, filepath.Join(folder, "older"))
	out, stderr, code := s.mneme(append(retry, "--once")...)
	require.Zero(t, code, stderr)
	require.Contains(t, out, "already complete: "+filepath.Join(folder, "night"))
	require.Contains(t, stderr, "removed "+filepath.Join(folder, "older"))

	require.NoError(t, os.Remove(filepath.Join(folder, "night", "stream.arc.s2")))
	_, _, code = s.mneme(append(retry, "--once")...)
	require.Equal(t, exitFailed, code, "it is not complete")
}
