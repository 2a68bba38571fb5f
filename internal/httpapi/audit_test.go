package httpapi_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/audit"
	"mneme.dev/mneme/internal/erasure"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/instance"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/settings"
)

// entries returns the audit log as a token sees it, each entry as "tenant role action target outcome".
func (b *bundle) entries(token, query string) (list []string, raw string) {
	b.t.Helper()
	header := map[string]string{}
	if token != "" {
		header = bearer(token)
	}
	b.do(http.StatusOK, http.MethodGet, "/v1/audit?limit=1000&"+query, header, nil, &raw)
	var page struct{ Entries []httpapi.AuditEntry }
	require.NoError(b.t, json.Unmarshal([]byte(raw), &page))
	for _, e := range page.Entries {
		require.NotEmpty(b.t, e.Request)
		require.WithinDuration(b.t, time.Now(), e.Time, time.Hour)
		list = append(list, strings.Join(strings.Fields(strings.Join([]string{e.Tenant, e.Role, e.Action, e.Target, e.Outcome}, " ")), " "))
	}
	return list, raw
}

// Adding a route or a tool requires a decision whether it is audited.
func TestEveryRouteSaysWhetherItIsAudited(t *testing.T) {
	b := setup(t)
	var document struct {
		Paths map[string]map[string]struct {
			ID         string `json:"operationId"`
			Parameters []struct{ Name string }
			Body       struct {
				Content map[string]struct {
					Schema struct {
						Ref        string `json:"$ref"`
						Properties map[string]any
					}
				}
			} `json:"requestBody"`
			Access struct{ Audit access.Audit } `json:"x-mneme-access"`
		}
		Components struct {
			Schemas map[string]struct{ Properties map[string]any }
		}
	}
	b.get("/openapi.json", &document)
	seen := 0
	for _, item := range document.Paths {
		for method, op := range item {
			if op.ID == "" {
				continue
			}
			seen++
			need := access.Routes[op.ID]
			require.Contains(t, []access.Audit{access.AuditNone, access.AuditRead, access.AuditChange}, need.Audit, "%s: decide in internal/access/table.go, by the rules of docs/adr/0027-audit-log.md", op.ID)
			require.Equal(t, need.Audit, op.Access.Audit)
			require.False(t, method == "get" && need.Audit == access.AuditChange, "%s reads", op.ID)
			known := map[string]bool{}
			for _, p := range op.Parameters {
				known[p.Name] = true
			}
			for _, c := range op.Body.Content {
				for name := range c.Schema.Properties {
					known[name] = true
				}
				for name := range document.Components.Schemas[c.Schema.Ref[strings.LastIndexByte(c.Schema.Ref, '/')+1:]].Properties {
					known[name] = true
				}
			}
			for _, name := range need.Target {
				require.True(t, known[name], "%s has no parameter or member %s", op.ID, name)
			}
		}
	}
	require.Equal(t, len(access.Routes), seen)
	for name, need := range access.Tools {
		require.Contains(t, []access.Audit{access.AuditNone, access.AuditRead}, need.Audit, name)
	}
}

