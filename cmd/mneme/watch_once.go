package main

import (
	"context"
	"errors"
	"net/http"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/importer"
	"mneme.dev/mneme/pkg/eventlog"
)

// onceLog is the log of watch --once. If the server refuses the token, it sends the error to denied, which has room for
// one, and holds the receiver until it is closed: the receiver would try again for ever.
type onceLog struct {
	*remoteLog
	denied chan<- error
}

// Publish implements [importer.Log].
func (l onceLog) Publish(ctx context.Context, tenant string, e events.Event) (eventlog.Ack, error) {
	ack, err := l.remoteLog.Publish(ctx, tenant, e)
	return ack, l.held(ctx, err)
}

// PublishAll implements [importer.Log].
func (l onceLog) PublishAll(ctx context.Context, tenant string, list []events.Event) ([]eventlog.Ack, error) {
	acks, err := l.remoteLog.PublishAll(ctx, tenant, list)
	return acks, l.held(ctx, err)
}

func (l onceLog) lookup(ctx context.Context, list []events.Event) ([]importer.Known, error) {
	known, err := l.api.lookup(ctx, list)
	return known, l.held(ctx, err)
}

func (l onceLog) held(ctx context.Context, err error) error {
	var answered *answeredError
	if errors.As(err, &answered) && (answered.status == http.StatusUnauthorized || answered.status == http.StatusForbidden) {
		select {
		case l.denied <- err:
		default:
		}
		<-ctx.Done()
	}
	return err
}
