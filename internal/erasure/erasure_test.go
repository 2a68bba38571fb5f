package erasure_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/erasure"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/natstest"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/projection"
)

func TestNothingOfAnErasedConversationIsLeftInAnyFile(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.publish(history(t, "gone", "zanzibarcanary", ""), history(t, "stays", "quagmiretext", ""))
	require.NotEmpty(t, w.search("zanzibarcanary"), "the search works")
	before := w.hash("stays")

	report := w.erase(erasure.Scope{Tenant: "default", Conversation: "gone"})

	require.Empty(t, w.search("zanzibarcanary"))
	require.NotEmpty(t, w.search("quagmiretext"))
	require.Equal(t, before, w.hash("stays"))
	w.consistent()
	require.Equal(t, 1, report.Conversations)
	require.Equal(t, map[string]uint64{"conversation_started": 1, "conversation_updated": 1, "message_created": 3, "tool_called": 2, "tool_returned": 1}, report.Events)
	require.Equal(t, []string{erasure.HashOf("default", "gone")}, report.ConversationHashes)
	require.Greater(t, report.Bytes, uint64(100_000))
	require.EqualValues(t, 1, report.FirstSeq)
	require.EqualValues(t, 15, report.LastSeq)
	require.Len(t, report.Stores, 5)
	require.True(t, report.Sealed())
	raw, err := json.Marshal(report)
	require.NoError(t, err)
	require.NotContains(t, string(raw), "zanzibarcanary")
	report.Bytes++
	require.False(t, report.Sealed(), "a changed report has another hash")
}

func TestReadsHoldNothingOfAnErasedConversation(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.publish(history(t, "gone", "zanzibarcanary", "p"), history(t, "stays", "quagmiretext", "p"))
	w.erase(erasure.Scope{Tenant: "default", Conversation: "gone"})
	id := events.ConversationID{Tenant: "default", ID: "gone"}
	require.NoError(t, view.Lend(t.Context(), w.models.Graph, func(g graph.Reader) error {
		_, err := g.Conversation(t.Context(), id, graph.Latest)
		require.ErrorIs(t, err, graph.ErrNotFound)
		page, err := g.Conversations(t.Context(), "default", graph.ConversationQuery{})
		require.NoError(t, err)
		require.Len(t, page.Rows, 1)
		_, err = g.Messages(t.Context(), id, graph.MessageQuery{})
		require.ErrorIs(t, err, graph.ErrNotFound)
		for _, seq := range []uint64{1, 5, 15} { // nor as of then
			_, err = g.Conversation(t.Context(), id, seq)
			require.ErrorIs(t, err, graph.ErrNotFound)
		}
		failed, err := g.Failed(t.Context(), projection.FailedQuery{Tenant: "default", Limit: 10})
		require.NoError(t, err)
		require.Len(t, failed, 1)
		require.Equal(t, "stays", failed[0].Conversation.ID)
		return nil
	}))
	require.NoError(t, view.Lend(t.Context(), w.models.Files, func(f graph.FilesReader) error {
		list, err := f.Files(t.Context(), id, graph.FileQuery{})
		require.NoError(t, err)
		require.Empty(t, list)
		return nil
	}))
}

