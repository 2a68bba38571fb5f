package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/importer"
	"mneme.dev/mneme/internal/testdata"
	"mneme.dev/mneme/internal/transcript"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/insight"
	"mneme.dev/mneme/pkg/projection"
)

// insights reads insights and waits for everything up to a sequence.
func (b *bundle) insights(last uint64, query string) (in httpapi.Insights) {
	b.t.Helper()
	b.get(fmt.Sprintf("/v1/insights?wait_ms=60000&at_least=%d&%s", last, query), &in)
	return in
}

func namesOfGroups(in httpapi.Insights) (names []string) {
	for _, g := range in.Groups {
		names = append(names, g.Name)
	}
	return names
}

// worked publishes a small session: it reads a file twice, changes it, and runs a test that fails.
func (b *bundle) worked(conversation, project, agent string) uint64 {
	b.t.Helper()
	answer := message("a", "assistant", "I will look")
	answer.Model, answer.Usage = "opus-1", json.RawMessage(`{"input_tokens":1000,"cache_read_input_tokens":9000,"output_tokens":100}`)
	call := func(id, tool, arguments string) events.Payload {
		return &events.ToolCalled{ToolCallID: id, ToolName: tool, Arguments: json.RawMessage(arguments)}
	}
	returned := func(id, text string, success bool, ms float64) events.Payload {
		return &events.ToolReturned{ToolCallID: id, Result: events.TextResult(text), Success: &success, DurationMS: &ms}
	}
	return b.batch(conversation,
		&events.ConversationStarted{Project: project, Agent: agent, Cwd: "/w"}, message("u", "user", "fix it"), answer,
		call("k1", "Read", `{"file_path":"/w/a.go"}`), returned("k1", "package a", true, 10),
		call("k2", "Read", `{"file_path":"/w/a.go"}`), returned("k2", "package a", true, 20),
		call("k3", "Edit", `{"file_path":"/w/a.go","old_string":"a","new_string":"b"}`), returned("k3", "ok", true, 30),
		call("k4", "Bash", `{"command":"go test ./..."}`), returned("k4", "--- FAIL: TestX (0.01s)", false, 4000),
	)
}

func TestInsightsAddUpWhatConversationsDid(t *testing.T) {
	b := setup(t)
	b.worked("c1", "p", "claude-code")
	b.worked("c2", "q", "codex")
	last := b.batch("c3", message("u", "user", "hello"))

	days := b.insights(last, "")
	require.EqualValues(t, "day", days.By)
	require.Equal(t, 3, days.Total.Conversations)
	require.EqualValues(t, []int64{3, 2}, []int64{days.Total.Work.Turns, days.Total.Work.Steps})
	require.Equal(t, &insight.Usage{In: 20_000, Cached: 18_000, Out: 200}, days.Total.Usage)
	require.Nil(t, days.Total.Cost, "no price is made up")
	require.EqualValues(t, []int64{4, 2, 2}, []int64{days.Total.Files.Reads, days.Total.Files.Rereads, days.Total.Files.Writes})
	require.Equal(t, 0.5, *days.Total.Files.RereadShare)
	require.EqualValues(t, 2, days.Total.Work.Changing)
	require.EqualValues(t, 3, *days.Total.Work.CallsUntilChange)

	tools := b.insights(last, "by=tool&limit=1")
	require.Equal(t, []string{"Read"}, namesOfGroups(tools))
	require.Equal(t, 2, tools.LeftOut)
	require.EqualValues(t, []int64{4, 4, 0}, []int64{tools.Groups[0].Calls.Count, tools.Groups[0].Calls.Succeeded, tools.Groups[0].Calls.Failed})
	require.EqualValues(t, 8, tools.Total.Calls.Count)
	require.InEpsilon(t, 4000, *tools.Total.Calls.P99, 1.0/32)

	require.Equal(t, []string{"opus-1", ""}, namesOfGroups(b.insights(last, "by=model")))
	require.Equal(t, []string{"claude-code", "codex", ""}, namesOfGroups(b.insights(last, "by=agent")))
	require.Equal(t, []string{"p", "q", ""}, namesOfGroups(b.insights(last, "by=project")))
	failing := b.insights(last, "by=error")
	require.Equal(t, []string{"--- FAIL: TestX (<n>s)"}, namesOfGroups(failing))
	require.EqualValues(t, 2, failing.Groups[0].Errors)
	require.Equal(t, "Bash", failing.Groups[0].Tool)
	commands := b.insights(last, "by=command")
	require.Equal(t, []string{"go test ./..."}, namesOfGroups(commands))
	require.Zero(t, *commands.Groups[0].Calls.SuccessRate)
	require.Equal(t, []string{"p/a.go", "q/a.go"}, namesOfGroups(b.insights(last, "by=file")))

	of := b.insights(last, "by=file&project=p")
	require.Equal(t, "p", of.Project)
	require.Equal(t, []string{"a.go"}, namesOfGroups(of))
	require.Equal(t, 1, b.insights(last, "agent=codex").Total.Conversations)
	require.Empty(t, b.insights(last, "project=nothing").Groups)

	one := b.insights(last, "by=file&conversation=c2")
	require.Equal(t, "c2", one.Conversation)
	require.Equal(t, []string{"a.go"}, namesOfGroups(one))
	require.EqualValues(t, 4, b.insights(last, "conversation=c2").Total.Calls.Count)
	require.Empty(t, b.insights(last, "conversation=c2&project=p").Groups, "it is in another project")
	const long = "claude_code:0a93878f-dc30-4a5d-882f-3cd81cd3d499"
	last = b.worked(long, "r", "claude-code")
	b.show(long, last) // a name is known once the conversation is
	require.Equal(t, long, b.insights(last, "conversation=1cd3d499").Conversation)
	b.refused(http.StatusNotFound, http.MethodGet, "/v1/insights?conversation=c9", nil, "")
	b.refused(http.StatusNotFound, http.MethodGet, "/v1/insights?conversation=c2&tenant=other", nil, "")
	require.Empty(t, b.insights(last, "tenant=other").Groups)
}

