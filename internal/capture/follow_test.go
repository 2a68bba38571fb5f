package capture

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/importer"
	"mneme.dev/mneme/internal/mnemetest"
)

// Paces at which only one way leads to a file: what the system reports after the first walk, or walks.
var (
	told   = pace{walk: time.Hour, poll: 10 * time.Millisecond, notify: true}
	walked = pace{walk: 20 * time.Millisecond, poll: 10 * time.Millisecond}
)

// follower starts a receiver that follows the bench's folder.
func (b *bench) follower(c Config, p pace) *Receiver {
	c.Log, c.Roots, c.Tenant = b.log, []string{b.root}, "t"
	if c.Lookup == nil {
		c.Lookup = b.lookup("t")
	}
	if c.Follow == nil {
		c.Follow = func() []Folder { return []Folder{{"claude-code", b.root}} }
	}
	r := start(c, p)
	b.t.Cleanup(r.Close)
	await(b.t, r, func(s Status) bool { return len(s.Followed) == 1 || c.Follow() == nil })
	return r
}

// line returns a line of a session in which a user says something.
func line(session string, n int) string {
	return fmt.Sprintf(`{"type":"user","uuid":"%s-%d","sessionId":%q,"message":{"content":"prompt %d"}}`+"\n", session, n, session, n)
}

// sessions adds transcripts with one message each, s0 the newest. They changed long ago.
func (b *bench) sessions(n int) (paths []string) {
	for i := range n {
		path, at := b.path(fmt.Sprintf("project%d/s%d.jsonl", i%10, i)), time.Now().Add(-time.Hour-time.Duration(i)*time.Minute)
		add(b.t, path, line(fmt.Sprint("s", i), 0))
		require.NoError(b.t, os.Chtimes(path, at, at))
		paths = append(paths, path)
	}
	return paths
}

func done(s Status) bool { return len(s.Followed) > 0 && s.History == 0 && s.Waiting == 0 }

func TestWhatAnAgentWritesIsReadWithoutADoorbell(t *testing.T) {
	for name, p := range map[string]pace{"the system tells": told, "folders are walked": walked} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			path := b.path("project/s.jsonl")
			add(t, path, line("s", 0))
			r := b.follower(Config{}, p)
			b.awaitEvents(2)
			add(t, path, line("s", 1))
			b.awaitEvents(3)
			add(t, b.path("project/new.jsonl"), line("new", 0))
			b.awaitEvents(5)
			add(t, b.path("other/2026/11/25/deep.jsonl"), line("deep", 0))
			b.awaitEvents(7)
			add(t, b.path("other/2026/11/25/deep.jsonl"), line("deep", 1))
			b.awaitEvents(8)
			require.Equal(t, !p.notify, r.Status().Followed[0].Polled)
			require.Zero(t, r.Status().Rings)
		})
	}
}

func TestTheLastMessageOfAFollowedFileIsReadOnceItRests(t *testing.T) {
	b := setup(t)
	add(t, b.path(session), prompt(0)+`{"type":"assistant","uuid":"a","sessionId":"s","message":{"id":"m","content":[{"type":"text","text":"Last."}]}}`)
	marks := filepath.Join(t.TempDir(), "marks")
	r := b.follower(Config{Marks: marks}, told)
	b.awaitEvents(2)
	r.Close()
	b.follower(Config{Marks: marks, StillWritten: 300 * time.Millisecond}, walked)
	b.awaitEvents(3)
}

func TestARestartReadsOnlyWhatChanged(t *testing.T) {
	b := setup(t)
	paths := b.sessions(30)
	c := Config{Marks: filepath.Join(t.TempDir(), "marks")}
	restart := func() uint64 {
		r := b.follower(c, told)
		await(t, r, done)
		r.Close()
		return r.Status().Imports
	}
	require.EqualValues(t, 30, restart())
	require.Zero(t, restart())

	add(t, paths[3], line("s3", 1))
	add(t, b.path("project0/more.jsonl"), line("more", 0))
	require.EqualValues(t, 2, restart())
	require.Equal(t, 30*2+1+2, b.events(t, "t"))

	require.NoError(t, os.WriteFile(paths[4], []byte(line("s4", 7)), 0o600)) // as long as before
	require.NoError(t, os.Remove(paths[5]))
	require.EqualValues(t, 1, restart())
	raw, err := os.ReadFile(c.Marks)
	require.NoError(t, err)
	require.Contains(t, string(raw), paths[4])
	require.NotContains(t, string(raw), paths[5], "what is gone is forgotten")

	for name, broken := range map[string]string{
		"damaged":              string(raw[:len(raw)/2]),
		"of another log":       strings.Replace(string(raw), `"log":"2`, `"log":"1`, 1),
		"of a log with more":   strings.Replace(string(raw), `"seq":`, `"seq":1`, 1),
		"of an earlier format": `{"version":1}`,
	} {
		require.NotEqual(t, string(raw), broken)
		require.NoError(t, os.WriteFile(c.Marks, []byte(broken), 0o600))
		require.EqualValues(t, 30, restart(), "all is read again after marks that are %s", name)
		require.Zero(t, restart())
	}
}

