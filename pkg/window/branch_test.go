package window_test

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/window"
)

// branched reads a conversation with what it inherits.
func (s *store) branched(id string) window.Source {
	s.t.Helper()
	lineage, err := graph.LineageOf(s.t.Context(), s.graph, idOf(id), graph.Latest)
	require.NoError(s.t, err)
	read := lineage.Graph(s.graph)
	return window.Source{Graph: s.indexes.Graph(read, lineage.Descent()), Files: lineage.Files(s.files), Recall: s.indexes.Of(view.Source{Messages: read, Edition: lineage.Descent()})}
}

// renamed is an event in another conversation.
func renamed(e events.Event, id string) events.Event {
	r, err := events.Record(e)
	if err != nil {
		panic(err)
	}
	e, err = events.New(id, e.Source, e.ID, r.Payload)
	if err != nil {
		panic(err)
	}
	return e
}

// mark matches what differs in a text because the same events have other sequences.
var mark = regexp.MustCompile(`sequence \d+ in the log`)

// TestABranchShowsWhatOneConversationWould splits conversations at one of their messages: the
// branch must show the same text. Files are left out, because a result that comes in the branch
// does not count for the files of its parent's call.
func TestABranchShowsWhatOneConversationWould(t *testing.T) {
	s := newStore(t)
	s.seq = 1_000_000 // all sequences take the same room in a text
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		whole := conversations(rt, fmt.Sprintf("whole%d", n), 0)
		var cuts []int
		for i, e := range whole {
			if e.Type == events.TypeMessageCreated {
				cuts = append(cuts, i)
			}
		}
		if len(cuts) == 0 {
			return
		}
		cut := rapid.SampledFrom(cuts).Draw(rt, "cut")
		r, err := events.Record(whole[cut])
		require.NoError(rt, err)
		parent, branch := fmt.Sprintf("parent%d", n), fmt.Sprintf("branch%d", n)
		at := r.Payload.(*events.MessageCreated).MessageID
		started := &events.ConversationStarted{BranchedFrom: &events.BranchedAt{ConversationID: parent, MessageID: at}}
		if begins, err := events.Record(whole[0]); err == nil && whole[0].Type == events.TypeConversationStarted {
			started.Cwd = begins.Payload.(*events.ConversationStarted).Cwd // the branch has its own sequences
		}
		first, err := events.New(branch, "test", "started", started)
		require.NoError(rt, err)
		var apart []events.Event
		for _, e := range whole[:cut+1] {
			apart = append(apart, renamed(e, parent))
		}
		apart = append(apart, first)
		for i, e := range whole[cut+1:] {
			apart = append(apart, renamed(e, branch))
			if i%3 == 0 { // the parent continues too
				apart = append(apart, renamed(e, parent))
			}
		}
		s.apply(whole)
		s.apply(apart)
		for range 3 {
			req := window.Request{
				Strategy: rapid.SampledFrom(window.Strategies()).Draw(rt, "strategy"),
				MaxChars: rapid.OneOf(rapid.IntRange(window.MinMaxChars, 1_000), rapid.IntRange(window.MinMaxChars, 20_000), rapid.Just(1_000_000)).Draw(rt, "max"),
			}
			req.Conversation = idOf(whole[0].Subject)
			want, err := window.Build(t.Context(), window.Source{Graph: s.graph, Recall: s.indexes.Of(view.Source{Messages: s.graph})}, req)
			require.NoError(rt, err)
			req.Conversation = idOf(branch)
			branched := s.branched(branch)
			got, err := window.Build(t.Context(), window.Source{Graph: branched.Graph, Recall: branched.Recall}, req)
			require.NoError(rt, err)
			require.Equal(rt, mark.ReplaceAllString(want.Markdown(), ""), mark.ReplaceAllString(got.Markdown(), ""), "%s %d", req.Strategy, req.MaxChars)
		}
	})
}

func TestCallsOfABranchAndItsParentThatShareAnIDKeepTheirResults(t *testing.T) {
	parent := newTalk(t, "parent").user("Question.").
		assistant("I look.").call("k1", "run", args{"command": "parent 1"}).result("k1", true, "result in the parent").
		assistant("Again.").call("k2", "run", args{"command": "parent 2"}).user("Branch here.")
	at := fmt.Sprintf("m%d", parent.n)
	branch := newTalk(t, "branch").add(&events.ConversationStarted{BranchedFrom: &events.BranchedAt{ConversationID: "parent", MessageID: at}})
	branch.assistant("My own.").call("k1", "run", args{"command": "branch 1"})
	branch.assistant("And more.").call("k2", "run", args{"command": "branch 2"}).result("k2", true, "result in the branch")
	s := newStore(t)
	s.apply(parent.events)
	s.apply(branch.events)
	c, err := window.Build(t.Context(), s.branched("branch"), window.Request{Conversation: idOf("branch")})
	require.NoError(t, err)
	results := map[string]string{}
	var order []string
	for _, it := range sectionOf(c, window.SectionTurns) {
		switch it.Kind {
		case window.KindMessage:
			order = append(order, it.Text)
		case window.KindToolCall:
			order = append(order, it.Arguments)
			if results[it.Arguments] = "none"; it.Result != nil {
				results[it.Arguments] = *it.Result
			}
		}
	}
	require.Equal(t, map[string]string{
		`{"command":"parent 1"}`: "result in the parent", `{"command":"parent 2"}`: "none",
		`{"command":"branch 1"}`: "none", `{"command":"branch 2"}`: "result in the branch",
	}, results)
	require.Equal(t, []string{"Question.", "I look.", `{"command":"parent 1"}`, "Again.", `{"command":"parent 2"}`, "Branch here.",
		"My own.", `{"command":"branch 1"}`, "And more.", `{"command":"branch 2"}`}, order)
}
