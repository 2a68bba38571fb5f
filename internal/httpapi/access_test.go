package httpapi_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/instance"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/rebuild"
	"mneme.dev/mneme/internal/settings"
)

// guarded is a server that demands tokens, which are in a file.
type guarded struct {
	*bundle
	file *access.File
}

func setupGuarded(t *testing.T) *guarded {
	t.Helper()
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens.jsonl")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	i, err := instance.Start(t.Context(), instance.Config{
		Data: t.TempDir(), Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler), Access: settings.Access{TokensFile: path},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, i.Close()) })
	return &guarded{&bundle{t, i}, access.NewFile(path)}
}

// token makes a token and waits until the server accepts it.
func (g *guarded) token(rights access.Rights) (string, access.Hash) {
	g.t.Helper()
	token, record, err := access.Issue(rights, "", time.Now(), time.Hour)
	require.NoError(g.t, err)
	require.NoError(g.t, g.file.Add(g.t.Context(), record))
	g.eventually(token, func(status int) bool { return status != http.StatusUnauthorized })
	return token, record.Hash
}

// eventually waits until the server's answer to a token is as it should be.
func (g *guarded) eventually(token string, good func(status int) bool) {
	g.t.Helper()
	require.Eventually(g.t, func() bool {
		response, _ := g.send(http.MethodGet, "/v1/status?unknown=1", bearer(token), nil)
		return good(response.StatusCode)
	}, mnemetest.Patience, 20*time.Millisecond)
}

func bearer(token string) map[string]string {
	return map[string]string{"Authorization": "Bearer " + token}
}

func with(header map[string]string, name, value string) map[string]string {
	header[name] = value
	return header
}

// caller is one kind of sender in the crossing tests.
type caller struct {
	name  string
	token string
	access.Rights
}

// callers returns one sender for each role in each of two tenants, in one project of each,
// and in all tenants.
func (g *guarded) callers() []caller {
	var list []caller
	add := func(name string, r access.Rights) {
		token, record, err := access.Issue(r, name, time.Now(), time.Hour)
		require.NoError(g.t, err)
		require.NoError(g.t, g.file.Add(g.t.Context(), record))
		list = append(list, caller{name, token, r})
	}
	for _, role := range access.Roles() {
		for _, tenant := range []string{"team-a", "team-b"} {
			add(tenant+" "+role.String(), access.Rights{Tenant: tenant, Role: role})
		}
		add("all "+role.String(), access.Rights{AllTenants: true, Role: role})
	}
	for _, tenant := range []string{"team-a", "team-b"} {
		for _, project := range []string{"shop", "bank"} {
			add(tenant+" project "+project, access.Rights{Tenant: tenant, Role: access.Read, Project: project})
		}
	}
	last := list[len(list)-1].token
	g.eventually(last, func(status int) bool { return status != http.StatusUnauthorized })
	return list
}

// fill publishes a conversation of each project in each tenant, with a canary in every text.
func (g *guarded) fill() {
	operator, _ := g.token(access.Rights{AllTenants: true, Role: access.Admin})
	for _, tenant := range []string{"team-a", "team-b"} {
		for _, project := range []string{"shop", "bank"} {
			canary := fmt.Sprintf("canary-%s-%s", tenant, project)
			body := fmt.Sprintf(`{"specversion":"1.0","type":"dev.mneme.conversation.started.v1","source":"test","id":"start","subject":%[1]q,"data":{"title":%[2]q,"project":%[3]q}}`, project, canary, project)
			g.do(http.StatusCreated, http.MethodPost, "/v1/events?tenant="+tenant, with(bearer(operator), "Content-Type", "application/cloudevents+json"), []byte(body), nil)
			body = fmt.Sprintf(`{"specversion":"1.0","type":"dev.mneme.message.created.v1","source":"test","id":"m","subject":%q,"data":{"message_id":"m","role":"user","content":%q}}`, project, canary+" asks about apples")
			var answer struct{ Seq uint64 }
			g.do(http.StatusCreated, http.MethodPost, "/v1/events?tenant="+tenant, with(bearer(operator), "Content-Type", "application/cloudevents+json"), []byte(body), &answer)
			g.do(http.StatusOK, http.MethodGet, fmt.Sprintf("/v1/conversations/%s?tenant=%s&at_least=%d", project, tenant, answer.Seq), bearer(operator), nil, nil)
		}
	}
}