// The file has a line's length for each transcript that there ever was: with 20,000 of them it takes 3 MB, and an agent at
// work changes one of them all the time.
func TestMarksAreNotWrittenWithEachChange(t *testing.T) {
	b := setup(t)
	path, c := b.path("project/s.jsonl"), Config{Marks: filepath.Join(t.TempDir(), "marks")}
	r := b.follower(c, told)
	add(t, path, line("s", 0))
	written := func() string {
		raw, _ := os.ReadFile(c.Marks) // empty until it exists
		return string(raw)
	}
	require.Eventually(t, func() bool { return written() != "" }, mnemetest.Patience, time.Millisecond)
	first := written()
	imports := r.Status().Imports
	add(t, path, line("s", 1))
	await(t, r, func(s Status) bool { return s.Imports > imports })
	require.Never(t, func() bool { return written() != first }, 5*told.poll, told.poll)
	r.Close()
	require.NotEqual(t, first, written(), "the end of the process writes them")
}

func TestAFileReplacedByAShorterOneIsRead(t *testing.T) {
	b := setup(t)
	path := b.path(session)
	add(t, path, prompts(0, 3))
	b.follower(Config{}, told)
	b.awaitEvents(4)
	require.NoError(t, os.WriteFile(b.path("new"), []byte(prompt(8)), 0o600))
	require.NoError(t, os.Rename(b.path("new"), path))
	b.awaitEvents(5)
}

func TestAFolderThatAppearsLaterIsFollowed(t *testing.T) {
	b := setup(t)
	folder := b.path("agent/projects")
	r := b.follower(Config{Follow: func() []Folder { return []Folder{{"claude-code", folder}} }}, told)
	require.Zero(t, r.Status().Followed[0].Files)
	add(t, filepath.Join(folder, "p", "s.jsonl"), line("s", 0))
	b.awaitEvents(2)
	require.Zero(t, r.Status().Followed[0].Unreadable)

	require.NoError(t, os.RemoveAll(b.path("agent")))
	add(t, filepath.Join(folder, "p", "again.jsonl"), line("again", 0))
	b.awaitEvents(4)
}

func TestHistoryIsReadOldestFirstAndAfterWhatIsBeingWritten(t *testing.T) {
	b := setup(t)
	const n = 2000
	b.sessions(n)
	add(t, b.path("project0/live.jsonl"), line("live", 0))
	entered, release := make(chan bool, 1), make(chan bool)
	var first atomic.Bool
	r := b.follower(Config{Lookup: func(ctx context.Context, list []events.Event) ([]importer.Known, error) {
		if first.CompareAndSwap(false, true) {
			entered <- true
			<-release
		}
		return make([]importer.Known, len(list)), nil
	}}, told)
	<-entered
	require.Equal(t, n, r.Status().History)
	require.Equal(t, n+1, r.Status().Followed[0].Files)
	require.Equal(t, 1, r.Status().Waiting, "history does not take the places of live files")
	close(release)
	await(t, r, func(s Status) bool { return s.Imports > 200 })
	r.Close()
	order := []string{"live"}
	for i := n - 1; i >= 0; i-- {
		order = append(order, fmt.Sprint("s", i))
	}
	for i, said := range b.said(t, "t") {
		require.True(t, strings.HasPrefix(said, "claude_code:"+order[i/2]+" "), "event %d: %s", i, said)
	}
	require.InDelta(t, n+1, int(r.Status().Imports)+r.Status().History, 1, "one may be interrupted")
}

func TestHistoryThatIsDeletedWhileItIsReadIsNoError(t *testing.T) {
	b := setup(t)
	b.sessions(20)
	entered, release := make(chan bool, 1), make(chan bool)
	var calls atomic.Int64
	r := b.follower(Config{Lookup: func(ctx context.Context, list []events.Event) ([]importer.Known, error) {
		if calls.Add(1) == 1 {
			entered <- true
			<-release
		}
		return b.lookup("t")(ctx, list)
	}}, walked)
	<-entered
	for i := range 9 {
		require.NoError(t, os.RemoveAll(b.path(fmt.Sprint("project", 1+i))))
	}
	close(release)
	await(t, r, func(s Status) bool { return done(s) && s.Followed[0].Files == 2 })
	require.Equal(t, 3*2, b.events(t, "t"), "the file that was open, and the two that are left")
	require.Empty(t, r.Status().LastError)
	require.Zero(t, r.Status().Refused)
	add(t, b.path("project1/new.jsonl"), line("new", 0))
	b.awaitEvents(4 * 2)
}

