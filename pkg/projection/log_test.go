package projection_test

import (
	"database/sql"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
)

func TestInvalidEventsAreListedAndTheRestIsApplied(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	header := func(change map[string]string) map[string]string {
		h := map[string]string{"ce-specversion": "1.0", "ce-id": "e", "ce-source": "s", "ce-type": events.TypeMessageCreated, "ce-subject": "c"}
		for name, value := range change {
			if h[name] = value; value == "" {
				delete(h, name)
			}
		}
		return h
	}
	const body = `{"message_id":"m","role":"user","content":"x"}`
	cases := []struct {
		name, subject string
		header        map[string]string
		body, reason  string
	}{
		{"malformed JSON", "mneme.t.c.message_created", header(nil), `{"message_id":`, "JSON"},
		{"no id", "mneme.t.c.message_created", header(map[string]string{"ce-id": ""}), body, "id: is missing"},
		{"no conversation", "mneme.t.c.message_created", header(map[string]string{"ce-subject": ""}), body, "subject: is missing"},
		{"another kind", "mneme.t.c.tool_called", header(nil), body, `published under the kind "tool_called"`},
		{"another conversation", "mneme.t.d.message_created", header(nil), body, `published under the conversation "d"`},
		{"an unknown type", "mneme.t.c.other", header(map[string]string{"ce-type": "dev.mneme.thing.done.v1"}), body, "not known"},
		{"a later version", "mneme.t.c.message_created", header(map[string]string{"ce-type": "dev.mneme.message.created.v2"}), body, "not known to this version"},
		{"no UTF-8", "mneme.t.c.message_created", header(nil), "{\"message_id\":\"m\",\"role\":\"user\",\"content\":\"\xff\"}", "UTF-8"},
		{"an attribute that is not UTF-8", "mneme.t.c.message_created", header(map[string]string{"ce-id": "%FF"}), body, "UTF-8"},
		{"a missing field", "mneme.t.c.message_created", header(nil), `{"message_id":"m","role":"user"}`, "data.content"},
		{"nothing at all", "mneme.t.c.message_created", nil, "", "content-type"},
		{"a subject that mneme does not write", "mneme.t.c$.message_created", header(nil), body, "subject token"},
	}
	b.message("c")
	for _, c := range cases {
		b.raw(c.subject, c.header, c.body)
	}
	b.message("c")
	pr := b.start(graph.Projection())
	b.awaitAll(pr)
	failed := b.failed()
	require.Len(t, failed, len(cases))
	for i, f := range failed {
		require.Equal(t, projection.ClassInvalid, f.Class, cases[i].name)
		require.EqualValues(t, i+2, f.Seq, cases[i].name)
		require.Contains(t, f.Reason, cases[i].reason, cases[i].name)
	}
	require.EqualValues(t, 2, b.checkpoint().Applied)
	require.True(t, new(b.verify(graph.Projection())).Equal())
}

// applied starts a projector, waits until it has applied all, and stops it.
func (b *bench) applied() {
	b.t.Helper()
	pr := b.start(graph.Projection())
	b.awaitAll(pr)
	pr.Stop()
}

func TestALogThatLostItsTailHaltsTheProjector(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		events int
		words  []string
	}{
		"shorter":            {3, []string{"the log ends before the last event that graph has applied: ", "mneme rebuild graph"}},
		"empty":              {0, []string{"the log ends before the last event that graph has applied: ", "mneme rebuild graph"}},
		"with other content": {10, []string{"the log holds another event", "mneme repair log", "mneme rebuild graph"}},
		"longer":             {15, []string{"the log holds another event", "mneme repair log", "mneme rebuild graph"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, 1)
			for range 10 {
				b.message("c")
			}
			b.applied()
			before := b.checkpoint()
			b.anotherStream()
			for range c.events {
				b.message("c")
			}
			pr := b.start(graph.Projection())
			await(t, pr, "is halted", isHalted)
			for _, words := range c.words {
				require.Contains(t, pr.Status()[0].Error, words)
			}
			require.Equal(t, before, b.checkpoint(), "the store may belong to another process, whose log is right")
		})
	}
}

