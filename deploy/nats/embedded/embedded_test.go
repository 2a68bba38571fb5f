package embedded

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/internal/mnemetest"
)

func TestARestartKeepsTheStreamAndItsSequences(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var before natsdeploy.Info
	for run := range uint64(3) {
		e := start(t, Config{Dir: dir, Listen: ":0"})
		js := connect(t, e)
		info, err := e.Apply(t.Context(), natsdeploy.Settings{Partitions: 8})
		require.NoError(t, err)
		require.Equal(t, run == 0, info.Created)
		if run > 0 {
			require.Equal(t, before, info)
		}
		ack, err := js.Publish(t.Context(), subject(t, "t", "c"), []byte("x"))
		require.NoError(t, err)
		require.Equal(t, run+1, ack.Sequence)
		before, err = natsdeploy.Inspect(t.Context(), js)
		require.NoError(t, err)
		e.Stop()
	}
}

func TestWithoutAListenAddressOnlyTheProcessItselfConnects(t *testing.T) {
	t.Parallel()
	e := start(t, Config{})
	require.Empty(t, e.ClientURL())
	_, err := e.Apply(t.Context(), natsdeploy.Settings{})
	require.NoError(t, err)
	_, err = connect(t, e).Publish(t.Context(), subject(t, "t", "c"), nil)
	require.NoError(t, err)
}

func TestPortZeroTakesAFreeLoopbackPort(t *testing.T) {
	t.Parallel()
	for _, listen := range []string{":0", "127.0.0.1:0", "localhost:0"} {
		e := start(t, Config{Listen: listen})
		require.Regexp(t, `^nats://(127\.0\.0\.1|\[::1\]):[1-9]\d+$`, e.ClientURL())
		require.True(t, e.srv.Addr().(*net.TCPAddr).IP.IsLoopback())
	}
}

func TestOffLoopbackIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	t.Parallel()
	for _, listen := range []string{"0.0.0.0:0", "[::]:0", "192.0.2.1:4222", "[2001:db8::1]:4222"} {
		dir := filepath.Join(t.TempDir(), "data")
		_, err := Start(t.Context(), Config{Dir: dir, Listen: listen})
		require.ErrorIs(t, err, natsdeploy.ErrNotLoopback)
		require.ErrorContains(t, err, listen)
		require.NoDirExists(t, dir)
	}
}

func TestAPortInUseIsNamed(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, err = Start(t.Context(), Config{Dir: t.TempDir(), Listen: l.Addr().String()})
	require.ErrorIs(t, err, natsdeploy.ErrPortInUse)
	require.ErrorContains(t, err, l.Addr().String())
	require.ErrorContains(t, err, "choose another port")
}

func TestAPortTakenWhileTheServerStartsIsTheServersOwnError(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	dir := t.TempDir()
	lock, err := lockDir(dir)
	require.NoError(t, err)
	e := &Server{log: slog.New(slog.DiscardHandler), dir: dir, listens: true, lock: lock}
	err = e.start(t.Context(), "127.0.0.1", l.Addr().(*net.TCPAddr).Port)
	require.ErrorContains(t, err, "address already in use")
	e.Stop()
}

func TestAMalformedListenAddressIsRefused(t *testing.T) {
	t.Parallel()
	for _, listen := range []string{"4222", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000"} {
		_, err := Start(t.Context(), Config{Dir: t.TempDir(), Listen: listen})
		require.ErrorContains(t, err, "listen address", listen)
	}
}

func TestASecondServerOnTheSameDirectoryIsRefusedUntilTheFirstStops(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := start(t, Config{Dir: dir})
	_, err := Start(t.Context(), Config{Dir: dir})
	require.ErrorIs(t, err, natsdeploy.ErrDirInUse)
	first.Stop()
	start(t, Config{Dir: dir})
}

func TestAFailedStartSaysWhyAndLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	blocked := filepath.Join(dir, server.JetStreamStoreDir)
	require.NoError(t, os.WriteFile(blocked, nil, 0o600)) // a file where the server wants a directory
	_, err := Start(t.Context(), Config{Dir: dir})
	require.ErrorContains(t, err, "Can't start JetStream")

	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, os.Remove(blocked))
	_, err = Start(cancelled, Config{Dir: dir})
	require.ErrorIs(t, err, context.Canceled)
	start(t, Config{Dir: dir})

	_, err = Start(t.Context(), Config{})
	require.ErrorContains(t, err, "no data directory")
}

func TestStopMayBeCalledByAnyoneAnyNumberOfTimes(t *testing.T) {
	t.Parallel()
	e := start(t, Config{Listen: ":0"})
	address := e.srv.Addr().String()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			e.Stop()
			_, err := net.Dial("tcp", address)
			require.Error(t, err, "stopped means stopped for every caller")
		})
	}
	wg.Wait()
}

