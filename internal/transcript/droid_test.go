package transcript

import (
	"bytes"
	"os"
	"slices"
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
