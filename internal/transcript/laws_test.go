package transcript

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// said draws a list of messages, of which some are equal.
func said(t *rapid.T) []map[string]any {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) map[string]any {
		return map[string]any{
			"role":    rapid.SampledFrom([]string{"user", "assistant", "system"}).Draw(t, "role"),
			"content": rapid.SampledFrom([]string{"yes", "no", "", "Why is the total 0?"}).Draw(t, "content"),
		}
	}), 1, 8).Draw(t, "messages")
}

// idsOf returns the ids of the messages of a list, and its conversation.
func idsOf(t require.TestingT, name string, list []map[string]any) (ids []string, conversation string) {
	raw, err := json.Marshal(list)
	require.NoError(t, err)
	require.NoError(t, Read(context.Background(), bytes.NewReader(raw), name, Auto, func(i Item) error {
		require.Nil(t, i.Err)
		conversation = i.Event.Subject
		if i.Event.ID != conversation {
			ids = append(ids, i.Event.ID)
		}
		return nil
	}))
	return ids, conversation
}

func TestAListOfMessagesThatHasGrownKeepsItsIDs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := said(t)
		ids, conversation := idsOf(t, "a.json", list)
		more, same := idsOf(t, "a.json", append(slices.Clone(list), map[string]any{"role": "user", "content": "more"}))
		if conversation != "" { // messages of the system alone wait for the first other one
			require.Equal(t, conversation, same)
		}
		require.Equal(t, append([]string{}, ids...), more[:len(ids)])
		other, _ := idsOf(t, "b.json", append(slices.Clone(list), map[string]any{"role": "user", "content": "more"}))
		for _, id := range other {
			require.NotContains(t, more, id, "another file has other ids")
		}
	})
}

func TestAMessageOfClineKeepsItsIDWhenOthersAreTakenOut(t *testing.T) {
	const name = "tasks/1/api_conversation_history.json"
	rapid.Check(t, func(t *rapid.T) {
		list := said(t)
		for i := range list {
			list[i]["ts"] = 1767225600000 + i
			list[i]["role"] = []string{"user", "assistant"}[i%2]
			list[i]["content"] = "some " + list[i]["content"].(string)
		}
		ids, _ := idsOf(t, name, list)
		require.Len(t, ids, len(list))
		at := rapid.IntRange(0, len(list)-1).Draw(t, "taken out")
		left, _ := idsOf(t, name, slices.Delete(slices.Clone(list), at, at+1))
		require.Equal(t, slices.Delete(slices.Clone(ids), at, at+1), append([]string{}, left...))
	})
}
