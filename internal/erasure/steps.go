package erasure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph/readmodel"
	"mneme.dev/mneme/pkg/projection"
)

const (
	// batchEvents is how many messages the record names at once.
	batchEvents = 500
	// maxRounds is how often an erasure repeats its work for events that came while it ran.
	maxRounds = 5
	// pollEvery is how often a step checks whether what it waits for has happened.
	pollEvery = 200 * time.Millisecond
)

// carryOut goes through the states until the erasure is done.
func (e *Eraser) carryOut(ctx context.Context, r *Record) error {
	for r.Running() {
		next, err := Done, error(nil)
		switch r.State {
		case Marking:
			next, err = Waiting, e.mark(ctx, r)
		case Waiting:
			next, err = Overwriting, e.await(ctx, r)
		case Overwriting:
			next, err = Cleaning, e.overwrite(ctx, r)
		case Cleaning:
			next, err = e.clean(ctx, r)
		default:
			err = fmt.Errorf("the record says %.32q, which this version does not know: run the newest version of mneme", r.State)
		}
		if err != nil {
			return err
		}
		now := time.Now().UTC().Truncate(time.Millisecond)
		switch next {
		case Waiting:
			if r.Report.MarkedAt.IsZero() {
				r.Report.MarkedAt = now
			}
		case Cleaning:
			r.Report.ErasedAt = now
		case Done:
			r.Report.EndedAt = now
			if err := r.Report.seal(); err != nil {
				return err
			}
		}
		e.Step("after " + string(r.State))
		r.State, r.Doing = next, ""
		if err := e.records.put(ctx, r); err != nil {
			return err
		}
	}
	e.progress = progress{} // it has the ids of what was erased
	e.Logger.Info("erasure done", "conversations", r.Report.Conversations, "events", r.Report.total(), "sha256", r.Report.SHA256)
	return nil
}

// mark gives each conversation of the scope its tombstone.
func (e *Eraser) mark(ctx context.Context, r *Record) error {
	list, err := e.Look(ctx, r.Report.Scope)
	if err != nil {
		return err
	}
	for _, f := range list {
		id := events.ConversationID{Tenant: r.Report.Scope.Tenant, ID: f.ID}
		m, err := e.Log.LastOfKind(ctx, id.Tenant, id.ID, kindDeleted)
		if err != nil && !errors.Is(err, eventlog.ErrNotFound) {
			return err
		}
		if err == nil && isTombstone(&m) && (f.Events == 0 || isOf(&m, r)) {
			continue // of an earlier attempt, or of an erasure that left nothing else
		}
		tombstone, err := events.New(f.ID, Source, eventID(r), &events.ConversationDeleted{})
		if err != nil {
			return err
		}
		e.Step("before the tombstone of " + f.ID)
		if _, err := e.Log.Publish(ctx, id.Tenant, tombstone); err != nil {
			return fmt.Errorf("mark a conversation as deleted: %w", err)
		}
	}
	return nil
}

// eventID is the id of the tombstones of an erasure.
func eventID(r *Record) string { return "erase-" + r.ID }

func isOf(m *eventlog.Message, r *Record) bool {
	decoded, _, err := m.Decode()
	return err == nil && decoded.Source == Source && decoded.ID == eventID(r)
}

// targets lists the conversations that were marked, sorted by their tombstones.
func (e *Eraser) targets(ctx context.Context, r *Record) (list []string, err error) {
	scope := r.Report.Scope
	if scope.Conversation != "" { // its tombstone may be of an earlier erasure
		list = append(list, scope.Conversation)
	}
	err = e.Log.Tail(ctx, eventlog.Filter{Tenant: scope.Tenant, Kinds: []string{kindDeleted}}, eventlog.TailOptions{From: 1, ToEnd: true}, func(m eventlog.Message) error {
		if isOf(&m, r) {
			address, err := events.ParseSubject(m.Subject)
			if err != nil {
				return err
			}
			list = append(list, address.Conversation)
		}
		return nil
	})
	slices.Sort(list)
	return slices.Compact(list), err
}

