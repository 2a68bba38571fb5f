package transcript

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
)

const (
	forkID  = "22222222-2222-4333-8444-555555555555"
	laterID = "33333333-2222-4333-8444-555555555555"
)

// claudeLineOf is a line of Claude Code's. from says how the line shows that it is a copy: of which line it is one, or in which
// session the model was asked.
func claudeLineOf(session, kind, uuid, content, from string) string {
	copied := ""
	switch how, of, _ := strings.Cut(from, " "); {
	case how == "forked":
		of, id, _ := strings.Cut(of, " ")
		copied = fmt.Sprintf(`,"forkedFrom":{"sessionId":%q,"messageUuid":%q}`, of, cmp.Or(id, uuid))
	case how == "asked" && kind == "assistant":
		copied = fmt.Sprintf(`,"requestSessionId":%q`, of)
	}
	return fmt.Sprintf(`{"type":%q,"uuid":%q,"sessionId":%q,"timestamp":"2026-01-01T00:00:00Z","cwd":"/shop","message":{"id":"m-%s","content":%s}%s}`+"\n",
		kind, uuid, session, uuid, content, copied)
}

// saidInClaude is a prompt and its answer, which calls a tool first.
func saidInClaude(session, n, from string) string {
	return claudeLineOf(session, "user", "u"+n, `"prompt `+n+`"`, from) +
		claudeLineOf(session, "assistant", "a"+n, `[{"type":"tool_use","id":"toolu_`+n+`","name":"Read","input":{}}]`, from) +
		claudeLineOf(session, "user", "r"+n, `[{"type":"tool_result","tool_use_id":"toolu_`+n+`","content":"read"}]`, from) +
		claudeLineOf(session, "assistant", "e"+n, `[{"type":"text","text":"answer `+n+`"}]`, from)
}

// told names the events of items: their conversations and ids, and where a conversation branched off.
func told(t *testing.T, items []Item) (names []string) {
	for i, e := range good(t, items) {
		short := func(conversation string) string {
			_, session, _ := strings.Cut(conversation, ":")
			return session[:1]
		}
		name := short(e.Subject) + " " + strings.TrimPrefix(e.ID, e.Subject+":")
		if s, ok := e.Payload.(*events.ConversationStarted); ok {
			name = short(e.Subject) + " starts"
			if at := s.BranchedFrom; at != nil {
				name += " from " + short(at.ConversationID) + " " + strings.TrimPrefix(at.MessageID, at.ConversationID+":")
			}
		}
		if items[i].Repeated {
			name += ", repeated"
		}
		names = append(names, name)
	}
	return names
}

func TestAForkBranchesOffTheSessionThatItRepeats(t *testing.T) {
	parent := readAll(t, []byte(saidInClaude(sessionID, "1", "")+saidInClaude(sessionID, "2", "")), sessionID+".jsonl", Auto)
	for _, how := range []string{"forked ", "asked "} {
		fork := readAll(t, []byte(`{"type":"mode","mode":"normal","sessionId":"`+forkID+`"}`+"\n"+
			saidInClaude(forkID, "1", how+sessionID)+saidInClaude(forkID, "3", "")), forkID+".jsonl", Auto)
		assert.Equal(t, []string{
			"1 starts, repeated", "1 msg:u1, repeated", "1 msg:a1, repeated", "1 toolu_1, repeated", "1 res:toolu_1, repeated", "1 msg:e1, repeated",
			"2 starts from 1 msg:e1", "2 msg:u3", "2 msg:a3", "2 toolu_3", "2 res:toolu_3", "2 msg:e3",
		}, told(t, fork), how)
		for i := range 6 {
			assert.Equal(t, parent[i].Event, fork[i].Event, "as the session itself tells it")
		}
	}
}

// The SDK gives the copies ids of their own.
func TestAForkWithNewIDsRepeatsTheOldOnes(t *testing.T) {
	fork := readAll(t, []byte(claudeLineOf(forkID, "user", "new-1", `"prompt 1"`, "forked "+sessionID+" u1")+
		claudeLineOf(forkID, "assistant", "new-2", `[{"type":"text","text":"answer 1"}]`, "forked "+sessionID+" e1")+
		`{"type":"custom-title","customTitle":"Again (fork)","sessionId":"`+forkID+`","uuid":"new-3"}`+"\n"+
		claudeLineOf(forkID, "user", "u2", `"prompt 2"`, "")), forkID+".jsonl", Auto)
	assert.Equal(t, []string{"1 starts, repeated", "1 msg:u1, repeated", "1 msg:e1, repeated", "2 starts from 1 msg:e1", "2 msg:u2"}, told(t, fork))
	assert.Equal(t, "Again (fork)", good(t, fork)[3].Payload.(*events.ConversationStarted).Title)
}

