package mcp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
)

// noted is the answer of memory_remember.
type noted struct {
	Ref       string
	Seq       uint64
	Duplicate bool
}

// remember calls memory_remember and waits until all is applied.
func (b *bundle) remember(a *agent, args arguments) noted {
	b.t.Helper()
	n := value[noted](a, "memory_remember", args)
	state, err := b.Log.State(b.t.Context())
	require.NoError(b.t, err)
	b.appliedTo(state.Head)
	return n
}

func TestANoteReplacesTheLineThatItNames(t *testing.T) {
	b := setup(t)
	b.say("default", "session", &events.ConversationStarted{Project: "shop"}, said("u1", "user", "Fix the voucher."), said("u2", "user", "Always run make check. Never push to the main branch."))
	a := b.agent("", "project", "shop")
	old := b.remember(a, arguments{"text": "Releases happen on Tuesdays"})
	instead := arguments{"text": "The team releases on Thursdays after the stand-up", "replaces": "[notes:shop, turn 1]"}
	require.False(t, b.remember(a, instead).Duplicate)
	now := a.text("memory_context", arguments{"query": "notes: when do releases happen?"})
	require.Contains(t, now, "Thursdays")
	require.NotContains(t, now, "Tuesdays")
	require.True(t, b.remember(a, instead).Duplicate, "the same call again changes nothing")

	for ref, says := range map[string]string{
		"[notes:shop, turn 1]": "taught this project nothing that is shown",
		"[session, turn 1]":    "taught this project nothing that is shown",
		"[elsewhere, turn 1]":  "taught this project nothing that is shown",
		"turn 1":               "replaces is not the name of a line",
	} {
		require.Contains(t, a.refused("memory_remember", arguments{"text": "x", "replaces": ref}), says)
	}
	require.True(t, b.remember(a, arguments{"text": instead["text"], "replaces": "[notes:shop, turn 2]"}).Duplicate)
	require.Contains(t, a.text("memory_context", nil), "Thursdays", "no note replaces itself")
	require.False(t, b.remember(a, arguments{"text": "Run make verify", "replaces": "[session, turn 2]"}).Duplicate)
	now = a.text("memory_context", nil)
	require.NotContains(t, now, "User: Always run make check")
	require.NotContains(t, now, "User: Never push", "one message taught both")

	again := b.remember(a, arguments{"text": "Releases happen on Tuesdays", "replaces": "[notes:shop, turn 2]"})
	require.False(t, again.Duplicate, "a note that was withdrawn can be remembered again")
	require.Greater(t, again.Seq, old.Seq)
	now = a.text("memory_context", nil)
	require.Contains(t, now, "Note: Releases happen on Tuesdays")
	require.NotContains(t, now, "Thursdays")
	require.True(t, b.remember(a, arguments{"text": "Releases happen on Tuesdays"}).Duplicate)
}

// A producer may publish a withdrawal of its own, which has another identity than those of this server.
func TestANoteThatAnyEventWithdrewCanBeRememberedAgain(t *testing.T) {
	b := setup(t)
	b.say("default", "session", &events.ConversationStarted{Project: "shop"}, said("u1", "user", "Fix the voucher."))
	a := b.agent("", "project", "shop")
	note := arguments{"text": "Releases happen on Tuesdays"}
	stored, err := b.Log.Get(t.Context(), b.remember(a, note).Seq)
	require.NoError(t, err)
	old, _, err := stored.Decode()
	require.NoError(t, err)
	require.True(t, b.remember(a, note).Duplicate)

	b.say("default", "notes:shop", &events.LessonWithdrawn{EventSource: old.Source, EventID: old.ID})
	b.appliedTo(b.head)
	require.NotContains(t, a.text("memory_context", nil), "Tuesdays")
	require.False(t, b.remember(a, note).Duplicate)
	require.Contains(t, a.text("memory_context", nil), "Tuesdays")
	require.True(t, b.remember(a, note).Duplicate)
}

func TestANoteThatSaysTheSameAsAWithdrawnLineCanBeRememberedAgain(t *testing.T) {
	b := setup(t)
	const line = "Always run make check before you commit."
	b.say("default", "session", &events.ConversationStarted{Project: "shop"}, said("u1", "user", "Fix the voucher."), said("u2", "user", line))
	b.appliedTo(b.head)
	a := b.agent("", "project", "shop")
	noted := b.remember(a, arguments{"text": line, "replaces": "[session, turn 2]"})
	require.Contains(t, a.text("memory_context", nil), "Note: Always run make check", "it does not hide itself")

	taught, err := b.Log.Get(t.Context(), noted.Seq-2)
	require.NoError(t, err)
	said, _, err := taught.Decode()
	require.NoError(t, err)
	b.say("default", "session", &events.LessonWithdrawn{EventSource: said.Source, EventID: said.ID})
	b.appliedTo(b.head)
	now := a.text("memory_context", nil)
	require.NotContains(t, now, "Note: Always run make check")
	require.NotContains(t, now, "User: Always run make check")
	require.False(t, b.remember(a, arguments{"text": line}).Duplicate)
	require.Contains(t, a.text("memory_context", nil), "Note: Always run make check")
}

func TestANoteReplacesALineOfTheProjectThatItNames(t *testing.T) {
	b := setup(t)
	b.say("default", "session", &events.ConversationStarted{Project: "shop"}, said("u1", "user", "Fix the voucher."))
	b.say("default", "pi:d703a1a9-1b7b-4fb1-b512-c9738b1fe617", &events.ConversationStarted{Project: "blog"}, said("u1", "user", "Fix the post."), said("u2", "user", "Always run make check before you commit."))
	a := b.agent("", "project", "shop")
	b.appliedTo(b.head)
	require.Contains(t, a.text("memory_context", arguments{"project": "blog"}), "[8b1fe617, turn 2] User: Always run make check")
	a.text("memory_remember", arguments{"text": "The hook of git runs the checks", "project": "blog", "replaces": "[8b1fe617, turn 2]"})
	state, err := b.Log.State(t.Context())
	require.NoError(t, err)
	b.appliedTo(state.Head)
	require.NotContains(t, a.text("memory_context", arguments{"project": "blog"}), "User: Always run make check")
}

func TestANoteReplacesAMessageThatAlsoSaysTheSame(t *testing.T) {
	for name, before := range map[string]bool{"a new note": false, "a note from before": true} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			a := b.agent("", "project", "shop")
			const line = "Always run make check."
			if before {
				b.say("default", "early", &events.ConversationStarted{Project: "shop"})
				b.appliedTo(b.head)
				b.remember(a, arguments{"text": line})
			}
			b.say("default", "session", &events.ConversationStarted{Project: "shop"}, said("u1", "user", "Fix the voucher."), said("u2", "user", line+" Never push to the main branch."))
			b.appliedTo(b.head)
			instead := arguments{"text": line, "replaces": "[session, turn 2]"}
			noted := b.remember(a, instead)
			require.False(t, noted.Duplicate)
			now := a.text("memory_context", nil)
			require.Contains(t, now, "Note: "+line)
			require.NotContains(t, now, "User: ", "one message taught both")
			again := b.remember(a, instead)
			require.True(t, again.Duplicate)
			require.Equal(t, noted.Seq, again.Seq)
		})
	}
}
