package projection

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/eventlog"
)

// leaseProcess is an environment variable with the URL of a server. It turns this test
// program into a process that takes leases there and prints what it drives.
const leaseProcess = "MNEME_TEST_LEASE_PROCESS"

const processPartitions = 8

func TestMain(m *testing.M) {
	if url := os.Getenv(leaseProcess); url != "" {
		takeLeases(url)
		return
	}
	mnemetest.TryLaws(25, 4, 400)
	os.Exit(m.Run())
}

func takeLeases(url string) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	conn, err := eventlog.Connect(url, "process", slog.New(slog.DiscardHandler))
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	leases, err := NewLeases(LeaseConfig{Conn: conn, Process: fmt.Sprint("p", os.Getpid())})
	if err != nil {
		panic(err)
	}
	var out sync.Mutex
	tell := func(sign string, partition int) {
		out.Lock()
		defer out.Unlock()
		fmt.Println(sign + strconv.Itoa(partition))
	}
	s := &share{
		Leases: leases, keys: keys{Build{"store", "test", 1}}, partitions: processPartitions, slog: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		about: leases.Member(nil).encode, holder: func(int, string) {}, outside: func(error) {},
		work: func(ctx context.Context, stop <-chan struct{}, partition int) error {
			tell("+", partition)
			select {
			case <-ctx.Done():
			case <-stop:
			}
			tell("-", partition)
			return nil
		},
	}
	s.run(ctx)
}

// process is a process that takes leases.
type process struct {
	*exec.Cmd
	mu   sync.Mutex
	held map[int]bool // as the process reports
}

func (p *process) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.held)
}

// sharedBy reports whether the processes hold all partitions evenly.
func sharedBy(list []*process) bool {
	total, low, high := 0, processPartitions, 0
	for _, p := range list {
		n := p.count()
		total, low, high = total+n, min(low, n), max(high, n)
	}
	return total == processPartitions && high-low <= 1
}

func awaitSharedBy(t *testing.T, list ...*process) time.Duration {
	t.Helper()
	began := time.Now()
	require.Eventually(t, func() bool { return sharedBy(list) }, mnemetest.Patience, time.Millisecond)
	return time.Since(began)
}

// The processes, signals and TTL of this test are real. With MNEME_TEST_ROUNDS, for an idle
// machine, it measures that many rounds and checks the times against their limits.
func TestPartitionsOfEndedOrSleepingProcessesMove(t *testing.T) {
	mnemetest.Long(t)
	t.Parallel()
	server, err := embedded.Start(t.Context(), embedded.Config{Dir: t.TempDir(), Listen: "127.0.0.1:0", MaxBytes: 1 << 20})
	require.NoError(t, err)
	t.Cleanup(server.Stop)
	_, err = server.Apply(mnemetest.Context(t), natsdeploy.Settings{Partitions: processPartitions})
	require.NoError(t, err)
	start := func() *process {
		p := &process{Cmd: exec.Command(os.Args[0]), held: map[int]bool{}}
		p.Env = append(os.Environ(), leaseProcess+"="+server.ClientURL())
		p.Stderr = t.Output()
		out, err := p.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, p.Start())
		t.Cleanup(func() { _ = p.Process.Kill() })
		go func() {
			defer func() { _ = p.Wait() }()
			for lines := bufio.NewScanner(out); lines.Scan(); {
				partition, err := strconv.Atoi(lines.Text()[1:])
				if err != nil {
					continue
				}
				p.mu.Lock()
				if lines.Text()[0] == '+' {
					p.held[partition] = true
				} else {
					delete(p.held, partition)
				}
				p.mu.Unlock()
			}
		}()
		return p
	}
	list := []*process{start(), start(), start()}
	awaitSharedBy(t, list...)
	rounds, err := strconv.Atoi(os.Getenv("MNEME_TEST_ROUNDS"))
	measured := err == nil
	rounds = max(rounds, 1)
	var term, kill, sleep, wake []time.Duration
	for range rounds {
		require.NoError(t, list[0].Process.Signal(syscall.SIGTERM))
		term = append(term, awaitSharedBy(t, list[1:]...))
		list = append(list[1:], start())
		awaitSharedBy(t, list...)

		require.NoError(t, list[0].Process.Kill())
		kill = append(kill, awaitSharedBy(t, list[1:]...))
		list = append(list[1:], start())
		awaitSharedBy(t, list...)

		sleeper := list[0]
		require.NoError(t, sleeper.Process.Signal(syscall.SIGSTOP))
		sleep = append(sleep, awaitSharedBy(t, list[1:]...))
		require.Positive(t, sleeper.count(), "it does not know yet that it lost them")
		require.NoError(t, sleeper.Process.Signal(syscall.SIGCONT))
		wake = append(wake, awaitSharedBy(t, list...))
	}
	for what, times := range map[string][]time.Duration{"SIGTERM": term, "SIGKILL": kill, "SIGSTOP": sleep, "SIGCONT": wake} {
		slices.Sort(times)
		t.Logf("%s: p50 %s, max %s of %d", what, times[len(times)/2].Round(time.Millisecond), times[len(times)-1].Round(time.Millisecond), len(times))
	}
	if measured {
		require.Less(t, slices.Max(term), 100*time.Millisecond)
		require.Less(t, max(slices.Max(kill), slices.Max(sleep)), natsdeploy.DefaultLeaseTTL+500*time.Millisecond)
	}

	conn, err := nats.Connect(server.ClientURL(), nats.Timeout(mnemetest.Handshake))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	require.NoError(t, err)
	for _, p := range list {
		require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	}
	bucket, err := js.KeyValue(mnemetest.Context(t), natsdeploy.LeaseBucket)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		lister, err := bucket.ListKeys(t.Context())
		if err != nil {
			return false
		}
		n := 0
		for range lister.Keys() {
			n++
		}
		return n == 0
	}, mnemetest.Patience, time.Millisecond, "all is given back")
}