// await waits until every read model has applied the tombstones, but for those that only enrich others only while
// they get on.
func (e *Eraser) await(ctx context.Context, r *Record) error {
	goals, err := e.goals(ctx)
	if err != nil {
		return err
	}
	for _, m := range e.Projections {
		for wait := e.progressOf(r).wait("apply", m, e.Patience); ; {
			behind, err := e.behind(ctx, m.Name, goals)
			if err != nil {
				return err
			}
			if behind == "" || wait.over(behind) {
				break
			}
			if err := e.waitFor(ctx, r, behind); err != nil {
				return err
			}
		}
	}
	return nil
}

// progress is what an erasure need not do again after it was broken off, as on a slow machine that loses the lease
// again and again: otherwise it would never come to an end there.
type progress struct {
	erasure  string
	rounds   int
	waits    map[string]*wait
	repaired map[projection.Build]map[string]bool
}

// progressOf returns the progress of an erasure in its present round. Events that came later begin a new one.
func (e *Eraser) progressOf(r *Record) *progress {
	if p := &e.progress; p.erasure != r.ID || p.rounds != r.Rounds {
		*p = progress{erasure: r.ID, rounds: r.Rounds, waits: map[string]*wait{}, repaired: map[projection.Build]map[string]bool{}}
	}
	return &e.progress
}

// wait returns how long an erasure waits until a read model has done something.
func (p *progress) wait(does string, m readmodel.Info, patience time.Duration) *wait {
	key := does + " " + m.Name
	if p.waits[key] == nil {
		p.waits[key] = &wait{}
		if m.Enriches {
			p.waits[key].limit = patience
		}
	}
	return p.waits[key]
}

// wait is how long an erasure waits for something that does not change.
type wait struct {
	limit time.Duration // 0: without end
	what  string
	since time.Time
}

// over reports whether the erasure has waited for this long enough, and goes on without it.
func (w *wait) over(what string) bool {
	if w.what != what {
		w.what, w.since = what, time.Now()
	}
	return w.limit != 0 && time.Since(w.since) > w.limit
}

