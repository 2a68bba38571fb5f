package projection_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
)

// counted counts the events of all attempts to apply a batch.
type counted struct {
	projection.Store[*graph.Unit]
	tried *int
}

func (s counted) Update(ctx context.Context, partition int, fn func(projection.Tx[*graph.Unit]) error) error {
	return s.Store.Update(ctx, partition, func(tx projection.Tx[*graph.Unit]) error { return fn(countedTx{tx, s.tried}) })
}

type countedTx struct {
	projection.Tx[*graph.Unit]
	tried *int
}

func (t countedTx) Load(ctx context.Context, list []*events.Recorded) (*graph.Unit, error) {
	*t.tried += len(list)
	return t.Tx.Load(ctx, list)
}

// messagesOf makes messages of payloads, as the log would deliver them.
func messagesOf(t *testing.T, payloads []events.Payload) (list []eventlog.Message) {
	t.Helper()
	for i, p := range payloads {
		e, err := events.New("c", "test", fmt.Sprintf("e%d", i), p)
		require.NoError(t, err)
		subject, err := events.Address{Tenant: "t", Conversation: "c", Kind: events.Kind(e.Type)}.Subject()
		require.NoError(t, err)
		header, body := events.EncodeMessage(e)
		list = append(list, eventlog.Message{Seq: uint64(i + 1), Subject: subject, Header: nats.Header(header), Data: body})
	}
	return list
}

func TestInvalidEventsOfABatchAreFoundTogether(t *testing.T) {
	t.Parallel()
	const n = 500
	payloads := []events.Payload{&events.ConversationStarted{Title: "a conversation"}}
	for range n { // with one id, which the invalid ones do not take
		payloads = append(payloads, &events.SummaryWritten{
			SummaryID: "s", Level: 1, FirstSeq: 7, LastSeq: 8, FirstTurn: 1, LastTurn: 1, Conversation: "x", TurnCount: 1, Method: "extractive",
		})
	}
	b, tried := setup(t, 1), 0
	p, store, messages := graph.Projection(), counted{b.store, &tried}, messagesOf(t, payloads)
	cp, err := b.store.Acquire(t.Context(), 0, p.Fingerprint())
	require.NoError(t, err)
	cp, err = p.Apply(t.Context(), store, cp, messages)
	require.NoError(t, err)
	require.Len(t, b.failed(), n)
	require.Equal(t, len(messages)+1, tried, "all, and then without the invalid ones")

	tried = 0
	applied, failed, err := p.Reapply(t.Context(), store, cp, events.ConversationID{Tenant: "t", ID: "c"}, messages)
	require.NoError(t, err)
	require.Equal(t, []int{1, n}, []int{applied, failed})
	require.Equal(t, len(messages)+1, tried)
}

func TestABatchOfFailingEventsIsNotTriedOnceForEach(t *testing.T) {
	t.Parallel()
	const n = 1000
	p := graph.Projection()
	reduce := p.Reducers[events.TypeMessageCreated]
	p.Reducers[events.TypeMessageCreated] = func(u *graph.Unit, e *events.Recorded) error {
		return errors.Join(reduce(u, e), errors.New("told to fail"))
	}
	var payloads []events.Payload
	for i := range n {
		payloads = append(payloads, &events.MessageCreated{MessageID: fmt.Sprint(i), Role: "user", Content: "x"})
	}
	b, tried := setup(t, 1), 0
	cp, err := b.store.Acquire(t.Context(), 0, p.Fingerprint())
	require.NoError(t, err)
	_, err = p.Apply(t.Context(), counted{b.store, &tried}, cp, messagesOf(t, payloads))
	require.NoError(t, err)
	require.Len(t, b.failed(), n)
	require.Less(t, tried, 40*n)
}

func TestARepairOfManyFailingEventsIsNotTriedOnceForEach(t *testing.T) {
	t.Parallel()
	const n = 300
	p := graph.Projection()
	reduce := p.Reducers[events.TypeMessageCreated]
	p.Reducers[events.TypeMessageCreated] = func(u *graph.Unit, e *events.Recorded) error {
		if bytes.Contains(e.Data, []byte("refuse")) {
			return errors.New("told to fail")
		}
		return reduce(u, e)
	}
	var payloads []events.Payload
	for i := range n {
		for _, content := range []string{"refuse this", "and take this with the same id", "but not this"} {
			payloads = append(payloads, &events.MessageCreated{MessageID: fmt.Sprint(i), Role: "user", Content: content})
		}
	}
	b, tried := setup(t, 1), 0
	messages := messagesOf(t, payloads)
	cp, err := b.store.Acquire(t.Context(), 0, p.Fingerprint())
	require.NoError(t, err)
	cp, err = p.Apply(t.Context(), b.store, cp, messages)
	require.NoError(t, err)
	require.EqualValues(t, n, cp.Applied)
	require.Len(t, b.failed(), 2*n)

	applied, failed, err := p.Reapply(t.Context(), counted{b.store, &tried}, cp, events.ConversationID{Tenant: "t", ID: "c"}, messages)
	require.NoError(t, err)
	require.Equal(t, []int{n, 2 * n}, []int{applied, failed})
	require.Less(t, tried, 6*len(messages))
}
