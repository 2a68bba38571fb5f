package eventlog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/events"
)

// NextErasure returns the number for the next call of [Log.Erase].
func (l *Log) NextErasure(ctx context.Context) (batch uint64, err error) {
	info, err := ask(ctx, func(ctx context.Context) (*jetstream.StreamInfo, error) { return l.stream.Info(ctx) })
	if err != nil {
		return 0, fmt.Errorf("state of the log: %w", err)
	}
	return natsdeploy.ErasedBatch(info.Config) + 1, nil
}

// Erase overwrites the messages at these sequences with random bytes and removes them one by one, each synced on its
// own. It counts them as removed before it removes them, so that they never count as missing. done, if not nil, is
// called after each.
//
// Repeat an interrupted call with the same batch and the same sequences: the batch is counted once, and messages that
// are already gone are skipped. So the caller must record both before the first call. Only one caller at a time may
// erase. It needs permission to update the stream and to delete from it.
func (l *Log) Erase(ctx context.Context, batch uint64, seqs []uint64, done func()) error {
	if _, err := ask(ctx, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, natsdeploy.RecordErased(ctx, l.js, batch, uint64(len(seqs)))
	}); err != nil {
		return err
	}
	for _, seq := range seqs {
		if err := l.erase(ctx, seq); err != nil {
			return fmt.Errorf("erase sequence %d: %w", seq, err)
		}
		if done != nil {
			done()
		}
	}
	return nil
}

func (l *Log) erase(ctx context.Context, seq uint64) error {
	_, err := ask(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, l.stream.SecureDeleteMsg(ctx, seq) })
	if err == nil {
		return nil
	}
	if _, gone := l.Get(ctx, seq); errors.Is(gone, ErrNotFound) { // the answer to an earlier attempt was lost
		return nil
	}
	return err
}

// WithKind lists the conversations of a tenant that have an event of this kind in the log, sorted.
func (l *Log) WithKind(ctx context.Context, tenant, kind string) (list []string, err error) {
	counts, err := l.subjects(ctx, events.StoredFilter(tenant, "", kind))
	if err != nil {
		return nil, fmt.Errorf("conversations of tenant %q with %s in the log: %w", tenant, kind, err)
	}
	for subject := range counts {
		if address, err := events.ParseSubject(subject); err == nil {
			list = append(list, address.Conversation)
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// Held counts the messages of a tenant in the log, by conversation and kind. It leaves out messages whose subjects
// can't be read.
func (l *Log) Held(ctx context.Context, tenant string) (map[string]map[string]uint64, error) {
	counts, err := l.subjects(ctx, events.StoredFilter(tenant, "", ""))
	if err != nil {
		return nil, fmt.Errorf("conversations of tenant %q in the log: %w", tenant, err)
	}
	held := map[string]map[string]uint64{}
	for subject, n := range counts {
		address, err := events.ParseSubject(subject)
		if err != nil {
			continue
		}
		if held[address.Conversation] == nil {
			held[address.Conversation] = map[string]uint64{}
		}
		held[address.Conversation][address.Kind] += n
	}
	return held, nil
}

// listTime limits a list of subjects if the context has no earlier deadline. The server lists 100,000 at a time, and on
// a slow machine takes seconds for them, more the more there are in all.
const listTime = 5 * time.Minute

// subjects counts the messages that match a filter, by subject.
func (l *Log) subjects(ctx context.Context, filter string) (map[string]uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	info, err := hedge(ctx, firstListHedge, func(ctx context.Context) (*jetstream.StreamInfo, error) {
		return l.stream.Info(ctx, jetstream.WithSubjectFilter(filter))
	})
	if err != nil {
		return nil, err
	}
	return info.State.Subjects, nil
}
