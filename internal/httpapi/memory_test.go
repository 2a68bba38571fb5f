package httpapi_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/instance"
)

// memory carries out a command and requires the answer's status.
func (b *bundle) memory(header map[string]string, status int, project, query string, c httpapi.MemoryCommand) (answer httpapi.MemoryAnswer) {
	b.t.Helper()
	body, err := json.Marshal(c)
	require.NoError(b.t, err)
	h := map[string]string{"Content-Type": "application/json"}
	maps.Copy(h, header)
	if status != http.StatusOK {
		b.do(status, http.MethodPost, "/v1/projects/"+url.PathEscape(project)+"/memory"+query, h, body, nil)
		return answer
	}
	b.do(status, http.MethodPost, "/v1/projects/"+url.PathEscape(project)+"/memory"+query, h, body, &answer)
	return answer
}

// list returns the list of the whole memory.
func (b *bundle) listMemory(project string) string {
	b.t.Helper()
	return b.memory(nil, http.StatusOK, project, "", httpapi.MemoryCommand{Command: "view", Path: "/memories"}).Content
}

func create(path, text string) httpapi.MemoryCommand {
	return httpapi.MemoryCommand{Command: "create", Path: path, FileText: text}
}

func TestAMemoryKeepsWhatAnAgentWrites(t *testing.T) {
	b := setup(t)
	const project = "/w/shop" // a name that must be escaped
	require.Equal(t, "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items:\n0B\t/memories", b.listMemory(project))
	made := b.memory(nil, http.StatusOK, project, "", create("/memories/progress.md", "Cart: done.\nLogin: open.\n"))
	require.Equal(t, "File created successfully at: /memories/progress.md", made.Content)
	require.NotZero(t, made.Seq, "the log has acknowledged it")
	edited := b.memory(nil, http.StatusOK, project, "", httpapi.MemoryCommand{Command: "str_replace", Path: "/memories/progress.md", OldStr: "open", NewStr: "done"})
	require.Greater(t, edited.Seq, made.Seq)
	refused := b.memory(nil, http.StatusOK, project, "", create("/memories/progress.md", ""))
	require.True(t, refused.IsError)
	require.Zero(t, refused.Seq)
	b.memory(nil, http.StatusOK, project, "", httpapi.MemoryCommand{Command: "rename", OldPath: "/memories/progress.md", NewPath: "/memories/shop/progress.md"})
	var seen httpapi.MemoryAnswer
	b.get("/v1/projects/"+url.PathEscape(project)+"/memory?path=/memories/shop/progress.md&view_range=2,2", &seen)
	require.Equal(t, "Here's the content of /memories/shop/progress.md with line numbers:\n     2\tLogin: done.", seen.Content)
	require.Equal(t, "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items:\n25B\t/memories\n25B\t/memories/shop/\n25B\t/memories/shop/progress.md", b.listMemory(project))
	require.NotContains(t, b.listMemory("/w/blog"), "progress")

	var found struct{ Conversations []httpapi.Conversation }
	b.get(fmt.Sprintf("/v1/conversations?project=%s&at_least=%d", url.QueryEscape(project), made.Seq), &found)
	require.Len(t, found.Conversations, 1, "it belongs to the project")
	require.Zero(t, found.Conversations[0].TurnCount, "there is nothing to summarize")

	b.do(http.StatusOK, http.MethodDelete, "/v1/conversations/"+url.PathEscape(found.Conversations[0].ID), nil, nil, nil)
	require.NotContains(t, b.listMemory(project), "progress")
	require.Contains(t, b.memory(nil, http.StatusOK, project, "", create("/memories/b", "")).Content, "was deleted")
}

func TestAMemoryShowsWhatWasRecorded(t *testing.T) {
	b := setup(t)
	failed := false
	b.batch("cart", &events.ConversationStarted{Project: "shop"}, message("m1", "user", "Fix the voucher. Always run make check."), message("m2", "assistant", "It is fixed"),
		&events.ToolCalled{ToolCallID: "c1", ToolName: "Edit", Arguments: json.RawMessage(`{"file_path":"/w/shop/cart.go","old_string":"a","new_string":"b"}`)},
		&events.ToolCalled{ToolCallID: "c2", ToolName: "Bash", Arguments: json.RawMessage(`{"command":"make check"}`)},
		&events.ToolReturned{ToolCallID: "c2", Success: &failed, Result: events.TextResult("Error: cart_test.go:3 failed")},
		&events.ToolCalled{ToolCallID: "c3", ToolName: "Bash", Arguments: json.RawMessage(`{"command":"git push"}`)},
		&events.ToolReturned{ToolCallID: "c3", Success: &failed, Result: events.TextResult("error: failed to push some refs")})
	seq := b.batch("login", &events.ConversationStarted{Project: "shop"}, message("m1", "user", "The login fails"))
	b.get(fmt.Sprintf("/v1/projects/shop?at_least=%d", seq), nil)
	list := b.listMemory("shop")
	for _, name := range []string{"story-so-far.md", "open-ends.md", "what-was-learnt.md", "files.md"} {
		require.Contains(t, list, "/memories/recorded/"+name)
	}
	show := func(name string) string {
		return b.memory(nil, http.StatusOK, "shop", "", httpapi.MemoryCommand{Command: "view", Path: "/memories/recorded/" + name}).Content
	}
	require.Contains(t, show("story-so-far.md"), "Fix the voucher")
	require.Contains(t, show("open-ends.md"), "not answered: The login fails")
	require.Contains(t, show("open-ends.md"), "failed when last run: make check")
	require.NotContains(t, show("open-ends.md"), "Fix the voucher")
	require.NotContains(t, show("open-ends.md"), "git push", "what failed because of the moment is not open")
	require.Contains(t, show("what-was-learnt.md"), "Always run make check")
	require.Contains(t, show("files.md"), "cart.go")
	require.True(t, strings.HasPrefix(show("files.md"), "<mneme-context "))
	require.Contains(t, b.memory(nil, http.StatusOK, "shop", "", create("/memories/recorded/x", "")).Content, "read-only")
}

