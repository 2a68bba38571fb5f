package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/window"
)

// Names from OpenTelemetry's GenAI conventions.
const (
	genAIOperation    = "gen_ai.operation.name"
	genAIConversation = "gen_ai.conversation.id"
	genAIStore        = "gen_ai.memory.store.id"
	genAICount        = "gen_ai.memory.record.count"
	genAIRecords      = "gen_ai.memory.records"
)

// span begins a child of the request's span, if that is recorded.
func span(ctx context.Context, name string, attributes ...attribute.KeyValue) (context.Context, trace.Span) {
	return trace.SpanFromContext(ctx).TracerProvider().Tracer("mneme.dev/mneme/internal/httpapi").Start(ctx, name, trace.WithAttributes(attributes...))
}

// fail marks a span with the class of an error. It leaves out the text, which can quote
// the request or recorded data.
func fail(span trace.Span, class string) {
	span.SetAttributes(semconv.ErrorTypeKey.String(class))
	span.SetStatus(codes.Error, "")
}

// awaiting starts to measure how long a read waits for a projection. Call the returned
// function when the wait ends.
func (a *api) awaiting(ctx context.Context, projection string, goal uint64) (context.Context, func(error)) {
	began := time.Now()
	ctx, span := span(ctx, "await "+projection, attribute.String("mneme.projection", projection), attribute.Int64("mneme.event.seq", int64(goal)))
	return ctx, func(err error) {
		outcome := "reached"
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			outcome = "timeout"
		case errors.Is(err, context.Canceled):
			outcome = "canceled"
		case err != nil:
			outcome = "error"
		}
		if err != nil {
			fail(span, outcome)
		}
		span.End()
		a.Telemetry.Metrics.Awaited(projection, outcome, time.Since(began))
	}
}

// build builds a context. Its span is a memory search in the terms of the conventions.
func (a *api) build(ctx context.Context, source window.Source, request window.Request) (*window.Context, error) {
	ctx, span := span(ctx, "search_memory", attribute.String(genAIOperation, "search_memory"),
		attribute.String(genAIConversation, request.Conversation.ID), attribute.String(genAIStore, request.Conversation.Tenant),
		attribute.String("mneme.context.strategy", request.Strategy))
	defer span.End()
	c, err := window.Build(ctx, source, request)
	if !span.IsRecording() {
		return c, err
	}
	if err != nil {
		fail(span, class(err))
		return nil, err
	}
	items := 0
	for _, s := range c.Manifest.Sections {
		items += s.Items
		span.SetAttributes(attribute.Int("mneme.context.section."+s.Name+".items", s.Items), attribute.Int("mneme.context.section."+s.Name+".used", s.Used))
	}
	span.SetAttributes(attribute.Int(genAICount, items), attribute.Int("mneme.context.sections", len(c.Sections)),
		attribute.Int("mneme.context.budget", c.Manifest.Budget), attribute.Int("mneme.context.used", c.Manifest.Used),
		attribute.Int64("mneme.context.as_of", int64(c.Manifest.AsOf)))
	if a.Telemetry.Content {
		span.SetAttributes(attribute.String(genAIRecords, records(c)))
	}
	return c, nil
}

// class returns the class of an error of a read model.
func class(err error) string {
	var invalid *window.InvalidError
	switch {
	case errors.Is(err, graph.ErrNotFound):
		return "not_found"
	case errors.As(err, &invalid):
		return "invalid"
	}
	return "unavailable"
}

// records returns the items of a context in the conventions' form for memories.
func records(c *window.Context) string {
	type record struct {
		ID       string `json:"id,omitempty"`
		Content  any    `json:"content"`
		Metadata any    `json:"metadata"`
	}
	list := []record{}
	for _, s := range c.Sections {
		for _, item := range s.Items {
			list = append(list, record{item.EventID, item, map[string]string{"section": s.Name}})
		}
	}
	text, err := json.Marshal(list)
	if err != nil {
		return ""
	}
	return string(text)
}
