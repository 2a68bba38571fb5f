package importer

import (
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
)

func TestWhatAnEarlierVersionReadOtherwiseIsKnown(t *testing.T) {
	t.Parallel()
	of := func(p events.Payload) *events.Event {
		e, err := events.New("c", "import/test", "1", p)
		require.NoError(t, err)
		return &e
	}
	content := func(p events.Payload) string { return of(p).Content().String() }
	say := func(text, origin string) *events.MessageCreated {
		return &events.MessageCreated{MessageID: "1", Role: "user", Content: text, Origin: origin}
	}
	title := "Uploads"
	require.True(t, readOtherwise(of(&events.ConversationUpdated{Title: &title}), content(&events.ConversationUpdated{})))
	require.True(t, readOtherwise(of(&events.ConversationStarted{Title: title}), content(&events.ConversationStarted{})))
	require.True(t, readOtherwise(of(say("<task-notification>", "meta")), content(say("<task-notification>", ""))))
	require.False(t, readOtherwise(of(say("hello", "meta")), content(say("goodbye", ""))))
	require.False(t, readOtherwise(of(say("hello", "")), content(say("hello", "meta"))), "no version knows less than an earlier one")
	require.False(t, readOtherwise(of(&events.ToolCalled{ToolCallID: "1", ToolName: "ls"}), content(&events.ToolCalled{ToolCallID: "1", ToolName: "cat"})))
}