func TestTheStreamIsNotCreatedAgainOverEventsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := start(t, Config{Dir: dir})
	_, err := e.Apply(t.Context(), natsdeploy.Settings{})
	require.NoError(t, err)
	_, err = connect(t, e).Publish(t.Context(), subject(t, "t", "c"), []byte("x"))
	require.NoError(t, err)
	e.Stop()
	require.NoError(t, os.Truncate(filepath.Join(e.streamDir(), "meta.inf"), 10)) // as after a power cut

	e = start(t, Config{Dir: dir})
	_, err = e.Apply(t.Context(), natsdeploy.Settings{})
	require.ErrorIs(t, err, natsdeploy.ErrDamaged)
	_, err = natsdeploy.Inspect(t.Context(), connect(t, e))
	require.ErrorIs(t, err, natsdeploy.ErrNoStream)
}

// stoppedWithOneEvent returns a server that has stopped, whose log has one event, and its directory.
func stoppedWithOneEvent(t *testing.T) (dir string, e *Server) {
	dir = t.TempDir()
	e = start(t, Config{Dir: dir, MaxBytes: minStream})
	_, err := e.Apply(t.Context(), natsdeploy.Settings{})
	require.NoError(t, err)
	_, err = connect(t, e).Publish(t.Context(), subject(t, "t", "c"), []byte("kept"))
	require.NoError(t, err)
	e.Stop()
	return dir, e
}

// A server that starts removes a stream of which it can't open a file, as if another user wrote it. A link to itself can't
// be opened by root either.
func TestALogOfWhichAFileCannotBeOpenedIsKept(t *testing.T) {
	t.Parallel()
	dir, e := stoppedWithOneEvent(t)
	block := filepath.Join(e.streamDir(), "msgs", "1.blk")
	elsewhere := filepath.Join(t.TempDir(), "1.blk")
	require.NoError(t, os.Rename(block, elsewhere))
	require.NoError(t, os.Symlink(block, block))
	_, err := Start(t.Context(), Config{Dir: dir, MaxBytes: minStream})
	require.ErrorContains(t, err, block)
	require.ErrorContains(t, err, "chown")

	require.NoError(t, os.Remove(block))
	require.NoError(t, os.Rename(elsewhere, block))
	e = start(t, Config{Dir: dir, MaxBytes: minStream})
	info, err := e.Apply(t.Context(), natsdeploy.Settings{})
	require.NoError(t, err)
	require.EqualValues(t, 1, info.Messages)
}

func TestALogMayBeOnAnotherDisk(t *testing.T) {
	t.Parallel()
	dir, e := stoppedWithOneEvent(t)
	elsewhere := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.Rename(e.streamDir(), elsewhere))
	require.NoError(t, os.Symlink(elsewhere, e.streamDir()))
	e = start(t, Config{Dir: dir, MaxBytes: minStream})
	info, err := e.Apply(t.Context(), natsdeploy.Settings{})
	require.NoError(t, err)
	require.EqualValues(t, 1, info.Messages)
	e.Stop()

	block := filepath.Join(elsewhere, "msgs", "1.blk")
	require.NoError(t, os.Remove(block))
	require.NoError(t, os.Symlink(block, block))
	_, err = Start(t.Context(), Config{Dir: dir, MaxBytes: minStream})
	require.ErrorContains(t, err, "1.blk", "it is checked there, too")
}

func TestACreationThatWasCutShortIsRepeated(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := start(t, Config{Dir: dir})
	_, err := e.Apply(t.Context(), natsdeploy.Settings{})
	require.NoError(t, err)
	e.Stop()
	require.NoError(t, os.Truncate(filepath.Join(e.streamDir(), "meta.inf"), 0))

	e = start(t, Config{Dir: dir})
	info, err := e.Apply(t.Context(), natsdeploy.Settings{})
	require.NoError(t, err)
	require.True(t, info.Created)
}

func TestANewStreamLeavesAFifthOfTheDiskAndAnExistingOneKeepsItsSize(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := start(t, Config{Dir: dir})
	free, ok := natsdeploy.FreeBytes(dir)
	require.True(t, ok)
	require.LessOrEqual(t, e.maxStore, free/10*9) // 80 % when it was measured; others use the disk too
	info, err := e.Apply(t.Context(), natsdeploy.Settings{})
	require.NoError(t, err)
	require.Equal(t, min(natsdeploy.DefaultMaxBytes, e.maxStore/2), info.MaxBytes)

	resize(t, connect(t, e), 1<<20)
	info, err = e.Apply(t.Context(), natsdeploy.Settings{})
	require.NoError(t, err)
	require.EqualValues(t, 1<<20, info.MaxBytes)

	e.Stop()
	e = start(t, Config{Dir: dir, MaxBytes: 2 << 20})
	info, err = e.Apply(t.Context(), natsdeploy.Settings{})
	require.NoError(t, err)
	require.EqualValues(t, 1<<20, info.MaxBytes)
}

func TestAStreamLargerThanTheDiskIsRefused(t *testing.T) {
	t.Parallel()
	e := start(t, Config{MaxBytes: 1 << 60})
	_, err := e.Apply(t.Context(), natsdeploy.Settings{})
	require.ErrorIs(t, err, natsdeploy.ErrNoSpace)
	_, err = natsdeploy.Apply(t.Context(), connect(t, e), natsdeploy.Settings{MaxBytes: 1 << 60}) // as on an operator's own server
	require.ErrorIs(t, err, natsdeploy.ErrNoSpace)
	require.ErrorContains(t, err, "max_file_store")
}

