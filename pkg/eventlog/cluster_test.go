package eventlog

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/natstest"
)

// clustered opens a log with three replicas in a cluster of three servers.
func clustered(t *testing.T) (*natstest.Cluster, *nats.Conn, *Log) {
	t.Helper()
	cluster := natstest.Start(t)
	conn, err := nats.Connect(cluster.URL(), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond), nats.Timeout(mnemetest.Handshake))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second) // nobody answers before they have a leader
		defer cancel()
		_, err := natsdeploy.Apply(ctx, js, natsdeploy.Settings{Partitions: 8, Replicas: 3, MaxBytes: 64 << 20})
		return err == nil
	}, mnemetest.Patience, 100*time.Millisecond)
	log, err := Open(mnemetest.Context(t), conn)
	require.NoError(t, err)
	return cluster, conn, log
}

// TestARequestToADyingServerIsRepeated asks all the time while the server that leads the stream
// stops, so that some requests are never answered.
func TestARequestToADyingServerIsRepeated(t *testing.T) {
	t.Parallel()
	cluster, conn, log := clustered(t)
	list := (&bench{t: t, log: log}).events("c", 100, "hello")
	require.Eventually(t, func() bool {
		_, err := log.PublishAll(t.Context(), "t", list)
		return err == nil // the stream's first leader may not listen yet
	}, mnemetest.Patience, 10*time.Millisecond)
	_, partition, err := log.Last(mnemetest.Context(t), "t", "c")
	require.NoError(t, err)

	questions := map[string]func(context.Context) error{
		"state": func(ctx context.Context) error { _, err := log.State(ctx); return err },
		"get":   func(ctx context.Context) error { _, err := log.Get(ctx, 1); return err },
		"count": func(ctx context.Context) error { _, err := log.countFrom(ctx, nil, 1); return err },
		"follow": func(ctx context.Context) error {
			f, err := log.Follow(ctx, partition, 1)
			if err == nil {
				f.Stop()
			}
			return err
		},
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	var stopped atomic.Bool
	answered := make(chan string, len(questions))
	for what, question := range questions {
		go func() {
			for ctx.Err() == nil {
				last := stopped.Load()
				if err := question(ctx); err == nil && last {
					answered <- what
					return
				}
				<-time.After(time.Millisecond)
			}
		}()
	}
	cluster.Stop(cluster.Leader(conn))
	stopped.Store(true)
	began := time.Now()
	for range questions {
		select {
		case what := <-answered:
			t.Logf("%s: answered %s after the server was gone", what, time.Since(began).Round(time.Millisecond))
		case <-time.After(time.Minute):
			require.Fail(t, "a question to a server that died waits for its context")
		}
	}
}

// A leader refuses an event while one with the same id or subject is still being replicated. The
// publisher gets the outcome once replication is done.
func TestConcurrentPublishersLearnWhatWasStored(t *testing.T) {
	t.Parallel()
	_, _, log := clustered(t)
	const rounds, publishers = 30, 8
	list := (&bench{t: t, log: log}).events("c", 1+rounds*publishers, "hello")
	require.Eventually(t, func() bool {
		_, err := log.PublishAll(t.Context(), "t", list[:1])
		return err == nil
	}, mnemetest.Patience, 10*time.Millisecond)
	together := func(publish func(i int) (Ack, error)) (acks [publishers]Ack, errs [publishers]error) {
		var all sync.WaitGroup
		for i := range publishers {
			all.Go(func() { acks[i], errs[i] = publish(i) })
		}
		all.Wait()
		return acks, errs
	}
	for round := range rounds {
		same := (&bench{t: t, log: log}).events(fmt.Sprint("same", round), 2, "hello")
		acks, errs := together(func(i int) (Ack, error) {
			if i == 0 {
				acks, err := log.PublishAll(mnemetest.Context(t), "t", same)
				if err != nil {
					return Ack{}, err
				}
				return acks[0], nil
			}
			return log.Publish(mnemetest.Context(t), "t", same[0])
		})
		for i := range publishers {
			require.NoError(t, errs[i])
			require.Equal(t, acks[0].Seq, acks[i].Seq)
		}

		last, _, err := log.Last(mnemetest.Context(t), "t", "c")
		require.NoError(t, err)
		won := 0
		acks, errs = together(func(i int) (Ack, error) {
			ack, err := log.PublishAfter(mnemetest.Context(t), "t", list[1+round*publishers+i], "*", last)
			if err == nil {
				return ack, nil
			}
			newest, _, lastErr := log.Last(mnemetest.Context(t), "t", "c")
			if lastErr != nil {
				return ack, lastErr
			}
			return Ack{Seq: newest}, err
		})
		for i := range publishers {
			require.Greater(t, acks[i].Seq, last, "the loser sees the winner")
			if errs[i] == nil {
				won++
			} else {
				require.ErrorIs(t, errs[i], ErrConflict)
			}
		}
		require.Equal(t, 1, won)
	}
}
