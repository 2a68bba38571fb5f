package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/internal/worker"
	"mneme.dev/mneme/pkg/codebase"
	"mneme.dev/mneme/pkg/window"
)

// tell publishes events under ids of their own, and returns the highest sequence.
func (b *bundle) tell(conversation string, payloads ...events.Payload) (seq uint64) {
	b.t.Helper()
	for _, p := range payloads {
		seq = b.publish(structured(conversation, fmt.Sprint("e", tellings.Add(1)), p)).Seq
	}
	return seq
}

var tellings atomic.Int64

const indexedRoot = "/w/cli"

// file indexes a file with one function.
func (b *bundle) file(path, name, text string) uint64 {
	b.t.Helper()
	return b.tell("code:"+indexedRoot, &events.CodeIndexed{Project: indexedRoot, Path: path, Hash: strings.Repeat("a", 64), Language: "go", Lines: 9, Scopes: []events.CodeScope{
		{Name: name, Kind: "function", StartLine: 10, EndLine: 9 + strings.Count(text, "\n") + 1, Text: text},
	}})
}

func (b *bundle) scanned(done bool) uint64 {
	b.t.Helper()
	return b.tell("code:"+indexedRoot, &events.CodeScanned{Project: indexedRoot, Root: indexedRoot, Done: done})
}

// codeOf returns the section of relevant code and its manifest.
func (b *bundle) codeOf(conversation, query string) (items []window.Item, manifest window.SectionManifest) {
	b.t.Helper()
	var c window.Context
	b.get("/v1/conversations/"+conversation+"/context?explain=true&"+query, &c)
	for _, s := range c.Sections {
		if s.Name == window.SectionCode {
			items = s.Items
		}
	}
	for _, m := range c.Manifest.Sections {
		if m.Name == window.SectionCode {
			manifest = m
		}
	}
	return items, manifest
}

const retryText = "func Retry(part int) error {\n\tfor attempt := range maximumAttempts {\n\t\tif sendPartAgain(part, attempt) == nil {\n\t\t\treturn nil\n\t\t}\n\t}\n\treturn errTooManyAttempts\n}"

func TestAContextShowsCodeOfItsProjectThatNobodyHasShown(t *testing.T) {
	b := setup(t)
	b.file("upload/retry.go", "Retry", retryText)
	b.file("parse.go", "ParseHeader", "func ParseHeader(line string) (name, value string) {\n\treturn strings.Cut(line, colonSeparator)\n}")
	b.scanned(true)
	ask := func(id, cwd string) uint64 {
		return b.tell(id, &events.ConversationStarted{Cwd: cwd}, message("u", "user", "where is an upload of a part retried?"))
	}
	ask("before", indexedRoot+"/upload")
	last := ask("inside", indexedRoot+"/upload")
	for _, id := range []string{"elsewhere", "above"} {
		last = ask(id, map[string]string{"elsewhere": "/w/other", "above": "/w"}[id])
	}
	b.get(projectPath(indexedRoot, fmt.Sprint("/code/files?at_least=", last)), nil) // the index is applied a moment later
	items, manifest := b.codeOf("inside", fmt.Sprint("at_least=", last))
	require.NotEmpty(t, items)
	require.Equal(t, []any{"/w/cli/upload/retry.go", "mneme index", 10, 17}, []any{items[0].Path, items[0].ToolName, items[0].StartLine, items[0].EndLine})
	require.Equal(t, retryText, items[0].Text)
	require.Equal(t, indexedRoot, manifest.Indexed.Project)
	require.Equal(t, len(items), manifest.Indexed.Shown)
	require.True(t, manifest.Indexed.ByMeaning)
	worktree := b.tell("code:/w/main", &events.CodeIndexed{Project: "/w/main", Path: "retry.go", Hash: strings.Repeat("a", 64), Scopes: []events.CodeScope{{Kind: "block", StartLine: 1, EndLine: 1, Text: "retried uploads of parts"}}},
		&events.CodeScanned{Project: "/w/main", Root: "/elsewhere/tree", Done: true})
	worktree = max(worktree, ask("main", "/w/main"))
	b.get(projectPath(indexedRoot, fmt.Sprint("/code/files?at_least=", worktree)), nil)
	shown, _ := b.codeOf("main", fmt.Sprint("at_least=", worktree))
	require.Len(t, shown, 1)
	require.Equal(t, "/w/main/retry.go", shown[0].Path, "a worktree was indexed, and this works in the repository")
	var markdown string
	b.get("/v1/conversations/inside/context?format=markdown", &markdown)
	require.Contains(t, markdown, "### /w/cli/upload/retry.go\n\nLines 10-17 (via mneme index):\n\tfunc Retry(part int) error {\n")

	for _, id := range []string{"elsewhere", "above"} { // another project; the project of a folder above is another one
		items, manifest = b.codeOf(id, "")
		require.Empty(t, items, id)
		require.Nil(t, manifest.Indexed, id)
	}

	// What the index gets later changes nothing as of an earlier sequence.
	var first, again string
	asOf := fmt.Sprint("/v1/conversations/inside/context?format=markdown&as_of=", last)
	b.get(asOf, &first)
	require.Equal(t, markdown, first)
	b.scanned(false)
	later := b.file("upload/retry.go", "Retry", "func Retry() { neverAgain() }")
	b.get(fmt.Sprintf("%s&at_least=%d", asOf, later), &again)
	require.Equal(t, first, again)

	// While the folder is being read, searches rank by words alone.
	later = b.tell("inside", message("a", "assistant", "I look."), message("u2", "user", "where is a part of an upload retried again?"))
	items, manifest = b.codeOf("inside", fmt.Sprint("at_least=", later))
	require.NotNil(t, manifest.Indexed)
	require.False(t, manifest.Indexed.ByMeaning)
	for _, it := range items {
		require.NotContains(t, it.Text, "sendPartAgain", "the file holds something else now")
	}
}

