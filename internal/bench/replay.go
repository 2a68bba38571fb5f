package bench

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph/neo4jstore"
)

// Replay is the result of [RunReplay].
type Replay struct {
	Machine     Machine   `json:"machine"`
	Store       Store     `json:"store"`
	Events      uint64    `json:"events"`
	MB          float64   `json:"mb"`
	BarePS      float64   `json:"bare_events_per_s"` // medians
	FilesPS     float64   `json:"files_events_per_s"`
	GraphPS     float64   `json:"graph_events_per_s"`
	FilesRatio  float64   `json:"files_ratio"` // medians of the rounds' ratios
	GraphRatio  float64   `json:"graph_ratio"`
	FilesRatios []float64 `json:"files_ratios"`
	GraphRatios []float64 `json:"graph_ratios"`
	ComparedTo  string    `json:"compared_to"`
}

// RunReplay publishes transcripts to a separate log and rebuilds the read models "files" and
// "graph" from it, each into a new store. The baseline is a bare ordered consumer, which takes the
// same messages from the same stream over the same connection and does nothing with them. The three
// alternate for the given number of rounds, at least one, after a warm-up of the consumer (with Neo4j: of all three).
// Without events it returns [ErrNoEvents]. The store is chosen as for [RunIngest].
func RunReplay(ctx context.Context, paths []string, rounds int, on *neo4jstore.Config, say Say) (out Replay, err error) {
	out.Machine = thisMachine()
	out.ComparedTo = "a bare ordered consumer that reads the same stream and decodes nothing"
	s, _, state, err := newFilled(ctx, natsdeploy.Settings{}, paths, say)
	if err != nil {
		return out, err
	}
	defer s.close()
	out.Events, out.MB = state.Messages, float64(state.Bytes)/1e6
	b, err := newBackend(ctx, s.dir, on)
	if err != nil {
		return out, err
	}
	defer b.close()
	out.Store = b.store()
	say("warming up")
	if _, err := consumeOnce(ctx, s.log, state.Head); err != nil {
		return out, err
	}
	var bare, file, whole []float64
	for round := range warmUps(on) + rounds {
		say("round %d of %d", round+1-warmUps(on), rounds)
		consumed, rebuilt, applied, err := consumeAndRebuild(ctx, b, s.log, state.Head)
		if err := errors.Join(err, b.clear(ctx)); err != nil {
			return out, err
		}
		if round < warmUps(on) {
			continue
		}
		n := float64(out.Events)
		bare, file, whole = append(bare, n/consumed.Seconds()), append(file, n/rebuilt.Seconds()), append(whole, n/applied.Seconds())
		out.FilesRatios = append(out.FilesRatios, consumed.Seconds()/rebuilt.Seconds())
		out.GraphRatios = append(out.GraphRatios, consumed.Seconds()/applied.Seconds())
	}
	out.BarePS, out.FilesPS, out.GraphPS = median(bare), median(file), median(whole)
	out.FilesRatio, out.GraphRatio = median(out.FilesRatios), median(out.GraphRatios)
	return out, nil
}

// consumeAndRebuild is one round.
func consumeAndRebuild(ctx context.Context, b backend, log *eventlog.Log, head uint64) (consumed, files, graph time.Duration, err error) {
	if consumed, err = consumeOnce(ctx, log, head); err != nil {
		return 0, 0, 0, err
	}
	if files, err = b.files(ctx, log, head); err != nil {
		return 0, 0, 0, err
	}
	graph, _, err = b.graph(ctx, log, head)
	return consumed, files, graph, err
}

// bareAhead is how many messages the server may send ahead of the bare consumer; more do not make
// it faster.
const bareAhead = 5000

// consumeOnce reads the whole stream and returns how long that took.
func consumeOnce(ctx context.Context, log *eventlog.Log, head uint64) (time.Duration, error) {
	js, err := jetstream.New(log.Conn())
	if err != nil {
		return 0, err
	}
	began := time.Now()
	consumer, err := js.OrderedConsumer(ctx, natsdeploy.Stream, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return 0, err
	}
	done := make(chan struct{})
	consuming, err := consumer.Consume(func(m jetstream.Msg) {
		if meta, err := m.Metadata(); err == nil && meta.Sequence.Stream == head {
			close(done)
		}
	}, jetstream.PullMaxMessagesWithBytesLimit(bareAhead, natsdeploy.PullByteLimit))
	if err != nil {
		return 0, err
	}
	defer consuming.Stop()
	select {
	case <-done:
		return time.Since(began), nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}
