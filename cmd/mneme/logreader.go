package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/program"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/window/projects"
)

// logFlags say how a command reads the log.
type logFlags struct {
	AllTenants bool   `help:"Read the events of all tenants, not only of --tenant; over NATS."`
	Over       string `help:"How the log is read: nats, from --nats-url; http, from --url; auto is http if a token or --url is given and no NATS server is named, by flag or variable, and otherwise nats." enum:"auto,http,nats" default:"auto"`
}

// logReader is an [eventlog.Log], or a server that has one.
type logReader interface {
	Tail(ctx context.Context, filter eventlog.Filter, o eventlog.TailOptions, yield func(eventlog.Message) error) error
}

// reader opens the log. tenant is the one to read, "" for all of them, or for the one that the server knows by the token.
func (f *logFlags) reader(ctx context.Context, g *Globals) (log logReader, tenant string, done func(), err error) {
	if f.Over == "http" || f.Over == "auto" && g.namesOnlyHTTP() && !f.AllTenants {
		if f.AllTenants {
			return nil, "", nil, usageError("--all-tenants goes to NATS: a server answers for one tenant over HTTP")
		}
		api, err := g.client()
		return remoteReader{api}, "", func() {}, err
	}
	if err := g.given.check(&g.Client); err != nil {
		return nil, "", nil, err
	}
	if !f.AllTenants {
		if tenant, err = g.publishingTenant(); err != nil {
			return nil, "", nil, err
		}
	}
	direct, err := g.openLog(ctx)
	if err != nil {
		return nil, "", nil, err
	}
	return direct, tenant, direct.Conn().Close, nil
}

// namedWithin is how long a server may take to say what a short name means.
const namedWithin = 3 * time.Second

// named returns the id of the conversation that a name means: an id, the short form that contexts show, or the agent's own
// id of a session. The log knows only ids, so the server at --url is asked what any other name means. If it does not
// answer, the name is taken for an id.
func (f *logFlags) named(ctx context.Context, g *Globals, log logReader, tenant, name string) (string, error) {
	direct, ok := log.(*eventlog.Log)
	if !ok || f.AllTenants || !(projects.IsShort(name) || projects.IsSession(name)) {
		return name, nil // over HTTP the server knows short names
	}
	if seq, _, err := direct.Last(ctx, tenant, name); err != nil || seq > 0 {
		return name, err
	}
	api, err := g.client()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, namedWithin)
	defer cancel()
	var found httpapi.Conversation
	err = api.get(ctx, conversation(name), parameters{"tenant": tenant}, &found)
	var answered *answeredError
	if errors.As(err, new(*program.UsageError)) || errors.As(err, &answered) && answered.status == http.StatusUnprocessableEntity {
		return "", err // it means several
	}
	return cmp.Or(found.ID, name), nil
}

// remoteReader reads the log of a server by its API, which leaves out the events of deleted conversations.
type remoteReader struct{ api *client }

// streamRetry is how long a reader waits before it asks a server again that broke a stream off.
const streamRetry = 500 * time.Millisecond

// Tail implements [logReader]. The client decides on the tenant.
func (r remoteReader) Tail(ctx context.Context, filter eventlog.Filter, o eventlog.TailOptions, yield func(eventlog.Message) error) error {
	query := parameters{"conversation": filter.Conversation, "kind": filter.Kinds, "until_end": o.ToEnd}
	switch {
	case o.From > 0:
		query["from"] = o.From
	case o.Last > 0:
		query["last"] = o.Last
	default: // fixed now: what comes while the connection is broken counts
		status, err := r.api.status(ctx)
		if err != nil {
			return err
		}
		query["from"] = status.Stream.Head + 1
	}
	reached, told := false, "" // whether the server has answered, and which trouble was told since it did
	for {
		done, err := r.read(ctx, query, func() { reached, told = true, "" }, func(m eventlog.Message) error {
			query = query.with(parameters{"from": m.Seq + 1, "last": nil})
			return yield(m)
		})
		switch away := errors.As(err, new(*awayError)); {
		case done || ctx.Err() != nil:
			return err
		case err != nil && (!away || !reached): // without an answer it may be the wrong server
			return err
		case err != nil && o.Trouble != nil && told != err.Error():
			told = err.Error()
			o.Trouble(err)
		}
		select {
		case <-time.After(streamRetry):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// read reads one stream, after it called began. done reports that nothing is left to read, or that yield returned an error.
func (r remoteReader) read(ctx context.Context, query parameters, began func(), yield func(eventlog.Message) error) (done bool, err error) {
	response, err := r.api.open(ctx, http.MethodGet, "/v1/stream", query, "", http.NoBody)
	if err != nil && refusedBatch(err).isUnknown("query.last", "query.until_end") {
		return false, errOlderServer
	}
	if err != nil && refusedBatch(err).isAbout("query.last") {
		err = fmt.Errorf("%w over HTTP; NATS has no such limit: name its server with --nats-url or MNEME_NATS_URL; --from begins at any sequence", err)
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = response.Body.Close() }()
	began()
	name, data := "", ""
	for lines := bufio.NewReader(response.Body); ; {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) { // the server stops, or the token is not valid any more
			return false, nil
		}
		if err != nil {
			return false, err
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch field {
		case "event":
			name = value
		case "data":
			data = value
		}
		if line != "\n" {
			continue
		}
		switch name {
		case "end":
			return true, nil
		case "event":
			m, there, err := r.message(ctx, []byte(data))
			if err != nil {
				return false, err
			}
			if there {
				if err := yield(m); err != nil {
					return true, err
				}
			}
		}
		name, data = "", ""
	}
}

// message returns an event of a stream as the log has it. The server leaves a large one to be asked for; it is not there
// any more if its conversation was deleted just now.
func (r remoteReader) message(ctx context.Context, data []byte) (m eventlog.Message, there bool, err error) {
	var sent httpapi.StreamedEvent
	if err := json.Unmarshal(data, &sent); err != nil {
		return m, false, fmt.Errorf("the stream of the server can't be read: does it run another version? (mneme version): %w", err)
	}
	m.Seq = sent.Seq
	if m.Subject, err = (events.Address{Tenant: sent.Tenant, Conversation: sent.Conversation, Kind: sent.Kind}).Subject(); err != nil {
		return m, false, err
	}
	if sent.Error != "" {
		return m, true, nil // [eventlog.Message.Decode] will say that it is no event
	}
	if sent.Event == nil {
		var answered *answeredError
		sent.Event, err = r.api.raw(ctx, http.MethodGet, fmt.Sprintf("/v1/events/%d", sent.Seq), nil, "", nil)
		if errors.As(err, &answered) && answered.status == http.StatusNotFound {
			return m, false, nil
		}
		if err != nil {
			return m, false, err
		}
	}
	e, err := events.DecodeStructured(sent.Event)
	if err != nil {
		return m, false, err
	}
	m.Header, m.Data = events.EncodeMessage(e)
	return m, true, nil
}