// withoutCode are read models of which the one of indexed code may be absent, as while it is made for the first time.
type withoutCode struct {
	httpapi.Models
	absent *atomic.Bool
}

func (m withoutCode) Code(ctx context.Context) (view.Pinned[codebase.Reader], error) {
	if m.absent.Load() {
		return view.Pinned[codebase.Reader]{}, worker.ErrNotThere
	}
	return m.Models.Code(ctx)
}

func TestTheETagChangesWhenThereIsCodeOfTheProject(t *testing.T) {
	var absent atomic.Bool
	f := setupFront(t, func(c *httpapi.Config) {
		c.Models, c.Cache = withoutCode{c.Models, &absent}, view.NewCache(64<<20, view.BuiltIn{})
	})
	f.file("upload/retry.go", "Retry", retryText)
	f.scanned(true)
	last := f.tell("c", &events.ConversationStarted{Cwd: indexedRoot}, message("u", "user", "where is an upload of a part retried?"))
	ask := func(known string) (*http.Response, string) {
		return raw(t, f.HTTPURL(), fmt.Sprintf("GET /v1/conversations/c/context?project_memory=off&at_least=%d HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nIf-None-Match: %s\r\n\r\n", last, known))
	}
	f.bundle.get(fmt.Sprintf("/v1/projects/%s/code/files?at_least=%d", url.PathEscape(indexedRoot), last), nil)
	absent.Store(true)
	response, body := ask("none")
	require.Equal(t, http.StatusOK, response.StatusCode, body)
	require.NotContains(t, body, "maximumAttempts")
	tag := response.Header.Get("ETag")
	response, _ = ask(tag)
	require.Equal(t, http.StatusNotModified, response.StatusCode)

	absent.Store(false)
	response, body = ask(tag)
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Contains(t, body, "maximumAttempts")
	tag = response.Header.Get("ETag")
	f.tell("other", message("u", "user", "something else"))
	response, _ = ask(tag)
	require.Equal(t, http.StatusNotModified, response.StatusCode, "the code as of the conversation's newest event is the same")
}

