package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// entries returns the headers of an archive by name, without its folder.
func entries(t *testing.T, path string) map[string]*tar.Header {
	t.Helper()
	in, err := os.Open(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, in.Close()) }()
	compressed, err := gzip.NewReader(in)
	require.NoError(t, err)
	list := map[string]*tar.Header{}
	for archive := tar.NewReader(compressed); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		require.NoError(t, err)
		_, name, _ := strings.Cut(h.Name, "/")
		list[name] = h
	}
}

func TestAnArchiveDependsOnNamesAndContentsOnly(t *testing.T) {
	t.Parallel()
	made := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var archives [][]byte
	for i := range 2 {
		dir := t.TempDir()
		files := map[string]file{}
		for _, name := range []string{"b", "a", "bin/mneme"} {
			path := filepath.Join(dir, strings.ReplaceAll(name, "/", "-"))
			require.NoError(t, os.WriteFile(path, []byte(name), 0o600))
			require.NoError(t, os.Chtimes(path, made, made.AddDate(i, 0, 0)))
			files[name] = file{from: path, program: name == "bin/mneme"}
		}
		path := filepath.Join(dir, "out.tar.gz")
		require.NoError(t, writeArchive(path, "mneme-v1", made, files))
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		archives = append(archives, raw)
		list := entries(t, path)
		require.Len(t, list, 3)
		require.Equal(t, int64(0o755), list["bin/mneme"].Mode)
		require.Equal(t, int64(0o644), list["a"].Mode)
		require.True(t, list["a"].ModTime.Equal(made))
		require.Zero(t, list["a"].Uid)
	}
	require.Equal(t, archives[0], archives[1])
}

func TestTwoBuildsInTwoFoldersHaveTheSameHashes(t *testing.T) {
	if os.Getenv("MNEME_TEST_ALL") == "" {
		t.Skip("NOT RUN: builds everything twice, which takes minutes; make test-release runs it")
	}
	target := "linux/" + runtime.GOARCH
	release := func(repository string) (map[string]*tar.Header, string) {
		out := filepath.Join(t.TempDir(), "release")
		files, err := build(t.Context(), repository, out, []string{target})
		require.NoError(t, err)
		require.Len(t, files, 3)
		sums, err := os.ReadFile(filepath.Join(out, "SHA256SUMS"))
		require.NoError(t, err)
		archive, err := filepath.Glob(filepath.Join(out, "*.tar.gz"))
		require.NoError(t, err)
		return entries(t, archive[0]), string(sums)
	}
	list, first := release("../..")
	for _, name := range []string{"bin/mneme", "bin/context-api", "systemd/mneme.service", "nats/server.conf", "LICENSE", "licenses/go/LICENSE", "licenses/github.com/nats-io/nats.go/LICENSE"} {
		require.Contains(t, list, name)
	}
	other := filepath.Join(t.TempDir(), "another folder")
	out, err := exec.Command("git", "clone", "--quiet", "--no-local", "../..", other).CombinedOutput()
	require.NoError(t, err, string(out))
	t.Setenv("GOCACHE", filepath.Join(t.TempDir(), "cache")) // so that everything is compiled again
	_, second := release(other)
	require.Equal(t, first, second)
}