// An eraser that is killed before any of its steps leaves a state from which another one can finish: nothing is left,
// nothing counts as lost, and the report counts each event once.
func TestAnErasureGoesOnAfterAKillAtAnyStep(t *testing.T) {
	mnemetest.Long(t)
	t.Parallel()
	w := setup(t)
	w.publish(history(t, "stays", "quagmiretext", ""))
	before := w.hash("stays")
	gone := 0
	// kill erases a conversation with a kill at a step, and again without one.
	kill := func(step string, nth int) (killed bool) {
		gone++
		name, canary := fmt.Sprintf("gone%d", gone), fmt.Sprintf("zanzibar%dcanary", gone)
		w.publish(history(t, name, canary, ""))
		_, err := w.eraser(nil).Ask(t.Context(), erasure.Scope{Tenant: "default", Conversation: name})
		require.NoError(t, err)
		if killed = w.until(step, nth); killed {
			require.False(t, w.until("no such step", 1))
		}
		r, err := w.eraser(nil).Last(t.Context())
		require.NoError(t, err)
		require.Equal(t, erasure.Done, r.State)
		total := uint64(0)
		for _, n := range r.Report.Events {
			total += n
		}
		require.EqualValues(t, 8, total, "killed at %q: %v", step, r.Report.Events)
		require.True(t, r.Report.Sealed())
		require.Empty(t, w.search(canary), "killed at %q", step)
		state, err := w.log.State(mnemetest.Context(t))
		require.NoError(t, err)
		require.Zero(t, state.Missing, "killed at %q", step)
		return killed
	}
	for _, step := range []string{"before the tombstone", "before the record of a batch", "before a batch", "between two messages", "after a batch", "before a repair", "before a cleaning", "after a read model", "after marking", "after waiting", "after overwriting", "after cleaning"} {
		times := 0
		for kill(step, times+1) {
			if times++; times == 2 && !mnemetest.All { // the others repeat the second
				break
			}
		}
		require.NotZero(t, times, "no kill at %q", step)
	}
	kill("waiting", 1) // if the read models were not faster
	require.Equal(t, before, w.hash("stays"))
	w.consistent()
}

func TestTheSameErasureTwiceRemovesNothingMore(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.publish(history(t, "gone", "zanzibarcanary", ""))
	scope := erasure.Scope{Tenant: "default", Conversation: "gone"}
	w.erase(scope)
	state, err := w.log.State(mnemetest.Context(t))
	require.NoError(t, err)

	second := w.erase(scope)
	require.Empty(t, second.Events)
	require.Equal(t, 1, second.Conversations)
	now, err := w.log.State(mnemetest.Context(t))
	require.NoError(t, err)
	state.Now = now.Now
	require.Equal(t, state, now)

	_, err = w.eraser(nil).Ask(t.Context(), erasure.Scope{Tenant: "default", All: true})
	require.ErrorIs(t, err, erasure.ErrNothing)
	_, err = w.eraser(nil).Ask(t.Context(), erasure.Scope{Tenant: "default", Conversation: "never there"})
	require.ErrorIs(t, err, erasure.ErrNothing)
	w.consistent()
}

func TestEventsThatComeAfterAnErasureGoWithTheNext(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.publish(history(t, "gone", "zanzibarcanary", ""))
	w.erase(erasure.Scope{Tenant: "default", Conversation: "gone"})
	late := []events.Event{event(t, "gone", "late", &events.MessageCreated{MessageID: "late", Role: "user", Content: "latecanary"})}
	w.publish(late)
	require.NotEmpty(t, w.search("latecanary"), "the log takes it, and the read models refuse it")
	report := w.erase(erasure.Scope{Tenant: "default", All: true})
	require.EqualValues(t, 1, report.Events["message_created"])
	require.Empty(t, w.search("latecanary"))
	w.consistent()
}

// Somebody publishes while the erasure runs: events after the tombstone are erased too.
func TestEventsThatComeDuringAnErasureGoToo(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.publish(history(t, "gone", "zanzibarcanary", ""))
	e := w.eraser(nil)
	sent := false
	e.Step = func(step string) {
		if step == "before a cleaning" && !sent {
			sent = true
			_, err := w.log.Publish(mnemetest.Context(t), "default", event(t, "gone", "late", &events.MessageCreated{MessageID: "late", Role: "user", Content: "latecanary"}))
			require.NoError(t, err)
		}
	}
	_, err := e.Ask(mnemetest.Context(t), erasure.Scope{Tenant: "default", Conversation: "gone"})
	require.NoError(t, err)
	w.started(e)
	r := w.ended(e)
	require.EqualValues(t, 4, r.Report.Events["message_created"])
	require.Empty(t, w.search("latecanary"))
	require.Empty(t, w.search("zanzibarcanary"))
	w.consistent()
}