// pathOf fills in the parameters of a route for a conversation and the project of its name.
func pathOf(route httpapi.Route, conversation string) string {
	return strings.NewReplacer("{id}", conversation, "{project}", conversation, "{seq}", "2", "{projection}", "graph", "{message_id}", "m", "{tool_call_id}", "t", "{summary_id}", "s").Replace(route.Path)
}

// namesATenant lists the routes whose query names a tenant.
func namesATenant(route httpapi.Route) bool {
	return access.Routes[route.ID].Scope != access.Across && !slices.Contains([]string{"show-access", "status", "show-failed", "retry-failed"}, route.ID)
}

func TestNothingBeyondTheTableIsAllowed(t *testing.T) {
	g := setupGuarded(t)
	g.fill()
	callers := g.callers()
	asked, refused := 0, 0
	for _, route := range httpapi.Routes() {
		need, ok := access.Routes[route.ID]
		require.True(t, ok, "%s is not in the table", route.ID)
		for _, c := range append(callers, caller{name: "nobody"}, caller{name: "mistyped", token: access.NewToken()}) {
			for _, tenant := range []string{"", "team-a", "team-b", "TEAM-A", "team-c", "default"} {
				for _, conversation := range []string{"shop", "bank"} {
					if tenant != "" && !namesATenant(route) || conversation == "bank" && pathOf(route, "bank") == pathOf(route, "shop") {
						continue
					}
					// The unknown parameter stops every request that is allowed before it does anything.
					path := pathOf(route, conversation) + "?unknown=1"
					if tenant != "" {
						path += "&tenant=" + tenant
					}
					header := map[string]string{"Content-Type": "application/json"}
					if c.token != "" {
						header["Authorization"] = "Bearer " + c.token
					}
					response, body := g.send(route.Method, path, header, nil)
					asked++
					want := expected(need, c, tenant, conversation, route.Path)
					if want != http.StatusUnprocessableEntity {
						refused++
					}
					require.Equal(t, want, response.StatusCode, "%s: %s %s: %s", c.name, route.Method, path, body)
				}
			}
		}
	}
	t.Logf("%d requests, %d refused", asked, refused)
	require.Greater(t, asked, 5000)
}

// expected computes, independently of the product's code, how a request must be answered.
func expected(need access.Need, c caller, tenant, conversation, path string) int {
	power := map[access.Role]int{access.Read: 1, access.Write: 2, access.Operate: 3, access.Admin: 4}
	switch {
	case c.Role == 0:
		return http.StatusUnauthorized
	case power[c.Role] < power[need.Role], need.Scope == access.Across && !c.AllTenants, c.Project != "" && need.Scope != access.InProject:
		return http.StatusForbidden
	case !c.AllTenants && tenant != "" && tenant != c.Tenant:
		return http.StatusForbidden
	case c.Project != "" && strings.Contains(path, "{project}") && conversation != c.Project:
		return http.StatusForbidden
	case c.Project != "" && strings.Contains(path, "{id}") && conversation != c.Project:
		return http.StatusNotFound
	}
	return http.StatusUnprocessableEntity
}

