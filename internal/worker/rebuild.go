package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"mneme.dev/mneme/internal/rebuild"
	"mneme.dev/mneme/pkg/projection"
)

// Retention is how long a superseded generation stays. A request that began on it may still read it
// or wait for a sequence, and other processes learn of the change later, so it is kept up to date for
// a while. Then, once no reader of this process uses it, its projector stops. It is discarded when
// the projectors of other processes must have stopped too.
type Retention struct {
	Kept  time.Duration // longer than a request can wait and then read; 0 means 2 minutes
	Rests time.Duration // longer than the delay between processes plus one batch; 0 means 15 seconds
}

func (r Retention) withDefaults() Retention {
	return Retention{cmp.Or(r.Kept, 2*time.Minute), cmp.Or(r.Rests, 15*time.Second)}
}

// How often a process checks which generation serves and whether a rebuild is requested, in
// addition to watching the requests; and how often it checks, while building, whether the
// build is done.
const (
	LookEvery  = time.Second // also of readers in other processes
	checkEvery = 200 * time.Millisecond
)

// catchesUpWithin is how far a new generation may lag when it starts to serve: it must have
// what the old one had this long ago. If a batch or a check takes longer, the lag may be
// larger, because in a slow store it is always at least a batch or two.
const catchesUpWithin = time.Second

// steps is the state that a consumer keeps between its steps.
type steps struct {
	wake           chan struct{}
	goals          []uint64 // by partition: the sequence that the next generation must reach
	goalsAt        time.Time
	seen           map[int]time.Time // when a generation was first found to be useless
	discarding     bool
	discarded      chan outcome
	rest           time.Time // discard nothing before: another process is doing it, or it failed
	said           news
	unreadableSaid news
	discardSaid    news
	keepSaid       news
}

// outcome is the result of a removal; done is false if another process is removing it.
type outcome struct {
	done bool
	err  error
}

// news holds the last logged error, so that a persistent one is logged once.
type news string

// is reports whether an error is new and should be logged.
func (n *news) is(err error) bool {
	before := *n
	if *n = ""; err != nil {
		*n = news(err.Error())
	}
	return *n != "" && *n != before
}

// again makes the next step run at once.
func (s *steps) again() {
	select {
	case s.wake <- struct{}{}:
	default: // already requested
	}
}

