package transcript

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
)

// saidInQwen is a prompt and its answer. They are copies if they are from another session.
func saidInQwen(session, n, from string) (lines string) {
	for _, kind := range []string{"user", "assistant"} {
		copied := ""
		if from != "" {
			copied = fmt.Sprintf(`,"forkedFrom":{"sessionId":%q,"messageUuid":%q}`, from, kind+n)
		}
		lines += fmt.Sprintf(`{"uuid":%q,"sessionId":%q,"timestamp":"2026-01-01T00:00:00Z","type":%q,"cwd":"/shop","message":{"role":%q,"parts":[{"text":"%s %s"}]}%s}`+"\n",
			kind+n, session, kind, kind, kind, n, copied)
	}
	return lines
}

func TestAForkOfQwenCodeBranchesOffTheSessionThatItRepeats(t *testing.T) {
	dir := t.TempDir()
	read := func(session, lines string) []Item {
		path := filepath.Join(dir, session+".jsonl")
		require.NoError(t, os.WriteFile(path, []byte(lines), 0o600))
		return readFile(t, path, Auto)
	}
	parent := read(sessionID, saidInQwen(sessionID, "1", "")+saidInQwen(sessionID, "2", ""))
	fork := read(forkID, saidInQwen(forkID, "1", sessionID)+
		`{"uuid":"t","sessionId":"`+forkID+`","type":"system","subtype":"custom_title","systemPayload":{"customTitle":"Again (Branch)"}}`+"\n"+saidInQwen(forkID, "3", ""))
	want := []string{"1 starts, repeated", "1 user1, repeated", "1 assistant1, repeated", "2 starts from 1 assistant1", "2 user3", "2 assistant3"}
	assert.Equal(t, want, told(t, fork))
	assert.Equal(t, "Again (Branch)", good(t, fork)[3].Payload.(*events.ConversationStarted).Title)
	for i := range 3 {
		assert.Equal(t, parent[i].Event, fork[i].Event, "as the session itself tells it")
	}

	later := read(laterID, saidInQwen(laterID, "1", forkID)+saidInQwen(laterID, "3", forkID)+saidInQwen(laterID, "4", ""))
	assert.Equal(t, []string{
		"1 starts, repeated", "1 user1, repeated", "1 assistant1, repeated", "2 starts from 1 assistant1, repeated", "2 user3, repeated", "2 assistant3, repeated",
		"3 starts from 2 assistant3", "3 user4", "3 assistant4",
	}, told(t, later), "the recording of the fork says where its beginning came from")
}