func TestNoAnswerHoldsAnythingOfAnotherTenantOrProject(t *testing.T) {
	g := setupGuarded(t)
	g.fill()
	seen := map[string]int{}
	for _, c := range g.callers() {
		for _, route := range httpapi.Routes() {
			if route.Method != http.MethodGet {
				continue
			}
			for _, conversation := range []string{"shop", "bank"} {
				path := pathOf(route, conversation)
				switch route.ID {
				case "search", "search-conversation":
					path += "?query=apples"
				case "stream":
					path += "?from=1"
				case "conversations-about-code":
					path += "?name=apples"
				}
				for seq := range 8 { // of all tenants
					if strings.Contains(route.Path, "{seq}") {
						path = strings.ReplaceAll(route.Path, "{seq}", fmt.Sprint(seq+1))
					} else if seq > 0 {
						break
					}
					_, body := g.send(http.MethodGet, path, bearer(c.token), nil)
					for _, tenant := range []string{"team-a", "team-b"} {
						for _, project := range []string{"shop", "bank"} {
							canary := fmt.Sprintf("canary-%s-%s", tenant, project)
							if !bytes.Contains(body, []byte(canary)) {
								continue
							}
							seen[c.name]++
							require.True(t, c.AllTenants || c.Tenant == tenant && (c.Project == "" || c.Project == project), "%s: GET %s shows %s", c.name, path, canary)
						}
					}
				}
			}
		}
	}
	for _, c := range g.callers()[:12] {
		if !c.AllTenants { // without a tenant, these read the tenant default
			require.Positive(t, seen[c.name], "%s sees nothing at all", c.name)
		}
	}
	require.Positive(t, seen["team-a project shop"])
}

func TestATokenOfAProjectSearchesThatProjectAlone(t *testing.T) {
	g := setupGuarded(t)
	of := func(project string) string {
		token, record, err := access.Issue(access.Rights{Tenant: "team-a", Role: access.Read, Project: project}, "", time.Now(), time.Hour)
		require.NoError(t, err)
		require.NoError(t, g.file.Add(t.Context(), record))
		return token
	}
	shop, nothing := of("shop"), of("a project without conversations")
	g.fill() // waits for a token that comes after these
	found := func(token, parameters string) []string {
		t.Helper()
		var answer struct{ Conversations []httpapi.FoundConversation }
		g.do(http.StatusOK, http.MethodGet, "/v1/search?"+parameters, bearer(token), nil, &answer)
		ids := []string{}
		for _, c := range answer.Conversations {
			ids = append(ids, c.ID)
		}
		return ids
	}
	for _, parameters := range []string{"query=apples", "query=apples&project=shop", "query=apples&kind=all", "role=user"} {
		require.Equal(t, []string{"shop"}, found(shop, parameters), parameters)
		require.Empty(t, found(nothing, strings.ReplaceAll(parameters, "&project=shop", "")), parameters)
	}
	require.Empty(t, found(shop, "query=canary-team-a-bank&kind=tool"))
	var p problem
	g.do(http.StatusForbidden, http.MethodGet, "/v1/search?query=apples&project=bank", bearer(shop), nil, &p)
	require.Equal(t, "query.project", p.Errors[0].Location)
}

func TestOnlyThePublicPathsNeedNoToken(t *testing.T) {
	g := setupGuarded(t)
	for path := range access.Open {
		if strings.HasSuffix(path, "*") {
			continue
		}
		response, _ := g.send(http.MethodGet, path, nil, nil)
		require.NotEqual(t, http.StatusUnauthorized, response.StatusCode, path)
	}
	for _, path := range []string{"/nothing", "/page", "/v1", "/v1/status", "/v1/nothing", "/page/../v1/status", "/docs/../v1/status", "/docs/%2e%2e/v1/status", "//v1/status", "/healthz/", "/HEALTHZ", "/schemas/../v1/status"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.HTTPURL(), nil)
		require.NoError(t, err)
		request.URL.Opaque = path
		response, err := http.DefaultTransport.RoundTrip(request)
		require.NoError(t, err)
		_ = response.Body.Close()
		require.Contains(t, []int{http.StatusUnauthorized, http.StatusNotFound, http.StatusMisdirectedRequest}, response.StatusCode, path)
	}
}

