package natsdeploy_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
)

func TestAllEventsOfAConversationGoInOrderToThePartitionOfItsHash(t *testing.T) {
	t.Parallel()
	for _, count := range []int{1, 8} {
		t.Run(fmt.Sprintf("P=%d", count), func(t *testing.T) {
			t.Parallel()
			e := start(t, embedded.Config{})
			js := connect(t, e)
			_, err := e.Apply(t.Context(), natsdeploy.Settings{Partitions: count})
			require.NoError(t, err)

			const conversations, rounds = 40, 5
			for round := range rounds {
				for c := range conversations {
					_, err := js.Publish(t.Context(), subject(t, "tenant", fmt.Sprintf("c.%d é", c)), []byte{byte(round)})
					require.NoError(t, err)
				}
			}

			consumer, err := js.OrderedConsumer(t.Context(), natsdeploy.Stream, jetstream.OrderedConsumerConfig{})
			require.NoError(t, err)
			batch, err := consumer.FetchNoWait(conversations * rounds)
			require.NoError(t, err)
			used, next := map[int]bool{}, map[string]byte{}
			for msg := range batch.Messages() {
				at, err := events.ParseSubject(msg.Subject())
				require.NoError(t, err)
				require.Equal(t, events.PartitionOf(at.Tenant, at.Conversation, count), at.Partition, msg.Subject())
				require.Equal(t, next[at.Conversation], msg.Data()[0], "order within %s", at.Conversation)
				next[at.Conversation]++
				used[at.Partition] = true
			}
			require.NoError(t, batch.Error())
			require.Len(t, next, conversations)
			require.Len(t, used, count)
			for c, n := range next {
				require.EqualValues(t, rounds, n, c)
			}
		})
	}
}

func TestTheLargestEventAtTheLongestAddressIsStoredAndReadBack(t *testing.T) {
	t.Parallel()
	e := start(t, embedded.Config{Listen: ":0"})
	js := connect(t, e)
	_, err := e.Apply(t.Context(), natsdeploy.Settings{})
	require.NoError(t, err)

	longest, err := events.Address{
		Tenant:       strings.Repeat(".", events.MaxTenantBytes),
		Conversation: strings.Repeat("*", events.MaxIDBytes),
		Kind:         strings.Repeat(">", events.MaxIDBytes),
	}.Subject()
	require.NoError(t, err)
	msg := nats.NewMsg(longest)
	msg.Data = bytes.Repeat([]byte("x"), events.MaxEventBytes)
	const around = len("NATS/1.0\r\n") + len("Ce-Large: \r\n") + len("\r\n")
	msg.Header.Set("Ce-Large", strings.Repeat("h", natsdeploy.MaxHeaderBytes-around))
	ack, err := js.PublishMsg(t.Context(), msg)
	require.NoError(t, err)

	stream, err := js.Stream(t.Context(), natsdeploy.Stream)
	require.NoError(t, err)
	got, err := stream.GetMsg(t.Context(), ack.Sequence)
	require.NoError(t, err)
	require.True(t, bytes.Equal(msg.Data, got.Data))
	got, err = stream.GetLastMsgForSubject(t.Context(), got.Subject)
	require.NoError(t, err)
	require.Equal(t, ack.Sequence, got.Sequence)

	consumer, err := js.OrderedConsumer(t.Context(), natsdeploy.Stream, jetstream.OrderedConsumerConfig{FilterSubjects: []string{got.Subject}})
	require.NoError(t, err)
	it, err := consumer.Messages(jetstream.PullMaxMessagesWithBytesLimit(500, natsdeploy.PullByteLimit))
	require.NoError(t, err)
	defer it.Stop()
	delivered, err := it.Next(jetstream.NextContext(t.Context()))
	require.NoError(t, err)
	require.Equal(t, msg.Header.Get("Ce-Large"), delivered.Headers().Get("Ce-Large"))
}

