package main

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/httpapi"
)

func TestAProblemSpeaksOfFlagsAndCommands(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status         int
		detail         string
		location, text string
		sent, want     string
	}{
		{422, "until is not after since: there is nothing between them", "query.until", "", "since=a&until=b", "--until is not after --since: there is nothing between them"},
		{422, "to_seq is below from_seq: there is nothing between them", "query.to_seq", "", "from_seq=3&to_seq=2", "--to-seq is below --from-seq: there is nothing between them"},
		{422, "tool and file are for tool results: kind=message has none", "query.kind", "", "kind=message&tool=Read&file=x", "--tool and --file are for tool results: --kind=message has none"},
		{422, "as_of=9 is beyond the end of the log, which is 8", "query.as_of", "", "as_of=9", "--as-of=9 is beyond the end of the log, which is 8"},
		{422, "validation failed", "query.limit", "expected number <= 50", "limit=51", "validation failed\n  --limit: must be at most 50"},
		{422, "validation failed", "path.seq", "expected number >= 1", "", "validation failed\n  <seq>: must be at least 1"},
		{422, "\"as a tool=hammer\" is no phrase", "query.contains", "", "contains=x", "\"as a tool=hammer\" is no phrase"},
		{422, "validation failed", "body.max_context_chars", "expected number >= 500", "", "validation failed\n  --max-context-chars: must be at least 500"},
		{422, "body.id: expected length <= 512", "body.id", "expected length <= 512", "", "--id: must not be longer than 512"},
		{404, "conversation \"c\" has no message \"m9\"", "body.message_id", "is unknown", "", "conversation \"c\" has no message \"m9\"\n  <message>: is unknown"},
		{404, "no conversation belongs to project \"x\": see GET /v1/projects", "", "", "", "no conversation belongs to project \"x\": mneme projects list shows the projects"},
		{404, "there is nothing at /v1/new; /docs and /openapi.json list every path", "", "", "", "there is nothing at /v1/new; is the server of another version? (mneme version)"},
	} {
		body := map[string]any{"title": http.StatusText(c.status), "detail": c.detail}
		if c.location != "" {
			message := c.text
			if message == "" {
				message = c.detail
			}
			body["errors"] = []map[string]string{{"location": c.location, "message": message}}
		}
		raw, err := json.Marshal(body)
		require.NoError(t, err)
		sent, err := url.ParseQuery(c.sent)
		require.NoError(t, err)
		require.EqualError(t, problem(c.status, raw, sent), c.want)
	}
}

func TestAnswersNameWhatAUserCanType(t *testing.T) {
	t.Parallel()
	s := up(t, filepath.Join(t.TempDir(), "data"))
	session(s, "c")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"contexts", "c", "9", "--at-least", "1"}, exitFailed, "mneme contexts ID lists those that were"},
		{[]string{"turns", "c", "--wait", "5"}, exitUsage, "--wait: expected a length of time such as 30s, 5m or 2h but got \"5\" (mneme turns --help says more)"},
		{[]string{"contexts", ""}, exitUsage, "an id or a name is empty"},
		{[]string{"conversations", "show", ""}, exitUsage, "an id or a name is empty"},
		{[]string{"event", "0"}, exitUsage, "<seq>: must be at least 1"},
		{[]string{"search", "x", "--since", "2026-05-01", "--until", "2026-04-01"}, exitUsage, "--until is not after --since"},
		{[]string{"conversations", "create", "--id", "c"}, exitFailed, "mneme conversations update"},
	} {
		_, stderr, code := s.mneme(c.args...)
		require.Equal(t, c.code, code, stderr)
		require.Contains(t, stderr, c.want)
		require.NotContains(t, stderr, "/v1/")
	}
}

