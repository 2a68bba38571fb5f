package eventlog

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/nats-io/nats.go"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/events"
)

// Names of the W3C trace context, as headers of a message and as extensions of an
// event.
const (
	traceparent = "traceparent"
	tracestate  = "tracestate"
)

// maxLinks bounds the producers that the span of a batch names.
const maxLinks = 128

// maxCarried is how many events published together may carry the trace of their publishing. A
// larger publish is an import, and a trace that includes every event of an import helps nobody.
const maxCarried = 100

// tracer names the instrumentation of this package.
const tracer = "mneme.dev/mneme/pkg/eventlog"

// startPublish begins the span of a publish with the tracer of the span in ctx. Without tracing it
// begins none and looks at no event.
//
// The span belongs to the producer's trace: if all events that name a trace name the same one, and
// it is not the caller's, the span goes there and is linked to the caller's. Events of several
// traces are linked.
func startPublish(ctx context.Context, list []events.Event, what attribute.KeyValue) (context.Context, trace.Span) {
	caller := trace.SpanFromContext(ctx)
	if !caller.SpanContext().IsValid() {
		return ctx, caller
	}
	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(what,
		semconv.MessagingSystemKey.String("nats"), semconv.MessagingOperationName("publish"), semconv.MessagingOperationTypeSend,
		semconv.MessagingDestinationName(natsdeploy.Stream))}
	if id, one := conversation(list); one {
		options = append(options, trace.WithAttributes(attribute.String("gen_ai.conversation.id", id)))
	}
	origins := origins(list)
	switch {
	case len(origins) == 1 && origins[0].TraceID() != caller.SpanContext().TraceID():
		ctx = trace.ContextWithRemoteSpanContext(ctx, origins[0])
		options = append(options, trace.WithLinks(trace.Link{SpanContext: caller.SpanContext()}))
	case len(origins) > 1:
		for _, origin := range origins {
			options = append(options, trace.WithLinks(trace.Link{SpanContext: origin}))
		}
	}
	return caller.TracerProvider().Tracer(tracer).Start(ctx, "publish "+natsdeploy.Stream, options...)
}

// endPublish ends the span. It records only the class of an error, because the text can quote what
// was published.
func endPublish(span trace.Span, acks []Ack, err error) {
	if !span.IsRecording() {
		return
	}
	if n := len(acks); n > 0 {
		span.SetAttributes(attribute.Int64("mneme.event.seq", int64(acks[n-1].Seq)), attribute.Int("mneme.publish.duplicates", duplicates(acks)))
	}
	if err != nil {
		span.SetAttributes(semconv.ErrorTypeKey.String(ErrorType(err)))
		span.SetStatus(codes.Error, "")
	}
	span.End()
}

// origins returns the distinct trace contexts that events name, at most maxLinks.
func origins(list []events.Event) (found []trace.SpanContext) {
	seen := map[string]bool{}
	for i := range list {
		parent := list[i].Extension(traceparent)
		if parent == "" || seen[parent] {
			continue
		}
		seen[parent] = true
		if sc := spanContext(parent, list[i].Extension(tracestate)); sc.IsValid() {
			if found = append(found, sc); len(found) == maxLinks {
				break
			}
		}
	}
	return found
}

// conversation returns the conversation that all events belong to.
func conversation(list []events.Event) (string, bool) {
	for i := range list {
		if list[i].Subject != list[0].Subject {
			return "", false
		}
	}
	return list[0].Subject, true
}

// carry puts the trace context of ctx into the headers of messages, so that later processing of
// their events appears in the trace of their publishing. An event that names another trace keeps
// that one, because it is its producer's.
func carry(ctx context.Context, list []events.Event, msgs []*nats.Msg) {
	sc := trace.SpanContextFromContext(ctx)
	if !sc.IsValid() || len(msgs) > maxCarried {
		return
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	for i, msg := range msgs {
		if own := spanContext(list[i].Extension(traceparent), ""); own.IsValid() && own.TraceID() != sc.TraceID() {
			continue
		}
		for name, value := range carrier {
			msg.Header[name] = []string{value}
		}
	}
}

// TraceContext returns the trace that a message's event belongs to: the publisher's trace from the
// headers, or else the trace that the event names. Without either, the result is not valid.
func (m *Message) TraceContext(e *events.Event) trace.SpanContext {
	for _, names := range [][2]string{{traceparent, tracestate}, {"Traceparent", "Tracestate"}} {
		if sc := spanContext(m.Header.Get(names[0]), m.Header.Get(names[1])); sc.IsValid() {
			return sc
		}
	}
	return spanContext(e.Extension(traceparent), e.Extension(tracestate))
}

// spanContext parses a W3C trace context. The result is not valid if parent is empty or can't be parsed.
func spanContext(parent, state string) trace.SpanContext {
	if parent == "" {
		return trace.SpanContext{}
	}
	carrier := propagation.MapCarrier{traceparent: parent, tracestate: state}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
}

// ErrorType returns the class of an error of this package, for metrics and spans: invalid,
// conflict, full, too_large, canceled, timeout or unavailable.
func ErrorType(err error) string {
	switch {
	case errors.Is(err, events.ErrInvalid):
		return "invalid"
	case errors.Is(err, ErrConflict), errors.Is(err, ErrOtherContent):
		return "conflict"
	case errors.Is(err, ErrFull):
		return "full"
	case errors.Is(err, ErrTooLarge):
		return "too_large"
	case errors.Is(err, context.Canceled):
		return "canceled"
	case isTimeout(err):
		return "timeout"
	}
	return "unavailable"
}