func TestAForkOfAForkRepeatsBothSessions(t *testing.T) {
	dir := t.TempDir()
	write := func(session, lines string) string {
		path := filepath.Join(dir, session+".jsonl")
		require.NoError(t, os.WriteFile(path, []byte(lines), 0o600))
		return path
	}
	write(sessionID, saidInClaude(sessionID, "1", ""))
	fork := write(forkID, saidInClaude(forkID, "1", "forked "+sessionID)+saidInClaude(forkID, "2", ""))
	for _, lines := range []string{
		saidInClaude(laterID, "1", "forked "+forkID) + saidInClaude(laterID, "2", "forked "+forkID), // its recording says where the first came from
		saidInClaude(laterID, "1", "asked "+sessionID) + saidInClaude(laterID, "2", "asked "+forkID),
	} {
		items := readFile(t, write(laterID, lines+saidInClaude(laterID, "3", "")), Auto)
		assert.Equal(t, []string{
			"1 starts, repeated", "1 msg:u1, repeated", "1 msg:a1, repeated", "1 toolu_1, repeated", "1 res:toolu_1, repeated", "1 msg:e1, repeated",
			"2 starts from 1 msg:e1, repeated", "2 msg:u2, repeated", "2 msg:a2, repeated", "2 toolu_2, repeated", "2 res:toolu_2, repeated", "2 msg:e2, repeated",
			"3 starts from 2 msg:e2", "3 msg:u3", "3 msg:a3", "3 toolu_3", "3 res:toolu_3", "3 msg:e3",
		}, told(t, items))
		for i, item := range readFile(t, fork, Auto) {
			assert.Equal(t, item.Event, items[i].Event)
		}
	}
}

func TestAGrownForkBeginsWithTheSameEvents(t *testing.T) {
	lines := strings.SplitAfter(saidInClaude(forkID, "1", "forked "+sessionID)+saidInClaude(forkID, "2", ""), "\n")
	whole := readAll(t, []byte(strings.Join(lines, "")), forkID+".jsonl", Auto)
	for n := 1; n < len(lines); n++ {
		part := readAll(t, []byte(strings.Join(lines[:n], "")), forkID+".jsonl", Auto)
		for i, item := range part {
			assert.Equal(t, whole[i].Event, item.Event, "after %d lines", n)
		}
		assert.Equal(t, n != 1 && n != 5, part[len(part)-1].Open, "the last answer is open after %d lines, a prompt is not", n)
	}
}

func TestALineThatIsSaidToBeACopyOfItsOwnSessionIsTheSessionsOwn(t *testing.T) {
	dir := t.TempDir()
	write := func(session, lines string) string {
		path := filepath.Join(dir, session+".jsonl")
		require.NoError(t, os.WriteFile(path, []byte(lines), 0o600))
		return path
	}
	own := []string{
		"1 starts", "1 msg:u1", "1 msg:a1", "1 toolu_1", "1 res:toolu_1", "1 msg:e1",
		"1 msg:u2", "1 msg:a2", "1 toolu_2", "1 res:toolu_2", "1 msg:e2",
	}
	for _, lines := range []string{
		saidInClaude(sessionID, "1", "forked "+sessionID),
		saidInClaude(forkID, "1", "asked "+sessionID), // with the id of the session that was resumed
	} {
		assert.Equal(t, own, told(t, readFile(t, write(sessionID, lines+saidInClaude(sessionID, "2", "")), Auto)))
	}

	qwen := readFile(t, write(sessionID, saidInQwen(sessionID, "1", sessionID)), Auto)
	assert.Equal(t, []string{"1 starts", "1 user1", "1 assistant1"}, told(t, qwen))

	droid := func(session, parent string) string {
		return write(session, fmt.Sprintf(`{"type":"session_start","id":%q,"parent":%q,"forkedAtMessageId":"a","version":2}`+"\n", session, parent)+
			`{"type":"message","id":"a","message":{"role":"user","content":[{"type":"text","text":"prompt"}]}}`+"\n")
	}
	for _, parent := range []string{sessionID, forkID} {
		droid(forkID, sessionID)
		assert.Equal(t, []string{"1 starts", "1 a"}, told(t, readFile(t, droid(sessionID, parent), Auto)), parent)
	}
}
