package sqlitestore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph/storetest"
	"mneme.dev/mneme/pkg/projection"
)

// BenchmarkApply applies realistic events (20 interleaved conversations, turns of four steps with
// calls and results of 2 KB) in the projector's batches.
func BenchmarkApply(b *testing.B) {
	history := storetest.Realistic(20, 60).Messages
	b.Run("graph", func(b *testing.B) {
		s, err := OpenGraph(b.Context(), Path(b.TempDir(), "graph", 1))
		require.NoError(b, err)
		defer s.Close()
		benchmarkApply(b, graphProjection, s, history)
	})
	b.Run("files", func(b *testing.B) {
		s, err := OpenFiles(b.Context(), Path(b.TempDir(), "files", 1))
		require.NoError(b, err)
		defer s.Close()
		benchmarkApply(b, filesProjection, s, history)
	})
	b.Run("insight", func(b *testing.B) {
		opened, err := Open(b.Context(), Path(b.TempDir(), "insight", 1), InsightCodec)
		require.NoError(b, err)
		s := &Insight{opened}
		defer s.Close()
		benchmarkApply(b, insightProjection, s, history)
	})
}

func benchmarkApply[U projection.Unit](b *testing.B, p projection.Projection[U], s projection.Store[U], history []eventlog.Message) {
	b.Helper()
	cp, err := s.Acquire(b.Context(), 0, p.Fingerprint())
	require.NoError(b, err)
	b.ReportAllocs()
	applied := 0
	for b.Loop() {
		cp, err = p.Apply(b.Context(), s, cp, history)
		require.NoError(b, err)
		applied += len(history)

		b.StopTimer() // the same events again: forget the conversations
		require.NoError(b, forget(b, s, history))
		cp.Seq = 0
		require.NoError(b, s.Update(b.Context(), 0, func(tx projection.Tx[U]) error { return tx.Advance(b.Context(), cp) }))
		b.StartTimer()
	}
	b.ReportMetric(float64(applied)/b.Elapsed().Seconds(), "events/s")
}

func forget[U projection.Unit](b *testing.B, s projection.Store[U], history []eventlog.Message) error {
	b.Helper()
	return s.Update(b.Context(), 0, func(tx projection.Tx[U]) error {
		seen := map[events.ConversationID]bool{}
		for _, m := range history {
			address, err := events.ParseSubject(m.Subject)
			if err != nil {
				return err
			}
			id := events.ConversationID{Tenant: address.Tenant, ID: address.Conversation}
			if seen[id] {
				continue
			}
			seen[id] = true
			if err := tx.Drop(b.Context(), id); err != nil {
				return err
			}
		}
		return nil
	})
}