// lagging are read models whose graph has applied nothing after a sequence, 0 for all of them.
type lagging struct {
	httpapi.Models
	upTo *atomic.Uint64
}

func (l lagging) Graph(ctx context.Context) (view.Pinned[graph.Reader], error) {
	p, err := l.Models.Graph(ctx)
	if upTo := l.upTo.Load(); err == nil && upTo > 0 {
		p.Model = laggingGraph{p.Model, upTo}
	}
	return p, err
}

type laggingGraph struct {
	graph.Reader
	upTo uint64
}

func (l laggingGraph) Conversation(ctx context.Context, id events.ConversationID, asOf uint64) (graph.Conversation, error) {
	return l.Reader.Conversation(ctx, id, min(asOf, l.upTo))
}

func (l laggingGraph) Checkpoints(ctx context.Context) ([]projection.Checkpoint, error) {
	list, err := l.Reader.Checkpoints(ctx)
	for i := range list {
		list[i].Seq = min(list[i].Seq, l.upTo)
	}
	return list, err
}

// Titles come from the graph, which may be behind the figures.
func TestInsightsWithTitlesWaitForThem(t *testing.T) {
	var upTo atomic.Uint64
	f := setupFront(t, func(c *httpapi.Config) { c.Models = lagging{c.Models, &upTo} })
	before, title := f.batch("c1", &events.ConversationStarted{Title: "Old"}, message("u", "user", "hello")), "New"
	last := f.publish(structured("c1", "title", &events.ConversationUpdated{Title: &title})).Seq
	f.bundle.insights(last, "by=conversation") // the graph itself has it
	ask := func(query, known string) (*http.Response, string) {
		return raw(t, f.HTTPURL(), fmt.Sprintf("GET /v1/insights?by=conversation%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nIf-None-Match: %s\r\n\r\n", query, known))
	}
	upTo.Store(before)
	response, body := ask("", "none")
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Contains(t, body, `"title":"Old"`)
	tag := response.Header.Get("ETag")
	response, body = ask(fmt.Sprintf("&wait_ms=1&at_least=%d", last), "none")
	require.NotEqual(t, http.StatusOK, response.StatusCode, body)
	upTo.Store(0)
	response, body = ask("", tag)
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Contains(t, body, `"title":"New"`)
}

