package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/klauspost/compress/gzip"

	"mneme.dev/mneme/internal/console"
	"mneme.dev/mneme/internal/program"
	"mneme.dev/mneme/internal/settings"
)

// client is a client of the HTTP API.
type client struct {
	base, tenant string // an empty tenant leaves it to the server
	http         *http.Client
	patience     patience
	more         bool // whether the list that was read last goes on
}

func newClient(url, tenant string) *client {
	return &client{base: strings.TrimRight(url, "/"), tenant: tenant, http: http.DefaultClient, patience: usualPatience}
}

// defaultTenant is the tenant of a command that goes to NATS, or to a server that requires no token.
const defaultTenant = "default"

// publishingTenant returns the tenant for a command that goes to NATS, which does not know tokens.
func (g *Globals) publishingTenant() (string, error) {
	if g.Tenant == "" && g.hasToken() {
		return "", usageError("name the tenant with --tenant: this command goes to NATS, which can't tell it from the token")
	}
	return cmp.Or(g.Tenant, defaultTenant), nil
}

// namesNATS reports whether the user has named a NATS server, instead of the one of mneme up on this machine.
func (g *Globals) namesNATS() bool {
	return slices.ContainsFunc([]string{"MNEME_NATS_URL", "MNEME_NATS_URL_FILE", "MNEME_NATS_CREDS_FILE"}, func(variable string) bool {
		return g.given[variable] || os.Getenv(variable) != ""
	})
}

// withoutNATS reports whether the user seems to reach a server over HTTP alone, as those do who got a token for it.
func (g *Globals) withoutNATS() bool { return g.hasToken() && !g.namesNATS() }

// namesOnlyHTTP reports whether the user has named a server of the HTTP API, by its URL or by a token for it, and no NATS server.
func (g *Globals) namesOnlyHTTP() bool {
	return (g.hasToken() || g.given["MNEME_URL"] || os.Getenv("MNEME_URL") != "") && !g.namesNATS()
}

func (g *Globals) hasToken() bool { return g.Token.Token != "" || g.TokenFile != "" }

// ownTenant returns the tenant for requests that are about all tenants unless they name one. With a token it is the
// token's tenant.
func (g *Globals) ownTenant() string {
	if g.hasToken() {
		return g.Tenant
	}
	return cmp.Or(g.Tenant, defaultTenant)
}

// client returns the client for the server that the user names. A command that takes one as a parameter gets it from kong.
func (g *Globals) client() (*client, error) {
	if err := g.given.check(&g.Client); err != nil {
		return nil, err
	}
	sender, err := program.HTTPClient(g.URL, g.Token)
	if err != nil {
		return nil, g.given.named(err)
	}
	c := newClient(g.URL, g.Tenant)
	c.http = sender
	return c, nil
}

// conversation returns the path of a conversation, or of something below it.
func conversation(id string, below ...string) string {
	return "/v1/conversations/" + segment(id) + strings.Join(below, "")
}

// segment returns an id as a path segment.
func segment(id string) string {
	if id == "." || id == ".." { // in a path these would mean folders
		return strings.ReplaceAll(id, ".", "%2E")
	}
	return url.PathEscape(id)
}

// parameters are the parameters of a query. Unset ones are left out: "", false, nil, and a
// sequence of 0. For a list the parameter is repeated.
type parameters map[string]any

// with joins parameters.
func (p parameters) with(more ...parameters) parameters {
	all := parameters{}
	for _, m := range append([]parameters{p}, more...) {
		maps.Copy(all, m)
	}
	return all
}

func (p parameters) values() url.Values {
	query := url.Values{}
	for name, value := range p {
		switch v := value.(type) {
		case []string:
			query[name] = v
		default:
			if v != "" && v != false && v != uint64(0) && v != nil {
				query.Set(name, fmt.Sprint(v))
			}
		}
	}
	return query
}

// get reads a JSON answer.
func (c *client) get(ctx context.Context, path string, query parameters, answer any) error {
	body, err := c.raw(ctx, http.MethodGet, path, query, "", nil)
	if err != nil {
		return err
	}
	return json.Unmarshal(body, answer)
}

// post sends a body and reads a JSON answer.
func (c *client) post(ctx context.Context, path, contentType string, body []byte, answer any) error {
	raw, err := c.raw(ctx, http.MethodPost, path, nil, contentType, body)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, answer)
}