func TestAScopeGivesWayToWhatAToolShowedLater(t *testing.T) {
	b := setup(t)
	b.file("upload/retry.go", "Retry", retryText)
	b.scanned(true)
	changed := strings.ReplaceAll(retryText, "errTooManyAttempts", "errGivesUpForGood")
	arguments, err := json.Marshal(map[string]string{"file_path": indexedRoot + "/upload/retry.go"})
	require.NoError(t, err)
	turns := []events.Payload{
		&events.ConversationStarted{Cwd: indexedRoot}, message("u", "user", "look at the retry of uploads"),
		&events.ToolCalled{ToolCallID: "k", ToolName: "Read", Arguments: arguments},
		&events.ToolReturned{ToolCallID: "k", Result: events.TextResult(numbered(changed, 10))},
	}
	for n := range 12 { // the recent turns no longer show any of it
		turns = append(turns, message(fmt.Sprint("a", n), "assistant", strings.Repeat("something else entirely. ", 60)), message(fmt.Sprint("u", n), "user", "go on with the parser"))
	}
	last := b.tell("c", turns...)
	b.get(projectPath(indexedRoot, fmt.Sprint("/code/files?at_least=", last)), nil)
	items, manifest := b.codeOf("c", fmt.Sprintf("at_least=%d&max_chars=6000&query=retry+of+a+part", last))
	require.NotNil(t, manifest.Indexed)
	require.Equal(t, 1, manifest.Indexed.Found)
	require.Zero(t, manifest.Indexed.Shown)
	require.NotEmpty(t, items)
	for _, it := range items {
		require.Equal(t, "Read", it.ToolName)
		require.NotContains(t, it.Text, "errTooManyAttempts")
	}
	// Once the file is indexed again, its newest lines come from the index.
	b.file("upload/retry.go", "Retry", strings.ReplaceAll(retryText, "errTooManyAttempts", "errOfTheNewestVersion"))
	last = b.tell("c", message("z", "user", "and now?"))
	items, _ = b.codeOf("c", fmt.Sprintf("at_least=%d&max_chars=6000&query=retry+of+a+part", last))
	var all string
	for _, it := range items {
		all += it.ToolName + ":" + it.Text
	}
	require.Contains(t, all, "errOfTheNewestVersion")
}

func TestAManifestSaysWhichScopesOfAnIndexWereLeftOutAndWhy(t *testing.T) {
	b := setup(t)
	b.file("upload/retry.go", "Retry", retryText)
	b.file("node_modules/retry.go", "Retry", strings.ReplaceAll(retryText, "sendPartAgain", "retryOfThePart"))
	b.file("short.go", "Retry", "retry(part, upload)\nretry(part)")
	b.file("long.go", "RetryPart", strings.Repeat("\tif retryOfThePart(upload) {\n", 3)+strings.Repeat("\t\tretry the part of an upload\n", 4)+strings.Repeat("\tcleanUpAfterwards(everything)\n", 8))
	b.scanned(true)
	arguments, err := json.Marshal(map[string]string{"file_path": indexedRoot + "/upload/retry.go"})
	require.NoError(t, err)
	last := b.tell("c", &events.ConversationStarted{Cwd: indexedRoot}, message("u", "user", "retry of a part of an upload"),
		&events.ToolCalled{ToolCallID: "k", ToolName: "Read", Arguments: arguments}, &events.ToolReturned{ToolCallID: "k", Result: events.TextResult(numbered(retryText, 10))})
	b.get(projectPath(indexedRoot, fmt.Sprint("/code/files?at_least=", last)), nil)
	left := func(maxChars int) (reasons map[string]string, fits map[string]int, m window.SectionManifest, hash string) {
		var c window.Context
		b.get(fmt.Sprintf("/v1/conversations/c/context?explain=candidates&query=retry+part+of+upload&at_least=%d&max_chars=%d", last, maxChars), &c)
		reasons, fits = map[string]string{}, map[string]int{}
		for _, m = range c.Manifest.Sections {
			if m.Name != window.SectionCode {
				continue
			}
			for _, d := range m.Candidates {
				if d.ToolName == "mneme index" {
					require.NotEmpty(t, d.Text)
					require.Positive(t, d.Chars)
					require.Equal(t, 10, d.StartLine)
					reasons[d.Path], fits[d.Path] = d.Reason, d.FitsAt
				}
			}
			return reasons, fits, m, c.Manifest.Hash
		}
		return reasons, fits, window.SectionManifest{}, c.Manifest.Hash
	}
	reasons, _, m, hash := left(20_000)
	require.Equal(t, map[string]string{
		"/w/cli/upload/retry.go":       "its lines are shown, newer elsewhere or replaced",
		"/w/cli/node_modules/retry.go": "excluded by a pattern",
		"/w/cli/short.go":              "its lines are too short to tell apart",
	}, reasons)
	require.Equal(t, []int{4, 1}, []int{m.Indexed.Found, m.Indexed.Shown})
	require.Len(t, m.Dropped, 3)
	for _, d := range m.Dropped {
		require.Equal(t, []any{"scopes", 1}, []any{d.What, d.Count}, d.Reason)
	}
	var plain window.Context
	b.get("/v1/conversations/c/context?explain=true&query=retry+part+of+upload&max_chars=20000", &plain)
	require.Equal(t, hash, plain.Manifest.Hash)

	for n := range 25 {
		last = b.file(fmt.Sprintf("other%d.go", n), "Retry", fmt.Sprintf("func Retry() { retryOfPartOfUpload%dAgain(part, upload) }", n))
	}
	last = max(last, b.tell("c", message("z", "assistant", "I look.")))
	b.get(projectPath(indexedRoot, fmt.Sprint("/code/files?at_least=", last)), nil)
	_, _, m, _ = left(20_000)
	require.Greater(t, m.Indexed.Found, 20)
	require.Contains(t, m.Dropped, window.Dropped{What: "scopes", Count: m.Indexed.Found - 20, Reason: "not among the best 20 of the index"})
	reasons, fits, _, _ := left(3_000)
	short := 0
	for path, reason := range reasons {
		if reason == "over the budget" {
			require.Positive(t, fits[path], path)
			short++
		} else {
			require.Zero(t, fits[path], "no budget shows it")
		}
	}
	require.Positive(t, short)
}

