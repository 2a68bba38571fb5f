package backup_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/backup"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/natstest"
	"mneme.dev/mneme/pkg/eventlog"
)

// place is a NATS server of a test.
type place struct {
	t      *testing.T
	server *embedded.Server
	conn   *nats.Conn
}

func start(t *testing.T) *place {
	t.Helper()
	server, err := embedded.Start(t.Context(), embedded.Config{Dir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(server.Stop)
	p := &place{t: t, server: server}
	p.conn = p.connect()
	return p
}

func (p *place) connect() *nats.Conn {
	p.t.Helper()
	conn, err := eventlog.Connect("", "test", slog.New(slog.DiscardHandler), p.server.InProcess())
	require.NoError(p.t, err)
	p.t.Cleanup(conn.Close)
	return conn
}

func (p *place) apply(maxBytes int64) {
	p.t.Helper()
	_, err := p.server.Apply(mnemetest.Context(p.t), natsdeploy.Settings{MaxBytes: maxBytes})
	require.NoError(p.t, err)
}

func (p *place) log() *eventlog.Log {
	p.t.Helper()
	log, err := eventlog.Open(mnemetest.Context(p.t), p.conn)
	require.NoError(p.t, err)
	return log
}

func (p *place) js() jetstream.JetStream {
	p.t.Helper()
	js, err := jetstream.New(p.conn)
	require.NoError(p.t, err)
	return js
}

// some makes n events, numbered from first.
func some(t *testing.T, first, n, size int) []events.Event {
	t.Helper()
	list := make([]events.Event, n)
	for i := range list {
		id := fmt.Sprint(first + i)
		var err error
		list[i], err = events.New("c"+fmt.Sprint(i%7), "test", id, &events.MessageCreated{MessageID: id, Role: "user", Content: noise(first+i, size)})
		require.NoError(t, err)
	}
	return list
}

// noise is a text that does not compress well.
func noise(seed, size int) string {
	var b strings.Builder
	for x := uint64(seed)*2654435761 + 1; b.Len() < size; {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		fmt.Fprintf(&b, "%016x", x)
	}
	return b.String()[:size]
}

func (p *place) publish(first, n, size int) {
	p.t.Helper()
	_, err := p.log().PublishAll(p.t.Context(), "t", some(p.t, first, n, size))
	require.NoError(p.t, err)
}

func (p *place) backup() (string, backup.Manifest) {
	p.t.Helper()
	dir := filepath.Join(p.t.TempDir(), "backup")
	m, err := backup.Create(mnemetest.Context(p.t), p.conn, dir, quiet)
	require.NoError(p.t, err)
	return dir, m
}

func quiet(string, int64, int64) {}

// held are the messages of a log up to a sequence: sequence, digest and time.
func (p *place) held(upTo uint64) []string {
	p.t.Helper()
	var list []string
	require.NoError(p.t, p.log().Scan(p.t.Context(), 0, upTo, func(m eventlog.Message) error {
		list = append(list, fmt.Sprint(m.Seq, " ", m.Digest(), " ", m.Header.Get(events.HeaderMsgID)))
		return nil
	}))
	return list
}

func TestABackupTakenUnderLoadRestoresTheLogUpToItsSequence(t *testing.T) {
	t.Parallel()
	mnemetest.Long(t)
	from := start(t)
	from.apply(1 << 30)
	from.publish(1, 4000, 6000)
	stream, err := from.js().Stream(mnemetest.Context(t), natsdeploy.Stream)
	require.NoError(t, err)
	for _, seq := range []uint64{1, 2, 70, 71, 4000} { // erased on purpose
		require.NoError(t, stream.SecureDeleteMsg(mnemetest.Context(t), seq))
	}
	_, err = from.log().RecordRemoved(mnemetest.Context(t), 5)
	require.NoError(t, err)

	stop, done := make(chan struct{}), make(chan error, 1)
	log, err := eventlog.Open(mnemetest.Context(t), from.connect())
	require.NoError(t, err)
	began := make(chan struct{})
	go func() {
		var err error
		for i := 0; err == nil; i++ {
			select {
			case <-stop:
				done <- nil
				return
			default:
				_, err = log.PublishAll(mnemetest.Context(t), "t", some(t, 100_000+100*i, 100, 500))
			}
			if i == 0 {
				close(began)
			}
		}
		done <- err
	}()
	<-began
	dir, made := from.backup()
	close(stop)
	require.NoError(t, <-done)
	state, err := from.log().State(t.Context())
	require.NoError(t, err)
	require.Greater(t, state.Head, made.Last, "events arrived meanwhile")
	require.EqualValues(t, 3, made.First)
	require.Equal(t, made.Last-5, made.Events)

	verified, err := backup.Verify(dir, nil)
	require.NoError(t, err)
	require.Equal(t, made.Content, verified.Content)

	to := start(t)
	restored, err := backup.Restore(mnemetest.Context(t), to.conn, dir, backup.Options{}, quiet)
	require.NoError(t, err)
	require.Equal(t, made.Identities, restored.Identities)
	require.Equal(t, from.held(made.Last), to.held(made.Last))
	got, err := to.log().State(t.Context())
	require.NoError(t, err)
	require.Equal(t, made.Last, got.Head)
	require.Zero(t, got.Missing, "the record of what was erased came along")

	_, again := to.backup()
	require.Equal(t, made.Content, again.Content)
	ack, err := to.log().Publish(t.Context(), "t", some(t, 900_000, 1, 10)[0])
	require.NoError(t, err)
	require.Equal(t, made.Last+1, ack.Seq, "the log goes on")
}

func TestALogWithEventsIsNotReplaced(t *testing.T) {
	t.Parallel()
	from := start(t)
	from.apply(1 << 28)
	from.publish(1, 10, 100)
	dir, _ := from.backup()
	_, err := backup.Restore(mnemetest.Context(t), from.conn, dir, backup.Options{}, quiet)
	require.ErrorIs(t, err, backup.ErrNotEmpty)
	require.Len(t, from.held(10), 10)

	// Neither is one whose only event was erased.
	to := start(t)
	to.apply(1 << 28)
	to.publish(1, 1, 100)
	stream, err := to.js().Stream(mnemetest.Context(t), natsdeploy.Stream)
	require.NoError(t, err)
	require.NoError(t, stream.Purge(mnemetest.Context(t)))
	_, err = backup.Restore(mnemetest.Context(t), to.conn, dir, backup.Options{}, quiet)
	require.ErrorIs(t, err, backup.ErrNotEmpty)
}

func TestAnEmptyLogGivesItsSizeToTheRestoredOne(t *testing.T) {
	t.Parallel()
	from := start(t)
	from.apply(1 << 30)
	dir, m := from.backup()
	require.Zero(t, m.Events, "an empty log has a backup too")
	from.publish(1, 100, 2000)
	dir2, _ := from.backup()

	to := start(t)
	to.apply(64 << 20)
	_, err := backup.Restore(mnemetest.Context(t), to.conn, dir, backup.Options{}, quiet)
	require.NoError(t, err)
	_, err = backup.Restore(mnemetest.Context(t), to.conn, dir2, backup.Options{}, quiet)
	require.NoError(t, err)
	state, err := to.log().State(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 64<<20, state.MaxBytes)
	require.EqualValues(t, 100, state.Head)

	small := start(t)
	small.apply(100 << 10)
	_, err = backup.Restore(mnemetest.Context(t), small.conn, dir2, backup.Options{}, quiet)
	require.ErrorIs(t, err, natsdeploy.ErrNoSpace)
	require.ErrorContains(t, err, "--log-size")

	none := start(t)
	_, err = backup.Restore(mnemetest.Context(t), none.conn, dir2, backup.Options{MaxBytes: 100 << 10}, quiet)
	require.ErrorIs(t, err, natsdeploy.ErrNoSpace)
	_, err = none.js().Stream(mnemetest.Context(t), natsdeploy.Stream)
	require.ErrorIs(t, err, jetstream.ErrStreamNotFound, "nothing was written")
}

// The server refuses to take deny_delete back from a stream that exists, so a restore is the only way out.
func TestARestoredLogHasTheSettingsThatMnemeNeeds(t *testing.T) {
	t.Parallel()
	from := start(t)
	_, err := from.server.Apply(mnemetest.Context(t), natsdeploy.Settings{MaxBytes: 64 << 20, Partitions: 8, DuplicateWindow: time.Minute})
	require.NoError(t, err)
	from.publish(1, 10, 100)
	held := from.held(10)
	stream, err := from.js().Stream(mnemetest.Context(t), natsdeploy.Stream)
	require.NoError(t, err)
	changed := stream.CachedInfo().Config
	changed.Description = "ours"
	changed.DenyDelete, changed.DenyPurge = true, true
	changed.Discard, changed.MaxAge, changed.MaxMsgs = jetstream.DiscardOld, time.Hour, 1000
	changed.RePublish = &jetstream.RePublish{Source: ">", Destination: "copy.>"}
	_, err = from.js().UpdateStream(mnemetest.Context(t), changed)
	require.NoError(t, err)
	_, err = eventlog.Open(mnemetest.Context(t), from.conn)
	require.ErrorIs(t, err, natsdeploy.ErrIncompatible)
	dir, _ := from.backup()

	to := start(t)
	_, err = backup.Restore(mnemetest.Context(t), to.conn, dir, backup.Options{}, quiet)
	require.NoError(t, err)
	require.Equal(t, held, to.held(10))
	require.Equal(t, 8, to.log().Partitions())
	stream, err = to.js().Stream(mnemetest.Context(t), natsdeploy.Stream)
	require.NoError(t, err)
	restored := stream.CachedInfo().Config
	require.Equal(t, "ours", restored.Description)
	require.Equal(t, time.Minute, restored.Duplicates)
	require.EqualValues(t, 64<<20, restored.MaxBytes)
	require.NoError(t, stream.SecureDeleteMsg(mnemetest.Context(t), 3))
}

// Such as the log that mneme up makes at its first start, with one partition.
func TestAnEmptyLogWithOtherPartitionsIsReplaced(t *testing.T) {
	t.Parallel()
	from := start(t)
	_, err := from.server.Apply(mnemetest.Context(t), natsdeploy.Settings{MaxBytes: 64 << 20, Partitions: 8})
	require.NoError(t, err)
	from.publish(1, 100, 200)
	dir, _ := from.backup()

	to := start(t)
	to.apply(64 << 20)
	running, during := to.log(), 0
	_, err = backup.Restore(mnemetest.Context(t), to.conn, dir, backup.Options{}, func(string, int64, int64) {
		stream, err := to.js().Stream(mnemetest.Context(t), natsdeploy.Stream)
		if err != nil || !natsdeploy.IsRestoring(stream.CachedInfo().Config) || during > 0 {
			return
		}
		during++
		ctx, enough := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer enough()
		require.NoError(t, running.AwaitSplit(ctx), "a running process does not open a log that is being restored")
	})
	require.NoError(t, err)
	require.Positive(t, during)
	require.Equal(t, 8, to.log().Partitions())
	require.Equal(t, from.held(100), to.held(100))
	require.ErrorIs(t, running.AwaitSplit(t.Context()), eventlog.ErrPartitions, "a running process opens the log again")
}

func TestTheBackupOfAClusterIsRestoredIntoASingleServer(t *testing.T) {
	mnemetest.Long(t)
	t.Parallel()
	cluster := natstest.Start(t)
	conn, _ := cluster.Log()
	from := &place{t: t, conn: conn}
	cluster.Leader(conn) // without one the log takes no events
	from.publish(1, 10, 100)
	dir, _ := from.backup()

	to := start(t)
	_, err := backup.Restore(mnemetest.Context(t), to.conn, dir, backup.Options{}, quiet)
	require.NoError(t, err)
	require.Len(t, to.held(10), 10)
}

// In a cluster the client may be connected to another server than the one that writes, as here to one that stores nothing.
func TestARestoreEndsWhenTheServerThatWritesGoesDown(t *testing.T) {
	backup.SetSilence(t, 4*time.Second)
	from := start(t)
	from.apply(1 << 30)
	from.publish(1, 3000, 8000)
	dir, _ := from.backup()

	cluster := natstest.Start(t)
	route := &url.URL{Scheme: "nats", Host: cluster.Servers[0].ClusterAddr().String()}
	o := &server.Options{ServerName: "door", Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, Routes: []*url.URL{route}}
	o.Cluster = server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: server.RANDOM_PORT}
	door, err := server.NewServer(o)
	require.NoError(t, err)
	door.Start()
	t.Cleanup(door.Shutdown)
	require.True(t, door.ReadyForConnections(mnemetest.Patience))
	conn, err := eventlog.Connect(door.ClientURL(), "test", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	to := &place{t: t, conn: conn}
	require.Eventually(t, func() bool {
		_, err := natsdeploy.Inspect(t.Context(), to.js())
		return errors.Is(err, natsdeploy.ErrNoStream)
	}, mnemetest.Patience, 100*time.Millisecond, "the servers have no leader")

	var down sync.WaitGroup
	begun := false
	options := backup.Options{Replicas: 3, MaxBytes: 64 << 20}
	_, err = backup.Restore(mnemetest.Context(t), conn, dir, options, func(what string, bytes, total int64) {
		if begun || what != "restoring" || bytes < total/3 {
			return
		}
		begun = true
		stream, err := to.js().Stream(mnemetest.Context(t), natsdeploy.Stream)
		require.NoError(t, err)
		writes := stream.CachedInfo().Cluster.Leader
		n := slices.IndexFunc(cluster.Servers, func(s *server.Server) bool { return s.Name() == writes })
		down.Go(func() { cluster.Stop(n) }) // while chunks are on their way
	})
	require.True(t, begun)
	require.ErrorContains(t, err, "start it if it is down, and run the restore again")
	down.Wait()
}

func TestADamagedBackupIsRefusedWithThePosition(t *testing.T) {
	t.Parallel()
	mnemetest.Long(t)
	from := start(t)
	from.apply(1 << 30)
	from.publish(1, 3000, 8000) // more than one block
	dir, made := from.backup()
	require.Greater(t, len(made.Blocks), 1)
	snapshot := filepath.Join(dir, "stream.arc.s2")
	whole, err := os.ReadFile(snapshot)
	require.NoError(t, err)
	manifest, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	require.NoError(t, err)

	refused := func(name string) (damage *backup.DamagedError) {
		_, err := backup.Verify(dir, nil)
		require.ErrorAs(t, err, &damage, name)
		to := start(t)
		_, err = backup.Restore(mnemetest.Context(t), to.conn, dir, backup.Options{}, quiet)
		require.ErrorAs(t, err, &damage, name)
		_, err = to.js().Stream(mnemetest.Context(t), natsdeploy.Stream)
		require.ErrorIs(t, err, jetstream.ErrStreamNotFound, "nothing was written")
		return damage
	}
	for name, at := range map[string]int{"first byte": 0, "first block": 1 << 20, "last block": len(whole) - 100, "last byte": len(whole) - 1} {
		altered := bytes.Clone(whole)
		altered[at] ^= 1
		require.NoError(t, os.WriteFile(snapshot, altered, 0o600))
		damage := refused(name)
		require.EqualValues(t, at/(8<<20)*(8<<20), damage.Offset, name)
		require.ErrorContains(t, damage, "byte", name)
	}
	for _, size := range []int{0, 1 << 20, 8 << 20, len(whole) - 1} {
		require.NoError(t, os.WriteFile(snapshot, whole[:size], 0o600))
		damage := refused(fmt.Sprint("cut off at ", size))
		require.LessOrEqual(t, damage.Offset, int64(size))
	}
	require.NoError(t, os.WriteFile(snapshot, append(bytes.Clone(whole), 0), 0o600))
	refused("a byte more")
	require.NoError(t, os.WriteFile(snapshot, whole, 0o600))

	require.NoError(t, os.WriteFile(filepath.Join(dir, "manifest.json"), bytes.Replace(manifest, []byte(`"events": 3000`), []byte(`"events": 2999`), 1), 0o600))
	require.ErrorContains(t, refused("manifest"), "says events 2999, the snapshot has 3000")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "manifest.json"), manifest, 0o600))
	config, err := os.ReadFile(filepath.Join(dir, "backup.json"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "backup.json"), append(config, ' '), 0o600))
	refused("configuration")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "backup.json"), config, 0o600))
	for _, name := range []string{"backup.json", "stream.arc.s2"} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.Rename(path, path+".gone"))
		require.ErrorContains(t, refused(name), "lacks "+name)
		require.NoError(t, os.Rename(path+".gone", path))
	}
	_, err = backup.Verify(dir, nil)
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(dir, "manifest.json")))
	_, err = backup.Verify(dir, nil)
	require.ErrorIs(t, err, backup.ErrNotABackup)
}

