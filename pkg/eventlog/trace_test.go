package eventlog

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
)

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestWithoutTracingAPublishCostsNothing(t *testing.T) {
	list := []events.Event{{ID: "1", Subject: "c", Extensions: map[string]any{"traceparent": parent}}}
	msgs := []*nats.Msg{{Header: nats.Header{}}}
	ctx := context.Background()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		traced, span := startPublish(ctx, list, semconv.MessagingMessageID("1"))
		carry(traced, list, msgs)
		endPublish(span, nil, nil)
	}))
}

func TestTheTraceOfAnEventIsInItsHeadersOrItsOwn(t *testing.T) {
	t.Parallel()
	other := "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
	for name, c := range map[string]struct {
		header nats.Header
		own    string
		span   string
	}{
		"none":                               {nil, "", "0000000000000000"},
		"its own":                            {nil, parent, "b7ad6b7169203331"},
		"the header":                         {nats.Header{"traceparent": {other}}, "", "00f067aa0ba902b7"},
		"the header comes first":             {nats.Header{"traceparent": {other}}, parent, "00f067aa0ba902b7"},
		"a header in the spelling of Go":     {nats.Header{"Traceparent": {other}}, parent, "00f067aa0ba902b7"},
		"a header that is not a traceparent": {nats.Header{"traceparent": {"00-xyz"}}, parent, "b7ad6b7169203331"},
		"nothing readable":                   {nats.Header{"traceparent": {"00-xyz"}}, "01", "0000000000000000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := events.Event{Extensions: map[string]any{"traceparent": c.own}}
			require.Equal(t, c.span, (&Message{Header: c.header}).TraceContext(&e).SpanID().String())
		})
	}
}

func TestAnUnrecordedTraceIsPassedOn(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{})
	ctx := trace.ContextWithRemoteSpanContext(t.Context(), spanContext(parent, "vendor=1"))
	ack, err := b.log.Publish(ctx, "t", b.events("c", 1, "x")[0])
	require.NoError(t, err)
	m, err := b.log.Get(mnemetest.Context(t), ack.Seq)
	require.NoError(t, err)
	sc := m.TraceContext(&events.Event{})
	require.Equal(t, "b7ad6b7169203331", sc.SpanID().String())
	require.Equal(t, "vendor=1", sc.TraceState().String())

	acks, err := b.log.PublishAll(ctx, "t", b.events("c", maxCarried+1, "x"))
	require.NoError(t, err)
	m, err = b.log.Get(mnemetest.Context(t), acks[0].Seq)
	require.NoError(t, err)
	require.False(t, m.TraceContext(&events.Event{}).IsValid(), "an import is not one trace with every event of it")
}

func TestAPublishIsReported(t *testing.T) {
	t.Parallel()
	b := setup(t, natsdeploy.Settings{})
	var told []Publication
	l, err := Open(mnemetest.Context(t), b.log.Conn(), OnPublish(func(p Publication) { told = append(told, p) }))
	require.NoError(t, err)
	list := b.events("c", 3, "x")
	_, err = l.Publish(mnemetest.Context(t), "t", list[0])
	require.NoError(t, err)
	_, err = l.PublishAll(mnemetest.Context(t), "t", list)
	require.NoError(t, err)
	after := b.events("d", 2, "y")
	_, err = l.PublishAfter(mnemetest.Context(t), "t", after[0], "*", 0)
	require.NoError(t, err)
	_, err = l.PublishAfter(mnemetest.Context(t), "t", after[1], "*", 0)
	require.Error(t, err)
	list[1].ID = ""
	_, err = l.PublishAll(mnemetest.Context(t), "t", list)
	require.Error(t, err)
	var classes []string
	for i := range told {
		require.Positive(t, told[i].Took)
		if told[i].Err != nil {
			classes = append(classes, ErrorType(told[i].Err))
		}
		told[i].Took, told[i].Err = 0, nil
	}
	require.Equal(t, []string{"conflict", "invalid"}, classes)
	require.Equal(t, []Publication{{Events: 1, Stored: 1}, {Events: 3, Stored: 3, Duplicates: 1}, {Events: 1, Stored: 1}, {Events: 1}, {Events: 3}}, told)
}
