package hostile

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest"
)

// In another log the same sequences are other events. A read model that has applied more of the old
// log than the new one holds has not applied the new one.
func TestAReadOfOnesOwnWriteIsNotAnsweredFromAnotherLog(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	s := mnemetest.UpWith(t, "--data", data)
	message := func(id string) map[string]any { return map[string]any{"message_id": id, "role": "user", "content": id} }
	for _, id := range []string{"old1", "old2", "old3"} {
		require.Equal(t, http.StatusCreated, publish(t, s, "c", id, "message.created", message(id)).Status)
	}
	require.Equal(t, http.StatusOK, do(t, http.MethodGet, s.HTTP+"/v1/conversations/c/context?at_least=3", nil, nil).Status)
	require.Zero(t, s.Stop())
	require.NoError(t, os.RemoveAll(filepath.Join(data, "nats")))

	s = mnemetest.UpWith(t, "--data", data)
	for seq, id := range []string{"new1", "new2", "new3", "new4", "new5"} {
		require.Equal(t, http.StatusCreated, publish(t, s, "c", id, "message.created", message(id)).Status)
		for _, path := range []string{"context", "messages", "export"} {
			got := do(t, http.MethodGet, fmt.Sprintf("%s/v1/conversations/c/%s?at_least=%d&wait_ms=100", s.HTTP, path, seq+1), nil, nil)
			require.Equal(t, http.StatusServiceUnavailable, got.Status, "%s after %s: %s", path, id, got.Body)
			require.Contains(t, string(got.Body), "does not follow this log")
		}
	}
}