func TestAnInterruptedBackupLeavesNone(t *testing.T) {
	t.Parallel()
	mnemetest.Long(t)
	from := start(t)
	_, err := backup.Create(mnemetest.Context(t), from.conn, filepath.Join(t.TempDir(), "none"), quiet)
	require.ErrorIs(t, err, natsdeploy.ErrNoStream)

	from.apply(1 << 30)
	from.publish(1, 2000, 8000)
	dir := filepath.Join(t.TempDir(), "backup")
	ctx, cancel := context.WithCancel(t.Context())
	_, err = backup.Create(ctx, from.conn, dir, func(_ string, bytes, _ int64) {
		if bytes > 1<<20 {
			cancel()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	left, err := os.ReadDir(filepath.Dir(dir))
	require.NoError(t, err)
	require.Empty(t, left)

	require.NoError(t, os.MkdirAll(dir+".partial", 0o700)) // as a kill leaves it
	require.NoError(t, os.WriteFile(filepath.Join(dir+".partial", "stream.arc.s2"), []byte("cut off"), 0o600))
	photo := filepath.Join(dir+".partial", "cat.png")
	require.NoError(t, os.WriteFile(photo, nil, 0o600))
	_, err = backup.Create(mnemetest.Context(t), from.conn, dir, quiet)
	require.ErrorContains(t, err, "cat.png")
	require.NoError(t, os.Remove(photo), "it is not of a backup, so it stays")
	_, err = backup.Create(mnemetest.Context(t), from.conn, dir, quiet)
	require.NoError(t, err)
	_, err = backup.Create(mnemetest.Context(t), from.conn, dir, quiet)
	require.ErrorIs(t, err, backup.ErrExists)
}

func TestABackupThatIsBeingWrittenIsLeftAloneByAnother(t *testing.T) {
	t.Parallel()
	from := start(t)
	from.apply(1 << 30)
	from.publish(1, 100, 8000)
	dir, tried := filepath.Join(t.TempDir(), "backup"), false
	_, err := backup.Create(mnemetest.Context(t), from.conn, dir, func(string, int64, int64) {
		if !tried {
			tried = true
			_, err := backup.Create(mnemetest.Context(t), from.conn, dir, quiet)
			require.ErrorIs(t, err, backup.ErrRunning)
		}
	})
	require.NoError(t, err)
	require.True(t, tried)
	_, err = backup.Verify(dir, nil)
	require.NoError(t, err)
}

// When the sender of a snapshot dies, the server activates what it has received.
func TestAnInterruptedRestoreIsRefusedByProgramsAndRepeated(t *testing.T) {
	t.Parallel()
	mnemetest.Long(t)
	from := start(t)
	from.apply(1 << 30)
	from.publish(1, 3000, 8000)
	dir, made := from.backup()
	other := start(t)
	other.apply(1 << 30)
	other.publish(5000, 3000, 8000)
	otherDir, _ := other.backup()

	to := start(t)
	conn := to.connect()
	failed := errors.New("killed")
	func() {
		defer func() { require.Equal(t, failed, recover()) }()
		_, _ = backup.Restore(mnemetest.Context(t), conn, dir, backup.Options{}, func(what string, bytes, total int64) {
			if what == "restoring" && bytes > total/2 {
				panic(failed)
			}
		})
	}()
	conn.Close()
	require.Eventually(t, func() bool { // the server waits 5 s for the next chunk
		_, err := natsdeploy.Inspect(t.Context(), to.js())
		return errors.Is(err, natsdeploy.ErrRestoring)
	}, mnemetest.Patience, 20*time.Millisecond)
	_, err := eventlog.Open(mnemetest.Context(t), to.conn)
	require.ErrorIs(t, err, natsdeploy.ErrRestoring)

	_, err = backup.Restore(mnemetest.Context(t), to.conn, otherDir, backup.Options{}, quiet)
	require.ErrorIs(t, err, backup.ErrNotEmpty, "the part of another backup is not given up")
	_, err = backup.Restore(mnemetest.Context(t), to.conn, dir, backup.Options{}, quiet)
	require.NoError(t, err)
	require.Equal(t, from.held(made.Last), to.held(made.Last))

	var config struct {
		Config struct{ Metadata map[string]string }
	}
	raw, err := os.ReadFile(filepath.Join(dir, "backup.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &config))
	stream, err := to.js().Stream(mnemetest.Context(t), natsdeploy.Stream)
	require.NoError(t, err)
	require.False(t, natsdeploy.IsRestoring(stream.CachedInfo().Config))
}