func TestLosingTheTailOfTheLogHaltsARunningProjector(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	for range 3 {
		b.message("c")
	}
	pr := b.start(graph.Projection())
	b.awaitAll(pr)
	b.anotherStream()
	for range 6 {
		b.message("c")
	}
	await(t, pr, "is halted", isHalted)
	require.Contains(t, pr.Status()[0].Error, "the log lost its tail") // it may notice while the new log is still shorter
	require.EqualValues(t, 3, b.checkpoint().Seq)
	require.EqualValues(t, 3, b.checkpoint().Applied)
	require.Equal(t, pr.Status()[0].Error, b.checkpoint().Halted, "recorded in the store, which this projector still owns")
}

func TestAProjectorOfAnotherLogHaltsAndLeavesTheRunningOne(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(b, other *bench) (running, newcomer *projector){
		"alone": func(b, other *bench) (running, newcomer *projector) {
			running = b.start(graph.Projection())
			b.awaitAll(running)
			return running, other.start(graph.Projection())
		},
		"with leases": func(b, other *bench) (running, newcomer *projector) {
			first := b.worker("first")
			b.awaitApplied()
			awaitShared(b.t, first)
			return first.projector, other.worker("second").projector // of another server, so each holds all leases
		},
	} {
		for log, n := range map[string]int{"an empty log": 0, "a shorter log": 1, "a longer log": 6} {
			t.Run(name+", "+log, func(t *testing.T) {
				t.Parallel()
				b, other := setup(t, 1), setup(t, 1)
				for range 3 {
					b.message("c")
				}
				for range n {
					other.message("d")
				}
				require.NoError(t, other.store.Close())
				other.store = b.store
				running, newcomer := start(b, other)
				await(t, newcomer, "is halted", isHalted)
				require.Contains(t, newcomer.Status()[0].Error, "another log")
				before := b.checkpoint()
				require.Empty(t, before.Halted)
				require.EqualValues(t, 1, before.Epoch, "it did not take over the partition")
				seq := b.message("c")
				b.awaitSeq(running, 0, seq)
				await(t, running, "is live", isLive)
				require.EqualValues(t, 4, b.checkpoint().Applied)
			})
		}
	}
}

func TestTheRightLogEndsAHalt(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.message("c")
	b.applied()
	cp := b.checkpoint()
	require.NoError(t, b.store.Halt(t.Context(), 0, cp.Epoch, "the log was away"))
	b.message("c")
	b.applied()
	require.Empty(t, b.checkpoint().Halted)
	require.EqualValues(t, 2, b.checkpoint().Applied)
}

func TestAnEventPurgedAtTheCheckpointIsNoMismatch(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	for range 3 {
		b.message("c")
	}
	b.message("d")
	b.applied()
	stream, err := b.jetstream().Stream(mnemetest.Context(t), natsdeploy.Stream)
	require.NoError(t, err)
	require.NoError(t, stream.Purge(mnemetest.Context(t), jetstream.WithPurgeSubject(events.ConversationFilter("t", "d"))))
	_, err = b.log.Get(mnemetest.Context(t), 4)
	require.ErrorIs(t, err, eventlog.ErrNotFound)
	b.applied()
	pr := b.start(graph.Projection())
	b.awaitSeq(pr, 0, b.message("c"))
	await(t, pr, "is live", isLive)
	v := b.verify(graph.Projection())
	require.Len(t, v.Differences, 1, "the read model still has what the log lost")
	require.Equal(t, events.ConversationID{Tenant: "t", ID: "d"}, v.Differences[0].Conversation)
}

func TestRepairTriesAFailedEventAgain(t *testing.T) {
	t.Parallel()
	b := setup(t, 2)
	s := &switchable{fail: map[string]bool{}}
	b.message("c")
	seq := b.message("c")
	b.message("c")
	b.message("d")
	fails, err := b.log.Get(mnemetest.Context(t), seq)
	require.NoError(t, err)
	id := fails.Header["ce-id"][0]
	s.set(id, true)
	pr := b.start(s.projection())
	b.awaitAll(pr)
	require.Len(t, b.failed(), 1)
	require.Equal(t, projection.ClassError, b.failed()[0].Class)
	require.True(t, new(b.verify(graph.Projection())).Equal(), "the recorded failure is left out of the replay too")

	c := events.ConversationID{Tenant: "t", ID: "c"}
	applied, failed, err := pr.Repair(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, []int{2, 1}, []int{applied, failed}, "the reason is still there")
	require.Len(t, b.failed(), 1)

	s.set(id, false)
	applied, failed, err = pr.Repair(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, []int{3, 0}, []int{applied, failed})
	require.Empty(t, b.failed())
	require.True(t, new(b.verify(s.projection())).Equal())
	require.EqualValues(t, 3, must(b.store.Conversation(t.Context(), c, graph.Latest)).MessageCount)

	_, partition, err := b.log.Last(mnemetest.Context(t), "t", "c")
	require.NoError(t, err)
	b.awaitSeq(pr, partition, b.message("c")) // and it continues
	require.EqualValues(t, 4, must(b.store.Conversation(t.Context(), c, graph.Latest)).MessageCount)
}

