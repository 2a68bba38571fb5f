package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/program"
	"mneme.dev/mneme/pkg/eventlog"
)

// maxPostBytes is how large a request with several events may be. Servers keep room for requests of this size while others
// send large ones, and a slow line transmits them within the minute that a server waits. Many proxies refuse larger ones.
const maxPostBytes = 1 << 20

// remoteLog publishes to the log of a server by its API. The client decides on the tenant. It is safe for concurrent use.
type remoteLog struct {
	api     *client
	created time.Time    // zero if it was not asked for
	limit   atomic.Int64 // of a request, if the server or a proxy before it takes less than maxPostBytes
}

// openRemoteLog asks the server which log it has.
func openRemoteLog(ctx context.Context, api *client) (*remoteLog, error) {
	status, err := api.status(ctx)
	if err != nil {
		return nil, err
	}
	if status.Stream.Created.IsZero() {
		return nil, errors.New("the server does not say when its log was made: update it to the version of this program (mneme version)")
	}
	return &remoteLog{api: api, created: status.Stream.Created}, nil
}

func (c *client) status(ctx context.Context) (s httpapi.Status, err error) {
	err = c.get(ctx, "/v1/status", nil, &s) // of all tenants
	return s, err
}

// Created implements [capture.Log].
func (l *remoteLog) Created() time.Time { return l.created }

// State implements [capture.Log]. Only the head is known.
func (l *remoteLog) State(ctx context.Context) (eventlog.State, error) {
	status, err := l.api.status(ctx)
	return eventlog.State{Head: status.Stream.Head}, err
}

// Publish implements [importer.Log].
func (l *remoteLog) Publish(ctx context.Context, tenant string, e events.Event) (eventlog.Ack, error) {
	acks, err := l.PublishAll(ctx, tenant, []events.Event{e})
	if err != nil {
		return eventlog.Ack{}, err
	}
	return acks[0], nil
}

// PublishAll implements [importer.Log], with several requests if necessary.
func (l *remoteLog) PublishAll(ctx context.Context, _ string, list []events.Event) ([]eventlog.Ack, error) {
	encoded := make([][]byte, len(list))
	for i, e := range list {
		raw, err := events.EncodeStructured(e)
		if err != nil {
			return nil, err
		}
		encoded[i] = raw
	}
	acks := make([]eventlog.Ack, 0, len(list))
	for len(acks) < len(list) {
		body, count := batchOf(encoded[len(acks):], int(cmp.Or(l.limit.Load(), maxPostBytes)))
		stored, err := l.post(ctx, body, count)
		var answered *answeredError
		if count > 1 && errors.As(err, &answered) && (answered.status == http.StatusRequestEntityTooLarge || answered.status == http.StatusRequestTimeout) {
			l.limit.Store(int64(len(body) / 2))
			continue
		}
		acks = append(acks, stored...)
		if err != nil {
			return acks, refusalOf(err)
		}
	}
	return acks, nil
}

// batchOf returns a JSON array of the first events that fit into a limit, at least one, and their number.
func batchOf(encoded [][]byte, limit int) (body []byte, count int) {
	size := len("[]")
	for count < len(encoded) && (count == 0 || size+len(encoded[count])+1 <= limit) {
		size += len(encoded[count]) + 1
		count++
	}
	body = append(make([]byte, 0, size), '[')
	body = append(body, bytes.Join(encoded[:count], []byte(","))...)
	return append(body, ']'), count
}

// publishedEvent is an event that the server has acknowledged.
type publishedEvent struct {
	ID        string `json:"id"`
	Seq       uint64 `json:"seq"`
	Duplicate bool   `json:"duplicate"`
}

// post publishes a batch of events as they are: what is not to be recorded was removed before. With an error, it returns
// the acks of the first events if the server says that it has stored those.
func (l *remoteLog) post(ctx context.Context, body []byte, count int) ([]eventlog.Ack, error) {
	raw, err := l.api.raw(ctx, http.MethodPost, "/v1/events", parameters{"as_is": true}, events.ContentTypeBatch, body)
	if err != nil {
		return refusedBatch(err).stored(), err
	}
	var answer struct{ Events []publishedEvent }
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil, err
	}
	if len(answer.Events) != count {
		return nil, fmt.Errorf("published %d events, got %d answers", count, len(answer.Events))
	}
	return acksOf(answer.Events), nil
}

func acksOf(list []publishedEvent) []eventlog.Ack {
	acks := make([]eventlog.Ack, len(list))
	for i, e := range list {
		acks[i] = eventlog.Ack{Seq: e.Seq, Duplicate: e.Duplicate}
	}
	return acks
}

// refused is what a server's answer says about a batch that it did not store completely.
type refused struct {
	Errors      []refusedPart
	ExistingSeq uint64 `json:"existing_seq"` // of the event that has the identity of the refused one
}

// refusedPart is a part of a request that was refused.
type refusedPart struct {
	Location, Message string
	Value             json.RawMessage
}

func refusedBatch(err error) (r refused) {
	if answered, ok := errors.AsType[*answeredError](err); ok {
		_ = json.Unmarshal(answered.body, &r) // otherwise it says nothing
	}
	return r
}

// stored returns the acks of the events that were stored before the refused one.
func (r refused) stored() []eventlog.Ack {
	for _, e := range r.Errors {
		var list []publishedEvent
		if e.Location == "body" && json.Unmarshal(e.Value, &list) == nil {
			return acksOf(list)
		}
	}
	return nil
}

// errOlderServer: the server does not know a parameter that is no flag of the user's.
var errOlderServer = errors.New("the server is of an older version than this program: update it (mneme version)")

// isAbout reports whether something in this place was refused.
func (r refused) isAbout(location string) bool {
	return slices.ContainsFunc(r.Errors, func(e refusedPart) bool { return e.Location == location })
}

// isUnknown reports whether the server does not know one of these parameters.
func (r refused) isUnknown(locations ...string) bool {
	return slices.ContainsFunc(r.Errors, func(e refusedPart) bool {
		return slices.Contains(locations, e.Location) && strings.HasPrefix(e.Message, "unknown query parameter")
	})
}

// other returns which event has the identity of the refused one.
func (r refused) other() *eventlog.OtherContentError {
	other := &eventlog.OtherContentError{Seq: r.ExistingSeq}
	for _, e := range r.Errors {
		if strings.HasSuffix(e.Location, ".id") && json.Unmarshal(e.Value, &other.ID) == nil {
			break
		}
	}
	return other
}

// refusalOf returns the error of an [eventlog.Log] for a server's answer that is about the events, and
// any other error as it is.
func refusalOf(err error) error {
	var answered *answeredError
	if !errors.As(err, &answered) {
		return err
	}
	switch answered.status {
	case http.StatusConflict:
		return refusedBatch(err).other()
	case http.StatusRequestEntityTooLarge:
		return fmt.Errorf("%w: %w", eventlog.ErrTooLarge, err)
	case http.StatusUnprocessableEntity:
		switch {
		case refusedBatch(err).isAbout("query.as_is"): // no flag of the user's
			return errOlderServer
		case errors.As(err, new(*program.UsageError)): // about another parameter, not about an event
			return err
		}
		return fmt.Errorf("%w: %w", events.ErrInvalid, err)
	}
	return err
}
