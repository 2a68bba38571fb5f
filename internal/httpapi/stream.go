package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
)

// Limits of streams. Each stream has its own consumer of the log, which slows down every publish a little.
const (
	maxStreams    = 32
	tenantStreams = 8

	maxSubscriptions    = 256 // see mcp.Config.Subscribe
	tenantSubscriptions = 64

	streamPing     = 15 * time.Second // without anything else to send
	statusEvery    = 2 * time.Second
	streamRetry    = 2 * time.Second // how long a client waits before it connects again
	maxStreamEvent = 64 << 10        // the data of an event that is sent whole
)

const contentTypeStream = "text/event-stream"

// Topics of a stream.
const (
	topicEvents = "events"
	topicStatus = "status"
)

// StreamedEvent is an event of the log as a stream sends it.
type StreamedEvent struct {
	Seq          uint64          `json:"seq"`
	Tenant       string          `json:"tenant"`
	Conversation string          `json:"conversation_id"`
	Kind         string          `json:"kind"`
	Bytes        int             `json:"bytes"`           // of its data
	Event        json.RawMessage `json:"event,omitempty"` // absent over 64 KiB and if it is not readable
	Error        string          `json:"error,omitempty"` // why it is not a readable event
}

type streamInput struct {
	TenantParam
	Topics       []string `query:"topics" enum:"events,status" default:"events" doc:"what to send: events of the log as they come, or the answer of GET /v1/status whenever it changes, checked every 2 seconds"`
	Conversation string   `query:"conversation" maxLength:"512" doc:"only events of this conversation; its id or short form"`
	Kind         []string `query:"kind,explode" maxItems:"16" doc:"only events of these kinds, such as message_created"`
	From         uint64   `query:"from" doc:"begin with this sequence; without it and without Last-Event-ID, with the next new event"`
	Last         int      `query:"last" minimum:"0" maximum:"10000" doc:"without from and Last-Event-ID, begin with this many of the newest events that are asked for"`
	UntilEnd     bool     `query:"until_end" doc:"end the stream at the current end of the log, with event: end"`
	LastEventID  string   `header:"Last-Event-ID" maxLength:"20" doc:"continue after this sequence; browsers send it when they connect again"`
}

func (a *api) registerStream(h huma.API) {
	op := operation("stream", http.MethodGet, "/v1/stream", "Follow the log and the status", "events", 422, 503)
	op.Description = "Server-sent events. `event: event` has an event of the log as soon as the log has acknowledged it, with its sequence as id: a client that connects again with `Last-Event-ID` misses none and gets none twice. " +
		"Events over 64 KiB come without their text, which GET /v1/events/{seq} has. `event: status` has the status, and no id. `event: end` comes last with `until_end`: a stream without it broke off. A comment comes every 15 seconds. " +
		"At most 8 streams per tenant are open at once, and 32 in all. A stream ends when the server stops, and when its token is revoked or expires."
	op.Responses = declareAnswer("The stream", contentTypeStream, &huma.Schema{Type: huma.TypeString})
	serve(a, h, op, a.stream)
}

func (a *api) stream(ctx context.Context, in *streamInput) (*huma.StreamResponse, error) {
	known := append([]string{"other"}, each(events.Types(), events.Kind)...)
	for _, kind := range in.Kind {
		if !slices.Contains(known, kind) {
			return nil, huma.Error422UnprocessableEntity("unknown kind of event", &huma.ErrorDetail{Location: "query.kind", Message: "is none of " + strings.Join(known, ", "), Value: kind})
		}
	}
	from := in.From
	if in.LastEventID != "" {
		last, err := strconv.ParseUint(in.LastEventID, 10, 63)
		if err != nil {
			return nil, huma.Error422UnprocessableEntity("Last-Event-ID is not a sequence", &huma.ErrorDetail{Location: "header.Last-Event-ID", Message: "is not a sequence", Value: in.LastEventID})
		}
		from = last + 1
	}
	state, err := a.Log.State(ctx)
	if err != nil {
		return nil, err
	}
	if from > state.Head+1 {
		return nil, huma.Error422UnprocessableEntity(fmt.Sprintf("the log ends at sequence %d", state.Head), &huma.ErrorDetail{Location: "query.from", Message: "is beyond the end of the log", Value: from})
	}
	if from == 0 && in.Last == 0 {
		from = state.Head + 1 // fixed now, so that nothing published from here on is missed
	}
	leave, ok := a.limits.streams.TryEnter(in.Tenant)
	if !ok {
		return nil, busy()
	}
	x := exchangeOf(ctx)
	x.ended = append(x.ended, leave)
	stopping := a.stopping(ctx)
	return &huma.StreamResponse{Body: func(h huma.Context) {
		ctx, s := beginStream(h)
		defer s.cancel()
		if h.Method() == http.MethodHead {
			return
		}
		var all sync.WaitGroup
		if slices.Contains(in.Topics, topicEvents) {
			all.Go(func() { a.sendEvents(ctx, s, in, from) })
		}
		if slices.Contains(in.Topics, topicStatus) {
			all.Go(func() { a.sendStatus(ctx, s) })
		}
		all.Go(func() { a.keepAlive(ctx, s, stopping) })
		all.Wait()
	}}, nil
}

// stopping returns a channel that closes when the server begins to stop, which would otherwise wait
// for streams.
func (a *api) stopping(ctx context.Context) <-chan struct{} {
	if server, ok := ctx.Value(http.ServerContextKey).(*http.Server); ok {
		a.watchStop.Do(func() { server.RegisterOnShutdown(func() { close(a.stopped) }) })
	}
	return a.stopped
}

