package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/pkg/eventlog"
)

// remoteLog publishes to the log of a server by its API. The client decides on the tenant.
type remoteLog struct {
	api     *client
	created time.Time
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
	return &remoteLog{api, status.Stream.Created}, nil
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
	if errors.Is(err, eventlog.ErrOtherContent) {
		known, unknown := l.api.lookup(ctx, []events.Event{e})
		if unknown != nil {
			return eventlog.Ack{}, unknown
		}
		return eventlog.Ack{}, &eventlog.OtherContentError{ID: e.ID, Seq: known[0].Seq}
	}
	if err != nil {
		return eventlog.Ack{}, err
	}
	return acks[0], nil
}

// PublishAll implements [importer.Log]. The server may have stored the first events of a list that it
// refuses; published again, they are duplicates.
func (l *remoteLog) PublishAll(ctx context.Context, _ string, list []events.Event) ([]eventlog.Ack, error) {
	if len(list) == 0 {
		return nil, nil
	}
	batch := make([]json.RawMessage, len(list))
	for i, e := range list {
		raw, err := events.EncodeStructured(e)
		if err != nil {
			return nil, err
		}
		batch[i] = raw
	}
	body, err := json.Marshal(batch)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Events []struct {
			Seq       uint64 `json:"seq"`
			Duplicate bool   `json:"duplicate"`
		} `json:"events"`
	}
	if err := l.api.post(ctx, "/v1/events", events.ContentTypeBatch, body, &answer); err != nil {
		return nil, refusalOf(err)
	}
	if len(answer.Events) != len(list) {
		return nil, fmt.Errorf("published %d events, got %d answers", len(list), len(answer.Events))
	}
	acks := make([]eventlog.Ack, len(list))
	for i, e := range answer.Events {
		acks[i] = eventlog.Ack{Seq: e.Seq, Duplicate: e.Duplicate}
	}
	return acks, nil
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
		return fmt.Errorf("%w: %w", eventlog.ErrOtherContent, err)
	case http.StatusRequestEntityTooLarge:
		return fmt.Errorf("%w: %w", eventlog.ErrTooLarge, err)
	case http.StatusUnprocessableEntity:
		return fmt.Errorf("%w: %w", events.ErrInvalid, err)
	}
	return err
}