func TestConversationsAreSortedByWhatTheyDid(t *testing.T) {
	b := setup(t)
	b.batch("quiet", &events.ConversationStarted{Title: "Talk"}, message("u1", "user", "hello"), message("u2", "user", "again"))
	b.worked("busy", "p", "claude-code")
	last := b.batch("dear", &events.MessageCreated{MessageID: "a", Role: "assistant", Content: "x", Usage: json.RawMessage(`{"input_tokens":50000,"output_tokens":1}`)})
	for sort, want := range map[string]string{"tokens": "dear", "errors": "busy", "rereads": "busy", "duration": "busy"} {
		in := b.insights(last, "by=conversation&sort="+sort)
		require.Len(t, in.Groups, 3)
		require.Equal(t, want, in.Groups[0].Name, sort)
	}
	in := b.insights(last, "by=conversation&sort=tokens&limit=2")
	require.Equal(t, []string{"dear", "busy"}, namesOfGroups(in))
	require.Equal(t, 1, in.LeftOut)
	for _, g := range b.insights(last, "by=conversation").Groups {
		require.Equal(t, g.Name == "quiet", g.Title == "Talk")
	}
	b.refused(422, http.MethodGet, "/v1/insights?sort=beauty", nil, "")
}

func TestADeletedConversationIsInNoInsight(t *testing.T) {
	b := setup(t)
	last := b.worked("c1", "p", "claude-code")
	require.Equal(t, 1, b.insights(last, "by=error").Total.Conversations)
	last = b.write(http.StatusOK, http.MethodDelete, "/v1/conversations/c1", "", "").Seq
	for _, by := range insight.By {
		in := b.insights(last, "by="+by)
		require.Empty(t, in.Groups, by)
		require.Zero(t, in.Total.Conversations, by)
	}
}

func TestInsightsRefuseWhatIsNoDayAndNoGrouping(t *testing.T) {
	b := setup(t)
	for _, query := range []string{"by=nothing", "since=2026-02-02&until=2026-02-01", "since=yesterday", "since=2026-13-01", "until=2026-01-01T00:00:00Z", "limit=0", "limit=1001"} {
		b.refused(http.StatusUnprocessableEntity, http.MethodGet, "/v1/insights?"+query, nil, "")
	}
}

// The totals must equal, to the unit, what a count over the recordings themselves finds.
func TestInsightsEqualACountOverTheRecordings(t *testing.T) {
	b := setup(t)
	agents := []string{"pi", "codex", "gemini_cli", "openhands", "swe_agent", "locomo"}
	if !testing.Short() {
		agents = append(agents, "claude_code")
	}
	for _, agent := range agents {
		path := testdata.Recording(t, agent, ofRecording)
		found, err := transcript.Find([]string{path})
		require.NoError(t, err)
		report, err := importer.Import(t.Context(), b.Log, found, importer.Options{Tenant: agent, Format: "neutral"})
		require.NoError(t, err)
		want := countRecording(t, path)
		in := b.insights(report.LastSeq, "by=tool&limit=1000&tenant="+agent)
		got := recordedTotals{
			Conversations: in.Total.Conversations, Turns: in.Total.Work.Turns, Steps: in.Total.Work.Steps, Compactions: in.Total.Work.Compactions, Chars: in.Total.Work.Chars,
			In: in.Total.Usage.In, Cached: in.Total.Usage.Cached, Out: in.Total.Usage.Out, Unknown: in.Total.Usage.Unknown, Tools: map[string][4]int64{},
		}
		for _, g := range in.Groups {
			got.Tools[g.Name] = [4]int64{g.Calls.Count, g.Calls.Succeeded, g.Calls.Failed, g.Calls.Refused}
		}
		require.Equal(t, want, got, agent)
		var daily int64
		for _, g := range b.insights(report.LastSeq, "limit=1000&tenant="+agent).Groups {
			daily += g.Work.Steps
		}
		require.Equal(t, want.Steps, daily, "%s: days have all steps", agent)
		t.Logf("%s: %d conversations, %d turns, %d steps, %d tools, %d tokens in, %d out", agent, got.Conversations, got.Turns, got.Steps, len(got.Tools), got.In, got.Out)
	}
}