// goals returns the newest sequence of each partition.
func (e *Eraser) goals(ctx context.Context) (list []uint64, err error) {
	list = make([]uint64, e.Log.Partitions())
	for n := range list {
		if list[n], err = e.Log.LastOf(ctx, n); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// behind says what a read model still has to apply, "" for nothing or if the read model does not exist.
func (e *Eraser) behind(ctx context.Context, name string, goals []uint64) (string, error) {
	builds, err := e.Generations.Builds(ctx, name)
	if err != nil {
		return "", err
	}
	cps, err := e.Generations.Checkpoints(ctx, name, builds.Serving)
	if err != nil {
		return "", err
	}
	if len(cps) == 0 {
		return "", nil
	}
	at := make([]uint64, len(goals))
	for _, cp := range cps {
		if cp.Partition < len(at) {
			at[cp.Partition] = cp.Seq
		}
		if cp.Halted != "" {
			return fmt.Sprintf("the read model %s is halted (%s): mneme status says what to do", name, cp.Halted), nil
		}
	}
	for n, goal := range goals {
		if at[n] < goal {
			return fmt.Sprintf("the read model %s has applied sequence %d of %d in partition %d", name, at[n], goal, n), nil
		}
	}
	return "", nil
}

// waitFor records what the erasure waits for, at most once a second, and waits a little.
func (e *Eraser) waitFor(ctx context.Context, r *Record, what string) error {
	e.Step("waiting")
	if r.Doing == "" || r.Doing != what && time.Since(e.recorded) > time.Second {
		r.Doing = what
		e.recorded = time.Now()
		if err := e.records.put(ctx, r); err != nil {
			return err
		}
	}
	select {
	case <-time.After(pollEvery):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// overwrite erases all events of the marked conversations except their tombstones.
func (e *Eraser) overwrite(ctx context.Context, r *Record) error {
	if err := e.finishBatch(ctx, r); err != nil { // the batch of a process that died
		return err
	}
	list, err := e.targets(ctx, r)
	if err != nil {
		return err
	}
	if r.Report.Conversations == 0 {
		r.Report.Conversations = len(list)
		for _, id := range list[:min(len(list), maxHashes)] {
			r.Report.ConversationHashes = append(r.Report.ConversationHashes, HashOf(r.Report.Scope.Tenant, id))
		}
	}
	var batch []erasable
	for _, id := range list {
		for {
			found, more, err := e.find(ctx, r, id, batchEvents-len(batch))
			if err != nil {
				return err
			}
			batch = append(batch, found...)
			if !more {
				break
			}
			if err := e.eraseBatch(ctx, r, batch); err != nil {
				return err
			}
			batch = nil
		}
	}
	return e.eraseBatch(ctx, r, batch)
}

// errEnough makes a read of the log stop early.
var errEnough = errors.New("enough")

// erasable is a message to erase.
type erasable struct {
	seq   uint64
	kind  string
	bytes uint64
}

// find lists up to limit messages of a conversation that an erasure erases: all but the newest tombstone.
func (e *Eraser) find(ctx context.Context, r *Record, id string, limit int) (list []erasable, more bool, err error) {
	tenant := r.Report.Scope.Tenant
	keep, err := e.kept(ctx, tenant, id)
	if err != nil {
		return nil, false, err
	}
	state, err := e.Log.State(ctx)
	if err != nil {
		return nil, false, err
	}
	err = e.Log.Conversation(ctx, tenant, id, state.Head, func(m eventlog.Message) error {
		if m.Seq == keep {
			return nil
		}
		if len(list) == limit {
			more = true
			return errEnough
		}
		list = append(list, erasableOf(&m))
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return list, more, err
}

// kept returns the sequence of the newest tombstone of a conversation. It finds it even if somebody else deleted the
// conversation later.
func (e *Eraser) kept(ctx context.Context, tenant, id string) (seq uint64, err error) {
	m, err := e.Log.LastOfKind(ctx, tenant, id, kindDeleted)
	if errors.Is(err, eventlog.ErrNotFound) {
		return 0, fmt.Errorf("the tombstone of a conversation is gone from the log: erase it again")
	}
	if err != nil || isTombstone(&m) {
		return m.Seq, err
	}
	err = e.Log.Tail(ctx, eventlog.Filter{Tenant: tenant, Conversation: id, Kinds: []string{kindDeleted}}, eventlog.TailOptions{From: 1, ToEnd: true}, func(m eventlog.Message) error {
		if isTombstone(&m) {
			seq = m.Seq
		}
		return nil
	})
	if err == nil && seq == 0 {
		err = fmt.Errorf("the tombstone of a conversation is gone from the log: erase it again")
	}
	return seq, err
}

// eraseBatch erases messages. Before the first one goes, it records which messages these are and what the report says
// about them.
func (e *Eraser) eraseBatch(ctx context.Context, r *Record, list []erasable) error {
	if len(list) == 0 {
		return nil
	}
	number, err := e.Log.NextErasure(ctx)
	if err != nil {
		return err
	}
	r.Batch, r.Sequences, r.Server, r.Doing = number, nil, e.server(), ""
	for _, m := range list {
		r.Sequences = append(r.Sequences, m.seq)
		r.Report.take(m)
	}
	e.Step("before the record of a batch")
	if err := e.records.put(ctx, r); err != nil {
		return err
	}
	return e.finishBatch(ctx, r)
}

// finishBatch erases the messages that the record names.
func (e *Eraser) finishBatch(ctx context.Context, r *Record) error {
	if len(r.Sequences) == 0 {
		return nil
	}
	e.Step("before a batch")
	if err := e.noteAway(ctx, r); err != nil {
		return err
	}
	if err := e.noteInterrupted(ctx, r); err != nil {
		return err
	}
	n := 0
	if err := e.Log.Erase(ctx, r.Batch, r.Sequences, func() {
		if server := e.server(); server != "" && server != r.Server {
			r.Report.interrupted(r.Sequences[n])
			r.Server = server
		}
		n++
		e.Step("between two messages")
	}); err != nil {
		return err
	}
	e.Step("after a batch")
	r.Batch, r.Sequences, r.Server = 0, nil, ""
	return e.records.put(ctx, r)
}

// server returns the id of the NATS server, which changes each time it starts; "" if there is none at the moment, or if
// it does not matter.
func (e *Eraser) server() string {
	if e.EmbeddedServer {
		return ""
	}
	return e.Log.Conn().ConnectedServerId()
}

// noteInterrupted notes in the report which message another run of the NATS server erased last, because it may have stopped
// in the midst of that.
func (e *Eraser) noteInterrupted(ctx context.Context, r *Record) error {
	server := e.server()
	if r.Server == server {
		return nil
	}
	var failed error
	n := sort.Search(len(r.Sequences), func(i int) bool { // they are erased in this order
		_, err := e.Log.Get(ctx, r.Sequences[i])
		if err != nil && !errors.Is(err, eventlog.ErrNotFound) {
			failed = err
		}
		return err == nil
	})
	if failed != nil {
		return failed
	}
	if r.Server = server; n > 0 {
		r.Report.interrupted(r.Sequences[n-1])
	}
	return e.records.put(ctx, r)
}

// noteAway notes in the report which servers of a cluster have a copy of the log that is not up to date and stays so
// for the erasure's patience. They will learn that messages are gone, but not that they must overwrite them.
func (e *Eraser) noteAway(ctx context.Context, r *Record) error {
	for began := time.Now(); ; {
		stream, err := e.records.js.Stream(ctx, natsdeploy.Stream)
		if err != nil {
			return fmt.Errorf("ask where the copies of the log are: %w", err)
		}
		servers := slices.DeleteFunc(natsdeploy.Away(stream.CachedInfo()), r.Report.keepsCopy)
		if len(servers) == 0 {
			return nil
		}
		if time.Since(began) > e.Patience {
			for _, server := range servers {
				r.Report.NotReached = append(r.Report.NotReached, copyOn(server))
			}
			return e.records.put(ctx, r)
		}
		if err := e.waitFor(ctx, r, "the NATS server "+servers[0]+" is down, or its copy of the log is not up to date"); err != nil {
			return err
		}
	}
}

// erasableOf extracts what the report says about a message.
func erasableOf(m *eventlog.Message) erasable {
	one := erasable{m.Seq, "other", uint64(len(m.Subject) + len(m.Data))}
	if address, err := events.ParseSubject(m.Subject); err == nil && slices.Contains(kinds(), address.Kind) {
		one.kind = address.Kind
	}
	for name, values := range m.Header {
		for _, v := range values {
			one.bytes += uint64(len(name) + len(v))
		}
	}
	return one
}

// kinds are the kinds that a report names. Others come from their producer, and could be anything.
func kinds() (list []string) {
	for _, t := range events.Types() {
		list = append(list, events.Kind(t))
	}
	return list
}

// take adds a message to the report.
func (r *Report) take(m erasable) {
	r.Events[m.kind]++
	r.Bytes += m.bytes
	if r.FirstSeq == 0 || m.seq < r.FirstSeq {
		r.FirstSeq = m.seq
	}
	r.LastSeq = max(r.LastSeq, m.seq)
}

// clean repairs the conversations in every generation of every read model and has the stores overwrite
// what they deleted. If events arrived during the erasure, it says that the log is not done.
func (e *Eraser) clean(ctx context.Context, r *Record) (next State, err error) {
	list, err := e.targets(ctx, r)
	if err != nil {
		return "", err
	}
	goals, err := e.goals(ctx)
	if err != nil {
		return "", err
	}
	for _, m := range e.Projections {
		r.Report.tryAgain(m.Name)
		for wait := e.progressOf(r).wait("clean", m, e.Patience); ; {
			left, err := "", error(nil)
			if m.Enriches { // the only ones that may not have applied the tombstones
				left, err = e.behind(ctx, m.Name, goals)
			}
			over := left != "" && wait.over(left)
			if err == nil && (left == "" || over) {
				var uncleaned string
				uncleaned, err = e.cleanModel(ctx, r, m.Name, list)
				left = cmp.Or(left, uncleaned)
			}
			if err != nil {
				return "", err
			}
			if left == "" {
				break
			}
			if over || wait.over(left) {
				r.Report.giveUp(m.Name, left)
				break
			}
			if err := e.waitFor(ctx, r, left); err != nil {
				return "", err
			}
		}
	}
	for _, id := range list {
		late, _, err := e.find(ctx, r, id, 1)
		if err != nil {
			return "", err
		}
		if len(late) > 0 && r.Rounds >= maxRounds {
			r.Report.NotReached = append(r.Report.NotReached, "events that somebody still publishes to the erased conversations: stop the agent and erase again")
			return Done, nil
		}
		if len(late) > 0 {
			r.Rounds++
			r.Report.Stores = []StoreReport{} // the read models list these events as failed
			return Waiting, nil
		}
	}
	return Done, nil
}

// cleanModel cleans the generations of a read model that exist now. It returns what it still has to wait for, "" for
// nothing.
func (e *Eraser) cleanModel(ctx context.Context, r *Record, name string, list []string) (left string, err error) {
	builds, err := e.Generations.Builds(ctx, name)
	if err != nil {
		return "", err
	}
	for _, generation := range append([]int{builds.Serving}, builds.Others...) {
		if slices.ContainsFunc(r.Report.Stores, func(s StoreReport) bool { return s.Projection == name && s.Generation == generation }) {
			continue
		}
		cps, err := e.Generations.Checkpoints(ctx, name, generation)
		if err != nil {
			return "", err
		}
		if len(cps) == 0 && generation == builds.Serving {
			return "", nil // it was never created
		}
		done, err := e.cleanBuild(ctx, projection.Build{Store: e.Store, Projection: name, Generation: generation}, r, list)
		switch {
		case errors.Is(err, projection.ErrUnheld) && generation < builds.Serving:
			left = fmt.Sprintf("the superseded generation %d of %s has to be removed first, which takes about two minutes", generation, name)
			continue
		case err != nil && ctx.Err() == nil:
			left = fmt.Sprintf("generation %d of %s: %v", generation, name, err)
			continue
		case err != nil:
			return "", err
		}
		r.Report.Stores = append(r.Report.Stores, done)
		e.Step("after a read model")
		if err := e.records.put(ctx, r); err != nil {
			return "", err
		}
	}
	return left, nil
}

// cleanBuild cleans one generation by asking the processes that write it.
func (e *Eraser) cleanBuild(ctx context.Context, b projection.Build, r *Record, list []string) (s StoreReport, err error) {
	s = StoreReport{Store: b.Store, Projection: b.Projection, Generation: b.Generation, Conversations: len(list)}
	tenant, repaired := r.Report.Scope.Tenant, e.progressOf(r).repaired
	if repaired[b] == nil {
		repaired[b] = map[string]bool{}
	}
	for _, id := range list {
		if repaired[b][id] {
			continue
		}
		e.Step("before a repair of " + b.Projection)
		conversation := events.ConversationID{Tenant: tenant, ID: id}
		if _, _, err := projection.RequestRepair(ctx, e.Log.Conn(), b, e.Log.PartitionOf(tenant, id), conversation); err != nil {
			return s, withoutID(err, id)
		}
		repaired[b][id] = true
	}
	e.Step("before a cleaning")
	cleaned, err := projection.RequestCleaning(ctx, e.Log.Conn(), b)
	if errors.Is(err, projection.ErrNoCleaner) {
		cleaned.Left, err = err.Error(), nil
	}
	s.BytesBefore, s.BytesAfter, s.Left = cleaned.BytesBefore, cleaned.BytesAfter, cleaned.Left
	return s, err
}

// withoutID hides an id in an error that the record keeps.
func withoutID(err error, id string) error {
	return &hidden{err, strings.ReplaceAll(err.Error(), strconv.Quote(id), "a conversation")}
}

type hidden struct {
	error
	text string
}

func (h *hidden) Error() string { return h.text }
func (h *hidden) Unwrap() error { return h.error }
