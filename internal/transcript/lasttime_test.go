package transcript

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

func TestTheLastTimeIsNearTheEnd(t *testing.T) {
	t.Parallel()
	const want = "2026-01-02T03:04:05Z"
	long := strings.Repeat("filler ", 2*searchedTail/7)
	lines := `{"timestamp":"2026-01-01T00:00:00Z","content":"` + long + `"}` + "\n" +
		`{"content":"they wrote {\"time\":\"2030-01-01T00:00:00Z\"}","time":"` + want + `"}` + "\n" + `{"time":"not a time, but text"}` + "\n"
	var gz bytes.Buffer
	w := gzip.NewWriter(&gz)
	_, err := w.Write([]byte(lines))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	zw, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	for name, text := range map[string]string{
		"plain": lines, "short": lines[len(lines)-200:], "milliseconds": `{"time":1767323045000,"event":{}}`, "gzip": gz.String(), "zstd": string(zw.EncodeAll([]byte(lines), nil)),
		"without": `{"content":"` + long + `"}`, "empty": "", "damaged": "\x1f\x8b", "database": "SQLite format 3\x00" + lines,
	} {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		last := File{Path: path, Size: int64(len(text))}.LastTime(t.Context())
		if slices.Contains([]string{"without", "empty", "damaged", "database"}, name) {
			require.True(t, last.IsZero(), name)
			continue
		}
		require.Equal(t, want, last.Format(time.RFC3339), name)
	}
	require.True(t, File{Path: filepath.Join(t.TempDir(), "none")}.LastTime(t.Context()).IsZero())
}