// run repeats step until ctx ends. It retries whatever fails.
func (c *Consumer[U, S]) run(ctx context.Context) {
	c.steps.seen, c.steps.discarded = map[int]time.Time{}, make(chan outcome, 1)
	var discards sync.WaitGroup
	defer discards.Wait()
	for {
		err := c.step(ctx, &discards)
		if ctx.Err() != nil {
			return
		}
		if c.steps.said.is(err) {
			c.slog.Warn("generation maintenance failed; will retry", "error", err)
		}
		wait := LookEvery
		if c.next != nil {
			wait = checkEvery
		}
		select {
		case <-time.After(wait):
		case <-c.steps.wake:
		case o := <-c.steps.discarded:
			c.steps.discarding = false
			if !o.done || o.err != nil {
				c.steps.rest = time.Now().Add(LookEvery)
			}
			if c.steps.discardSaid.is(o.err) {
				c.slog.Warn("removing a generation failed; will retry", "error", o.err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// step adopts the generation that serves in the store, then works on the requested rebuild,
// then removes generations that are no longer needed. It reads the request first: the
// serving generation is then at least the one that served when the request was made.
func (c *Consumer[U, S]) step(ctx context.Context, discards *sync.WaitGroup) error {
	wish, unread := c.control.Get(ctx, c.declared.Name())
	if unread == nil && c.steps.unreadableSaid.is(unreadable(wish)) {
		c.slog.Warn("cannot read the record of a rebuild; assuming that none is running", "reason", wish.Error)
	}
	builds, err := c.Stores.Generations().Builds(ctx, c.declared.Name())
	if err != nil {
		return err
	}
	if builds.Serving == c.serving.Number && c.isDeleted(c.serving.Number) {
		builds.Serving++
		c.slog.Error("the read model's file was deleted while it was in use: the read model is being rebuilt from the log", "generation", builds.Serving)
	}
	if builds.Serving != c.serving.Number {
		if err := c.follow(ctx, builds.Serving); err != nil {
			return err
		}
	}
	err = unread
	if err == nil {
		err = c.fulfil(ctx, wish, builds, discards)
	}
	return errors.Join(err, c.clean(ctx, wish, unread == nil, builds, discards))
}

// unreadable returns why the record of a request can't be read, nil if it can.
func unreadable(wish rebuild.Wish) error {
	if wish.State == rebuild.Unreadable {
		return errors.New(wish.Error)
	}
	return nil
}

// follow makes the generation that serves the live one.
func (c *Consumer[U, S]) follow(ctx context.Context, generation int) error {
	b := c.next
	if b == nil || b.Number != generation { // built by another process
		var err error
		if b, err = c.build(ctx, generation); err != nil {
			return err
		}
		b.projector.Start()
	}
	b.live.Store(true)
	c.mu.Lock()
	old := c.serving
	old.live.Store(false)
	c.serving = b
	if b == c.next {
		c.next = nil
	}
	c.old = append(c.old, old)
	c.mu.Unlock()
	c.current.Put(b.Generation)
	c.slog.Info("a new generation serves", "generation", generation, "before", old.Number)
	if c.Switched != nil {
		c.Switched()
	}
	return nil
}

// fulfil carries out the requested rebuild as far as possible now.
func (c *Consumer[U, S]) fulfil(ctx context.Context, wish rebuild.Wish, builds projection.Builds, discards *sync.WaitGroup) error {
	name := c.declared.Name()
	if c.next != nil && (wish.State != rebuild.Building || wish.Generation != c.next.Number) {
		c.slog.Info("rebuild ended", "generation", c.next.Number)
		c.abandon()
	}
	switch {
	case wish.IsZero() || wish.State == rebuild.Serving:
		return nil
	case builds.Serving >= wish.Generation: // also after a late cancel
		_, err := c.control.Become(ctx, name, wish, rebuild.Serving, "")
		return err
	case wish.State == rebuild.Building && wish.Generation > max(builds.Last, builds.Serving)+1:
		_, err := c.control.Become(ctx, name, wish, rebuild.Failed, fmt.Sprintf("the request is for generation %d, but the next one is %d: something other than mneme made it", wish.Generation, max(builds.Last, builds.Serving)+1))
		return err
	case wish.State == rebuild.Building:
		return c.advance(ctx, wish)
	case wish.State == rebuild.Canceled || slices.Contains(builds.Others, wish.Generation):
		c.discard(ctx, discards, wish.Generation, func(ctx context.Context) error {
			if wish.State == rebuild.Canceled {
				return c.control.Forget(ctx, name, wish)
			}
			return nil
		})
	}
	return nil
}

// abandon stops building.
func (c *Consumer[U, S]) abandon() {
	c.next.end()
	c.mu.Lock()
	c.next = nil
	c.mu.Unlock()
	c.steps.goals = nil
}

// advance builds the requested generation and makes it serve once it has caught up.
func (c *Consumer[U, S]) advance(ctx context.Context, wish rebuild.Wish) error {
	name := c.declared.Name()
	fail := func(reason string) error {
		c.slog.Error("rebuild failed", "generation", wish.Generation, "reason", reason)
		if c.next != nil {
			c.abandon()
		}
		_, err := c.control.Become(ctx, name, wish, rebuild.Failed, reason)
		c.steps.again()
		return err
	}
	if wish.From != c.serving.Number {
		return fail(fmt.Sprintf("it began while generation %d served, but now generation %d serves", wish.From, c.serving.Number))
	}
	if c.next == nil {
		b, err := c.build(ctx, wish.Generation)
		if errors.Is(err, projection.ErrRebuild) || errors.Is(err, projection.ErrSuperseded) || errors.Is(err, projection.ErrDamaged) {
			return fail(err.Error())
		}
		if err != nil {
			return err
		}
		c.mu.Lock()
		c.next = b
		c.mu.Unlock()
		c.slog.Info("rebuilding", "generation", wish.Generation, "from", wish.From)
		b.projector.Start()
	}
	statuses := c.next.projector.Status()
	cps, err := c.next.Store.Checkpoints(ctx)
	for _, s := range statuses {
		if s.State != projection.StateHalted {
			continue
		}
		for _, cp := range cps {
			if s.OtherBuild && cp.Partition == s.Partition { // to rebuild, as s.Error says, helps only then
				return fail(c.builtElsewhere(cp))
			}
		}
		return fail(s.Error) // even if the checkpoints can't be read, because the file is damaged
	}
	if err != nil {
		return err
	}
	for _, cp := range cps {
		if cp.Halted != "" {
			return fail(cp.Halted)
		}
	}
	if ready, err := c.hasCaughtUp(ctx, cps); err != nil || !ready {
		return err
	}
	for _, cp := range cps { // check that all programs are of one version
		if cp.Fingerprint != c.declared.Fingerprint() {
			return fail(c.builtElsewhere(cp))
		}
	}
	if !wish.Force {
		state, err := c.Log.State(ctx)
		if err != nil {
			return err
		}
		if state.Missing > wish.Missing {
			return fail(fmt.Sprintf("events that vanished from the log during the rebuild: %d; restore the log, or see mneme repair log", state.Missing-wish.Missing))
		}
	}
	if now, err := c.control.Get(ctx, name); err != nil || now != wish {
		c.steps.again()
		return err
	}
	err = c.Stores.Generations().Supersede(ctx, name, wish.From, wish.Generation)
	if errors.Is(err, projection.ErrSuperseded) {
		return fail(err.Error())
	}
	c.steps.goals = nil
	c.steps.again() // to follow
	return err
}

// builtElsewhere says that another process, which differs from this one, takes part in a rebuild.
func (c *Consumer[U, S]) builtElsewhere(cp projection.Checkpoint) string {
	return fmt.Sprintf("partition %d was built as %s, but this program builds %s: run the same version of all programs, and rebuild again", cp.Partition, cp.Fingerprint, c.declared.Fingerprint())
}

// hasCaughtUp reports whether the next generation, whose checkpoints are cps, has applied what the
// serving generation had applied a moment ago. A partition of the serving generation may be halted,
// damaged or of another version. There the next generation must have applied all that the log held
// at that moment.
func (c *Consumer[U, S]) hasCaughtUp(ctx context.Context, cps []projection.Checkpoint) (bool, error) {
	age := time.Since(c.steps.goalsAt)
	within := max(catchesUpWithin, 2*time.Duration(c.next.took.Load()))
	if c.steps.goals != nil && age < 3*within {
		reached := 0
		for _, goal := range c.steps.goals {
			if goal == 0 {
				reached++
			}
		}
		for _, cp := range cps {
			if cp.Partition < len(c.steps.goals) && c.steps.goals[cp.Partition] > 0 && cp.Seq >= c.steps.goals[cp.Partition] {
				reached++
			}
		}
		if reached == len(c.steps.goals) {
			return true, nil
		}
	}
	if c.steps.goals == nil || age > within {
		goals, at := make([]uint64, c.Log.Partitions()), time.Now()
		live, err := c.serving.Store.Checkpoints(ctx)
		if err != nil && !errors.Is(err, projection.ErrDamaged) { // a damaged one makes no progress: the log is the goal
			return false, err
		}
		for partition := range goals {
			if goals[partition], err = c.Log.LastOf(ctx, partition); err != nil {
				return false, err
			}
		}
		stands := map[int]bool{} // halts that this process found and no checkpoint records
		for _, s := range c.serving.projector.Status() {
			stands[s.Partition] = s.State == projection.StateHalted
		}
		for _, cp := range live {
			goesOn := cp.Halted == "" && !stands[cp.Partition] && cp.Fingerprint == c.declared.Fingerprint()
			if goesOn && cp.Partition < len(goals) {
				goals[cp.Partition] = min(goals[cp.Partition], cp.Seq)
			}
		}
		c.steps.goals, c.steps.goalsAt = goals, at
	}
	return false, nil
}

// clean stops and removes generations that were superseded long enough ago, also by a
// process that has since ended, and unfinished ones that no request wants. read says
// whether the request is known.
func (c *Consumer[U, S]) clean(ctx context.Context, wish rebuild.Wish, read bool, builds projection.Builds, discards *sync.WaitGroup) error {
	for generation := range c.steps.seen {
		if !slices.Contains(builds.Others, generation) {
			delete(c.steps.seen, generation)
		}
	}
	for _, generation := range builds.Others {
		useless := generation < builds.Serving || read && generation != wish.Generation && (c.next == nil || generation != c.next.Number)
		if _, known := c.steps.seen[generation]; !known && useless {
			c.steps.seen[generation] = time.Now()
		} else if !useless && read {
			delete(c.steps.seen, generation)
		}
	}
	var kept []*build[U, S]
	var closing error
	for _, b := range c.old {
		since, exists := c.steps.seen[b.Number]
		if !exists || time.Since(since) > c.Retention.Kept && !b.isRead() {
			b.end()
		}
		if b.isClosed() {
			closing = errors.Join(closing, b.err)
			continue
		}
		kept = append(kept, b)
	}
	c.mu.Lock()
	c.old = kept
	c.mu.Unlock()
	for generation, since := range c.steps.seen {
		open := slices.ContainsFunc(kept, func(b *build[U, S]) bool { return b.Number == generation })
		if open || time.Since(since) <= c.Retention.Kept+c.Retention.Rests {
			continue
		}
		if generation < builds.Serving {
			keep, err := c.mayBeLastCopy(ctx)
			if err != nil {
				return errors.Join(closing, err)
			}
			if keep {
				continue
			}
		}
		c.discard(ctx, discards, generation, nil)
	}
	return closing
}

// mayBeLastCopy reports whether a superseded generation may hold events that the log has
// lost. It is then kept until an operator resolves the loss with mneme repair log.
func (c *Consumer[U, S]) mayBeLastCopy(ctx context.Context) (bool, error) {
	state, err := c.Log.State(ctx)
	if err != nil || state.Missing == 0 {
		c.steps.keepSaid = ""
		return false, err
	}
	if reason := fmt.Errorf("events missing from the log: %d", state.Missing); c.steps.keepSaid.is(reason) {
		c.slog.Warn("keeping superseded generations until mneme repair log resolves the missing events", "reason", reason)
	}
	return true, nil
}

// discard removes a generation in the background, because that can take minutes; it does
// nothing while another removal runs. If several processes write, one of them removes it.
func (c *Consumer[U, S]) discard(ctx context.Context, discards *sync.WaitGroup, generation int, then func(context.Context) error) {
	if c.steps.discarding || time.Now().Before(c.steps.rest) {
		return
	}
	c.steps.discarding = true
	work := func(ctx context.Context) error {
		if err := c.Stores.Generations().Discard(ctx, c.declared.Name(), generation); err != nil {
			return err
		}
		c.slog.Info("generation removed", "generation", generation)
		if then != nil {
			return then(ctx)
		}
		return nil
	}
	discards.Go(func() {
		o := outcome{done: true}
		if c.Leases == nil {
			o.err = work(ctx)
		} else {
			o.done, o.err = c.Leases.Exclusively(ctx, "discard-"+c.declared.Name(), work)
		}
		c.steps.discarded <- o
	})
}