// sender writes messages of a stream, one at a time. It ends the stream when the client is gone.
type sender struct {
	lock    sync.Mutex
	w       io.Writer
	control *http.ResponseController
	cancel  func()
}

// beginStream begins to answer with a stream, whose context ends with cancel.
func beginStream(h huma.Context) (context.Context, *sender) {
	h.SetHeader("Content-Type", contentTypeStream)
	h.SetHeader("X-Accel-Buffering", "no") // or nginx holds messages back until it has several kilobytes of them
	h.SetStatus(http.StatusOK)
	_, w := humago.Unwrap(h)
	ctx, cancel := context.WithCancel(h.Context())
	return ctx, &sender{w: w, control: http.NewResponseController(w), cancel: cancel}
}

func (s *sender) send(message []byte) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	_, err := s.w.Write(message)
	if err == nil {
		err = s.control.Flush()
	}
	if err != nil {
		s.cancel()
	}
	return err
}

// sendJSON sends a message with one line of JSON; id is 0 for none.
func (s *sender) sendJSON(name string, id uint64, value any) error {
	data, err := json.Marshal(value) // without line ends
	if err != nil {
		return err
	}
	var w bytes.Buffer
	if id > 0 {
		fmt.Fprintf(&w, "id: %d\n", id)
	}
	fmt.Fprintf(&w, "event: %s\ndata: %s\n\n", name, data)
	return s.send(w.Bytes())
}

// sendEvents sends the events that a request asks for, until the stream ends.
func (a *api) sendEvents(ctx context.Context, s *sender, in *streamInput, from uint64) {
	defer s.cancel()
	filter := eventlog.Filter{Tenant: in.Tenant, Conversation: in.Conversation, Kinds: in.Kind}
	err := a.Log.Tail(ctx, filter, eventlog.TailOptions{From: from, Last: in.Last, ToEnd: in.UntilEnd}, func(m eventlog.Message) error {
		shown, ok, err := a.streamed(ctx, in.Tenant, &m)
		if err != nil || !ok {
			return err
		}
		return s.sendJSON("event", m.Seq, shown)
	})
	if err == nil {
		err = s.sendJSON("end", 0, struct{}{})
	}
	if err != nil && ctx.Err() == nil {
		a.Logger.Warn("a stream ended early", "tenant", in.Tenant, "error", err)
	}
}

// streamed returns what a stream sends of a message; ok is false for events of other tenants and of
// deleted conversations.
func (a *api) streamed(ctx context.Context, tenant string, m *eventlog.Message) (shown StreamedEvent, ok bool, err error) {
	recorded, address, invalid := m.Decode()
	if address.Tenant != tenant {
		return shown, false, nil
	}
	shown = StreamedEvent{Seq: m.Seq, Tenant: tenant, Conversation: address.Conversation, Kind: address.Kind, Bytes: len(m.Data)}
	if address.Kind != events.Kind(events.TypeConversationDeleted) {
		deleted, err := a.deletedNow(ctx, events.ConversationID{Tenant: tenant, ID: address.Conversation})
		if err != nil || deleted {
			return shown, false, err
		}
	}
	switch {
	case invalid != nil:
		shown.Error = invalid.Error()
	case len(m.Data) <= maxStreamEvent:
		shown.Event, err = events.EncodeStructured(recorded.Event)
	}
	return shown, true, err
}

// own returns a context with read models of its own, because a stream or an analysis outlives many generations.
func (a *api) own(ctx context.Context) (context.Context, func()) {
	x := &exchange{huma: exchangeOf(ctx).huma, pins: a.views.Pin()}
	return context.WithValue(ctx, exchangeKey{}, x), x.end
}

func (a *api) deletedNow(ctx context.Context, id events.ConversationID) (bool, error) {
	ctx, end := a.own(ctx)
	defer end()
	deleted, err := a.deleted(ctx, id)
	if errors.Is(err, a.NotReady) { // nothing is applied yet, so nothing is deleted
		return false, nil
	}
	return deleted, err
}

// sendStatus sends the status now and whenever it changes, until the stream ends.
func (a *api) sendStatus(ctx context.Context, s *sender) {
	defer s.cancel()
	var last []byte
	ticker := time.NewTicker(statusEvery)
	defer ticker.Stop()
	for {
		status, err := a.statusNow(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil && !bytes.Equal(status, last) {
			last = status
			err = s.sendJSON("status", 0, json.RawMessage(status))
			if err != nil {
				return
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func (a *api) statusNow(ctx context.Context) ([]byte, error) {
	ctx, end := a.own(ctx)
	defer end()
	out, err := a.status(ctx, nil)
	if err != nil {
		return nil, a.problem(err)
	}
	return json.Marshal(out.Body)
}

// keepAlive begins the stream and shows that it lives. It ends the stream when the server stops.
func (a *api) keepAlive(ctx context.Context, s *sender, stopping <-chan struct{}) {
	defer s.cancel()
	ticker := time.NewTicker(streamPing)
	defer ticker.Stop()
	message := fmt.Appendf(nil, "retry: %d\n\n", streamRetry.Milliseconds())
	for {
		if s.send(message) != nil {
			return
		}
		message = []byte(": \n\n")
		select {
		case <-ticker.C:
		case <-stopping:
			return
		case <-ctx.Done():
			return
		}
	}
}
