package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/events"
)

// Query says which entries to list. Empty fields restrict nothing.
type Query struct {
	Tenant, Action, Subject string
	Project                 string // by its name
	Since                   time.Time
	After                   uint64 // only entries with a sequence above
	Limit                   int    // most entries of a page
}

// Stored is an entry with its sequence in the stream.
type Stored struct {
	Seq uint64
	Entry
}

// Page is a part of the list, the oldest entry first.
type Page struct {
	Entries []Stored
	Next    uint64 // continue after this sequence
	More    bool   // there are more entries now
}

// Bounds of reading one page.
const (
	maxLooked       = 20_000 // entries that are examined
	fetched         = 500    // at a time
	readWithin      = 10 * time.Second
	consumerExpires = 15 * time.Second
)

// List returns a page of entries. While there is no audit log there are none.
func (w *Writer) List(ctx context.Context, q Query) (Page, error) {
	stream, err := w.js.Stream(ctx, natsdeploy.AuditStream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return Page{Entries: []Stored{}}, nil
	}
	if err != nil {
		return Page{}, fmt.Errorf("read the audit log: %w", err)
	}
	end := stream.CachedInfo().State.LastSeq
	if q.After > end { // the stream has been replaced
		q.After = 0
	}
	page := Page{Entries: []Stored{}, Next: q.After}
	if q.After == end {
		return page, nil
	}
	config := jetstream.ConsumerConfig{
		FilterSubjects: []string{q.filter()}, AckPolicy: jetstream.AckNonePolicy, InactiveThreshold: consumerExpires, MemoryStorage: true, Replicas: 1,
	}
	switch {
	case q.After > 0:
		config.DeliverPolicy, config.OptStartSeq = jetstream.DeliverByStartSequencePolicy, q.After+1
	case !q.Since.IsZero():
		config.DeliverPolicy, config.OptStartTime = jetstream.DeliverByStartTimePolicy, &q.Since
	}
	consumer, err := stream.CreateConsumer(ctx, config)
	if err != nil {
		return Page{}, fmt.Errorf("read the audit log: %w", err)
	}
	info := consumer.CachedInfo()
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = stream.DeleteConsumer(ctx, info.Name) // the server drops it later anyway
	}()
	if err := page.read(ctx, consumer, q, info.NumPending); err != nil {
		return Page{}, fmt.Errorf("read the audit log: %w", err)
	}
	if !page.More {
		page.Next = max(page.Next, end)
	}
	return page, nil
}

// read adds entries from a consumer that has so many of them.
func (p *Page) read(ctx context.Context, consumer jetstream.Consumer, q Query, pending uint64) error {
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	for looked := 0; pending > 0; {
		p.More = true
		before, most := looked, int(min(pending, fetched))
		batch, err := consumer.Fetch(most, jetstream.FetchContext(ctx))
		if err != nil {
			return err
		}
		for msg := range batch.Messages() {
			meta, err := msg.Metadata()
			if err != nil {
				return err
			}
			pending, p.Next = meta.NumPending, meta.Sequence.Stream
			looked++
			var e Entry
			if json.Unmarshal(msg.Data(), &e) == nil && q.matches(&e) { // nobody but mneme writes here; what can't be read is not ours
				p.Entries = append(p.Entries, Stored{p.Next, e})
			}
			if len(p.Entries) == q.Limit || looked == maxLooked {
				p.More = pending > 0
				return nil
			}
		}
		if err := errors.Join(batch.Error(), ctx.Err()); err != nil {
			return err
		}
		if looked-before == most {
			continue
		}
		info, err := consumer.Info(ctx)
		if err != nil {
			return err
		}
		if info.Delivered.Consumer != uint64(looked) {
			return errors.New("the server sent entries that did not arrive")
		}
		if looked == before { // the pending entries have expired
			break
		}
		pending = info.NumPending
	}
	p.More = false
	return nil
}

// filter returns the subjects of the entries.
func (q *Query) filter() string {
	tenant, action := "*", "*"
	if q.Tenant != "" {
		tenant = tenantToken(q.Tenant)
	}
	if q.Action != "" {
		action = events.Escape(q.Action)
	}
	return natsdeploy.AuditSubject(tenant, action)
}

// matches reports whether an entry passes those conditions of the query that subjects can't express.
func (q *Query) matches(e *Entry) bool {
	return (q.Subject == "" || e.Subject == q.Subject) && !e.Time.Before(q.Since) &&
		(q.Project == "" || strings.Contains(" "+e.Target+" ", " "+Project(q.Project)+" "))
}