// ask sends a question in JSON and reads a JSON answer.
func (c *client) ask(ctx context.Context, path string, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	return c.post(ctx, path, "application/json", body, answer)
}

// maxPage is the most rows that the API returns in one page.
const maxPage = 1000

// page reads the rows of a page, whose member has this name, and the cursor of the next page, "" if there is none.
func (c *client) page(ctx context.Context, path, member string, size int, cursor string, query parameters) (rows []json.RawMessage, next string, err error) {
	var page map[string]json.RawMessage
	if err := c.get(ctx, path, query.with(parameters{"limit": size, "cursor": cursor}), &page); err != nil {
		return nil, "", err
	}
	if err := json.Unmarshal(page[member], &rows); err != nil {
		return nil, "", fmt.Errorf("the server's answer has no list %q: does it run another version? (mneme version)", member)
	}
	if raw, more := page["next_cursor"]; more {
		err = json.Unmarshal(raw, &next)
	}
	return rows, next, err
}

// pages reads a list page by page, up to limit rows; 0 means all.
func (c *client) pages(ctx context.Context, path, member string, limit int, query parameters) ([]json.RawMessage, error) {
	if limit < 0 {
		return nil, usageError("--limit %d: must not be negative; 0 means all", limit)
	}
	list := []json.RawMessage{}
	for cursor := ""; ; {
		size := maxPage
		if limit > 0 {
			size = min(size, limit-len(list))
		}
		rows, next, err := c.page(ctx, path, member, size, cursor, query)
		if err != nil {
			return nil, err
		}
		list = append(list, rows...)
		if c.more = next != ""; !c.more || limit > 0 && len(list) >= limit {
			return list, nil
		}
		cursor = next
	}
}

// showOne prints a JSON answer: as it is with --json, else with print.
func showOne[T any](ctx context.Context, g *Globals, t *terminal, api *client, path string, query parameters, print func(*T) error) error {
	body, err := api.raw(ctx, http.MethodGet, path, query, "", nil)
	if err != nil {
		return err
	}
	if g.JSON {
		return t.rawJSON(body, false)
	}
	answer := new(T)
	if err := json.Unmarshal(body, answer); err != nil {
		return err
	}
	return print(answer)
}

// showList prints a list that is read with pages: its rows as they are with --json, else with print.
func showList[T any](ctx context.Context, g *Globals, t *terminal, api *client, path, member string, limit int, query parameters, print func([]T) error) error {
	rows, err := api.pages(ctx, path, member, limit, query)
	if err != nil {
		return err
	}
	if g.JSON {
		return t.json(rows)
	}
	list, err := decodeRows[T](rows)
	if err != nil {
		return err
	}
	return print(list)
}