func TestLargeEventsInARowDoNotStallAConsumer(t *testing.T) {
	t.Parallel()
	e := start(t, embedded.Config{Listen: ":0"})
	js := connect(t, e)
	_, err := e.Apply(t.Context(), natsdeploy.Settings{})
	require.NoError(t, err)
	const count = 5
	body := make([]byte, events.MaxEventBytes)
	for range count {
		_, err := js.Publish(t.Context(), subject(t, "t", "c"), body)
		require.NoError(t, err)
	}
	consumer, err := js.OrderedConsumer(t.Context(), natsdeploy.Stream, jetstream.OrderedConsumerConfig{})
	require.NoError(t, err)
	it, err := consumer.Messages(jetstream.PullMaxMessagesWithBytesLimit(500, natsdeploy.PullByteLimit))
	require.NoError(t, err)
	defer it.Stop()
	for range count {
		_, err := it.Next(jetstream.NextMaxWait(mnemetest.Patience))
		require.NoError(t, err)
	}
}

func TestAnEventOverALimitIsRefusedAndTheConnectionLives(t *testing.T) {
	t.Parallel()
	e := start(t, embedded.Config{Listen: ":0"})
	js := connect(t, e)
	_, err := e.Apply(t.Context(), natsdeploy.Settings{})
	require.NoError(t, err)

	_, err = js.Publish(t.Context(), subject(t, "t", "c"), make([]byte, natsdeploy.MaxMessageBytes+1))
	require.ErrorIs(t, err, nats.ErrMaxPayload)

	msg := nats.NewMsg(subject(t, "t", "c"))
	msg.Header.Set("Ce-Large", strings.Repeat("h", natsdeploy.MaxHeaderBytes))
	_, err = js.PublishMsg(t.Context(), msg)
	var api *jetstream.APIError
	require.ErrorAs(t, err, &api)
	require.EqualValues(t, 10097, api.ErrorCode)
	require.False(t, natsdeploy.IsFull(err))

	ack, err := js.Publish(t.Context(), subject(t, "t", "c"), []byte("x"))
	require.NoError(t, err)
	require.EqualValues(t, 1, ack.Sequence)
}

func TestAFullStreamRefusesAtOnceKeepsWhatItHasAndTakesMoreOnceResized(t *testing.T) {
	t.Parallel()
	e := start(t, embedded.Config{MaxBytes: 64 << 10})
	js := connect(t, e)
	_, err := e.Apply(t.Context(), natsdeploy.Settings{})
	require.NoError(t, err)

	body := make([]byte, 1<<10)
	var stored uint64
	var full error
	var began time.Time
	for full == nil && stored < 1000 {
		began = time.Now()
		if _, full = js.Publish(t.Context(), subject(t, "t", "c"), body); full == nil {
			stored++
		}
	}
	require.True(t, natsdeploy.IsFull(full), "%v", full)
	require.True(t, natsdeploy.IsFull(fmt.Errorf("publish: %w", full)))
	require.Less(t, time.Since(began), mnemetest.Patience, "a refusal is an answer, not a time-out")

	info, err := e.Apply(t.Context(), natsdeploy.Settings{})
	require.NoError(t, err)
	require.Equal(t, natsdeploy.Info{
		Partitions: 1, Replicas: 1, Messages: stored, FirstSeq: 1, Head: stored, Bytes: info.Bytes, MaxBytes: 64 << 10,
	}, info)

	info = resize(t, js, 128<<10)
	require.EqualValues(t, 128<<10, info.MaxBytes)
	require.Equal(t, stored, info.Messages)
	ack, err := js.Publish(t.Context(), subject(t, "t", "c"), body)
	require.NoError(t, err)
	require.Equal(t, stored+1, ack.Sequence)
}

func TestOtherErrorsAreNotFull(t *testing.T) {
	t.Parallel()
	require.False(t, natsdeploy.IsFull(nil))
	require.False(t, natsdeploy.IsFull(nats.ErrTimeout))
	require.False(t, natsdeploy.IsFull(&jetstream.APIError{ErrorCode: natsdeploy.CodeStoreFailed, Description: "maximum messages exceeded"}))
	require.False(t, natsdeploy.IsFull(&jetstream.APIError{ErrorCode: 10071, Description: "wrong last sequence: 3"}))
}