func TestTheTableNamesNoRouteThatDoesNotExist(t *testing.T) {
	routes := map[string]bool{}
	for _, r := range httpapi.Routes() {
		routes[r.ID] = true
	}
	for id := range access.Routes {
		require.True(t, routes[id], id)
	}
}

// An alert tells of answers with 5xx.
func TestGuessedTokensDoNotLookLikeAFailureOfTheServer(t *testing.T) {
	t.Parallel()
	i, err := instance.Start(t.Context(), instance.Config{
		Data: t.TempDir(), Listen: "127.0.0.1:0", NATSListen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler), Access: settings.Access{Tokens: true},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, i.Close()) })
	b := &bundle{t, i}
	statuses := make(chan int, 100)
	var all sync.WaitGroup
	for range cap(statuses) {
		all.Go(func() {
			response, _ := b.send(http.MethodGet, "/v1/status", bearer(access.NewToken()), nil)
			if statuses <- response.StatusCode; response.StatusCode == http.StatusTooManyRequests {
				assert.NotEmpty(t, response.Header.Get("Retry-After"))
			}
		})
	}
	all.Wait()
	close(statuses)
	count := map[int]int{}
	for status := range statuses {
		count[status]++
	}
	require.Len(t, count, 2, "%v", count)
	require.NotZero(t, count[http.StatusUnauthorized], "%v", count)
	require.NotZero(t, count[http.StatusTooManyRequests], "%v", count)
}

func TestARefusalSaysWhatIsMissing(t *testing.T) {
	g := setupGuarded(t)
	var p problem
	g.do(http.StatusUnauthorized, http.MethodGet, "/v1/status", nil, nil, &p)
	require.Contains(t, p.Detail, "mneme tokens create")
	response, _ := g.send(http.MethodGet, "/v1/status", bearer(access.NewToken()), nil)
	require.Equal(t, `Bearer realm="mneme", error="invalid_token"`, response.Header.Get("WWW-Authenticate"))

	writer, _ := g.token(access.Rights{Tenant: "team-a", Role: access.Write})
	g.do(http.StatusForbidden, http.MethodGet, "/v1/failed", bearer(writer), nil, &p)
	require.Equal(t, "this needs the role operate, and the token has write", p.Detail)
	g.do(http.StatusForbidden, http.MethodGet, "/v1/conversations?tenant=team-b", bearer(writer), nil, &p)
	require.Equal(t, "query.tenant", p.Errors[0].Location)
	operator, _ := g.token(access.Rights{Tenant: "team-a", Role: access.Operate})
	g.do(http.StatusForbidden, http.MethodPost, "/v1/verify", bearer(operator), nil, &p)
	require.Contains(t, p.Detail, "all tenants")
	g.do(http.StatusForbidden, http.MethodPost, "/v1/retries", bearer(operator), []byte(`{"all":true,"tenant":"team-b"}`), &p)
	require.Equal(t, "body.tenant", p.Errors[0].Location)
	everywhere, _ := g.token(access.Rights{AllTenants: true, Role: access.Operate})
	g.do(http.StatusForbidden, http.MethodPost, "/v1/rebuilds", with(bearer(everywhere), "Content-Type", "application/json"), []byte(`{"projection":"graph","force":true}`), &p)
	require.Equal(t, "body.force", p.Errors[0].Location)
}