func TestAnErasureOfAProjectTakesItsDeletedConversationsToo(t *testing.T) {
	t.Parallel()
	w := setup(t)
	in := func(id, canary, folder string) []events.Event {
		list := history(t, id, canary, "")
		list[0] = event(t, id, "started", &events.ConversationStarted{Cwd: folder, Title: canary})
		return list
	}
	w.publish(history(t, "named", "canarynamed", "acme"), history(t, "deleted", "canarydeleted", "acme"), history(t, "other", "canaryother", "other"),
		in("worktree", "canaryworktree", "/src/site/.worktrees/4"), in("below", "canarybelow", "/src/site/docs"), in("gone", "canarygone", "/src/site/old"), in("beside", "canarybeside", "/src/acme"))
	for _, id := range []string{"deleted", "gone"} {
		_, err := w.log.Publish(mnemetest.Context(t), "default", event(t, id, "delete", &events.ConversationDeleted{Reason: "canaryreason"}))
		require.NoError(t, err)
	}
	_, err := w.log.Publish(mnemetest.Context(t), "default", event(t, events.ProjectsConversation, "alias", &events.ProjectAliased{Project: "acme", Into: "/src/site"}))
	require.NoError(t, err)
	noted, files := "canarymemory", events.MemoryPrefix+"acme"
	w.publish([]events.Event{
		event(t, files, "started", &events.ConversationStarted{Project: "acme"}),
		event(t, files, "written", &events.MemoryChanged{Path: "canarypath.md", Content: &noted}),
	})
	w.applied()

	for _, name := range []string{"acme", "/src/site", "/src/site/docs/deep"} { // one project by any of its names
		found, err := w.eraser(nil).Look(t.Context(), erasure.Scope{Tenant: "default", Project: name})
		require.NoError(t, err)
		require.Equal(t, []erasure.Found{{ID: "below", Events: 8}, {ID: "deleted", Events: 9}, {ID: "gone", Events: 9}, {ID: files, Events: 2}, {ID: "named", Events: 8}, {ID: "worktree", Events: 8}}, found, name)
	}
	report := w.erase(erasure.Scope{Tenant: "default", Project: "acme"})
	require.Equal(t, 6, report.Conversations)
	for _, canary := range []string{"canarynamed", "canarymemory", "canarypath", "canarydeleted", "canaryreason", "canaryworktree", "canarybelow", "canarygone"} {
		require.Empty(t, w.search(canary), canary)
	}
	require.NotEmpty(t, w.search("canaryother"))
	require.NotEmpty(t, w.search("canarybeside"), "a folder is not a project because its name ends like one")
	w.consistent()
}

func TestAnErasureTakesTheChaptersThatTellOfTheConversation(t *testing.T) {
	t.Parallel()
	w := setup(t)
	chapter := func(id, canary string, told ...string) events.Event {
		p := &events.StoryWritten{Project: "acme", Names: []string{"acme"}, Level: 1, Conversation: canary, Method: "llm"}
		for _, of := range told {
			p.Told = append(p.Told, events.Told{ID: of})
		}
		return event(t, events.StoryPrefix+id, "story", p)
	}
	w.publish(history(t, "c", "canaryconversation", "acme"), history(t, "d", "canaryother", "acme"))
	w.publish([]events.Event{chapter("1", "canarychapter", "c", "d"), chapter("2", "canarystays", "d"), chapter("3", "canarywithdrawn", "d", "c")})
	_, err := w.log.Publish(mnemetest.Context(t), "default", event(t, events.StoryPrefix+"3", "withdrawn", &events.StoryWithdrawn{}))
	require.NoError(t, err)
	w.applied()
	scope := erasure.Scope{Tenant: "default", Conversation: "c"}
	found, err := w.eraser(nil).Look(t.Context(), scope)
	require.NoError(t, err)
	require.Equal(t, []erasure.Found{{ID: "c", Events: 8}, {ID: "story:1", Events: 1}, {ID: "story:3", Events: 2}}, found)
	report := w.erase(scope)
	require.Equal(t, 3, report.Conversations)
	for _, canary := range []string{"canaryconversation", "canarychapter", "canarywithdrawn"} {
		require.Empty(t, w.search(canary), canary)
	}
	require.NotEmpty(t, w.search("canarystays"))
	require.NotEmpty(t, w.search("canaryother"))
	w.consistent()
}