// decodeRows decodes the rows of a list.
func decodeRows[T any](rows []json.RawMessage) ([]T, error) {
	list := make([]T, len(rows))
	for i, row := range rows {
		if err := json.Unmarshal(row, &list[i]); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (c *client) raw(ctx context.Context, method, path string, query parameters, contentType string, body []byte) ([]byte, error) {
	sent, err := packed(body)
	if err != nil {
		return nil, err
	}
	response, err := c.open(ctx, method, path, query, contentType, sent)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	return io.ReadAll(response.Body)
}

// minPacked is the size from which on a body is compressed: a smaller one takes few packets anyway.
const minPacked = 4 << 10

// packedBody is a body that was compressed with gzip.
type packedBody struct{ *bytes.Reader }

// packed returns a body as it is sent, a large one compressed: an import then sends about a quarter of the bytes.
func packed(body []byte) (io.Reader, error) {
	if len(body) < minPacked {
		return bytes.NewReader(body), nil
	}
	var small bytes.Buffer
	w, err := gzip.NewWriterLevel(&small, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return packedBody{bytes.NewReader(small.Bytes())}, nil
}

// isOfTenant reports whether a path takes a tenant, which every other path refuses. Where a request may be about all
// tenants, as with /v1/audit, the commands say which.
func isOfTenant(path string) bool {
	return slices.ContainsFunc([]string{
		"/v1/analyses", "/v1/code/", "/v1/conversations", "/v1/events", "/v1/import", "/v1/insights", "/v1/projects", "/v1/search", "/v1/stream",
	}, func(of string) bool { return strings.HasPrefix(path, of) })
}

var errEmptyID = usageError("an id or a name is empty: give one; perhaps a variable of the shell is not set")

// open sends a request and returns a successful answer, which the caller closes. If the
// server does not answer, or stops while the answer is read, the error is an [*awayError].
func (c *client) open(ctx context.Context, method, path string, query parameters, contentType string, body io.Reader) (response *http.Response, err error) {
	if strings.Contains(path+"/", "//") {
		return nil, errEmptyID
	}
	values := query.values()
	if c.tenant != "" && isOfTenant(path) {
		values.Set("tenant", c.tenant)
	}
	attention := c.attend(ctx)
	defer func() {
		if err != nil {
			attention.cancel(nil)
		}
	}()
	small, isPacked := body.(packedBody)
	if isPacked {
		body = small.Reader // of a type whose length net/http knows, and which it can send again
	}
	request, err := http.NewRequestWithContext(attention.ctx, method, c.base+path+"?"+values.Encode(), body)
	if err != nil {
		return nil, err
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	if isPacked {
		request.Header.Set("Content-Encoding", "gzip")
	}
	response, err = c.http.Do(request)
	attention.hear()
	if mute := attention.cause(err); mute != err {
		return nil, mute
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil, &awayError{fmt.Errorf("no answer from %s: start mneme with `mneme up`, or name the server with --url", settings.Redacted(c.base))}
	}
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" && ctx.Err() == nil {
		return nil, &awayError{fmt.Errorf("no answer from %s: %w; name the server with --url", settings.Redacted(c.base), dial.Err)}
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return nil, &awayError{fmt.Errorf("the certificate of %s is from an authority that is unknown here: name its PEM file with --ca-file", settings.Redacted(c.base))}
	}
	if err != nil && ctx.Err() == nil {
		var at *url.Error // it shows the URL, with a token that is the user
		if errors.As(err, &at) {
			err = at.Err
		}
		return nil, &awayError{fmt.Errorf("the server at %s did not answer like mneme's API: %s", settings.Redacted(c.base), console.Cut(console.OneLine(err.Error()), 200))}
	}
	if err != nil {
		return nil, err
	}
	watched := &attended{response.Body, attention}
	response.Body = watched
	isPage := strings.HasPrefix(response.Header.Get("Content-Type"), "text/html")
	if isPage && !isOfProxy(response.StatusCode) {
		_ = watched.Close()
		return nil, fmt.Errorf("%s does not serve mneme's API: it answered with a web page; name the server with --url", settings.Redacted(c.base))
	}
	if response.StatusCode < 300 {
		return response, nil
	}
	defer func() { _ = watched.Close() }()
	answer, err := io.ReadAll(io.LimitReader(watched, 1<<20))
	if err != nil {
		return nil, err
	}
	err = problem(response.StatusCode, answer, values)
	switch {
	case isPage:
		err = fmt.Errorf("a proxy before %s answered %d %s", settings.Redacted(c.base), response.StatusCode, http.StatusText(response.StatusCode))
	case response.StatusCode == clientGone:
		err = fmt.Errorf("%s cut this request off: its token may have been revoked, or has expired", settings.Redacted(c.base))
	case response.StatusCode == http.StatusUnauthorized:
		err = fmt.Errorf("%w; this command takes it from MNEME_TOKEN or --token-file", err)
	}
	seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
	err = &answeredError{response.StatusCode, time.Duration(seconds) * time.Second, answer, err}
	switch response.StatusCode {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout: // the first is a proxy's
		err = &awayError{err}
	}
	return nil, err
}

// clientGone is the status of a request whose end the server did not wait for. To a client that is still there, it says that
// its token is not valid any more.
const clientGone = 499

// isOfProxy reports whether a web page with this status is from a proxy before the server, which does not pass the request
// on: it is too large or one too many, or the server is down.
func isOfProxy(status int) bool {
	return status >= 500 || slices.Contains([]int{http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusTooManyRequests}, status)
}

// answeredError is a server's answer that is not a success.
type answeredError struct {
	status int           // of HTTP
	after  time.Duration // when to try again; 0 if the server does not say
	body   []byte
	error
}

func (e *answeredError) Unwrap() error { return e.error }

// awayError means that the server does not answer, or can't answer now.
type awayError struct{ error }

func (e *awayError) Unwrap() error { return e.error }