func TestSharesOfADisk(t *testing.T) {
	t.Parallel()
	for share, want := range map[int64]int64{1 << 40: natsdeploy.DefaultMaxBytes, 10 << 30: 5 << 30, 2 * minStream: minStream, 2*minStream - 2: 0} {
		got, err := newStreamSize(share)
		require.Equal(t, want, got)
		if want == 0 {
			require.ErrorIs(t, err, natsdeploy.ErrNoSpace)
		} else {
			require.NoError(t, err)
		}
	}
}

// A server whose limit is below the stream's size, as after the disk has shrunk.
func TestOnAShrunkenDiskTheServersLimitAnswersAndWhatIsStoredIsKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	body := make([]byte, 1<<10)
	e := start(t, Config{Dir: dir, MaxBytes: 1 << 20})
	_, err := e.Apply(t.Context(), natsdeploy.Settings{})
	require.NoError(t, err)
	js := connect(t, e)
	for range 10 {
		_, err := js.Publish(t.Context(), subject(t, "t", "c"), body)
		require.NoError(t, err)
	}
	e.Stop()

	opts := ServerOptions(ServerSettings{StoreDir: dir, Port: server.RANDOM_PORT, MaxStore: 20 << 10})
	opts.NoSigs = true
	srv, err := server.NewServer(opts)
	require.NoError(t, err)
	srv.Start()
	var logged mnemetest.Log
	lock, err := lockDir(dir)
	require.NoError(t, err)
	small := &Server{srv: srv, log: slog.New(slog.NewTextHandler(&logged, nil)), dir: dir, listens: true, maxStore: 20 << 10, lock: lock}
	t.Cleanup(small.Stop)
	info, err := small.Apply(t.Context(), natsdeploy.Settings{})
	require.NoError(t, err)
	require.EqualValues(t, 10, info.Head)
	require.Contains(t, logged.String(), "events will be refused before the log is full")

	js = connect(t, small)
	var full error
	for i := 0; full == nil && i < 100; i++ {
		_, full = js.Publish(t.Context(), subject(t, "t", "c"), body)
	}
	require.True(t, natsdeploy.IsFull(full), "%v", full)
	var api *jetstream.APIError
	require.ErrorAs(t, full, &api)
	require.Equal(t, jetstream.ErrorCode(10023), api.ErrorCode)
	info, err = natsdeploy.Inspect(t.Context(), js)
	require.NoError(t, err)
	require.GreaterOrEqual(t, info.Messages, uint64(10))
}

// As with data of a version that had no audit log.
func TestOnAShrunkenDiskThereIsRoomForAnAuditLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := start(t, Config{Dir: dir})
	_, err := e.Apply(t.Context(), natsdeploy.Settings{MaxBytes: e.maxStore/10*9 + 1})
	require.NoError(t, err)
	_, config, ok := readConfig(e.streamDir())
	require.True(t, ok)
	e.Stop()

	e.maxStore = config.MaxBytes / 2
	require.Equal(t, config.MaxBytes+storeHeadroom, e.serverLimit())
	opts := ServerOptions(ServerSettings{StoreDir: dir, Port: server.RANDOM_PORT, MaxStore: e.serverLimit()})
	opts.NoSigs = true
	srv, err := server.NewServer(opts)
	require.NoError(t, err)
	srv.Start()
	lock, err := lockDir(dir)
	require.NoError(t, err)
	small := &Server{srv: srv, log: slog.New(slog.DiscardHandler), dir: dir, listens: true, maxStore: e.maxStore, lock: lock}
	t.Cleanup(small.Stop)
	_, err = small.Apply(t.Context(), natsdeploy.Settings{})
	require.NoError(t, err)
	_, _, err = natsdeploy.ApplyAudit(t.Context(), connect(t, small), 0)
	require.NoError(t, err)
	require.Equal(t, small.maxStore, small.serverLimit(), "from the next start on")
}

func TestTheServersLinesGoToTheLoggerAtTheirLevels(t *testing.T) {
	t.Parallel()
	var out mnemetest.Log
	e := start(t, Config{Listen: ":0", Logger: slog.New(slog.NewTextHandler(&out, nil))})
	e.Stop()
	text := out.String()
	require.Contains(t, text, `level=INFO msg="Server is ready" component=nats-server`)
	require.NotContains(t, text, "level=WARN", "nothing to warn about at a normal start")
	require.NotContains(t, text, "level=DEBUG")

	out = mnemetest.Log{}
	log := newServerLog(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug - 4})))
	require.True(t, log.debug)
	log.Warnf("w%d", 1)
	log.Errorf("e%d", 1)
	log.Tracef("t%d", 1)
	log.Fatalf("f%d", 1)
	log.Fatalf("f%d", 2)
	require.EqualError(t, log.fatal(), "f1")
	for _, line := range []string{"level=WARN msg=w1", "level=ERROR msg=e1", "level=DEBUG-4 msg=t1", "level=ERROR msg=f1"} {
		require.Contains(t, out.String(), line)
	}
}
