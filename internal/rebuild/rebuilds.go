package rebuild

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/projection"
)

// All is the name that means every projection.
const All = "all"

// Progress is the progress of a rebuild.
type Progress struct {
	Projection string `json:"projection"`
	Wish
	// Applied and Total count sequences of the log, averaged over the partitions.
	Applied uint64 `json:"applied"`
	Total   uint64 `json:"total"`
	// Rate is the recent pace in sequences per second, 0 if unknown.
	Rate float64 `json:"rate"`
	// ETA is the time left at that rate, nil if unknown.
	ETA *time.Duration `json:"-"`
}

// Rebuilds starts and cancels rebuilds and reports their progress.
type Rebuilds struct {
	control     *Control
	generations projection.Generations
	log         *eventlog.Log
	projections []string
	check       Check

	mu     sync.Mutex
	meters map[string]*meter
}

// Check returns an error if a rebuild would lose what only the read models hold.
type Check func(context.Context) error

// New returns the rebuilds of one backend's projections. check is called before a rebuild
// begins.
func New(control *Control, generations projection.Generations, log *eventlog.Log, check Check, projections ...string) *Rebuilds {
	return &Rebuilds{control: control, generations: generations, log: log, projections: projections, check: check, meters: map[string]*meter{}}
}

// named returns the projections that a name stands for, or [ErrUnknown].
func (r *Rebuilds) named(name string) ([]string, error) {
	if name == All {
		return r.projections, nil
	}
	if slices.Contains(r.projections, name) {
		return []string{name}, nil
	}
	return nil, fmt.Errorf("%w %q: known are %s, and %s for all of them", ErrUnknown, name, strings.Join(r.projections, ", "), All)
}

// Ask requests a rebuild of a projection, or of [All]. It returns [ErrUnknown] or an
// [*UnderWayError]. If any projection of All is being rebuilt, none is started; in a race
// with another request, some may be. Unless force is set, Ask returns the error of the
// check given to [New].
func (r *Rebuilds) Ask(ctx context.Context, name string, force bool) ([]Progress, error) {
	names, err := r.named(name)
	if err != nil {
		return nil, err
	}
	before := make([]Wish, len(names))
	for i, one := range names {
		if before[i], err = r.control.Get(ctx, one); err != nil {
			return nil, err
		}
		if s := before[i].State; s == Building || s == Canceled {
			return nil, &UnderWayError{one, before[i]}
		}
	}
	// Before the check: events that vanish during it are more than were missing.
	state, err := r.log.State(ctx)
	if err != nil {
		return nil, err
	}
	if !force {
		if err := r.check(ctx); err != nil {
			return nil, err
		}
	}
	wishes := make([]Wish, len(names))
	for i, one := range names {
		builds, err := r.generations.Builds(ctx, one)
		if err != nil {
			return nil, err
		}
		wishes[i] = Wish{Generation: max(builds.Last, builds.Serving) + 1, From: builds.Serving, AskedAt: time.Now().UTC(), State: Building, Force: force, Missing: state.Missing}
	}
	for i, one := range names {
		if err := r.control.begin(ctx, one, before[i], wishes[i]); err != nil {
			return nil, err
		}
	}
	return r.progress(ctx, names, wishes)
}

// Cancel cancels a rebuild and has its generation removed. It returns [ErrUnknown] or
// [ErrNotRebuilding]. With [All] it cancels every rebuild that is under way.
func (r *Rebuilds) Cancel(ctx context.Context, name string) ([]Progress, error) {
	names, err := r.named(name)
	if err != nil {
		return nil, err
	}
	var canceled []string
	var wishes []Wish
	for _, one := range names {
		for {
			w, err := r.control.Get(ctx, one)
			if err != nil {
				return nil, err
			}
			if w.State != Building && w.State != Canceled {
				break
			}
			done, err := true, error(nil)
			if w.State == Building {
				done, err = r.control.Become(ctx, one, w, Canceled, "")
			}
			if err != nil {
				return nil, err
			}
			if done {
				w.State = Canceled
				canceled, wishes = append(canceled, one), append(wishes, w)
				break
			}
		}
	}
	if len(canceled) == 0 {
		return nil, fmt.Errorf("%w of %s", ErrNotRebuilding, name)
	}
	return r.progress(ctx, canceled, wishes)
}

// List reports the last rebuild of each projection, or that its record is [Unreadable].
// Projections without one are left out.
func (r *Rebuilds) List(ctx context.Context) ([]Progress, error) {
	var names []string
	var wishes []Wish
	for _, one := range r.projections {
		w, err := r.control.Get(ctx, one)
		if err != nil {
			return nil, err
		}
		if !w.IsZero() || w.State == Unreadable {
			names, wishes = append(names, one), append(wishes, w)
		}
	}
	return r.progress(ctx, names, wishes)
}

// progress reports on wishes that were just read or written. It does not read them again
// because another replica of the bucket may not have them yet.
func (r *Rebuilds) progress(ctx context.Context, names []string, wishes []Wish) ([]Progress, error) {
	list := []Progress{}
	for i, one := range names {
		p := Progress{Projection: one, Wish: wishes[i]}
		if p.State == Building {
			if err := r.measure(ctx, &p); err != nil {
				return nil, err
			}
		}
		list = append(list, p)
	}
	return list, nil
}

// measure sets the progress of a rebuild from the checkpoints of its generation.
func (r *Rebuilds) measure(ctx context.Context, p *Progress) error {
	cps, err := r.generations.Checkpoints(ctx, p.Projection, p.Generation)
	if err != nil && !errors.Is(err, projection.ErrRebuild) {
		return err
	}
	partitions := uint64(r.log.Partitions())
	for partition := range r.log.Partitions() {
		last, err := r.log.LastOf(ctx, partition)
		if err != nil {
			return err
		}
		p.Total += last
		for _, cp := range cps {
			if cp.Partition == partition {
				p.Applied += min(cp.Seq, last)
			}
		}
	}
	p.Applied, p.Total = p.Applied/partitions, p.Total/partitions
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.meters[p.Projection]
	if m == nil || m.generation != p.Generation {
		m = &meter{generation: p.Generation}
		r.meters[p.Projection] = m
	}
	p.Rate = m.rate(time.Now(), p.Applied, p.AskedAt)
	if p.Rate > 0 {
		p.ETA = new(time.Duration(float64(p.Total-p.Applied) / p.Rate * float64(time.Second)))
	}
	return nil
}

// A rate covers about the last ten seconds, and at least one second.
const (
	rateOver  = 10 * time.Second
	rateLeast = time.Second
)

// meter remembers the progress of one rebuild over the last seconds.
type meter struct {
	generation int
	seen       []reading
}

type reading struct {
	at      time.Time
	applied uint64
}

// rate returns the pace since the oldest reading that is recent enough. The first call
// returns the pace since the rebuild was requested, by the clock of the process that
// requested it.
func (m *meter) rate(now time.Time, applied uint64, began time.Time) float64 {
	since := reading{at: began}
	for len(m.seen) > 1 && now.Sub(m.seen[1].at) > rateOver {
		m.seen = m.seen[1:]
	}
	if len(m.seen) > 0 && now.Sub(m.seen[0].at) >= rateLeast {
		since = m.seen[0]
	}
	if len(m.seen) == 0 || now.Sub(m.seen[len(m.seen)-1].at) >= rateLeast {
		m.seen = append(m.seen, reading{now, applied})
	}
	if took := now.Sub(since.at).Seconds(); took > 0 && applied > since.applied {
		return float64(applied-since.applied) / took
	}
	return 0
}
