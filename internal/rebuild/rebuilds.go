package rebuild

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"mneme/pkg/eventlog"
	"mneme/pkg/projection"
)

// All stands for every projection.
const All = "all"

// Progress is how far a rebuild is.
type Progress struct {
	Projection string `json:"projection"`
	Wish
	// Applied of Total sequences of the log; of several partitions it is the mean.
	Applied uint64 `json:"applied"`
	Total   uint64 `json:"total"`
	// Rate is sequences a second, lately, 0 if nobody knows.
	Rate float64 `json:"rate"`
	// ETA is how long it will still take at that rate, nil if nobody knows.
	ETA *time.Duration `json:"-"`
}

// Rebuilds asks for rebuilds and tells how far they are.
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

// New is for the projections of one backend. check is asked before a rebuild begins.
func New(control *Control, generations projection.Generations, log *eventlog.Log, check Check, projections ...string) *Rebuilds {
	return &Rebuilds{control: control, generations: generations, log: log, projections: projections, check: check, meters: map[string]*meter{}}
}

// named are the projections that a name means, or [ErrUnknown].
func (r *Rebuilds) named(name string) ([]string, error) {
	if name == All {
		return r.projections, nil
	}
	if slices.Contains(r.projections, name) {
		return []string{name}, nil
	}
	return nil, fmt.Errorf("%w %q: known are %s, and %s for all of them", ErrUnknown, name, strings.Join(r.projections, ", "), All)
}

// Ask begins a rebuild of a projection, or of [All]. It returns [ErrUnknown], or an
// [*UnderWayError]; if one of all is under way none is begun, unless it began just now.
// Unless force is set it returns the error of the check that [New] was given.
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
	if !force {
		if err := r.check(ctx); err != nil {
			return nil, err
		}
	}
	state, err := r.log.State(ctx)
	if err != nil {
		return nil, err
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

// Cancel ends a rebuild; what it made is removed. It returns [ErrUnknown] or
// [ErrNotRebuilding]. Of [All] it cancels those that there are.
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

// List tells how far the last rebuild of each projection is, or that its record is
// [Unreadable]; those that never had one are left out.
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

// progress is how far wishes are that were just read or written: of a bucket with copies
// another one may not have what was written.
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

// measure sets how far a rebuild is, from the checkpoints of what it builds.
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
		eta := time.Duration(float64(p.Total-p.Applied) / p.Rate * float64(time.Second))
		p.ETA = &eta
	}
	return nil
}

// A rate is that of the last ten seconds or so, and of one at least.
const (
	rateOver  = 10 * time.Second
	rateLeast = time.Second
)

// meter remembers how far a rebuild was.
type meter struct {
	generation int
	seen       []reading
}

type reading struct {
	at      time.Time
	applied uint64
}

// rate is that since the oldest reading that is not too old. The first that is asked for
// is that since the beginning, by the wall clock of whoever asked for the rebuild.
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