func TestWhatIsChangedAndReadAcrossConversationsIsInTheAuditLog(t *testing.T) {
	g := setupGuarded(t)
	g.fill()
	admin, hash := g.token(access.Rights{AllTenants: true, Role: access.Admin})
	reader, readerHash := g.token(access.Rights{Tenant: "team-a", Role: access.Read})
	writer, _ := g.token(access.Rights{Tenant: "team-a", Role: access.Write})
	operatorA, _ := g.token(access.Rights{Tenant: "team-a", Role: access.Operate})
	operatorB, _ := g.token(access.Rights{Tenant: "team-b", Role: access.Operate})
	body := func(token string) map[string]string { return with(bearer(token), "Content-Type", "application/json") }

	g.do(http.StatusOK, http.MethodGet, "/v1/conversations/bank/messages", bearer(reader), nil, nil)
	for range 20 {
		g.do(http.StatusOK, http.MethodGet, "/v1/search?query=canary-asked", bearer(reader), nil, nil)
	}
	g.do(http.StatusOK, http.MethodGet, "/v1/projects/bank/context", bearer(reader), nil, nil)
	g.do(http.StatusForbidden, http.MethodDelete, "/v1/conversations/bank", bearer(reader), nil, nil)
	g.do(http.StatusForbidden, http.MethodDelete, "/v1/conversations/x"+url.PathEscape(strings.Repeat("é", 300)), bearer(reader), nil, nil)
	g.do(http.StatusForbidden, http.MethodPost, "/v1/retries", body(operatorA), []byte(`{"all":true,"tenant":"team-b"}`), nil)
	g.do(http.StatusOK, http.MethodDelete, "/v1/conversations/bank?reason=canary-reason", bearer(writer), nil, nil)
	g.do(http.StatusOK, http.MethodPut, "/v1/projects/old/alias", body(operatorA), []byte(`{"into":"shop"}`), nil)
	g.do(http.StatusNotFound, http.MethodPost, "/v1/rebuilds", body(admin), []byte(`{"projection":"nothing"}`), nil)
	g.do(http.StatusOK, http.MethodPost, "/v1/erasures", body(admin), []byte(`{"tenant":"team-a","conversation":"shop","before":"0001-01-01T00:00:00Z","dry_run":true}`), nil)
	g.do(http.StatusUnprocessableEntity, http.MethodPost, "/v1/erasures", body(admin), []byte(`{"tenant":"team-a"}`), nil)

	aliased := audit.Project("old") + " into-" + audit.Project("shop")
	wanted := []string{
		"team-a read search done",
		"team-a read read-project-context " + audit.Project("bank") + " done",
		"team-a read delete-conversation conversation:bank refused",
		"team-a read delete-conversation conversation:x" + url.PathEscape(strings.Repeat("é", 255)) + " refused", // cut between characters
		"team-a operate retry-failed all begun", "team-a operate retry-failed all refused",
		"team-a write delete-conversation conversation:bank begun", "team-a write delete-conversation conversation:bank done",
		"team-a operate alias-project " + aliased + " begun", "team-a operate alias-project " + aliased + " done",
		"team-a admin erase conversation:shop dry_run begun", "team-a admin erase conversation:shop dry_run done",
		"team-a admin erase begun", "team-a admin erase failed",
	}
	var list []string
	require.Eventually(t, func() bool { list, _ = g.entries(operatorA, ""); return len(list) == len(wanted) }, mnemetest.Patience, 20*time.Millisecond, "reads are stored a moment later")
	require.ElementsMatch(t, wanted, list)
	list, _ = g.entries(operatorB, "")
	require.Empty(t, list, "another tenant's")
	g.do(http.StatusForbidden, http.MethodGet, "/v1/audit?tenant=team-a", bearer(operatorB), nil, nil)
	g.do(http.StatusForbidden, http.MethodGet, "/v1/audit", bearer(writer), nil, nil)
	list, raw := g.entries(admin, "")
	require.Subset(t, list, append(wanted, "admin rebuild projection:nothing begun", "admin rebuild projection:nothing failed"))
	require.NotContains(t, raw, "canary")
	require.NotContains(t, raw, admin)
	list, _ = g.entries(admin, "subject=token:"+readerHash.ID()+"&action=search")
	require.Equal(t, wanted[:1], list)
	list, _ = g.entries(admin, "project="+url.QueryEscape("old"))
	require.Len(t, list, 2)
	list, _ = g.entries(admin, "since=2100-01-01T00:00:00Z")
	require.Empty(t, list)
	_, raw = g.entries(admin, "subject=token:"+hash.ID())
	var page struct{ Entries []httpapi.AuditEntry }
	require.NoError(t, json.Unmarshal([]byte(raw), &page))
	erased := slices.DeleteFunc(page.Entries, func(e httpapi.AuditEntry) bool { return e.Action != "erase" })
	require.Equal(t, erased[0].Request, erased[1].Request, "the entries of a request share an id")
	require.NotEqual(t, erased[1].Request, erased[2].Request)
	require.Equal(t, []int{0, 200, 0, 422}, []int{erased[0].Status, erased[1].Status, erased[2].Status, erased[3].Status})
}