// numbered is a text as a tool shows it, with the numbers of its lines.
func numbered(text string, first int) string {
	var out []string
	for i, line := range strings.Split(text, "\n") {
		out = append(out, fmt.Sprintf("%6d→%s", first+i, line))
	}
	return strings.Join(out, "\n")
}

func TestTheCodeOfAProjectIsSearchedAndListed(t *testing.T) {
	b := setup(t)
	b.file("upload/retry.go", "Retry", retryText)
	b.file("gone.go", "Gone", "func Gone() {}")
	last := b.tell("code:"+indexedRoot, &events.CodeIndexed{Project: indexedRoot, Path: "gone.go", Hash: strings.Repeat("a", 64), Removed: true})
	var found struct {
		Indexes []httpapi.CodeIndex
		Scopes  []httpapi.FoundScope
	}
	b.get(projectPath(indexedRoot, fmt.Sprintf("/code/search?query=retry&at_least=%d", last)), &found)
	require.Empty(t, found.Indexes, "nobody has said where the folder is")
	last = b.scanned(true)
	b.get(projectPath(indexedRoot+"/upload", fmt.Sprintf("/code/search?query=gone+retry&max_chars=50&at_least=%d", last)), &found)
	require.Empty(t, found.Indexes, "no conversation shows that the folder belongs to a repository")
	b.get(projectPath(indexedRoot, "/code/search?query=gone+retry&max_chars=50"), &found)
	require.Len(t, found.Indexes, 1)
	require.Len(t, found.Scopes, 1)
	require.Equal(t, "Retry", found.Scopes[0].Name)
	require.Equal(t, 50, len([]rune(found.Scopes[0].Text)))
	var files struct {
		Index     httpapi.CodeIndex
		Files     []httpapi.IndexedFile
		NextAfter uint64 `json:"next_after"`
	}
	b.get(projectPath(indexedRoot, "/code/files?limit=2"), &files)
	require.True(t, files.Index.Done)
	require.Equal(t, []string{"upload/retry.go", "gone.go"}, []string{files.Files[0].Path, files.Files[1].Path})
	b.get(projectPath(indexedRoot, fmt.Sprint("/code/files?limit=2&after=", files.NextAfter)), &files)
	require.Len(t, files.Files, 1)
	require.True(t, files.Files[0].Removed)
}

func TestWhatHasExactlyTheNameInTheQueryIsFoundFirst(t *testing.T) {
	b := setup(t)
	b.file("wait.go", "wait", "func wait() { wait(wait(wait())) }")
	b.file("public.go", "Wait", "func Wait(within time.Duration) error { return nil }")
	last := b.scanned(true)
	for _, name := range []string{"wait", "Wait"} {
		var found struct{ Scopes []httpapi.FoundScope }
		b.get(projectPath(indexedRoot, fmt.Sprintf("/code/search?query=%s&at_least=%d", name, last)), &found)
		require.Len(t, found.Scopes, 2)
		require.Equal(t, name, found.Scopes[0].Name)
	}
}
