// Package deps holds what programs and packages must not link.
package deps

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	natsServer = "github.com/nats-io/nats-server/v2/server"
	openAI     = "github.com/openai/openai-go/v3"
	anthropic  = "github.com/anthropics/anthropic-sdk-go"
	sqlite     = "modernc.org/sqlite"
	neo4j      = "github.com/neo4j/neo4j-go-driver/v5/neo4j"
	huma       = "github.com/danielgtaylor/huma/v2"
)

// look opens each folder and looks at each Go file of the module, once. Go takes the result of a test from its cache unless a
// file changed that the test itself looked at; it does not know what go list reads.
var look = sync.OnceValue(func() error {
	return filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == ".cache" || entry.Name() == ".git" || entry.Name() == "node_modules"):
			return filepath.SkipDir
		case filepath.Ext(path) == ".go":
			_, err = os.Stat(path)
		}
		return err
	})
})

// linked are all packages that a program with these packages links.
func linked(t *testing.T, packages ...string) []string {
	t.Helper()
	require.NoError(t, look())
	command := exec.Command("go", append([]string{"list", "-deps"}, packages...)...)
	command.Dir = "../.."
	var problems strings.Builder
	command.Stderr = &problems
	out, err := command.Output()
	require.NoError(t, err, problems.String())
	return strings.Fields(string(out))
}

// Who imports the events or the log in a program of their own connects to a server: they
// must not carry one along.
func TestClientsOfTheLogLinkNoServerAndNoStore(t *testing.T) {
	t.Parallel()
	got := linked(t, "./events", "./pkg/eventlog", "./pkg/projection", "./deploy/nats")
	for _, heavy := range []string{natsServer, sqlite, neo4j, huma} {
		require.NotContains(t, got, heavy)
	}
	require.Contains(t, linked(t, "./deploy/nats/embedded"), natsServer, "the name is still right")
}

// The official SDKs are an independent reading of what is sent, in test/modelsdk. In a program they were half of all
// symbols, and in tests a quarter of the time of compiling.
func TestNothingLinksASDKOfAModel(t *testing.T) {
	t.Parallel()
	sdks := []string{openAI, anthropic}
	for _, name := range linked(t, "-test", "./...") {
		require.False(t, slices.ContainsFunc(sdks, func(sdk string) bool { return name == sdk || strings.HasPrefix(name, sdk+"/") }), name)
	}
	module, err := os.ReadFile("../modelsdk/go.mod")
	require.NoError(t, err)
	for _, sdk := range sdks {
		require.Contains(t, string(module), sdk, "the name is still right")
	}
}

// Go compiles a package again for the tests of each package that it imports, if these have tests in the package itself
// and not only in its _test package. For the API, which takes longest, that was seven times in all.
func TestTheAPIIsCompiledOnceForAllTests(t *testing.T) {
	t.Parallel()
	got := linked(t, "-test", "./...") // a copy is followed by the tests that it is for, in brackets
	for _, heavy := range []string{"httpapi", "instance", "service"} {
		at := 0
		for i, name := range got {
			if name != "mneme.dev/mneme/internal/"+heavy {
				continue
			}
			at++
			require.False(t, strings.HasPrefix(got[i+1], "["), "%s is compiled again for %s: put the tests that are inside of that package beside it", name, got[i+1])
		}
		require.Equal(t, 1, at, "the name is still right")
	}
}

// The programs that scale out do one thing each: they carry neither the API, nor its page, nor a
// NATS server, nor the writer of summaries.
func TestWorkersLinkOnlyWhatTheyDo(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"./cmd/ingestor", "./cmd/file-tracker"} {
		got := linked(t, program)
		for _, other := range []string{
			natsServer, huma, "mneme.dev/mneme/deploy/nats/embedded", "mneme.dev/mneme/internal/httpapi", "mneme.dev/mneme/internal/view",
			"mneme.dev/mneme/internal/summarizer", "github.com/swaggest/swgui",
		} {
			require.False(t, slices.Contains(got, other), "%s links %s", program, other)
		}
	}
	for _, program := range []string{"./cmd/summarizer", "./cmd/context-api"} {
		require.False(t, slices.Contains(linked(t, program), natsServer), program)
	}
}
