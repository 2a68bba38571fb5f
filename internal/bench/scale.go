package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/neo4jstore"
	"mneme.dev/mneme/pkg/projection"
)

// scalePartitions is how many partitions several ingestors share.
const scalePartitions = 8

// Scale is the result of [RunScale].
type Scale struct {
	Machine    Machine     `json:"machine"`
	Store      Store       `json:"store"`
	Events     uint64      `json:"events"`
	MB         float64     `json:"mb"`
	Partitions int         `json:"partitions"`
	Ingestors  []Ingestors `json:"ingestors"`
}

// Ingestors are the figures for a number of ingestors that share a log.
type Ingestors struct {
	Count    int       `json:"count"`
	IngestPS float64   `json:"ingest_events_per_s"` // median
	Ratio    float64   `json:"ratio"`               // ratio to the first number of ingestors; median of the rounds
	Ratios   []float64 `json:"ratios"`
}

// RunScale publishes transcripts to a separate log and measures how fast a number of ingestors
// apply it to an empty generation of a Neo4j server. Each ingestor has its own connections to the
// log and to the server; leases divide the partitions. The time runs from their start until
// everything is applied, so it includes the time to find each other. The numbers of ingestors
// alternate for the given number of rounds, at least one, after one round that does not count. Without events it
// returns [ErrNoEvents].
func RunScale(ctx context.Context, paths []string, counts []int, rounds int, on neo4jstore.Config, say Say) (out Scale, err error) {
	out.Machine, out.Partitions = thisMachine(), scalePartitions
	s, _, state, err := newFilled(ctx, natsdeploy.Settings{Partitions: scalePartitions}, paths, say)
	if err != nil {
		return out, err
	}
	defer s.close()
	out.Events, out.MB = state.Messages, float64(state.Bytes)/1e6
	b, err := newNeo4jBackend(ctx, on)
	if err != nil {
		return out, err
	}
	defer b.close()
	out.Store = b.store()
	for _, count := range counts {
		out.Ingestors = append(out.Ingestors, Ingestors{Count: count})
	}
	rates := make([][]float64, len(counts))
	for round := range warmUps(&on) + rounds {
		for i, count := range counts {
			say("round %d of %d, %d ingestors", round+1-warmUps(&on), rounds, count)
			took, err := s.share(ctx, on, b.generation, count)
			if err := errors.Join(err, b.clear(ctx)); err != nil {
				return out, err
			}
			if round < warmUps(&on) {
				continue
			}
			rates[i] = append(rates[i], float64(out.Events)/took.Seconds())
			out.Ingestors[i].Ratios = append(out.Ingestors[i].Ratios, rates[i][len(rates[i])-1]/rates[0][len(rates[i])-1])
		}
	}
	for i := range out.Ingestors {
		out.Ingestors[i].IngestPS, out.Ingestors[i].Ratio = median(rates[i]), median(out.Ingestors[i].Ratios)
	}
	return out, nil
}

// share lets this many ingestors apply the whole log.
func (s *scratch) share(ctx context.Context, on neo4jstore.Config, generation, count int) (time.Duration, error) {
	var trouble strings.Builder
	logger := slog.New(slog.NewTextHandler(&trouble, &slog.HandlerOptions{Level: slog.LevelError}))
	goals, err := s.goals(ctx)
	if err != nil {
		return 0, err
	}
	var mu sync.Mutex
	applied := make(chan struct{})
	for partition := range goals {
		stop, err := s.log.WatchProgress(ctx, graph.Projection().Name, partition, func(seq uint64) {
			mu.Lock()
			defer mu.Unlock()
			if goal, left := goals[partition]; left && seq >= goal {
				if delete(goals, partition); len(goals) == 0 {
					close(applied)
				}
			}
		})
		if err != nil {
			return 0, err
		}
		defer stop()
	}
	var projectors []*projection.Projector[*graph.Unit]
	var release []func()
	defer func() {
		var ended sync.WaitGroup
		for _, p := range projectors {
			ended.Go(p.Stop)
		}
		ended.Wait()
		for _, r := range release {
			r()
		}
	}()
	for n := range count {
		conn, err := eventlog.Connect("", fmt.Sprint("ingestor ", n+1), quiet, s.server.InProcess())
		if err != nil {
			return 0, err
		}
		release = append(release, conn.Close)
		log, err := eventlog.Open(ctx, conn)
		if err != nil {
			return 0, err
		}
		leases, err := projection.NewLeases(projection.LeaseConfig{Conn: conn, Process: fmt.Sprint("ingestor-", n+1)})
		if err != nil {
			return 0, err
		}
		store, err := neo4jstore.OpenGraph(ctx, on, generation)
		if err != nil {
			return 0, err
		}
		release = append(release, func() { _ = store.Close() })
		p, err := projection.NewProjector(graph.Projection(), log, store, logger, projection.BatchOf(neo4jstore.BatchEvents), projection.CostlyTransactions(), projection.OfBuild("neo4j", generation), projection.Shared(leases))
		if err != nil {
			return 0, err
		}
		projectors = append(projectors, p)
	}
	began := time.Now()
	for _, p := range projectors {
		p.Start()
	}
	for {
		select {
		case <-applied:
			return time.Since(began), nil
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(time.Second):
			for _, p := range projectors {
				for _, status := range p.Status() {
					if status.State == projection.StateHalted {
						return 0, fmt.Errorf("partition %d is halted: %s", status.Partition, cmp.Or(status.Error, trouble.String()))
					}
				}
			}
		}
	}
}

// goals returns the last sequences of the partitions that have any.
func (s *scratch) goals(ctx context.Context) (map[int]uint64, error) {
	goals := map[int]uint64{}
	for partition := range s.log.Partitions() {
		last, err := s.log.LastOf(ctx, partition)
		if err != nil {
			return nil, err
		}
		if last > 0 {
			goals[partition] = last
		}
	}
	return goals, nil
}