// publishOldAndYoung publishes a conversation that retention erases, and one of today.
func (w *world) publishOldAndYoung() {
	young := history(w, "young", "canaryyoung", "")
	for i := range young {
		young[i].Time = time.Now()
	}
	w.publish(history(w, "old", "canaryold1", ""), young)
}

func TestRetentionErasesWhatIsTooOldOnceAndNothingElse(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.publishOldAndYoung()
	var audited []string
	e := w.started(w.eraser(func(c *erasure.Config) {
		c.Retention = map[string]time.Duration{"default": 90 * 24 * time.Hour, "empty": time.Hour}
		c.Audited = func(_ context.Context, s erasure.Scope, ask func() error) error {
			audited = append(audited, s.Tenant)
			if len(audited) == 1 {
				return errors.New("the audit log takes no entry")
			}
			return ask()
		}
	}))
	r := w.ended(e)
	require.True(t, r.Report.Scope.Retention)
	e.Stop()
	require.Equal(t, []string{"default", "default"}, audited, "it asks again if the audit log took no entry; of a tenant without anything old there is none")
	require.Equal(t, 1, r.Report.Conversations)
	require.Empty(t, w.search("canaryold1"))
	require.NotEmpty(t, w.search("canaryyoung"))
	w.consistent()
}

func TestAClockThatIsYearsAheadErasesNothingThatIsNotDue(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.publishOldAndYoung()
	r := w.ended(w.started(w.eraser(func(c *erasure.Config) {
		c.Retention = map[string]time.Duration{"default": 90 * 24 * time.Hour}
		c.Now = func() time.Time { return time.Now().AddDate(10, 0, 0) }
	})))
	require.Equal(t, 1, r.Report.Conversations, "only what is old by the clock of the NATS server")
	require.NotEmpty(t, w.search("canaryyoung"))
}

func TestEventsWithoutATimeAreAsOldAsTheirPlaceInTheLog(t *testing.T) {
	t.Parallel()
	w := setup(t)
	timeless := func(conversation string) []events.Event {
		list := history(t, conversation, "canary"+conversation, "")
		for i := range list {
			list[i].Time = time.Time{}
		}
		return list
	}
	deleted := append(timeless("deleted"), event(t, "deleted", "gone", &events.ConversationDeleted{}))
	deleted[len(deleted)-1].Time = time.Time{}
	w.publish(timeless("living"), deleted)
	w.applied()
	old := history(t, "mixed", "canarymixed", "")
	w.publish(old)
	summary := event(t, "mixed", "summary", &events.SummaryWritten{SummaryID: "s", Level: 1, FirstSeq: 1, LastSeq: 1, Conversation: "what was said", Method: "extractive"})
	served := event(t, "mixed", "served", &events.ContextServed{AsOf: 1, Hash: strings.Repeat("a", 64), MaxChars: 1, Strategy: "recent"})
	title := "a title that the summarizer wrote"
	titled, err := events.New("mixed", "mneme/summarizer", "title", &events.ConversationUpdated{Title: &title})
	require.NoError(t, err)
	summary.Time, served.Time, titled.Time = time.Time{}, time.Time{}, time.Time{}
	w.publish([]events.Event{summary, served, titled})
	w.applied()
	found, err := w.eraser(nil).Look(t.Context(), erasure.Scope{Tenant: "default", Before: time.Now().Add(-time.Hour)})
	require.NoError(t, err)
	require.Len(t, found, 1, "neither a summary nor its title makes a conversation young")
	last := event(t, "mixed", "last", &events.MessageCreated{MessageID: "last", Role: "user", Content: "still here"})
	last.Time = time.Time{}
	w.publish([]events.Event{last})
	w.applied()
	for _, c := range []struct {
		before time.Time
		found  int
	}{{time.Now().Add(-time.Hour), 0}, {time.Now().Add(time.Hour), 3}} {
		found, err := w.eraser(nil).Look(t.Context(), erasure.Scope{Tenant: "default", Before: c.before})
		require.NoError(t, err)
		require.Len(t, found, c.found)
	}
}