func TestAllMistakesOfACommandLineAreToldAtOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"conversations", "branch", "--titel", "x", "--limit=3"}, "unknown flag --titel, did you mean \"--title\"?\nunknown flag --limit\nmissing: <message> (mneme conversations branch --help says more)"},
		{[]string{"turns", "--limit", "many", "--form", "x"}, "--limit: expected a whole number but got \"many\"\nunknown flag --form"},
		{[]string{"turns", "--limit", "many"}, "--limit: expected a whole number but got \"many\"\nmissing: <id> (mneme turns --help says more)"},
		{[]string{"context", "c", "--strategy=best", "--format", "word"}, "\"pruned\" but got \"best\"\n--format must be one of"},
		{[]string{"backup", "create", "--ot", "x"}, "unknown flag --ot"},
		{[]string{"health", "c"}, "unexpected argument health, did you mean \"conversations health\"? (mneme --help says more)"},
		{[]string{"show", "c"}, "did you mean \"conversations show\" or \"projects show\" or \"failed show\"?"},
		{[]string{"status", "list"}, "unexpected argument list (mneme status --help says more)"},
		{[]string{"backup", "create", "/backups/1"}, "unexpected argument /backups/1, did you mean --out /backups/1? (mneme backup create --help says more)"},
		{[]string{"context", "c", "fix the upload"}, "did you mean --query \"fix the upload\"?"},
		{[]string{"up", "/var/lib/mneme"}, "did you mean --data /var/lib/mneme?"},
		{[]string{"quotas", "acme"}, "did you mean --tenant acme?"},
		{[]string{"turns"}, "missing: <id> (mneme turns --help says more)"},
		{[]string{"export"}, "missing: <table>, one of conversations, turns, calls, files (mneme export --help says more)"},
	} {
		_, stderr, code := mneme(t, c.args...)
		require.Equal(t, exitUsage, code)
		require.Contains(t, stderr, c.want, c.args)
	}
	for _, args := range [][]string{{"tokens", "create", "--role=foo"}, {"backup", "create", "--out"}} {
		_, stderr, code := mneme(t, args...)
		require.Equal(t, exitUsage, code)
		require.NotContains(t, stderr, "missing flags", "%s: the flag is there", args)
	}
}

func TestPublishNamesTheEventsThatAreWrong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := up(t, filepath.Join(dir, "data"))
	file := filepath.Join(dir, "events.ndjson")
	require.NoError(t, os.WriteFile(file, []byte(`{"specversion":"1.0","id":"1","source":"test","type":"com.example.thing","subject":"c","data":{}}
{"specversion":"1.0","id":"2","source":"test","type":"dev.mneme.message.created.v1","subject":"c","data":{"message_id":"m1","role":"usr","content":"Hello"}}
`), 0o600))
	_, stderr, code := s.mneme("publish", file)
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "\n  event 2: data.role: \"usr\" is none of")
	require.NotContains(t, stderr, "body")

	require.NoError(t, os.WriteFile(file, []byte(`{"specversion":"1.0","id":"1","source":"test","type":"com.example.thing","subject":"c","mnemesequence":"7","data":{}}`), 0o600))
	_, stderr, code = s.mneme("publish", file)
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "event 1 is from mneme conversations export: save that to a file and use mneme import")
}

func TestANewConversationKnowsItsFolderAndProject(t *testing.T) {
	t.Parallel()
	s := up(t, filepath.Join(t.TempDir(), "data"))
	here, err := filepath.Abs(".")
	require.NoError(t, err)
	_, stderr, code := s.mneme("conversations", "create", "--id", "c", "--project", ".", "--cwd", "testdata")
	require.Zero(t, code, stderr)
	made := read[httpapi.Conversation](s, "conversations", "show", "c", "--messages", "0", "--at-least", "1")
	require.Equal(t, repositoryOf(here), made.Project)
	require.Equal(t, filepath.Join(here, "testdata"), made.Cwd)
	_, stderr, code = s.mneme("conversations", "create", "--id", "")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "perhaps a variable of the shell is not set")
}

func TestAProofNeedsSomethingToSearch(t *testing.T) {
	t.Parallel()
	nowhere := filepath.Join(t.TempDir(), "data")
	_, stderr, code := mnemeWith(t, []string{"MNEME_DATA=" + nowhere}, "erase", "--prove", "the secret text")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "there is no data directory "+nowhere+" here: name what to search with --path")
	_, stderr, code = mnemeWith(t, nil, "erase", "--prove", "short", "--path", t.TempDir())
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "give at least 6")
}

func TestTheFlagsThatAreSuggestedForArgumentsExist(t *testing.T) {
	t.Parallel()
	parser, err := newParser(&CLI{})
	require.NoError(t, err)
	known := map[string]bool{}
	require.NoError(t, kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
		if command, ok := node.(*kong.Node); ok {
			for _, group := range command.AllFlags(true) {
				for _, flag := range group {
					known[strings.TrimPrefix(command.Path(), "mneme ")+" --"+flag.Name] = true
				}
			}
		}
		return next(nil)
	}))
	for command, flag := range meant {
		require.True(t, known[command+" --"+flag], "%s --%s", command, flag)
	}
}
