package view_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/project"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/window"
	"mneme.dev/mneme/pkg/window/projects"
)

// sessions is a bundle with the read model "projects".
type sessions struct {
	*bundle
	projects *sqlitestore.Projects
	pending  []uint64 // what "projects" has not applied
	behind   func(partition int) bool
	reads    int // of the lists of a project's conversations

	cancelled bool // a context ends before what it gathers has been read
}

// counted counts the reads of a project's conversations.
type counted struct {
	project.Reader
	*sessions
}

func (c counted) Checkpoints(ctx context.Context) ([]projection.Checkpoint, error) {
	return c.Reader.Checkpoints(ctx)
}

func (c counted) Members(ctx context.Context, tenant string, q project.MemberQuery) ([]project.Member, error) {
	if q.Kind == project.KindIn {
		c.reads++
	}
	return c.Reader.Members(ctx, tenant, q)
}

func sessionsOf(t *testing.T) *sessions {
	s := &sessions{bundle: setupWith(t, natsdeploy.Settings{Partitions: 2}), behind: func(int) bool { return false }}
	opened, err := sqlitestore.Open(t.Context(), filepath.Join(t.TempDir(), "projects.db"), sqlitestore.ProjectsCodec)
	require.NoError(t, err)
	s.projects = sqlitestore.NewProjects(opened)
	t.Cleanup(func() { require.NoError(t, s.projects.Close()) })
	return s
}

// add publishes an event, and lets all read models apply it.
func (s *sessions) add(conversation string, p events.Payload) uint64 {
	s.t.Helper()
	state, err := s.log.State(mnemetest.Context(s.t))
	require.NoError(s.t, err)
	e, err := events.New(conversation, "test", fmt.Sprint("e", state.Head+1), p)
	require.NoError(s.t, err)
	ack, err := s.log.Publish(mnemetest.Context(s.t), "t", e)
	require.NoError(s.t, err)
	s.apply(ack.Seq)
	if s.behind(s.log.PartitionOf("t", conversation)) {
		s.pending = append(s.pending, ack.Seq)
	} else {
		s.followOne(ack.Seq)
	}
	return ack.Seq
}

// follow lets the read model "projects" apply the next events of those that wait.
func (s *sessions) follow(n int) {
	s.t.Helper()
	for _, seq := range s.pending[:n] {
		s.followOne(seq)
	}
	s.pending = s.pending[n:]
}

func (s *sessions) followOne(seq uint64) {
	s.t.Helper()
	message, err := s.log.Get(mnemetest.Context(s.t), seq)
	require.NoError(s.t, err)
	recorded, _, err := message.Decode()
	require.NoError(s.t, err)
	applyTo(s.bundle, project.Projection(files.DefaultTable()), s.projects, s.log.PartitionOf(recorded.Tenant, recorded.Subject), message)
}

// say adds a session of a project.
func (s *sessions) say(conversation, of, asked, answered string) (first uint64) {
	s.t.Helper()
	first = s.add(conversation, &events.ConversationStarted{Project: of})
	s.add(conversation, &events.MessageCreated{MessageID: "u", Role: "user", Content: asked})
	s.add(conversation, &events.MessageCreated{MessageID: "a", Role: "assistant", Content: answered})
	return first
}

// earlier returns what a context of a conversation shows of earlier sessions, and what a server without a memory would.
// Without room, the context does not ask.
func (s *sessions) earlier(conversation string, first uint64, query string, room int) (shown, fresh []window.Item) {
	s.t.Helper()
	pins, v, err := s.open(s.t.Context(), conversation, view.At{})
	require.NoError(s.t, err)
	defer pins.Release()
	_, g, err := pins.Graph(s.t.Context())
	require.NoError(s.t, err)
	of := func(r project.Reader) *projects.Earlier {
		e, err := projects.EarlierThan(s.t.Context(), projects.Source{Projects: r, Past: s.views.Cache.OfProjects(s.graph)}, []events.ConversationID{id(conversation)}, first, graph.Latest)
		require.NoError(s.t, err)
		return e
	}
	gather := func(from window.Earlier) (items []window.Item) {
		ctx, cancel := context.WithCancel(s.t.Context())
		defer cancel()
		if s.cancelled {
			cancel()
		}
		fit, err := from.Gather(ctx, query)
		if s.cancelled {
			require.ErrorIs(s.t, err, context.Canceled)
			return nil
		}
		require.NoError(s.t, err)
		if fit != nil && room > 0 {
			items, err = fit(room)
			require.NoError(s.t, err)
		}
		return items
	}
	shown = gather(v.Earlier(of(counted{s.projects, s}), view.Model{Name: "projects", Generation: 1, Store: s.projects}, g))
	return shown, gather(of(s.projects))
}

