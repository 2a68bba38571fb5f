package erasure_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/erasure"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/project"
	"mneme.dev/mneme/pkg/projection"
)

// chats returns the events of random conversations in two projects, interleaved.
func chats(t *testing.T, r *rand.Rand, conversations, each int) (list []events.Event) {
	yes, next := true, map[int]int{}
	for range conversations * each {
		n := r.IntN(conversations)
		i := next[n]
		next[n]++
		id, key := fmt.Sprint("c", n), fmt.Sprint(i)
		var p events.Payload
		switch what := r.IntN(4); {
		case i == 0:
			p = &events.ConversationStarted{Title: id, Project: fmt.Sprint("p", n%2), Cwd: "/src"}
		case what == 0:
			p = &events.ToolCalled{ToolCallID: key, ToolName: "Edit", Arguments: json.RawMessage(fmt.Sprintf(`{"file_path":"/src/f%d.go"}`, r.IntN(5)))}
		case what == 1:
			p = &events.ToolReturned{ToolCallID: fmt.Sprint(i - 1), Success: &yes, Result: events.TextResult("done")}
		default:
			p = &events.MessageCreated{MessageID: key, Role: []string{"user", "assistant"}[what-2], Content: fmt.Sprint("words of ", id, " ", key)}
		}
		list = append(list, event(t, id, key, p))
	}
	return list
}

// What an erasure leaves is what a log has that never had the erased conversations.
func TestAnErasureLeavesWhatALogHasThatNeverHadTheConversations(t *testing.T) {
	t.Parallel()
	const conversations = 8
	gone := map[string]bool{"c1": true, "c4": true, "c6": true}
	all := chats(t, rand.New(rand.NewPCG(7, 11)), conversations, 12)
	var kept []events.Event
	for _, e := range all {
		if !gone[e.Subject] {
			kept = append(kept, e)
		}
	}
	worlds := []*world{setup(t), setup(t)}
	for i, list := range [][]events.Event{all, kept} {
		w := worlds[i]
		_, err := w.log.PublishAll(mnemetest.Context(w), "default", list)
		require.NoError(t, err)
		w.applied()
	}
	for id := range gone {
		worlds[0].erase(erasure.Scope{Tenant: "default", Conversation: id})
	}
	worlds[0].consistent() // with what a rebuild makes
	for n := range conversations {
		if id := fmt.Sprint("c", n); !gone[id] {
			require.Equal(t, worlds[1].hashes(id), worlds[0].hashes(id), id)
		}
	}
}

// hashes returns the hash of a conversation's rows in each read model that says something about it.
func (w *world) hashes(id string) map[string]events.Digest {
	w.Helper()
	type hasher interface {
		Hash(ctx context.Context, id events.ConversationID) (projection.ConversationHash, error)
	}
	list := map[string]events.Digest{}
	take := func(name string, from hasher) error {
		h, err := from.Hash(w.Context(), events.ConversationID{Tenant: "default", ID: id})
		list[name] = h.Hash
		return err
	}
	require.NoError(w, view.Lend(w.Context(), w.models.Graph, func(g graph.Reader) error { return take("graph", g) }))
	require.NoError(w, view.Lend(w.Context(), w.models.Files, func(f graph.FilesReader) error { return take("files", f) }))
	require.NoError(w, view.Lend(w.Context(), w.models.Projects, func(p project.Reader) error { return take("projects", p) }))
	return list
}
