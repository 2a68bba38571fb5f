package sdk

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest"
)

// runBoth runs a program of the tests in both languages. It says by its exit code whether the client did what it must.
func runBoth(t *testing.T, name string, args ...string) {
	t.Helper()
	for language, program := range map[string][]string{
		"python":     {"../.cache/sdk/bin/python", "python/tests/" + name + ".py"},
		"typescript": {"node", "typescript/test/" + name + ".js"},
	} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			client{name: language, install: "see the contract", command: program}.installed(t)
			cmd := exec.CommandContext(t.Context(), program[0], append(program[1:], args...)...)
			cmd.Env = append(os.Environ(), "PYTHONPATH=python/src")
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
		})
	}
}

func TestOnlyTheNetworkMustBeFast(t *testing.T) {
	t.Parallel()
	dead, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = dead.Close() }) // nothing accepts its connections
	s := mnemetest.Up(t, filepath.Join(t.TempDir(), "data"))
	runBoth(t, "slow", s.HTTP, "http://"+dead.Addr().String())
}

func TestManyEntriesAreSeveralRequests(t *testing.T) {
	t.Parallel()
	s := mnemetest.Up(t, filepath.Join(t.TempDir(), "data"))
	var all []contract
	for _, language := range []string{"python", "typescript"} {
		all = append(all,
			contract{Conversation: "many-" + language, Faults: []string{"", "broken", ""}},
			contract{Conversation: "large-" + language, Faults: []string{"", ""}})
	}
	runBoth(t, "batches", between(t, s.HTTP, all))
}

func TestACallBelongsToAMessageThatIsStillOnItsWay(t *testing.T) {
	t.Parallel()
	s := mnemetest.Up(t, filepath.Join(t.TempDir(), "data"))
	runBoth(t, "together", s.HTTP)
}
