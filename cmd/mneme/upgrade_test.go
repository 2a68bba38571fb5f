package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/httpapi"
)

// earlier are data directories that earlier versions made: five imported conversations, one of them deleted. They are made
// once, with `mneme up` of that version, and stay as they are.
var earlier = []string{"data-2026-11-25.tar.gz"}

// unpack writes an archive into a new directory.
func unpack(t *testing.T, name string) (dir string) {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", name))
	require.NoError(t, err)
	defer file.Close()
	packed, err := gzip.NewReader(file)
	require.NoError(t, err)
	dir = filepath.Join(t.TempDir(), "data")
	for in := tar.NewReader(packed); ; {
		entry, err := in.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		require.NoError(t, err)
		if entry.Typeflag != tar.TypeReg {
			continue
		}
		path := filepath.Join(dir, filepath.FromSlash(entry.Name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		content, err := io.ReadAll(in)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, content, 0o600))
	}
}

// An upgrade needs no downtime and no deleted file. Read models that the new program makes in the same way continue,
// those that it makes in another way serve while they are rebuilt, and new ones are built from the log.
func TestTheDataOfAnEarlierVersionServesAndIsCarriedOn(t *testing.T) {
	t.Parallel()
	for _, name := range earlier {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := up(t, unpack(t, name))
			get := func(path string) {
				t.Helper()
				response, err := http.Get(s.ready.HTTP + path)
				require.NoError(t, err)
				defer response.Body.Close()
				body, err := io.ReadAll(response.Body)
				require.NoError(t, err)
				require.Equal(t, http.StatusOK, response.StatusCode, "%s: %s", path, body)
			}
			serves := func() {
				t.Helper()
				get("/v1/conversations/demo_agent:s1/context")
				get("/v1/conversations/claude_code:11111111-2222-4333-8444-555555555555/messages")
				get("/v1/projects")
				get("/v1/insights")
				require.Len(t, read[[]httpapi.Conversation](s, "conversations", "list"), 4, "the fifth is deleted")
			}
			serves()
			missing := func() string { // while embeddings of two tables must not be compared
				t.Helper()
				found := read[struct {
					Missing  string `json:"embedding_missing"`
					Messages []any  `json:"messages"`
				}](s, "search", "cart", "--conversation", "demo_agent:s1")
				require.NotEmpty(t, found.Messages)
				return found.Missing
			}
			if m := missing(); m != "" {
				require.Contains(t, m, "run mneme rebuild graph", "vectors of two tables are never compared")
			}

			// What another version built is rebuilt without a command, and serves meanwhile.
			for deadline, rebuilt := time.Now().Add(time.Minute), false; !rebuilt; time.Sleep(50 * time.Millisecond) {
				status := read[httpapi.Status](s, "status")
				rebuilt = len(status.Projections) > 0
				for _, p := range status.Projections {
					rebuilt = rebuilt && p.State == "live" && p.Lag == 0
				}
				serves()
				require.True(t, time.Now().Before(deadline), "%+v", status.Projections)
			}

			event := filepath.Join(t.TempDir(), "event.json")
			require.NoError(t, os.WriteFile(event, []byte(`{"specversion":"1.0","type":"dev.mneme.message.created.v1","source":"test","id":"new","subject":"demo_agent:s1","data":{"message_id":"new","role":"user","content":"Does the cart still add up?"}}`), 0o600))
			_, stderr, code := s.mneme("publish", event)
			require.Zero(t, code, stderr)
			serves()
			head := read[httpapi.Status](s, "status").Stream.Head
			out, stderr, code := s.mneme("context", "demo_agent:s1", "--at-least", fmt.Sprint(head))
			require.Zero(t, code, stderr)
			require.Contains(t, out, "Does the cart still add up?")
			require.Empty(t, missing())
			require.True(t, read[httpapi.Verification](s, "verify").Equal)
			require.Zero(t, s.stop())
		})
	}
}