func TestAFailureOfTheLookupDoesNotEndTheHistory(t *testing.T) {
	b := setup(t)
	b.sessions(3)
	var calls atomic.Int64
	r := b.follower(Config{Lookup: func(ctx context.Context, list []events.Event) ([]importer.Known, error) {
		if calls.Add(1) == 2 {
			return nil, errors.New("the store is away")
		}
		return b.lookup("t")(ctx, list)
	}}, told)
	await(t, r, done)
	require.Equal(t, 3*2, b.events(t, "t"))
	require.EqualValues(t, 4, r.Status().Imports)
}

func TestLinksAndUnreadableFoldersDoNotStopTheWalk(t *testing.T) {
	b := setup(t)
	b.sessions(2)
	require.NoError(t, os.Symlink(b.root, b.path("project0/loop")))
	require.NoError(t, os.Symlink(t.TempDir(), b.path("outside")))
	require.NoError(t, os.Symlink(b.path("itself.jsonl"), b.path("itself.jsonl")))
	require.NoError(t, os.Mkdir(b.path("folder.jsonl"), 0o700))
	locked := b.path("locked")
	require.NoError(t, os.Mkdir(locked, 0))
	b.t.Cleanup(func() { _ = os.Chmod(locked, 0o700) })
	_, unreadable := os.ReadDir(locked) // root may read it
	var logged mnemetest.Log
	r := b.follower(Config{Logger: slog.New(slog.NewTextHandler(&logged, nil))}, walked)
	await(t, r, done)
	time.Sleep(10 * walked.walk) // several walks
	require.Equal(t, 2*2, b.events(t, "t"))
	require.Zero(t, r.Status().Refused)
	require.EqualValues(t, 2, r.Status().Imports)
	if unreadable != nil {
		require.Equal(t, 1, r.Status().Followed[0].Unreadable)
		require.Equal(t, 1, strings.Count(logged.String(), "cannot look for changed transcripts"), "it is logged once")
	}
}

// connectable returns a follower of an agent that can be connected, and looks for changes of that so often.
func (b *bench) connectable(walk time.Duration) (*Receiver, *atomic.Bool) {
	var connected atomic.Bool
	p := told
	p.walk = walk
	return b.follower(Config{Follow: func() []Folder {
		if connected.Load() {
			return []Folder{{"claude-code", b.root}}
		}
		return nil
	}}, p), &connected
}

func TestAnAgentIsFollowedFromItsFirstDoorbellUntilItIsDisconnected(t *testing.T) {
	b := setup(t)
	b.sessions(3)
	r, connected := b.connectable(time.Second)
	add(t, b.path(session), prompt(0))
	require.NoError(t, r.Ring("claude-code", "s", b.path(session)))
	b.awaitEvents(2)
	require.Empty(t, r.Status().Followed, "nothing but the file that rang is read")

	connected.Store(true)
	require.NoError(t, r.Ring("claude-code", "s", b.path(session)))
	b.awaitEvents(2 + 3*2)

	connected.Store(false)
	await(t, r, func(s Status) bool { return len(s.Followed) == 0 })
	add(t, b.path("project1/private.jsonl"), line("private", 0))
	time.Sleep(100 * time.Millisecond)
	require.Equal(t, 2+3*2, b.events(t, "t"))
}

func TestAnAgentWhoseHooksNameNoFileIsFollowedFromItsFirstEvent(t *testing.T) {
	b := setup(t)
	b.sessions(3)
	r, connected := b.connectable(time.Hour)
	connected.Store(true)
	r.Heard("claude-code")
	b.awaitEvents(3 * 2)
}

func TestAFolderOfWhichTheSystemDoesNotTellIsWalkedMoreOften(t *testing.T) {
	b := setup(t)
	add(t, b.path(session), prompt(0))
	watch, err := fsnotify.NewWatcher()
	require.NoError(t, err)
	require.NoError(t, watch.Close()) // it takes no folder, as when the limit of watches is reached
	var logged mnemetest.Log
	r := b.receiver(Config{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	at := &following{folder: Folder{"claude-code", b.root}}
	f := &follower{Receiver: r, pace: usual, watch: watch, told: map[string]bool{}}
	for range 2 {
		began := time.Now()
		f.walk(at)
		require.True(t, at.state.Polled)
		require.Equal(t, 1, at.state.Files)
		require.WithinRange(t, at.due, began, time.Now().Add(max(usual.poll, idle*time.Since(began))), "sooner than after usual.walk")
	}
	require.Equal(t, 1, strings.Count(logged.String(), "max_user_watches"), "it is logged once")
	b.awaitEvents(2)
}

// The times of files come from a clock that may be set while the agent writes.
func TestAClockThatJumpsHidesNoLine(t *testing.T) {
	b := setup(t)
	path := b.path(session)
	add(t, path, prompts(0, 2))
	b.follower(Config{}, walked)
	b.awaitEvents(3)
	for i, at := range []time.Time{time.Now().AddDate(30, 0, 0), time.Now().AddDate(-30, 0, 0), time.Unix(0, 0)} {
		add(t, path, prompt(2+i))
		require.NoError(t, os.Chtimes(path, at, at))
		b.awaitEvents(4 + i)
	}
}