func TestATitleThatMnemeWritesDoesNotHideThatSomebodyChangedTheConversation(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.publish(history(t, "old", "canaryold", ""), history(t, "touched", "canarytouched", ""))
	title := "a title that the summarizer wrote"
	changes := []events.Event{event(t, "touched", "archived", &events.ConversationUpdated{Status: "archived"})}
	for _, conversation := range []string{"old", "touched"} {
		titled, err := events.New(conversation, "mneme/summarizer", "title", &events.ConversationUpdated{Title: &title})
		require.NoError(t, err)
		changes = append(changes, titled)
	}
	for i := range changes {
		changes[i].Time = time.Time{}
	}
	w.publish(changes)
	w.applied()
	found, err := w.eraser(nil).Look(t.Context(), erasure.Scope{Tenant: "default", Before: time.Now().Add(-time.Hour)})
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, "old", found[0].ID)
}

func TestAnErasureEndsWithoutEmbeddingsThatNothingWrites(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.publish(history(t, "gone", "canarygone", ""))
	w.applied()
	abandoned, err := sqlitestore.Open(t.Context(), sqlitestore.Path(filepath.Join(w.data, "models"), "embeddings", 1), sqlitestore.EmbeddingsCodec)
	require.NoError(t, err)
	_, err = abandoned.Acquire(t.Context(), 0, "another model's")
	require.NoError(t, err)
	require.NoError(t, abandoned.Close())
	e := w.started(w.eraser(func(c *erasure.Config) { c.Patience = 200 * time.Millisecond }))
	_, err = e.Ask(mnemetest.Context(t), erasure.Scope{Tenant: "default", Conversation: "gone"})
	require.NoError(t, err)
	report := w.ended(e).Report
	require.Equal(t, 1, report.Conversations)
	require.Empty(t, w.search("canarygone"))
	require.Contains(t, report.NotReached[len(report.NotReached)-1], "the read model embeddings (")
	w.consistent()
}

// As on a slow machine, whose server does not answer within the time of a lease.
func TestAnErasureEndsAlthoughItLosesItsLeaseAgainAndAgain(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.publish(history(t, "gone", "canarygone", ""), history(t, "too", "canarytoo", "p"))
	w.applied()
	abandoned, err := sqlitestore.Open(t.Context(), sqlitestore.Path(filepath.Join(w.data, "models"), "embeddings", 1), sqlitestore.EmbeddingsCodec)
	require.NoError(t, err)
	_, err = abandoned.Acquire(t.Context(), 0, "another model's")
	require.NoError(t, err)
	require.NoError(t, abandoned.Close())
	js, err := jetstream.New(w.log.Conn())
	require.NoError(t, err)
	bucket, _, err := natsdeploy.ApplyLeases(mnemetest.Context(t), js, 0)
	require.NoError(t, err)
	var mu sync.Mutex
	repairs, repeated, cleanings := 0, 0, 0
	e := w.started(w.eraser(func(c *erasure.Config) {
		c.Patience = time.Second
		c.Step = func(step string) {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case step == "before a repair of embeddings": // tried until it is given up
			case strings.HasPrefix(step, "before a repair"):
				repairs++
			case step == "waiting": // it is lost at the next renewal
				_ = bucket.Delete(context.Background(), "exclusive.erase")
			case step == "before a cleaning":
				if cleanings++; cleanings%2 == 0 { // after the one that was broken off
					repeated += repairs
				}
				repairs = 0
				if cleanings%2 == 1 {
					_ = bucket.Delete(context.Background(), "exclusive.erase")
					time.Sleep(time.Second)
				}
			}
		}
	}))
	_, err = e.Ask(mnemetest.Context(t), erasure.Scope{Tenant: "default", Before: time.Now().Add(time.Hour)})
	require.NoError(t, err)
	w.ended(e)
	require.Empty(t, w.search("canary"))
	mu.Lock()
	defer mu.Unlock()
	require.Greater(t, cleanings, 2)
	require.Zero(t, repeated, "what is repaired is not repaired again")
	w.consistent()
}

