package projection

import (
	"context"
	"slices"

	"mneme.dev/mneme/pkg/eventlog"
)

// Progress compares what a read model has applied with what the log holds now, for each partition of the log, even one
// that no projector ever drove. running is the status of projectors, of this process or of all (see [Cluster.Statuses]);
// without it the state is derived from the positions.
//
// The returned lag is an upper bound: with several partitions it can include events of other partitions until the
// server has counted those of this one.
func Progress(ctx context.Context, of Build, log *eventlog.Log, model ReadStore, running []Status) ([]Status, error) {
	cps, err := model.Checkpoints(ctx)
	if err != nil {
		return nil, err
	}
	for n := range log.Partitions() {
		if !slices.ContainsFunc(cps, func(cp Checkpoint) bool { return cp.Partition == n }) {
			cps = append(cps, Checkpoint{Partition: n})
		}
	}
	slices.SortFunc(cps, func(a, b Checkpoint) int { return a.Partition - b.Partition })
	list := make([]Status, 0, len(cps))
	for _, cp := range cps {
		head, err := log.LastOf(ctx, cp.Partition)
		if err != nil {
			return nil, err
		}
		s := Status{Build: of, Partition: cp.Partition, State: StateLive, Checkpoint: cp, Head: head, Error: cp.Halted}
		if head > cp.Seq {
			s.State, s.Lag = StateCatchingUp, head-cp.Seq
		}
		if cp.Halted != "" {
			s.State = StateHalted
		}
		for _, r := range running {
			if r.Build == of && r.Partition == cp.Partition {
				s.say(r)
			}
		}
		list = append(list, s)
	}
	return list, nil
}

// say merges the status that a projector reports into a position.
func (s *Status) say(r Status) {
	s.State, s.Rate, s.Retries, s.Holder = r.State, r.Rate, r.Retries, r.Holder
	if r.Error != "" || r.State == StateLive {
		s.Error = r.Error
	}
	if r.Error == "" && r.Checkpoint.Seq >= s.Checkpoint.Seq && r.Lag < s.Lag && r.Lag > 0 { // in trouble, it counted long ago
		s.Lag = r.Lag
	}
}
