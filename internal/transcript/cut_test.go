package transcript

import (
	"bytes"
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
		whole, seen := readAll(t, data, path, format), placesSeen{}
		for at := 1; at < len(data); at++ {
			if format == Auto && at < 400 { // so that the format is known
				continue
			}
			if filepath.Ext(path) == ".jsonl" && !seen.add(data, at) {
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

// cutPlace is where a line of JSON is cut: between which two bytes, all letters and digits being the same.
type cutPlace struct {
	line          int
	before, after byte
}

// placesSeen are those at which recordings were cut. The value in such a line is whole or not; where it is cut does not matter, so a
// second cut at the same place of it shows nothing that the first did not.
type placesSeen map[cutPlace]bool

// add reports whether a cut is at a place that was not seen.
func (p placesSeen) add(data []byte, at int) bool {
	letter := func(c byte) byte {
		if '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' {
			return 'a'
		}
		return c
	}
	cut := cutPlace{bytes.Count(data[:at], []byte("\n")), letter(data[at-1]), letter(data[at])}
	before := p[cut]
	p[cut] = true
	return !before
}
