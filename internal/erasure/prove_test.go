package erasure_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mneme.dev/mneme/internal/erasure"
)

// A canary is found wherever it is in a file, also across the parts in which the file is read.
func TestACanaryIsFoundAtAnyOffset(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	rapid.Check(t, func(t *rapid.T) {
		canary := rapid.StringMatching(`[a-zé"<]{6,40}`).Draw(t, "canary")
		part := 1 << 20
		offset := rapid.OneOf(rapid.IntRange(0, 100), rapid.IntRange(part-50, part+100)).Draw(t, "offset")
		form := []byte(canary)
		if rapid.Bool().Draw(t, "json") {
			raw, err := json.Marshal(canary)
			require.NoError(t, err)
			form = raw[1 : len(raw)-1]
		}
		content := append(make([]byte, offset), form...)
		content = append(content, make([]byte, 10)...)
		require.NoError(t, os.WriteFile(file, content, 0o600))
		found, err := erasure.Search(t.Context(), []string{dir}, []string{"something else", canary})
		require.NoError(t, err)
		require.Equal(t, 1, found.Files)
		require.EqualValues(t, len(content), found.Bytes)
		require.True(t, slices.ContainsFunc(found.Hits, func(h erasure.Hit) bool { return h.Canary == 2 && h.Offset == int64(offset) }), "%v", found.Hits)
	})
}

func TestACanaryIsFoundInEveryForm(t *testing.T) {
	t.Parallel()
	for name, stored := range map[string]string{
		"utf-8":                 `Grün "<1>"`,
		"utf-16, little endian": "G\x00r\x00\xfc\x00n\x00 \x00\"\x00<\x001\x00>\x00\"\x00",
		"utf-16, big endian":    "\x00G\x00r\x00\xfc\x00n\x00 \x00\"\x00<\x001\x00>\x00\"",
		"json":                  `Grün \"<1>\"`,
		"json, html escaped":    `Grün \"\u003c1\u003e\"`,
		"json, ascii only":      `Gr\u00fcn \"<1>\"`,
		"header":                `Gr%C3%BCn%20%22<1>%22`,
		"lower case":            `grün "<1>"`,
	} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), []byte("xyz"+stored+"xyz"), 0o600))
		found, err := erasure.Search(t.Context(), []string{dir}, []string{`Grün "<1>"`})
		require.NoError(t, err)
		require.Equal(t, []erasure.Hit{{File: filepath.Join(dir, "file"), Offset: 3, Canary: 1, Form: name}}, found.Hits)
	}
}

func TestASearchSaysWhetherThereIsMoreThanItLists(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), bytes.Repeat([]byte("123456,"), 1_000), 0o600))
	found, err := erasure.Search(t.Context(), []string{dir}, []string{"123456"})
	require.NoError(t, err)
	require.Len(t, found.Hits, 1_000)
	require.False(t, found.More)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "b"), []byte("123456"), 0o600))
	found, err = erasure.Search(t.Context(), []string{dir}, []string{"123456"})
	require.NoError(t, err)
	require.Len(t, found.Hits, 1_000)
	require.True(t, found.More)
}

func TestASearchThatProvesNothingFails(t *testing.T) {
	t.Parallel()
	_, err := erasure.Search(t.Context(), []string{t.TempDir()}, []string{"short"})
	require.ErrorContains(t, err, "at least 6")
	_, err = erasure.Search(t.Context(), []string{t.TempDir()}, nil)
	require.Error(t, err)
	_, err = erasure.Search(t.Context(), []string{filepath.Join(t.TempDir(), "absent")}, []string{"a canary"})
	require.ErrorIs(t, err, os.ErrNotExist)
	if os.Geteuid() != 0 {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "locked"), nil, 0))
		_, err = erasure.Search(t.Context(), []string{dir}, []string{"a canary"})
		require.ErrorIs(t, err, os.ErrPermission)
	}
}

// A data directory, or a part of it, may be on another disk.
func TestACanaryIsFoundBehindSymbolicLinks(t *testing.T) {
	t.Parallel()
	disk, home := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(disk, "file"), []byte("a canary"), 0o600))
	whole, part := filepath.Join(home, "whole"), filepath.Join(home, "part")
	require.NoError(t, os.Symlink(disk, whole))
	require.NoError(t, os.Mkdir(part, 0o700))
	for name, to := range map[string]string{"store": disk, "circle": part, "nowhere": filepath.Join(home, "nothing")} {
		require.NoError(t, os.Symlink(to, filepath.Join(part, name)))
	}
	for _, paths := range [][]string{{whole}, {part}, {whole, part}} {
		found, err := erasure.Search(t.Context(), paths, []string{"canary"})
		require.NoError(t, err)
		require.Equal(t, 1, found.Files, "%s", paths)
		require.Equal(t, []erasure.Hit{{File: filepath.Join(disk, "file"), Offset: 2, Canary: 1, Form: "utf-8"}}, found.Hits, "%s", paths)
	}
}
