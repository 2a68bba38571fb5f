package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
)

// Parameters of publishing.
const (
	publisherCount = 48              // at most
	publishWithin  = 5 * time.Second // for one attempt
	maxRetryWait   = 400 * time.Millisecond

	// duplicateWindow of the stream. A later repeat reaches the log.
	duplicateWindow = 5 * time.Second
)

// Shares of intentional special cases.
const (
	shareBatches   = 0.20  // of conversations, published in atomic batches
	shareHTTP      = 0.15  // of conversations, published over HTTP
	shareDeleted   = 0.02  // of conversations, deleted at the end
	shareRepeated  = 0.01  // of events, published twice at once
	shareMuchLater = 0.005 // of events, published again after the log's server has forgotten them
)

// publisher publishes conversations, many at once, each in its own order.
type publisher struct {
	load   *load
	pace   *pace
	ledger *ledger
	book   *book
	tally  *tally
	logs   []*eventlog.Log // connections to share
	apis   []*api

	next  atomic.Int64 // conversation
	later chan repeat
}

// repeat is an event to publish again.
type repeat struct {
	event events.Event
	due   time.Time
}

// run publishes until every event is acknowledged or ctx ends.
func (p *publisher) run(ctx context.Context) error {
	p.later = make(chan repeat, 100_000)
	repeating, stop := context.WithCancel(ctx)
	var repeats, all sync.WaitGroup
	repeats.Go(func() { p.repeatLater(repeating) })
	errs := make([]error, min(publisherCount, 1+p.pace.total/minEvents))
	for i := range errs {
		all.Go(func() { errs[i] = p.publish(ctx) })
	}
	all.Wait()
	stop()
	repeats.Wait()
	return errors.Join(errs...)
}

// publish publishes one conversation after another.
func (p *publisher) publish(ctx context.Context) error {
	for {
		n := int(p.next.Add(1))
		list, err := p.load.conversation(n)
		if err != nil {
			return err
		}
		c, err := newConversation(n, list)
		if err != nil {
			return err
		}
		done, err := p.conversation(ctx, c)
		if done || err != nil {
			return err
		}
	}
}

// conversation publishes one. done is true when there is nothing more to publish.
func (p *publisher) conversation(ctx context.Context, c *conversation) (done bool, err error) {
	rnd := p.load.random(-c.n)
	send, most := p.oneByOne, 1
	switch way := rnd.Float64(); {
	case way < shareBatches:
		send, most = p.batch, 20
	case way < shareBatches+shareHTTP:
		send, most = p.overHTTP, 5
	}
	for rest := c.events; len(rest) > 0; {
		n := p.pace.take(ctx, min(len(rest), 1+rnd.IntN(most)))
		if n == 0 {
			return true, nil
		}
		if len(rest) == len(c.events) {
			p.book.add(c)
		}
		if err := p.insist(ctx, c, rest[:n], send); err != nil {
			return true, ignoreEnd(ctx, err)
		}
		for _, e := range rest[:n] {
			p.repeat(ctx, rnd, e)
		}
		rest = rest[n:]
	}
	if rnd.Float64() < shareDeleted {
		return false, ignoreEnd(ctx, p.delete(ctx, c))
	}
	return false, nil
}

func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// send publishes events once, and returns the sequences of the acknowledged ones, from the first
// on.
type send func(ctx context.Context, list []events.Event) ([]uint64, error)