func TestAProjectIsErasedWithItsMemoryAndItsCode(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.publish(history(t, "c", "canaryconversation", "acme"))
	code := &events.CodeIndexed{Project: "acme", Path: "a.go", Hash: strings.Repeat("a", 64), Scopes: []events.CodeScope{{Kind: "function", Name: "F", StartLine: 1, EndLine: 1, Text: "canarycode"}}}
	other := &events.CodeIndexed{Project: "other", Path: "a.go", Hash: strings.Repeat("a", 64), Scopes: code.Scopes}
	w.publish([]events.Event{
		event(t, events.CodePrefix+"acme", "file", code), event(t, events.CodePrefix+"other", "file", other),
		event(t, events.MemoryPrefix+"acme", "start", &events.ConversationStarted{Project: "acme"}),
		event(t, events.NotesPrefix+"acme", "start", &events.ConversationStarted{Project: "acme"}),
		event(t, events.MemoryPrefix+"acme", "note", &events.MemoryChanged{Path: "notes/a.md", Content: new("canarymemory")}),
	})
	w.applied()
	found, err := w.eraser(nil).Look(t.Context(), erasure.Scope{Tenant: "default", Project: "acme"})
	require.NoError(t, err)
	require.Equal(t, []erasure.Found{{ID: "c", Events: 8}, {ID: "code:acme", Events: 1}, {ID: "memory:acme", Events: 2}, {ID: "notes:acme", Events: 1}}, found)
	found, err = w.eraser(nil).Look(t.Context(), erasure.Scope{Tenant: "default", Before: time.Now().Add(time.Hour)})
	require.NoError(t, err)
	require.Equal(t, []erasure.Found{{ID: "c", Events: 8}}, found, "they do not age")
}

func TestWithoutRetentionNothingIsErased(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.publish(history(t, "old", "canaryold1", ""))
	e := w.eraser(nil)
	e.Start()
	e.Stop()
	r, err := e.Last(t.Context())
	require.NoError(t, err)
	require.Empty(t, r.ID)
	require.NotEmpty(t, w.search("canaryold1"))
}

// A branch is a view: it has no copy of what it shares with its origin, so it loses the shared part.
func TestABranchLosesWhatItSharesWithAnErasedOrigin(t *testing.T) {
	t.Parallel()
	w := setup(t)
	branch := []events.Event{
		event(t, "branch", "started", &events.ConversationStarted{BranchedFrom: &events.BranchedAt{ConversationID: "gone", MessageID: "a1"}}),
		event(t, "branch", "b1", &events.MessageCreated{MessageID: "b1", Role: "user", Content: "own words"}),
	}
	w.publish(history(t, "gone", "zanzibarcanary", ""))
	w.publish(branch)
	w.erase(erasure.Scope{Tenant: "default", Conversation: "gone"})
	require.Empty(t, w.search("zanzibarcanary"))
	require.NoError(t, view.Lend(t.Context(), w.models.Graph, func(g graph.Reader) error {
		messages, err := g.Messages(t.Context(), events.ConversationID{Tenant: "default", ID: "branch"}, graph.MessageQuery{})
		require.NoError(t, err)
		require.Len(t, messages, 1)
		require.Equal(t, "own words", messages[0].Content.Text)
		return nil
	}))
	w.consistent()
}

func TestOneErasureAtATime(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.publish(history(t, "a", "canaryaaaa", ""), history(t, "b", "canarybbbb", ""))
	e := w.eraser(nil)
	first, err := e.Ask(mnemetest.Context(t), erasure.Scope{Tenant: "default", Conversation: "a"})
	require.NoError(t, err)
	running, err := e.Ask(mnemetest.Context(t), erasure.Scope{Tenant: "default", Conversation: "b"})
	require.ErrorIs(t, err, erasure.ErrRunning)
	require.Equal(t, first.ID, running.ID)
	for _, wrong := range []erasure.Scope{{Tenant: "default"}, {Conversation: "a"}, {Tenant: "default", Conversation: "a", All: true}} {
		_, err = e.Ask(mnemetest.Context(t), wrong)
		require.ErrorContains(t, err, "exactly one")
	}
}

