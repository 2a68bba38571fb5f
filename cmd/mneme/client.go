package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"mneme/internal/service"
	"mneme/internal/telemetry"
)

// client speaks to the HTTP API.
type client struct{ base, tenant string }

func (g *Globals) client() (*client, error) {
	u, err := url.Parse(g.URL)
	if err != nil || u.Host == "" {
		return nil, &service.UsageError{Err: fmt.Errorf("--url or MNEME_URL %q: not a URL such as http://127.0.0.1:8420", g.URL)}
	}
	return &client{base: strings.TrimRight(g.URL, "/"), tenant: g.Tenant}, nil
}

// conversation is the path of a conversation, or of something below it.
func conversation(id, below string) string {
	escaped := url.PathEscape(id)
	if id == "." || id == ".." { // in a path they would mean folders
		escaped = strings.ReplaceAll(id, ".", "%2E")
	}
	return "/v1/conversations/" + escaped + below
}

// get reads a JSON answer. Parameters that are unset are left out: "", false, and a
// sequence of 0.
func (c *client) get(ctx context.Context, path string, parameters map[string]any, answer any) error {
	body, err := c.raw(ctx, http.MethodGet, path, parameters, "", nil)
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

func (c *client) raw(ctx context.Context, method, path string, parameters map[string]any, contentType string, body []byte) ([]byte, error) {
	query := url.Values{}
	for name, value := range parameters {
		if value != "" && value != false && value != uint64(0) {
			query.Set(name, fmt.Sprint(value))
		}
	}
	if strings.HasPrefix(path, "/v1/conversations") || strings.HasPrefix(path, "/v1/events") {
		query.Set("tenant", c.tenant)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base+path+"?"+query.Encode(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	telemetry.Inject(ctx, request.Header)
	response, err := http.DefaultClient.Do(request)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("nobody answers at %s: start mneme with `mneme up`, or name the server with --url", c.base)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= 300 {
		return nil, problem(response.StatusCode, answer)
	}
	return answer, nil
}

// problem is an error answer as one message, with the places that it names. It is
// wrong usage if all of them are parameters: those come from flags.
func problem(status int, body []byte) error {
	var p struct {
		Title  string
		Detail string
		Errors []struct{ Message, Location string }
	}
	if json.Unmarshal(body, &p) != nil || p.Title == "" {
		return fmt.Errorf("the server answered %d: %s", status, cut(oneLine(string(body)), 300))
	}
	text := p.Detail
	if text == "" {
		text = p.Title
	}
	usage := status == http.StatusUnprocessableEntity && len(p.Errors) > 0
	for _, e := range p.Errors {
		usage = usage && strings.HasPrefix(e.Location, "query.")
		if line := e.Location + ": " + e.Message; !strings.Contains(text, e.Message) {
			text += "\n  " + line
		}
	}
	if usage {
		return &service.UsageError{Err: errors.New(text)}
	}
	return errors.New(text)
}
