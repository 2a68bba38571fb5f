package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph/neo4jstore"
)

// RebuildOptions are the options of [RunRebuild].
type RebuildOptions struct {
	Program Program
	Rounds  int           // of the measurements without other load
	Rate    int           // events published per second during a rebuild; a fourth of them is read back
	WarmUp  time.Duration // of publishing, not measured
	For     time.Duration // of publishing, with a rebuild and without
}

// Rebuild is the result of [RunRebuild].
type Rebuild struct {
	Machine   Machine   `json:"machine"`
	Store     Store     `json:"store"`
	Events    uint64    `json:"events"`
	MB        float64   `json:"mb"`
	IngestPS  float64   `json:"ingest_events_per_s"`  // median: into empty read models, at the start of a program
	RebuildPS float64   `json:"rebuild_events_per_s"` // median: next to the serving read models, until it serves
	Ratio     float64   `json:"ratio"`                // median of the rounds
	Ratios    []float64 `json:"ratios"`
	Rate      int       `json:"rate_events_per_s"` // of the events published during the rebuild
	Without   Live      `json:"without"`
	With      Live      `json:"with"`
	Rebuilds  int       `json:"rebuilds"`  // completed while With was measured
	P99Ratio  float64   `json:"p99_ratio"` // ratio of With to Without, for Readable
}

// Live is what publishers and readers see.
type Live struct {
	Pace         float64   `json:"pace_events_per_s"`
	Acknowledged Latencies `json:"acknowledged"`
	Readable     Latencies `json:"readable"`
	Context      Latencies `json:"context"`
}

// RunRebuild measures rebuilds of all read models by the program itself. In each round the program
// starts with a log of the transcripts and empty read models, which it fills; then it rebuilds them
// on request. In the last round RunRebuild also publishes at an even rate and reads, as
// [RunLatency] does, first without a rebuild and then with one running all the time. Without events
// it returns [ErrNoEvents]. It removes what it wrote, in Neo4j too. Neo4j must not hold the read
// models of another mneme; otherwise it returns [ErrInUse].
func RunRebuild(ctx context.Context, paths []string, o RebuildOptions, say Say) (out Rebuild, err error) {
	out.Machine, out.Rate = thisMachine(), o.Rate
	live, err := take(ctx, paths, int(float64(o.Rate)*(o.WarmUp+o.For).Seconds()))
	if err != nil {
		return out, err
	}
	if out.Store, err = o.Program.take(ctx); err != nil {
		return out, err
	}
	defer func() { err = o.Program.giveBack(ctx, err) }()
	s, _, state, err := newFilled(ctx, natsdeploy.Settings{}, paths, say)
	if err != nil {
		return out, err
	}
	defer s.close()
	out.Events, out.MB = state.Messages, float64(state.Bytes)/1e6
	s.end() // the program owns it from here on
	var server *program
	defer func() { server.stop() }()
	var ingest, rebuild []float64
	for round := range warmUps(o.Program.Neo4j) + o.Rounds {
		say("round %d of %d", round+1-warmUps(o.Program.Neo4j), o.Rounds)
		server.stop()
		if err := o.Program.forget(ctx, s.dir); err != nil {
			return out, err
		}
		if server, err = o.Program.up(ctx, s.dir); err != nil {
			return out, err
		}
		a := newAPI(server.http, tenant, 4*sessions)
		filled, err := a.awaitApplied(ctx)
		if err != nil {
			return out, err
		}
		rebuilt, err := a.rebuildAll(ctx)
		if err != nil {
			return out, err
		}
		if round < warmUps(o.Program.Neo4j) {
			continue
		}
		n := float64(out.Events)
		ingest, rebuild = append(ingest, n/filled.Seconds()), append(rebuild, n/rebuilt.Seconds())
		out.Ratios = append(out.Ratios, filled.Seconds()/rebuilt.Seconds())
	}
	out.IngestPS, out.RebuildPS, out.Ratio = median(ingest), median(rebuild), median(out.Ratios)

	// A new process does not touch a superseded generation until it is time to remove it.
	server.stop()
	if server, err = o.Program.up(ctx, s.dir); err != nil {
		return out, err
	}
	if _, err := newAPI(server.http, tenant, 1).awaitApplied(ctx); err != nil {
		return out, err
	}
	live = interleave(live, sessions)
	if out.Without, err = o.live(ctx, server, tenant+"-without", live, say); err != nil {
		return out, err
	}
	rebuilding, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- newAPI(server.http, tenant, 1).keepRebuilding(rebuilding, &out.Rebuilds) }()
	out.With, err = o.live(ctx, server, tenant+"-with", live, say)
	stop()
	if err = errors.Join(err, <-ended); err != nil {
		return out, err
	}
	out.P99Ratio = out.With.Readable.P99 / out.Without.Readable.P99
	return out, nil
}

