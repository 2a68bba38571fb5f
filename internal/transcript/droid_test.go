package transcript

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const droidSession = "testdata/agents/droid/-home-ada-shop/d0000001-0000-4000-8000-000000000001.jsonl"

// The program writes the title into the first line, again whenever it changes.
func TestOfASessionOfFactoryDroidWithANewTitleOnlyTheTitleIsNew(t *testing.T) {
	data, err := os.ReadFile(droidSession)
	require.NoError(t, err)
	before := readAll(t, data, droidSession, droidFormat)
	after := readAll(t, bytes.Replace(data, []byte(`"title":"Look at retryUpload"`), []byte(`"title":"Uploads","lastCwd":"/tmp"`), 1), droidSession, droidFormat)
	require.Len(t, after, len(before))
	for i := range before {
		if i == 1 {
			require.NotEqual(t, before[i].Event.ID, after[i].Event.ID)
			require.JSONEq(t, `{"title":"Uploads"}`, string(after[i].Event.Data))
			continue
		}
		require.Equal(t, before[i], after[i])
	}
	untitled := readAll(t, bytes.Replace(data, []byte(`"Look at retryUpload"`), []byte(`"New Session"`), 1), droidSession, droidFormat)
	require.Equal(t, slices.Delete(before, 1, 2), untitled)
}

func TestASessionOfFactoryDroidWithoutItsFirstLineIsNamedAfterItsFile(t *testing.T) {
	data, err := os.ReadFile(droidSession)
	require.NoError(t, err)
	_, rest, _ := bytes.Cut(data, []byte("\n"))
	for _, item := range readAll(t, rest, droidSession, droidFormat) {
		if item.Err == nil {
			require.Equal(t, "droid:d0000001-0000-4000-8000-000000000001", item.Event.Subject)
		}
	}
	for _, item := range readAll(t, rest, "copy.jsonl", droidFormat) {
		require.ErrorContains(t, item.Err, "session_start")
	}
}

func TestWhatAUserOfFactoryDroidSaidBetweenRemindersIsKept(t *testing.T) {
	const reminder = "<system-reminder>\nToday is Monday.\n</system-reminder>"
	for text, only := range map[string]bool{
		reminder: true, "\n" + reminder + "\n" + reminder + "\n": true,
		reminder + "\nfix the upload\n" + reminder: false, reminder + "\nfix the upload": false,
		"": false, "<system-reminder>": false, "fix the upload": false, "fix " + reminder: false,
	} {
		require.Equal(t, only, onlyReminds(text), text)
	}
}

func TestAForkOfDroidBranchesOffTheSessionThatItRepeats(t *testing.T) {
	dir := t.TempDir()
	read := func(session, parent, at string, turns ...string) []Item {
		lines := fmt.Sprintf(`{"type":"session_start","id":%q,"title":"T","parent":%q,"forkedAtMessageId":%q,"version":2,"cwd":"/shop"}`+"\n", session, parent, at)
		for _, n := range turns {
			for _, role := range []string{"user", "assistant"} {
				lines += fmt.Sprintf(`{"type":"message","id":"%s%s","timestamp":"2026-01-01T00:00:00Z","message":{"role":%q,"content":[{"type":"text","text":"%s %s"}]}}`+"\n", role, n, role, role, n)
			}
			lines += `{"type":"agent_turn_outcome","turnId":"user` + n + `"}` + "\n"
		}
		path := filepath.Join(dir, session+".jsonl")
		require.NoError(t, os.WriteFile(path, []byte(lines), 0o600))
		return readFile(t, path, Auto)
	}
	named := func(items []Item) (names []string) {
		for _, name := range told(t, items) {
			if !strings.Contains(name, "title:") {
				names = append(names, name)
			}
		}
		return names
	}
	parent := read(sessionID, "", "", "1", "2")
	fork := read(forkID, sessionID, "assistant1", "1", "3")
	require.Equal(t, []string{"1 starts, repeated", "1 user1, repeated", "1 assistant1, repeated", "2 starts from 1 assistant1", "2 user3", "2 assistant3"}, named(fork))
	require.Equal(t, parent[0].Event, fork[0].Event, "as the session itself tells it")
	require.Equal(t, parent[2].Event, fork[1].Event, "its title comes from its own recording")

	require.Equal(t, []string{"2 starts", "2 user1", "2 assistant1", "2 user3", "2 assistant3"}, named(read(forkID, sessionID, "user2", "1", "3")), "the message at which it was forked is not there")
	read(forkID, sessionID, "assistant1", "1", "3")

	later := []string{
		"1 starts, repeated", "1 user1, repeated", "1 assistant1, repeated", "2 starts from 1 assistant1, repeated", "2 user3, repeated", "2 assistant3, repeated",
		"3 starts from 2 assistant3", "3 user4", "3 assistant4",
	}
	require.Equal(t, later, named(read(laterID, forkID, "assistant3", "1", "3", "4")))
	require.Equal(t, []string{"1 starts, repeated", "1 user1, repeated", "3 starts from 1 user1", "3 assistant1", "3 user4", "3 assistant4"},
		named(read(laterID, forkID, "user1", "1", "4")), "made from what the fork itself repeats")
	require.Equal(t, []string{"3 starts", "3 user1", "3 assistant1"}, named(read(laterID, sessionID, "", "1")), "a subagent has a parent, too")
}
