package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
)

// resetEvery is how often connections are reset while that fault lasts.
const resetEvery = 400 * time.Millisecond

// inflict causes a fault and undoes it; when it returns, only the recovery is left.
func (c *campaign) inflict(ctx context.Context, f Fault) error {
	switch f.Kind {
	case Kill, Terminate, FreezeShort, FreezeLong:
		return c.hitProcess(ctx, f)
	case Latency, Slow, Reset, BlackHole:
		c.hitLinks(ctx, f)
		return nil
	case Full:
		return c.fill(ctx, f)
	case Restore:
		return c.restore(f)
	case Duplicates:
		return c.duplicate(ctx, f)
	case Invalid:
		return c.publishInvalid(ctx, f)
	case Rebuild, Cancel:
		return c.rebuild(ctx, f)
	case LogRemoved, LogCut, LogFlipped:
		return c.damage(ctx, f)
	}
	return fmt.Errorf("no such fault: %s", f.Kind)
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (c *campaign) hitProcess(ctx context.Context, f Fault) error {
	m := c.system.machines[f.Target]
	switch f.Kind {
	case Kill:
		m.kill()
	case Terminate:
		if err := m.terminate(); err != nil {
			c.violated("%v", err)
		}
	default:
		m.signal(sigFreeze)
		pause(ctx, f.Length)
		m.signal(sigThaw)
		return nil
	}
	pause(ctx, f.Length)
	return m.start()
}

func (c *campaign) hitLinks(ctx context.Context, f Fault) {
	links := c.system.linked(f.Target)
	until := time.Now().Add(f.Length)
	for _, l := range links {
		switch f.Kind {
		case Latency:
			l.Delay(time.Duration(f.Amount) * time.Millisecond)
		case Slow:
			l.Rate(int64(f.Amount) << 10)
		case BlackHole:
			l.BlackHole()
		}
	}
	for f.Kind == Reset && ctx.Err() == nil && time.Now().Before(until) {
		for _, l := range links {
			l.Reset()
		}
		pause(ctx, resetEvery)
	}
	pause(ctx, time.Until(until))
	for _, l := range links {
		l.Heal()
	}
}

// fill makes the log full for a while.
func (c *campaign) fill(ctx context.Context, f Fault) error {
	if err := c.system.insistOnSize(ctx, 0); err != nil {
		return err
	}
	pause(ctx, f.Length)
	return c.system.insistOnSize(ctx, logBytes)
}

// models is the folder of the SQLite read models; copied is that of a copy.
func (c *campaign) models() string { return filepath.Join(c.system.sqliteDir(), "models") }
func (c *campaign) copied() string { return filepath.Join(c.dir, "copy") }

// withoutSQLite runs a function while no program has the SQLite read models open.
func (c *campaign) withoutSQLite(kill bool, do func() error) error {
	var errs []error
	for _, name := range sqlitePrograms() {
		m := c.system.machines[name]
		if kill {
			m.kill()
		} else if err := m.terminate(); err != nil {
			c.violated("%v", err)
		}
	}
	errs = append(errs, do())
	c.readers[apiSQLite].forget()
	for _, name := range sqlitePrograms() {
		errs = append(errs, c.system.machines[name].start())
	}
	return errors.Join(errs...)
}

// copyModels takes the first copy.
func (c *campaign) copyModels() error {
	return c.withoutSQLite(false, func() error { return os.CopyFS(c.copied(), os.DirFS(c.models())) })
}

// restore replaces the read models with the copy, and keeps the replaced ones as the next copy.
func (c *campaign) restore(f Fault) error {
	return c.withoutSQLite(f.N%2 == 0, func() error {
		spare := c.copied() + "-next"
		if err := os.Rename(c.models(), spare); err != nil {
			return err
		}
		if err := os.Rename(c.copied(), c.models()); err != nil {
			return err
		}
		return os.Rename(spare, c.copied())
	})
}

// insistRaw publishes a message until it is acknowledged.
func insistRaw(ctx context.Context, js jetstream.JetStream, m *nats.Msg) (seq uint64, err error) {
	for {
		attempt, cancel := context.WithTimeout(ctx, publishWithin)
		ack, err := js.PublishMsg(attempt, m)
		cancel()
		if err == nil {
			return ack.Sequence, nil
		}
		if pause(ctx, 100*time.Millisecond); ctx.Err() != nil {
			return 0, err
		}
	}
}

// someEvent returns an acknowledged event of a conversation that will not be deleted.
func (c *campaign) someEvent() (*conversation, events.Event, bool) {
	for range 100 {
		if v := c.book.any(); v != nil {
			if acked, _, deleted := v.position(); acked > 0 && !deleted {
				return v, v.events[rand.IntN(acked)], true
			}
		}
	}
	return nil, events.Event{}, false
}

// duplicate publishes events again, every other one without the id that the log's server would
// recognize.
func (c *campaign) duplicate(ctx context.Context, f Fault) error {
	return c.system.withJetStream(func(js jetstream.JetStream) error {
		for i := range f.Amount {
			_, e, ok := c.someEvent()
			if !ok {
				return nil
			}
			m, err := eventlog.NewMsg(tenant, e)
			if err != nil {
				return err
			}
			if i%2 == 0 {
				delete(m.Header, events.HeaderMsgID)
			}
			if _, err := insistRaw(ctx, js, m); err != nil {
				return nil // the end of the campaign
			}
		}
		return nil
	})
}

// publishInvalid publishes messages that read models must refuse: an event with the id of another
// one and other content, and one that is not JSON.
func (c *campaign) publishInvalid(ctx context.Context, f Fault) error {
	return c.system.withJetStream(func(js jetstream.JetStream) error {
		for i := range f.Amount {
			v, e, ok := c.someEvent()
			if !ok {
				return nil
			}
			if i%2 == 0 {
				other, err := events.New(e.Subject, e.Source, e.ID, &events.MessageCreated{MessageID: fmt.Sprint("trap-", f.N, "-", i), Role: "user", Content: "something else"})
				if err != nil {
					return err
				}
				e = other
			}
			m, err := eventlog.NewMsg(tenant, e)
			if err != nil {
				return err
			}
			delete(m.Header, events.HeaderMsgID)
			if i%2 == 1 {
				m.Data = append([]byte("{"), m.Data...)
			}
			seq, err := insistRaw(ctx, js, m)
			if err != nil {
				return nil // the end of the campaign
			}
			c.ledger.add(entry{trap: true, conversation: v.n, seq: seq, identity: e.Identity(tenant), message: digest(eventlog.Message{Header: m.Header, Data: m.Data})})
		}
		return nil
	})
}