// live publishes to the program and reads from it.
func (o RebuildOptions) live(ctx context.Context, server *program, tenant string, list []events.Event, say Say) (out Live, err error) {
	p, err := paced(ctx, server, tenant, list, LatencyOptions{Rate: o.Rate, Reads: max(1, o.Rate/4), WarmUp: o.WarmUp}, say)
	if err != nil {
		return out, err
	}
	out.Pace = float64(len(list)-p.warmUp) / p.took.Seconds()
	out.Acknowledged, out.Readable, out.Context = latencies(p.acknowledged), latencies(p.readable), latencies(p.context)
	return out, nil
}

// forget removes the program's read models; the program must have ended.
func (p Program) forget(ctx context.Context, dir string) error {
	if p.Neo4j == nil {
		return os.RemoveAll(filepath.Join(dir, "models"))
	}
	return neo4jstore.Reset(ctx, *p.Neo4j)
}

// poll is how often the program is asked for its progress.
const poll = 20 * time.Millisecond

// await polls the program's status until done accepts it. It returns how long that took.
func await[T any](ctx context.Context, a *api, path string, done func(*T) (bool, error)) (time.Duration, error) {
	began := time.Now()
	for {
		var state T
		if err := a.read(ctx, path, nil, &state); err != nil {
			return 0, err
		}
		ok, err := done(&state)
		if ok || err != nil {
			return time.Since(began), err
		}
		if err := wait(ctx, poll); err != nil {
			return 0, err
		}
	}
}

// awaitApplied waits until the whole log is applied.
func (a *api) awaitApplied(ctx context.Context) (time.Duration, error) {
	type status struct {
		Projections []struct {
			State, Error string
			Lag          uint64
		}
	}
	return await(ctx, a, "/v1/status", func(status *status) (applied bool, err error) {
		applied = len(status.Projections) > 0
		for _, p := range status.Projections {
			if p.State == "halted" {
				err = errors.Join(err, errors.New(p.Error))
			}
			applied = applied && p.State == "live" && p.Lag == 0
		}
		return applied, err
	})
}

// rebuildAll requests a rebuild of everything and waits until it serves.
func (a *api) rebuildAll(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	if _, err := a.send(ctx, http.MethodPost, "/v1/rebuilds", nil, map[string]string{"projection": "all"}, http.StatusAccepted); err != nil {
		return 0, err
	}
	type rebuilds struct {
		Rebuilds []struct{ Projection, State, Error string }
	}
	_, err := await(ctx, a, "/v1/rebuilds", func(list *rebuilds) (done bool, err error) {
		done = len(list.Rebuilds) > 0
		for _, r := range list.Rebuilds {
			if !slices.Contains([]string{"building", "serving"}, r.State) {
				err = errors.Join(err, fmt.Errorf("rebuild of %s: %s %s", r.Projection, r.State, r.Error))
			}
			done = done && r.State == "serving"
		}
		return done, err
	})
	return time.Since(began), err
}

// keepRebuilding runs one rebuild after another until ctx ends, and counts the completed ones.
func (a *api) keepRebuilding(ctx context.Context, ended *int) error {
	for {
		_, err := a.rebuildAll(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		*ended++
	}
}