func TestAFailedEventOfAnotherTenantIsNotShown(t *testing.T) {
	g := setupGuarded(t)
	admin, _ := g.token(access.Rights{AllTenants: true, Role: access.Admin})
	a, _ := g.token(access.Rights{Tenant: "team-a", Role: access.Operate})
	conn := g.Log.Conn()
	require.NoError(t, conn.Publish("mneme.team-b.c.message_created", []byte("canary, no event")))
	require.NoError(t, conn.Flush())
	var failed struct{ Failed []httpapi.FailedEvent }
	require.Eventually(t, func() bool {
		g.do(http.StatusOK, http.MethodGet, "/v1/failed", bearer(admin), nil, &failed)
		return len(failed.Failed) > 0
	}, mnemetest.Patience, 10*time.Millisecond)
	path := fmt.Sprintf("/v1/failed/%d", failed.Failed[0].Seq)
	g.do(http.StatusOK, http.MethodGet, path, bearer(admin), nil, nil)
	g.do(http.StatusNotFound, http.MethodGet, path, bearer(a), nil, nil)
	g.do(http.StatusForbidden, http.MethodGet, "/v1/failed?tenant=", bearer(a), nil, nil)
	g.do(http.StatusNotFound, http.MethodPost, "/v1/retries", with(bearer(a), "Content-Type", "application/json"), fmt.Appendf(nil, `{"seq":%d}`, failed.Failed[0].Seq), nil)
	g.do(http.StatusOK, http.MethodGet, "/v1/failed", bearer(a), nil, &failed)
	require.Empty(t, failed.Failed)
}

func TestARevokedTokenEndsAnUploadInProgress(t *testing.T) {
	g := setupGuarded(t)
	token, hash := g.token(access.Rights{Tenant: "team-a", Role: access.Write})
	base, err := url.Parse(g.HTTPURL())
	require.NoError(t, err)
	conn, err := net.Dial("tcp", base.Host)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = fmt.Fprintf(conn, "POST /v1/import HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/x-ndjson\r\nContent-Length: 1000000\r\n\r\n{", token)
	require.NoError(t, err)
	require.NoError(t, g.file.Remove(t.Context(), hash))
	began := time.Now()
	require.NoError(t, conn.SetDeadline(began.Add(28*time.Second)))
	_, err = io.ReadAll(conn)
	require.Less(t, time.Since(began), 25*time.Second, "the upload may otherwise stay silent for 30 s: %v", err)
	g.eventually(token, func(status int) bool { return status == http.StatusUnauthorized })
}

// revokedWithin lists rebuilds while the token of the request is revoked.
type revokedWithin struct {
	httpapi.Rebuilds
	revoke func()
}

func (r revokedWithin) List(ctx context.Context) ([]rebuild.Progress, error) {
	r.revoke()
	<-ctx.Done()
	time.Sleep(50 * time.Millisecond) // the answer is cut off a moment after the context has ended
	return nil, nil
}

// Whoever gets 200 takes what follows for the whole answer, and Markdown, or a list of lines, does not show that its end is missing.
func TestAnAnswerThatARevokedTokenCutsOffDoesNotLookComplete(t *testing.T) {
	file := access.NewFile(filepath.Join(t.TempDir(), "tokens.jsonl"))
	token, record, err := access.Issue(access.Rights{AllTenants: true, Role: access.Operate}, "", time.Now(), time.Hour)
	require.NoError(t, err)
	require.NoError(t, file.Add(t.Context(), record))
	tokens := access.NewTokens(time.Now)
	require.NoError(t, file.Load(tokens))
	f := setupFront(t, func(c *httpapi.Config) {
		c.Gate = &access.Gate{Tokens: tokens}
		c.Rebuilds = revokedWithin{revoke: func() {
			assert.NoError(t, file.Remove(t.Context(), record.Hash))
			assert.NoError(t, file.Load(tokens))
		}}
	})
	conn := dial(t, f.HTTPURL(), fmt.Sprintf("GET /v1/rebuilds HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer %s\r\n\r\n", token))
	got, err := io.ReadAll(conn)
	require.NoError(t, err)
	if len(got) > 0 { // then it was sent before it could be cut off
		require.Contains(t, string(got), `"rebuilds":`, "%s", got)
	}
}

func TestWithoutTokensAServerOnLoopbackAsksForNone(t *testing.T) {
	b := setup(t)
	b.get("/v1/status", nil)
	response, _ := b.send(http.MethodGet, "/v1/status", bearer("whatever"), nil)
	require.Equal(t, http.StatusOK, response.StatusCode)
}
