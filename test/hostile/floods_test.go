package hostile

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// repeated returns a text repeated up to a size in bytes.
type repeated struct {
	text string
	left int
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), r.left)], r.text)
	r.left -= n
	return n, nil
}

// packed returns the gzip of a text repeated up to a size.
func packed(t *testing.T, text string, size int) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	require.NoError(t, err)
	_, err = io.Copy(w, &repeated{strings.Repeat(text, 32<<10/len(text)), size})
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

// An upload that takes a client a moment must not occupy the server for a minute.
func TestAnImportOfWorthlessLinesIsBrokenOff(t *testing.T) {
	t.Parallel()
	s := up(t)
	const size = 50 << 20
	for name, c := range map[string]struct {
		text, says string
	}{
		"lines that are not events": {"x\n", "more than 5000 lines are not valid events"},
		"empty lines":               {"\n", "more than 100000 blank lines follow each other"},
		"blank lines":               {" \r\n", "more than 100000 blank lines follow each other"},
	} {
		body := packed(t, c.text, size)
		for coding, body := range map[string][]byte{"gzip": body, "": bytes.Repeat([]byte(c.text), size/10/len(c.text))} {
			began := time.Now()
			got := do(t, http.MethodPost, s.HTTP+"/v1/import", body, func(r *http.Request) {
				r.Header.Set("Content-Type", "application/x-ndjson")
				if coding != "" {
					r.Header.Set("Content-Encoding", coding)
				}
			})
			require.Equal(t, http.StatusUnprocessableEntity, got.Status, "%s: %s", name, got.Body)
			require.Contains(t, string(got.Body), c.says)
			require.Less(t, time.Since(began), 30*time.Second, name) // normally tens of milliseconds
		}
	}
}