func TestEarlierSessionsAreReadAgainOnlyForAnotherQuery(t *testing.T) {
	s := sessionsOf(t)
	s.say("one", "p", "Why does the parser fail on paths?", "It split them at spaces. Now it does not.")
	first := s.say("new", "p", "Where do paths fail?", "I look.")
	read := func(query string, room int) (reads int) {
		before := s.reads
		shown, fresh := s.earlier("new", first, query, room)
		require.Equal(t, fresh, shown)
		require.NotEmpty(t, shown)
		return s.reads - before
	}
	require.Equal(t, 1, read("paths", 8_000))
	s.add("new", &events.MessageCreated{MessageID: "b", Role: "assistant", Content: "I still look."})
	s.add("one", &events.MessageCreated{MessageID: "b", Role: "user", Content: "And quotes?"})
	require.Zero(t, read("paths", 8_000), "nothing that was earlier has changed")
	require.Equal(t, 1, read("spaces", 8_000))
	require.Zero(t, read("spaces", 8_000))
	require.Positive(t, s.views.Cache.Figures().Bytes)

	// A conversation that fills its budget leaves a different room for earlier sessions in each context.
	for room := 7_000; room > 4_000; room -= 1_000 {
		require.Equal(t, 1, read("spaces", room))
	}
	require.Equal(t, 1, read("spaces", 5_000), "the first with the room of the one before")
	require.Zero(t, read("spaces", 5_000))
}

func TestEarlierSessionsAreNotReadForContextsWithoutRoom(t *testing.T) {
	s := sessionsOf(t)
	s.say("one", "p", "Why does the parser fail on paths?", "It split them at spaces.")
	first := s.say("new", "p", "Where do paths fail?", "I look.")
	contexts := 0
	read := func(room int) (reads int) {
		contexts++
		before := s.reads
		shown, fresh := s.earlier("new", first, fmt.Sprint("paths ", contexts), room)
		require.Equal(t, fresh, shown)
		require.Equal(t, room > 0, len(shown) > 0)
		return s.reads - before
	}
	require.Equal(t, 1, read(0), "it may have room")
	require.Zero(t, read(0))
	require.Equal(t, 1, read(8_000))
	require.Equal(t, 1, read(0))
	require.Zero(t, read(0))
	require.Equal(t, 1, read(8_000))

	// A context that is complete without earlier sessions does not wait for the read.
	s.cancelled = true
	s.earlier("new", first, "quotes", 0)
	s.cancelled = false
	require.Zero(t, read(0))
	require.Equal(t, 1, read(8_000))
}

func TestASessionThatOnlyTheGraphKnowsToBeDeletedDoesNotFailTheContextOfAnother(t *testing.T) {
	s := sessionsOf(t)
	s.say("gone", "p", "Why does the parser fail on paths?", "It split them at spaces.")
	s.say("stays", "p", "And why does the parser fail on quotes?", "It took them for spaces.")
	first := s.say("new", "p", "Where do paths fail?", "I look.")
	s.behind = func(int) bool { return true }
	s.add("gone", &events.ConversationDeleted{})
	shown, _ := s.earlier("new", first, "parser", 8_000)
	require.NotEmpty(t, shown)
	s.follow(len(s.pending))
	shown, _ = s.earlier("new", first, "parser", 8_000)
	for _, it := range shown {
		require.NotEqual(t, "gone", it.Session)
	}
}

// Whatever happens between two contexts, the second shows what a server without a cache would show.
func TestKeptEarlierSessionsAreWhatAReadWouldFind(t *testing.T) {
	s := sessionsOf(t)
	topics := []string{"parser", "paths", "quotes", "cache", "index"}
	random := rand.New(rand.NewPCG(7, 8))
	topic := func() string { return topics[random.IntN(len(topics))] }
	var there []string
	for i := range 12 {
		if i == 4 {
			s.behind = func(partition int) bool { return partition != s.log.PartitionOf("t", "new") }
		}
		name := fmt.Sprint("c", i)
		there = append(there, name)
		s.say(name, []string{"p", "q"}[i%2], "Mend the "+topic()+" with the "+topic()+", please.", "The "+topic()+" is mended.")
	}
	first := s.say("new", "p", "What of the parser?", "I look.")
	query, room := "parser", 8_000
	took := map[string]int{}
	for range 200 {
		did := []string{"nothing", "message", "delete", "alias", "query", "room", "drop", "follow"}[random.IntN(8)]
		of := there[random.IntN(len(there))]
		switch did {
		case "message":
			s.add(of, &events.MessageCreated{MessageID: fmt.Sprint("m", random.Uint64()), Role: "user", Content: "More of the " + topic()})
		case "delete":
			if len(there) > 6 && len(s.pending) == 0 && random.IntN(3) == 0 {
				there = there[:len(there)-1]
				s.add(fmt.Sprint("c", len(there)), &events.ConversationDeleted{})
			}
		case "alias":
			s.add(events.ProjectsConversation, &events.ProjectAliased{Project: "q", Into: []string{"p", ""}[random.IntN(2)]})
		case "query":
			query = topic()
		case "room":
			room = 2_000 * random.IntN(5)
		case "follow":
			s.follow(min(len(s.pending), 1+random.IntN(8)))
			if len(s.pending) == 0 {
				s.behind = func(int) bool { return false }
			}
		case "drop": // half of a repair
			if random.IntN(6) == 0 {
				partition := s.log.PartitionOf("t", of)
				require.NoError(t, s.projects.Update(t.Context(), partition, func(tx projection.Tx[*project.Unit]) error { return tx.Drop(t.Context(), id(of)) }))
			}
		}
		took[did]++
		shown, fresh := s.earlier("new", first, query, room)
		require.Equal(t, fresh, shown, "after %s", did)
	}
	require.Less(t, s.reads, 150)
	t.Log(took, s.reads)
}