func TestOfWritersAtOnceEachIsHeard(t *testing.T) {
	b := setup(t)
	b.memory(nil, http.StatusOK, "p", "", create("/memories/log", ""))
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			b.memory(nil, http.StatusOK, "p", "", httpapi.MemoryCommand{Command: "insert", Path: "/memories/log", InsertText: fmt.Sprint("writer ", i)})
		})
	}
	all.Wait()
	text := b.memory(nil, http.StatusOK, "p", "", httpapi.MemoryCommand{Command: "view", Path: "/memories/log"}).Content
	for i := range 8 {
		require.Equal(t, 1, strings.Count(text, fmt.Sprint("writer ", i)), text)
	}
}

func TestAMemoryBelongsToItsTenantAndItsProject(t *testing.T) {
	g := setupGuarded(t)
	writer, _ := g.token(access.Rights{Tenant: "team-a", Role: access.Write})
	other, _ := g.token(access.Rights{Tenant: "team-b", Role: access.Write})
	of, _ := g.token(access.Rights{Tenant: "team-a", Role: access.Read, Project: "shop"})
	g.memory(bearer(writer), http.StatusOK, "shop", "", create("/memories/a", "canary"))
	look := httpapi.MemoryCommand{Command: "view", Path: "/memories/a"}
	require.Contains(t, g.memory(bearer(of), http.StatusOK, "shop", "", look).Content, "canary")
	require.True(t, g.memory(bearer(other), http.StatusOK, "shop", "", look).IsError, "another tenant's project of that name is another")
	g.memory(bearer(other), http.StatusForbidden, "shop", "?tenant=team-a", look)
	g.memory(bearer(of), http.StatusForbidden, "blog", "", look)
	g.memory(bearer(of), http.StatusForbidden, "shop", "", create("/memories/b", ""))
	reader, _ := g.token(access.Rights{Tenant: "team-a", Role: access.Read})
	g.memory(bearer(reader), http.StatusForbidden, "shop", "", httpapi.MemoryCommand{Command: "delete", Path: "/memories/a"})
	require.Contains(t, g.memory(bearer(reader), http.StatusOK, "shop", "", look).Content, "canary")
}

func TestAMemoryIsTheSameAfterARestartAndAVerify(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run := func(do func(b *bundle)) {
		i, err := instance.Start(t.Context(), instance.Config{Data: dir, Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		do(&bundle{t, i})
		require.NoError(t, i.Close())
	}
	var before string
	run(func(b *bundle) {
		for i := range 20 {
			b.memory(nil, http.StatusOK, "p", "", create(fmt.Sprint("/memories/a/", i), strings.Repeat("x", i)))
		}
		b.memory(nil, http.StatusOK, "p", "", httpapi.MemoryCommand{Command: "delete", Path: "/memories/a/3"})
		b.memory(nil, http.StatusOK, "p", "", httpapi.MemoryCommand{Command: "rename", OldPath: "/memories/a", NewPath: "/memories/b"})
		before = b.listMemory("p")
	})
	run(func(b *bundle) {
		require.Equal(t, before, b.listMemory("p"))
		var verified httpapi.Verification
		b.do(http.StatusOK, http.MethodPost, "/v1/verify", nil, nil, &verified)
		require.True(t, verified.Equal, "a replay of the log gives the same files")
	})
}

func TestAMemoryRefusesWhatItCannotStore(t *testing.T) {
	b := setup(t)
	answer := b.memory(nil, http.StatusOK, "p", "", create("/memories/a", strings.Repeat("\x01", events.MaxMemoryFileBytes)))
	require.False(t, answer.IsError, answer.Content)
	answer = b.memory(nil, http.StatusOK, "p", "", create("/memories/b", strings.Repeat("\x01", events.MaxMemoryFileBytes+1)))
	require.Contains(t, answer.Content, "the limit is 65536")
	b.memory(nil, http.StatusRequestEntityTooLarge, "p", "", create("/memories/c", strings.Repeat("x", 2<<20)))
	b.refused(http.StatusUnprocessableEntity, http.MethodPost, "/v1/projects/p/memory", map[string]string{"Content-Type": "application/json"}, `{"command":"create","pth":"/memories/a"}`)
}
