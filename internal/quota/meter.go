package quota

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"time"

	"mneme.dev/mneme/internal/writefile"
	"mneme.dev/mneme/pkg/eventlog"
)

// Meter counts what each tenant stores in the log. It reads the log once, and then, each second, what was added. What
// this process accepted in between counts at once. So with one process of the API no tenant exceeds its quota through
// it; each of several processes may also accept what fits while the last second of the others is not counted yet.
// Events that agents publish over NATS, and summaries, are counted like everything else, but nobody asks the meter
// before they are stored.
//
// It keeps its counts in a file, so that a restart continues from there. If there is no file, or it belongs to another
// log, the meter counts from the start, and until it has finished, its figures are lower bounds.
//
// It notices an erasure by the number of missing events. Then it counts the log again, and the old figures stay until
// it has. That takes at most a tenth of the time.
type Meter struct {
	ledger
	log    *eventlog.Log
	path   string
	logger *slog.Logger

	// Only Run and the functions that it calls use these.
	at       position
	gone     uint64 // events that had left the log at the last look
	again    time.Time
	saved    time.Time
	changed  bool
	troubled bool
}

// position is how far a log was read.
type position struct {
	Created time.Time `json:"created"` // of the log
	Seq     uint64    `json:"seq"`
	Gone    uint64    `json:"gone"` // events that had left the log when reading began
}

// kept is the file of a meter.
type kept struct {
	position
	Tenants map[string]Stored `json:"tenants"` // escaped as in subjects
}

// NewMeter returns a meter that keeps its figures in a file.
func NewMeter(log *eventlog.Log, path string, logger *slog.Logger) *Meter {
	m := &Meter{log: log, path: path, logger: logger, ledger: ledger{counted: map[string]Stored{}, held: map[string]*held{}}}
	if err := m.load(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		logger.Warn("counting what tenants store from the start of the log, because the last figures can't be read", "file", path, "error", err)
	}
	return m
}

func (m *Meter) load() error {
	text, err := os.ReadFile(m.path)
	if err != nil {
		return err
	}
	var k kept
	if err := json.Unmarshal(text, &k); err != nil {
		return err
	}
	if k.Tenants != nil && k.Created.Equal(m.log.Created()) {
		m.at, m.gone, m.counted = k.position, k.Gone, k.Tenants
	}
	return nil
}

func (m *Meter) save() error {
	m.lock.Lock()
	text, err := json.Marshal(kept{m.at, m.counted})
	m.lock.Unlock()
	if err != nil {
		return err
	}
	m.saved, m.changed = time.Now(), false
	return writefile.Write(m.path, bytes.NewReader(text))
}

// How the log is read.
const (
	meterTick  = time.Second
	saveEvery  = 10 * time.Second
	pieceSize  = 50_000           // sequences that are read before they are counted
	againAfter = 10 * time.Second // at least, after the log was counted again
)

// run counts until ctx ends, while needed says so.
func (m *Meter) run(ctx context.Context, needed func() bool) {
	tick := time.NewTicker(meterTick)
	defer tick.Stop()
	defer func() {
		if m.changed {
			m.report(m.save())
		}
	}()
	for {
		if needed() {
			m.report(m.count(ctx))
			if m.changed && time.Since(m.saved) >= saveEvery {
				m.report(m.save())
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// report logs the first of several errors in a row.
func (m *Meter) report(err error) {
	if err != nil && !m.troubled && !errors.Is(err, context.Canceled) {
		m.logger.Warn("cannot count what tenants store; the last figures stay in use", "error", err)
	}
	m.troubled = err != nil
}

// count reads what was added to the log.
func (m *Meter) count(ctx context.Context) error {
	m.begin()
	state, err := m.log.State(ctx)
	if err != nil {
		return err
	}
	gone := state.Head - state.Messages
	steady := gone == m.gone
	m.gone = gone
	switch {
	case !m.at.Created.Equal(m.log.Created()) || state.Head < m.at.Seq: // another log, or it was restored
		m.at = position{Created: m.log.Created(), Gone: gone}
		m.replace(map[string]Stored{})
	case gone != m.at.Gone && steady && time.Now().After(m.again):
		began := time.Now()
		if err := m.recount(ctx, position{m.log.Created(), state.Head, gone}); err != nil {
			return err
		}
		m.again = time.Now().Add(max(againAfter, 10*time.Since(began)))
	}
	for m.at.Seq < state.Head {
		upTo := min(state.Head, m.at.Seq+pieceSize)
		piece := map[string]Stored{}
		if err := m.read(ctx, m.at.Seq+1, upTo, piece); err != nil {
			return err
		}
		m.lock.Lock()
		for tenant, s := range piece {
			m.counted[tenant] = m.counted[tenant].plus(s)
		}
		m.at.Seq, m.changed = upTo, true
		m.lock.Unlock()
		if time.Since(m.saved) >= saveEvery && upTo < state.Head {
			m.report(m.save())
		}
	}
	m.end()
	return nil
}

// recount counts the log from its start.
func (m *Meter) recount(ctx context.Context, at position) error {
	all := map[string]Stored{}
	if err := m.read(ctx, 1, at.Seq, all); err != nil {
		return err
	}
	m.at, m.changed = at, true
	m.replace(all)
	return nil
}

func (m *Meter) replace(all map[string]Stored) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.counted = all
}

// read adds to what each tenant stores the messages from one sequence up to another. A read that was
// interrupted begins again: nothing of it is added.
func (m *Meter) read(ctx context.Context, from, upTo uint64, to map[string]Stored) error {
	return m.log.ScanAll(ctx, from, upTo, func(msg eventlog.Message) error {
		if parts := strings.SplitN(msg.Subject, ".", 4); len(parts) == 4 { // ev.<partition>.<tenant>.…
			to[parts[2]] = to[parts[2]].plus(Stored{1, msg.StoredBytes()})
		}
		return nil
	})
}
