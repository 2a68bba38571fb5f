package projection

import (
	"context"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/events"
)

// Option configures a projector, see [NewProjector].
type Option func(*options)

type options struct {
	observer
	leases     *Leases // nil: this projector drives all partitions
	where      string  // store and generation of the read model, see [Build]
	generation int
	batch      int                  // maximum number of events in a batch
	costly     bool                 // each transaction of the store is expensive
	idle       func() time.Duration // nil: it yields to nobody, see [Yield]
	feed       *Feed                // see [From]
	mended     bool                 // see [Mended]
	announced  func([]Status) []Status
}

// BatchOf sets the maximum number of events in a batch; the default is 4000. If the store
// must be spared, use [CostlyTransactions] too.
func BatchOf(events int) Option {
	return func(o *options) { o.batch = events }
}

// CostlyTransactions says that each transaction of the store is expensive, however little it
// writes, as on a server that others use. The projector then pauses after small transactions
// that took long, and it does not make its batches smaller while it yields, see [Yield].
func CostlyTransactions() Option {
	return func(o *options) { o.costly = true }
}

// OfBuild sets which build of the read model a projector writes, see [Build].
func OfBuild(store string, generation int) Option {
	return func(o *options) { o.where, o.generation = store, generation }
}

// Shared makes a projector drive only the partitions whose leases it can take, for a store
// that several processes write to. Each [Build] has its own leases.
func Shared(leases *Leases) Option {
	return func(o *options) { o.leases = leases }
}

// Mended says that this process has a read model rebuilt that another version or other settings built. That it halts then
// is no news for an operator.
func Mended() Option {
	return func(o *options) { o.mended = true }
}

// Announced sets a function that adds to the statuses that a [Shared] projector announces
// to other processes twice a second, for facts that the projector does not know.
func Announced(add func([]Status) []Status) Option {
	return func(o *options) { o.announced = add }
}

// observer receives what a projector does; its zero value receives nothing.
type observer struct {
	applied func(Batch)
	tracer  trace.Tracer
}

// Batch describes one applied batch, for metrics.
type Batch struct {
	Projection string
	Partition  int
	Events     int
	Decode     time.Duration // decoding of its events, in parallel with the writer and once for all projectors of the [Feed]
	Apply      time.Duration // inside the transaction: read, claim, reduce, save
	Commit     time.Duration
	// Foreign counts the events of other projects' types that the projection has no
	// reducer for (see [events.IsForeign]).
	Foreign int
	// Conversations lists the conversations of its events, each once.
	Conversations []events.ConversationID
}

// OnBatch sets a function that is called after each batch, by the goroutine of the
// partition.
func OnBatch(applied func(Batch)) Option {
	return func(o *options) { o.applied = applied }
}

// WithTracer records a span for each event whose producer's trace is sampled. The span is
// part of that trace and lasts from the start of the batch until its commit. One span per
// batch, linked to the producers, would cost less, but could not be found from the
// producer's side.
func WithTracer(tracer trace.Tracer) Option {
	return func(o *options) { o.tracer = tracer }
}

// observe reports a batch. Events up to history are not traced because a new read model
// replays them long after their traces ended.
func (p *Projector[U]) observe(partition int, batch []*entry, out outcome, began time.Time, history uint64) {
	if p.applied != nil {
		b := Batch{Projection: p.projection.Name, Partition: partition, Events: len(batch), Apply: out.apply, Commit: out.commit}
		known := map[events.ConversationID]bool{}
		for _, e := range batch {
			b.Decode += e.took
			if e.result == resultIgnored && events.IsForeign(e.event.Type) {
				b.Foreign++
			}
			if !known[e.conv] {
				known[e.conv] = true
				b.Conversations = append(b.Conversations, e.conv)
			}
		}
		p.applied(b)
	}
	if p.tracer == nil {
		return
	}
	ended := time.Now()
	for _, e := range batch {
		if e.seq <= history || e.result == "" {
			continue
		}
		if origin := e.message.TraceContext(&e.event.Event); origin.IsSampled() {
			p.trace(origin, partition, e, began, ended)
		}
	}
}

func (p *Projector[U]) trace(origin trace.SpanContext, partition int, e *entry, began, ended time.Time) {
	ctx := trace.ContextWithRemoteSpanContext(context.Background(), origin)
	_, span := p.tracer.Start(ctx, "process "+p.projection.Name, trace.WithTimestamp(began), trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
		semconv.MessagingSystemKey.String("nats"), semconv.MessagingOperationName("process"), semconv.MessagingOperationTypeProcess,
		semconv.MessagingDestinationName(natsdeploy.Stream), semconv.MessagingDestinationPartitionID(strconv.Itoa(partition)),
		semconv.MessagingConsumerGroupName(p.projection.Name), semconv.MessagingMessageID(e.event.ID),
		semconv.CloudEventsEventType(e.event.Type), semconv.CloudEventsEventSource(e.event.Source),
		attribute.String("gen_ai.conversation.id", e.conv.ID),
		attribute.Int64("mneme.event.seq", int64(e.seq)), attribute.String("mneme.event.outcome", string(e.result))))
	if class := Class(e.result); class == ClassInvalid || class == ClassError {
		span.SetAttributes(semconv.ErrorTypeKey.String(string(class)))
		span.SetStatus(codes.Error, "")
	}
	span.End(trace.WithTimestamp(ended))
}