// insist publishes events of a conversation until each is acknowledged.
func (p *publisher) insist(ctx context.Context, c *conversation, list []events.Event, send send) error {
	for wait := 20 * time.Millisecond; len(list) > 0; wait = min(2*wait, maxRetryWait) {
		attempt, cancel := context.WithTimeout(ctx, publishWithin)
		seqs, err := send(attempt, list)
		cancel()
		for i, seq := range seqs {
			p.acknowledged(c, list[i], seq)
		}
		list = list[len(seqs):]
		if err == nil {
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		p.tally.add(publishTrouble(err), 1)
		if errors.Is(err, events.ErrInvalid) || errors.Is(err, eventlog.ErrTooLarge) || errors.Is(err, eventlog.ErrOtherContent) {
			return err
		}
		select {
		case <-time.After(wait/2 + rand.N(wait)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (p *publisher) acknowledged(c *conversation, e events.Event, seq uint64) {
	c.mu.Lock()
	index := c.acked
	c.mu.Unlock()
	message, err := eventlog.NewMsg(tenant, e)
	if err != nil { // it was published
		panic(err)
	}
	c.ack(seq)
	p.ledger.add(entry{
		conversation: c.n, index: index, seq: seq, identity: e.Identity(tenant),
		message: digest(eventlog.Message{Header: message.Header, Data: message.Data}),
	})
	p.tally.acked()
	if index < len(c.events) { // not a deletion
		p.pace.acknowledged()
	}
}

// publishTrouble names the outcome of an attempt.
func publishTrouble(err error) string {
	var answer *answerError
	switch {
	case errors.As(err, &answer):
		return fmt.Sprint("publish: HTTP ", answer.status)
	case errors.Is(err, eventlog.ErrFull):
		return "publish: log full"
	case errors.Is(err, context.DeadlineExceeded):
		return "publish: no answer"
	case errors.Is(err, jetstream.ErrNoStreamResponse):
		return "publish: nobody there"
	}
	return "publish: connection lost"
}

func (p *publisher) log() *eventlog.Log { return p.logs[rand.IntN(len(p.logs))] }

func (p *publisher) oneByOne(ctx context.Context, list []events.Event) (seqs []uint64, err error) {
	for _, e := range list {
		ack, err := p.log().Publish(ctx, tenant, e)
		if err != nil {
			return seqs, err
		}
		seqs = append(seqs, ack.Seq)
	}
	return seqs, nil
}

func (p *publisher) batch(ctx context.Context, list []events.Event) (seqs []uint64, err error) {
	acks, err := p.log().PublishAll(ctx, tenant, list)
	for _, ack := range acks {
		seqs = append(seqs, ack.Seq)
	}
	return seqs, err
}

func (p *publisher) overHTTP(ctx context.Context, list []events.Event) (seqs []uint64, err error) {
	body := []byte("[")
	for i, e := range list {
		one, err := events.EncodeStructured(e)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, one...)
	}
	var answer struct {
		Events []struct {
			Seq uint64 `json:"seq"`
		} `json:"events"`
	}
	err = p.apis[rand.IntN(len(p.apis))].call(ctx, http.MethodPost, "/v1/events", nil, events.ContentTypeBatch, append(body, ']'), &answer)
	if err != nil {
		return nil, err
	}
	for _, e := range answer.Events {
		seqs = append(seqs, e.Seq)
	}
	if len(seqs) != len(list) {
		return nil, fmt.Errorf("%d events were published, %d acknowledged", len(list), len(seqs))
	}
	return seqs, nil
}

func (p *publisher) delete(ctx context.Context, c *conversation) error {
	c.delete()
	e, err := events.New(c.id, c.events[0].Source, fmt.Sprint("r", c.n, "-deleted"), &events.ConversationDeleted{Reason: "it is over"})
	if err != nil {
		return err
	}
	return p.insist(ctx, c, []events.Event{e}, p.oneByOne)
}

// repeat publishes some events again, at once or later.
func (p *publisher) repeat(ctx context.Context, rnd *rand.Rand, e events.Event) {
	switch share := rnd.Float64(); {
	case share < shareRepeated:
		p.again(ctx, e)
	case share < shareRepeated+shareMuchLater:
		select {
		case p.later <- repeat{e, time.Now().Add(2 * duplicateWindow)}:
		default: // the list is long
		}
	}
}

// again publishes an event that the log already has; whether that succeeds does not matter.
func (p *publisher) again(ctx context.Context, e events.Event) {
	ctx, cancel := context.WithTimeout(ctx, publishWithin)
	defer cancel()
	ack, err := p.log().Publish(ctx, tenant, e)
	switch {
	case err != nil:
		p.tally.add(publishTrouble(err), 1)
	case ack.Duplicate:
		p.tally.add("repeat: known to the log's server", 1)
	default:
		p.tally.add("repeat: stored again", 1)
	}
}

// repeatLater publishes the repeats that are due.
func (p *publisher) repeatLater(ctx context.Context) {
	for {
		select {
		case r := <-p.later:
			select {
			case <-time.After(time.Until(r.due)):
				p.again(ctx, r.event)
			case <-ctx.Done():
				return
			}
		case <-ctx.Done():
			return
		}
	}
}