func TestRepairLeavesOutAnEventThatTheStoreRefuses(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.message("c")
	b.publish("c", &events.MessageCreated{MessageID: "refused", Role: "user", Content: "x"})
	b.message("c")
	refuse, accept := "CREATE TRIGGER refuse BEFORE INSERT ON message WHEN NEW.message_id = 'refused' BEGIN SELECT RAISE(ABORT, 'refused'); END", "DROP TRIGGER refuse"
	b.sql(refuse)
	pr := b.start(graph.Projection())
	b.awaitAll(pr)
	for range 2 {
		require.Len(t, b.failed(), 1)
		require.EqualValues(t, 2, b.failed()[0].Seq)
		applied, failed, err := pr.Repair(t.Context(), events.ConversationID{Tenant: "t", ID: "c"})
		require.NoError(t, err)
		require.Equal(t, []int{2, 1}, []int{applied, failed})
	}
	b.sql(accept)
	applied, failed, err := pr.Repair(t.Context(), events.ConversationID{Tenant: "t", ID: "c"})
	require.NoError(t, err)
	require.Equal(t, []int{3, 0}, []int{applied, failed})
	require.Empty(t, b.failed())
}

// sql changes the read model by hand.
func (b *bench) sql(script string) {
	b.t.Helper()
	db, err := sql.Open("sqlite", "file:"+b.path+"?_pragma=busy_timeout(10000)")
	require.NoError(b.t, err)
	defer db.Close()
	_, err = db.ExecContext(b.t.Context(), script)
	require.NoError(b.t, err)
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func TestVerifyFindsManualChanges(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"a text":         "UPDATE message SET content = 'tampered' WHERE seq = 3",
		"a count":        "UPDATE conversation SET message_count = message_count + 1 WHERE id = 'c'",
		"a lost row":     "DELETE FROM message WHERE seq = 3",
		"a lost one":     "DELETE FROM conversation WHERE id = 'c'",
		"one too many":   "UPDATE conversation SET id = 'nobody' WHERE id = 'c'",
		"a description":  "UPDATE version SET title = 'x' WHERE c = (SELECT c FROM conversation WHERE id = 'c')",
		"a moved state":  "UPDATE conversation SET last_seq = 1, total_chars = 0 WHERE id = 'c'",
		"a future state": "UPDATE conversation SET last_seq = 1000, total_chars = 0 WHERE id = 'c'",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, 1)
			for range 5 {
				b.message("c")
				b.message("d")
			}
			pr := b.start(graph.Projection())
			b.awaitAll(pr)
			before := b.verify(graph.Projection())
			require.True(t, before.Equal())
			b.sql(script)
			v := b.verify(graph.Projection())
			require.False(t, v.Equal())
			require.Equal(t, before.Hash, v.Hash, "it is the hash of the replay")
			for _, d := range v.Differences {
				require.Contains(t, []string{"c", "nobody"}, d.Conversation.ID)
				require.NotEqual(t, d.Stored, d.Replayed)
			}
		})
	}
}

func TestVerifyCopesWithAReadModelThatMoves(t *testing.T) {
	t.Parallel()
	b := setup(t, 2)
	b.many(500, 4)
	pr := b.start(graph.Projection())
	b.awaitAll(pr)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				b.many(4, 4)
				b.awaitAll(pr)
			}
		}
	}()
	for range 3 {
		v := b.verify(graph.Projection())
		require.True(t, v.Equal(), "%+v", v.Differences)
		require.Positive(t, v.Events)
	}
	close(stop)
	<-stopped
	b.awaitAll(pr)
	require.True(t, new(b.verify(graph.Projection())).Equal())
}

func TestVerifyOfAnEmptyLog(t *testing.T) {
	t.Parallel()
	b := setup(t, 2)
	v := b.verify(graph.Projection())
	require.True(t, v.Equal())
	require.Zero(t, v.Events)
}