// recordedTotals is what a recording holds. Tools are calls, successes, failures and refusals.
type recordedTotals struct {
	Conversations                    int
	Turns, Steps, Compactions, Chars int64
	In, Cached, Out, Unknown         int64
	Tools                            map[string][4]int64
}

// countRecording counts the lines of a recording. It uses nothing of mneme except the way to read lines.
func countRecording(t *testing.T, path string) recordedTotals {
	r := recordedTotals{Tools: map[string][4]int64{}}
	seen, tools := map[string]bool{}, map[string]string{}
	var results []testdata.Event
	for e := range testdata.Lines[testdata.Event](t, path) {
		if id := e.ConversationID + "/" + e.Kind + "/" + e.ID; seen[id] {
			continue
		} else {
			seen[id] = true
		}
		if conversation := e.ConversationID; e.Kind != "conversation" && !seen[conversation] {
			seen[conversation] = true
			r.Conversations++
		}
		for _, text := range []string{e.Content, e.Reasoning} {
			r.Chars += int64(utf8.RuneCountInString(text))
		}
		switch e.Kind {
		case "summary":
			r.Compactions++
		case "message":
			switch e.Role {
			case "user":
				if e.Meta["is_meta"] != true && asked(e.Content) {
					r.Turns++
				}
			case "assistant":
				r.Steps++
				usage, ok := e.Meta["usage"].(map[string]any)
				n := func(names ...string) (sum int64) {
					for _, name := range names {
						f, _ := usage[name].(float64)
						sum += int64(f)
					}
					return sum
				}
				if !ok || len(usage) == 0 {
					r.Unknown++
				}
				r.In += n("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "input", "cacheRead", "cacheWrite")
				r.Cached += n("cache_read_input_tokens", "cacheRead")
				r.Out += n("output_tokens", "output")
			}
		case "tool_call":
			tools[e.ConversationID+"/"+e.ID] = e.ToolName
			r.Chars += int64(utf8.RuneCount(compacted(t, e.Arguments)))
			c := r.Tools[e.ToolName]
			c[0]++
			r.Tools[e.ToolName] = c
		case "tool_result":
			results = append(results, e)
			var text string
			if json.Unmarshal(e.Result, &text) != nil {
				text = string(compacted(t, e.Result))
			}
			r.Chars += int64(utf8.RuneCountInString(text))
		}
	}
	ended := map[string]bool{}
	for _, e := range results {
		if len(e.ParentIDs) == 0 {
			continue
		}
		call := e.ConversationID + "/" + e.ParentIDs[0]
		tool, ok := tools[call]
		if !ok || ended[call] || e.Success == nil || strings.Contains(e.Error+string(e.Result), "Sibling tool call errored</") {
			continue
		}
		ended[call] = true
		c := r.Tools[tool]
		switch {
		case *e.Success:
			c[1]++
		case refused(e):
			c[3]++
		default:
			c[2]++
		}
		r.Tools[tool] = c
	}
	return r
}

// programs matches what the programs of the recorded agents wrote in the user's name, and that the user stopped them.
var programs = regexp.MustCompile(`^\s*(<command-name>|</?local-command|<bash-|<environment_context>|Operation stopped by hook: |\[Request interrupted by user|$)`)

func asked(text string) bool { return !programs.MatchString(text) }

// refused reports whether a result says that the user refused its call, in the words of the recorded agents.
func refused(e testdata.Event) bool {
	text := string(e.Result) + e.Error
	return strings.Contains(text, "The user doesn't want to proceed with this tool use") || strings.Contains(text, "rejected by user") ||
		strings.HasPrefix(e.Error, "[Request interrupted by user") || strings.HasPrefix(string(e.Result), `"[Request interrupted by user`)
}

// compacted returns JSON without white space, with every letter as itself.
func compacted(t *testing.T, raw []byte) []byte {
	t.Helper()
	if len(raw) == 0 {
		return []byte("{}")
	}
	value := jsontext.Value(raw)
	require.NoError(t, value.Compact(jsontext.AllowDuplicateNames(true), jsontext.PreserveRawStrings(false)))
	return value
}
