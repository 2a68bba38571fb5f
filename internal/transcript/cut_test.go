package transcript

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// An agent's write need not end with a line, nor with a character. Closed items stay as they are wherever a recording was
// cut off.
func TestWhatARecordingThatIsCutAnywhereSaysStaysTrue(t *testing.T) {
	t.Parallel()
	paths := fixtures(t)
	own, err := filepath.Glob("testdata/*.jsonl")
	require.NoError(t, err)
	for _, path := range append(paths, own...) {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		format := Auto
		if filepath.Dir(path) != "testdata" {
			format = formatOf(path)
		}
		if ext := filepath.Ext(path); ext != ".jsonl" && ext != ".md" { // a document that is cut is none
			continue
		}
		whole := readAll(t, data, path, format)
		for at := 1; at < len(data); at++ {
			if format == Auto && at < 400 { // so that the format is known
				continue
			}
			for i, item := range readAll(t, data[:at], path, format) {
				if item.Open {
					break
				}
				require.Equal(t, whole[i], item, "%s cut at %d: …%s", path, at, data[max(0, at-60):at])
			}
		}
	}
}