// A server removes a message before it overwrites it, so a kill in between leaves a message as one that is only deleted.
func TestAReportNamesTheEventThatAKilledServerMayNotHaveOverwritten(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.publish(history(t, "gone", "zanzibarcanary", ""), history(t, "next", "quagmiretext", ""))
	_, err := w.eraser(nil).Ask(mnemetest.Context(t), erasure.Scope{Tenant: "default", Conversation: "gone"})
	require.NoError(t, err)
	require.True(t, w.until("between two messages", 1))

	js, err := jetstream.New(w.log.Conn())
	require.NoError(t, err)
	bucket, err := natsdeploy.ApplyControl(mnemetest.Context(t), js)
	require.NoError(t, err)
	entry, err := bucket.Get(mnemetest.Context(t), "erasure")
	require.NoError(t, err)
	var record map[string]any
	require.NoError(t, json.Unmarshal(entry.Value(), &record))
	require.Equal(t, w.log.Conn().ConnectedServerId(), record["server"])
	record["server"] = "the server before its restart"
	changed, err := json.Marshal(record)
	require.NoError(t, err)
	_, err = bucket.Put(mnemetest.Context(t), "erasure", changed)
	require.NoError(t, err)
	second := uint64(record["sequences"].([]any)[1].(float64))
	stream, err := js.Stream(mnemetest.Context(t), natsdeploy.Stream)
	require.NoError(t, err)
	require.NoError(t, stream.DeleteMsg(mnemetest.Context(t), second))

	require.False(t, w.until("no such step", 1))
	r, err := w.eraser(nil).Last(mnemetest.Context(t))
	require.NoError(t, err)
	require.Contains(t, strings.Join(r.Report.NotReached, "\n"), fmt.Sprintf("the bytes of the event at sequence %d: the NATS server stopped", second))
	require.NotEmpty(t, w.search("zanzibarcanary"), "so the report is right to say it")

	next := w.erase(erasure.Scope{Tenant: "default", Conversation: "next"})
	require.NotContains(t, strings.Join(next.NotReached, "\n"), "stopped")
	require.Empty(t, w.search("quagmiretext"))
}

// A server that is down learns later that messages are gone, but does not overwrite them.
func TestAReportNamesTheServersWhoseCopiesOfTheLogWereNotReached(t *testing.T) {
	mnemetest.Long(t)
	t.Parallel()
	cluster := natstest.Start(t)
	conn, _ := cluster.Log()
	w := setupOn(t, t.TempDir(), conn)
	w.publish(history(t, "first", "quagmiretext", ""), history(t, "second", "quagmiretext", ""))

	e := w.started(w.eraser(func(c *erasure.Config) { c.Patience = time.Second }))
	notReached := func(conversation string) string {
		scope := erasure.Scope{Tenant: "default", Conversation: conversation}
		var last erasure.Record
		require.Eventually(t, func() bool { // nobody answers while the cluster chooses a leader
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // a request to the server that dies has no answer
			defer cancel()
			var err error
			if last, err = e.Last(ctx); err == nil && !last.Running() && last.Report.Scope != scope {
				_, err = e.Ask(ctx, scope)
			}
			return err == nil && last.State == erasure.Done && last.Report.Scope == scope
		}, patience, 100*time.Millisecond)
		return strings.Join(last.Report.NotReached, "\n")
	}

	down := (cluster.Leader(conn) + 1) % 3
	require.NotContains(t, notReached("first"), "the copy of the log on")
	cluster.Stop(down)
	left := notReached("second")
	require.Contains(t, left, fmt.Sprintf("the copy of the log on the NATS server n%d, which was down or behind", down))
	require.Contains(t, left, "nats stream edit AGENT_EVENTS --replicas 1")
}
