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
	inBoth(t, func(t *testing.T, _ string, run func(string, ...string)) { run(name, args...) })
}

// inBoth calls do for each language whose client is installed, with what runs a program of this language.
func inBoth(t *testing.T, do func(t *testing.T, language string, run func(name string, args ...string))) {
	t.Helper()
	for language, command := range map[string]func(name string) []string{
		"python": func(name string) []string {
			return []string{"../.cache/sdk/bin/python", "python/tests/" + name + ".py"}
		},
		"typescript": func(name string) []string { return []string{"node", "typescript/test/" + name + ".js"} },
	} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			client{name: language, install: "see the contract", command: command("")}.installed(t)
			do(t, language, func(name string, args ...string) {
				program := append(command(name), args...)
				cmd := exec.CommandContext(t.Context(), program[0], program[1:]...)
				cmd.Env = append(os.Environ(), "PYTHONPATH=python/src")
				out, err := cmd.CombinedOutput()
				require.NoError(t, err, "%s", out)
			})
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

func TestTypesOfParametersCanBeReadAtRunTime(t *testing.T) {
	t.Parallel()
	inBoth(t, func(_ *testing.T, language string, run func(string, ...string)) {
		if language == "python" {
			run("hints")
		}
	})
}

func TestManyEntriesAreSeveralRequests(t *testing.T) {
	t.Parallel()
	s := mnemetest.Up(t, filepath.Join(t.TempDir(), "data"))
	inBoth(t, func(t *testing.T, language string, run func(string, ...string)) {
		run("batches", between(t, s.HTTP, []contract{
			{Conversation: "many-" + language, Faults: []string{"", "broken", ""}},
			{Conversation: "large-" + language, Faults: []string{"", ""}},
		}))
	})
}

func TestACallBelongsToAMessageThatIsStillOnItsWay(t *testing.T) {
	t.Parallel()
	s := mnemetest.Up(t, filepath.Join(t.TempDir(), "data"))
	runBoth(t, "together", s.HTTP)
}