func TestCallsOfToolsThatReadAcrossConversationsAreInTheAuditLog(t *testing.T) {
	b := setup(t)
	for _, call := range []string{`{"name":"memory_search","arguments":{"project":"*"}}`, `{"name":"memory_read","arguments":{"ref":"c#turn=1"}}`} {
		message := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%s}`, call)
		b.do(http.StatusOK, http.MethodPost, "/mcp?tenant=t", map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}, []byte(message), nil)
	}
	b.get("/v1/conversations?tenant=u", nil)
	var list []string
	require.Eventually(t, func() bool { list, _ = b.entries("", ""); return len(list) == 2 }, mnemetest.Patience, 20*time.Millisecond)
	require.Equal(t, []string{"t memory_search done", "u list-conversations done"}, list)
}

func TestNothingIsChangedWhileTheAuditLogTakesNoEntry(t *testing.T) {
	b := setup(t)
	b.create(`{"id":"c"}`)
	js, err := jetstream.New(b.Log.Conn())
	require.NoError(t, err)
	require.NoError(t, js.DeleteStream(mnemetest.Context(t), natsdeploy.AuditStream))
	_, err = js.CreateStream(mnemetest.Context(t), jetstream.StreamConfig{Name: natsdeploy.AuditStream, Subjects: []string{"something.else"}})
	require.NoError(t, err)
	response, raw := b.send(http.MethodDelete, "/v1/conversations/c", nil, nil)
	require.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
	require.NotEmpty(t, response.Header.Get("Retry-After"))
	require.Contains(t, string(raw), "nothing was changed: the audit log takes no entry now")
	b.get("/v1/conversations", nil)
	require.NoError(t, js.DeleteStream(mnemetest.Context(t), natsdeploy.AuditStream))
	require.Equal(t, "c", b.show("c", b.head()).ID, "it was not deleted")
	b.do(http.StatusOK, http.MethodDelete, "/v1/conversations/c", nil, nil, nil)
}

func TestAnErasureThatARetentionDemandsIsInTheAuditLog(t *testing.T) {
	t.Parallel()
	config := instance.Config{Data: t.TempDir(), Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler), MaxBytes: 256 << 20}
	i, err := instance.Start(t.Context(), config)
	require.NoError(t, err)
	b := &bundle{t, i}
	event := `{"specversion":"1.0","type":"dev.mneme.conversation.started.v1","source":"test","id":"s","subject":"c1","time":"2020-01-01T00:00:00Z","data":{"title":"old"}}`
	var ack struct{ Seq uint64 }
	b.do(http.StatusCreated, http.MethodPost, "/v1/events", map[string]string{"Content-Type": "application/cloudevents+json"}, []byte(event), &ack)
	b.get(fmt.Sprintf("/v1/conversations/c1?at_least=%d", ack.Seq), nil)
	require.NoError(t, i.Close())

	config.Erasing = settings.Erasing{Retention: "default=30d"}
	i, err = instance.Start(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, i.Close()) })
	b = &bundle{t, i}
	var raw string
	require.Eventually(t, func() bool {
		var list []string
		list, raw = b.entries("", "action=erase")
		return len(list) == 2
	}, mnemetest.Patience, 20*time.Millisecond)
	var page struct{ Entries []httpapi.AuditEntry }
	require.NoError(t, json.Unmarshal([]byte(raw), &page))
	for n, outcome := range []string{"begun", "done"} {
		e := page.Entries[n]
		require.Equal(t, []string{"default", "server", outcome, ""}, []string{e.Tenant, e.Via, e.Outcome, e.Subject})
		require.Regexp(t, `^before:20\d\d-`, e.Target)
	}
}

// Whatever was asked about a tenant's conversations, no file holds a word of them after an erasure, and the audit log still
// says who erased them.
func TestTheAuditLogKeepsAnErasureAndNothingOfWhatWasErased(t *testing.T) {
	t.Parallel()
	data, canary, path := t.TempDir(), "unmistakablecanary", "/home/unmistakablecanary/project"
	i, err := instance.Start(t.Context(), instance.Config{
		Data: data, Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler), Access: settings.Access{}, MaxBytes: 256 << 20,
	})
	require.NoError(t, err)
	closed := false
	t.Cleanup(func() {
		if !closed {
			_ = i.Close()
		}
	})
	b := &bundle{t, i}
	event := fmt.Sprintf(`{"specversion":"1.0","type":"dev.mneme.conversation.started.v1","source":"test","id":"s","subject":"c1","data":{"title":%q,"project":%q}}`, canary, path)
	var ack struct{ Seq uint64 }
	b.do(http.StatusCreated, http.MethodPost, "/v1/events", map[string]string{"Content-Type": "application/cloudevents+json"}, []byte(event), &ack)
	b.get(fmt.Sprintf("/v1/conversations/c1?at_least=%d", ack.Seq), nil)
	project := "/v1/projects/" + url.PathEscape(path)
	b.get(project+fmt.Sprintf("/context?at_least=%d", ack.Seq), nil)
	b.get("/v1/search?query="+canary+"&project="+url.QueryEscape(path), nil)
	b.get("/v1/code/conversations?file="+canary, nil)
	b.send(http.MethodPut, project+"/alias", map[string]string{"Content-Type": "application/json"}, []byte(`{"into":"`+path+`/other"}`))
	b.do(http.StatusAccepted, http.MethodPost, "/v1/erasures", map[string]string{"Content-Type": "application/json"}, []byte(`{"tenant":"default","all":true}`), nil)
	require.Eventually(t, func() bool {
		var state httpapi.Erasure
		b.get("/v1/erasure", &state)
		return state.State == string(erasure.Done)
	}, mnemetest.Patience, 50*time.Millisecond)
	var list []string
	require.Eventually(t, func() bool { list, _ = b.entries("", ""); return len(list) >= 7 }, mnemetest.Patience, 20*time.Millisecond)
	require.Subset(t, list, []string{"default erase all begun", "default erase all done", "default search " + audit.Project(path) + " done"})
	require.NoError(t, i.Close())
	closed = true
	_, err = os.Stat(filepath.Join(data, "nats"))
	require.NoError(t, err)
	found, err := erasure.Search(t.Context(), []string{data}, []string{canary})
	require.NoError(t, err)
	require.Empty(t, found.Hits)
	require.Positive(t, found.Bytes)
}
