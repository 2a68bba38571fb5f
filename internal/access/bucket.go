package access

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	natsdeploy "mneme.dev/mneme/deploy/nats"
)

// Keys of the bucket: the record of a token, and its last use, which is written by servers.
const (
	recordKey = "token."
	usedKey   = "used."
)

const (
	// checkEvery is how often a server checks that it misses no change: the watch of a bucket that was deleted and
	// restored falls silent.
	checkEvery = 5 * time.Second
	// rewatchEvery is the pause before a lost watch is started again.
	rewatchEvery = time.Second
	// askWithin bounds one request to the bucket.
	askWithin = 5 * time.Second
)

// Bucket keeps tokens in a replicated bucket of the log's server. Every process watches it,
// so a token is valid and revoked everywhere within milliseconds.
type Bucket struct{ js jetstream.JetStream }

// NewBucket returns the bucket on this connection; [natsdeploy.ApplyTokens] creates it when
// it is first used.
func NewBucket(conn *nats.Conn) (*Bucket, error) {
	js, err := jetstream.New(conn)
	return &Bucket{js}, err
}

// Add implements [Store].
func (b *Bucket) Add(ctx context.Context, r Record) error {
	bucket, err := natsdeploy.ApplyTokens(ctx, b.js)
	if err != nil {
		return err
	}
	value, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = bucket.Create(ctx, recordKey+r.Hash.String(), value)
	return err
}

// List implements [Store].
func (b *Bucket) List(ctx context.Context) ([]Listed, error) {
	bucket, err := natsdeploy.ApplyTokens(ctx, b.js)
	if err != nil {
		return nil, err
	}
	list := []Listed{}
	used := map[string]time.Time{}
	err = each(ctx, bucket, func(key string, value []byte) error {
		if hash, ok := strings.CutPrefix(key, usedKey); ok {
			used[hash], _ = time.Parse(time.RFC3339, string(value))
			return nil
		}
		r, err := readRecord(key, value)
		if err != nil {
			return fmt.Errorf("%w; remove it with `nats kv del %s %s`", err, natsdeploy.TokenBucket, key)
		}
		list = append(list, Listed{Record: r})
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range list {
		list[i].LastUsed = used[list[i].Hash.String()]
	}
	sortListed(list)
	return list, nil
}

// Remove implements [Store].
func (b *Bucket) Remove(ctx context.Context, hashes ...Hash) error {
	bucket, err := natsdeploy.ApplyTokens(ctx, b.js)
	if err != nil {
		return err
	}
	removed := 0
	for _, h := range hashes {
		if _, err := bucket.Get(ctx, recordKey+h.String()); errors.Is(err, jetstream.ErrKeyNotFound) {
			continue
		} else if err != nil {
			return err
		}
		if err := errors.Join(bucket.Purge(ctx, recordKey+h.String()), bucket.Purge(ctx, usedKey+h.String())); err != nil {
			return err
		}
		removed++
	}
	if removed == 0 {
		return ErrUnknown
	}
	return nil
}

// each calls do for every key that exists.
func each(ctx context.Context, bucket jetstream.KeyValue, do func(key string, value []byte) error) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watcher, err := bucket.WatchAll(ctx, jetstream.IgnoreDeletes())
	if err != nil {
		return err
	}
	defer natsdeploy.Drain(watcher)
	for {
		select {
		case e, ok := <-watcher.Updates():
			switch {
			case !ok:
				return errors.New("the list of tokens ended early")
			case e == nil:
				return nil
			}
			if err := do(e.Key(), e.Value()); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// readRecord reads the record under a key, which names the token's hash.
func readRecord(key string, value []byte) (Record, error) {
	r, err := parseRecord(value)
	if err == nil && key != recordKey+r.Hash.String() {
		err = errors.New("it belongs under another key")
	}
	if err != nil {
		return Record{}, fmt.Errorf("key %s of bucket %s: %w", key, natsdeploy.TokenBucket, err)
	}
	return r, nil
}

// Follow implements [Store]. It also writes when tokens were last used, beside the watch: a server that answers
// late may not delay a revocation.
func (b *Bucket) Follow(ctx context.Context, t *Tokens, logger *slog.Logger, loaded func()) {
	var writer sync.WaitGroup
	defer writer.Wait()
	writer.Go(func() { b.writeUses(ctx, t, logger) })
	said, trouble := "", "the access tokens can't be read yet; retrying until they can"
	for ctx.Err() == nil {
		err := b.watch(ctx, t, logger, func() { said, trouble = "", "lost the watch of the access tokens; restarting it"; loaded() })
		if errors.Is(err, jetstream.ErrBucketNotFound) || errors.Is(err, errReplaced) {
			t.keep(nil) // until the bucket is restored, or read again, no token is accepted
		}
		if err != nil && err.Error() != said && ctx.Err() == nil {
			said = err.Error()
			logger.Warn(trouble, "error", err)
		}
		select {
		case <-time.After(rewatchEvery):
		case <-ctx.Done():
		}
	}
}

var (
	errReplaced = errors.New("the bucket of the access tokens was recreated")
	errSilent   = errors.New("the watch of the access tokens missed a change")
)

// watch follows the bucket until the watch ends or falls silent.
func (b *Bucket) watch(ctx context.Context, t *Tokens, logger *slog.Logger, loaded func()) error {
	bucket, err := natsdeploy.ApplyTokens(ctx, b.js)
	if err != nil {
		return err
	}
	made, _, err := state(ctx, bucket)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watcher, err := bucket.WatchAll(ctx)
	if err != nil {
		return err
	}
	defer natsdeploy.Drain(watcher)
	check := time.NewTicker(checkEvery)
	defer check.Stop()
	w, expected := &watched{bucket: bucket}, uint64(0)
	defer t.watching(nil)
	held, complete := map[Hash]bool{}, false
	for {
		select {
		case e, ok := <-watcher.Updates():
			switch {
			case !ok:
				return errors.New("the watch has ended")
			case e == nil:
				t.keep(held)
				complete, held = true, nil
				t.watching(w)
				loaded()
			default:
				t.brings(w, e.Revision())
				if hash, ok := apply(t, e, logger); ok && !complete {
					held[hash] = true
				}
			}
		case <-check.C:
			now, last, err := state(ctx, bucket)
			switch {
			case errors.Is(err, jetstream.ErrBucketNotFound):
				return err
			case err != nil:
				continue // the server does not answer; the watch continues once it does
			case !now.Equal(made):
				return errReplaced
			case w.seen < expected:
				return errSilent // a whole interval later it has not arrived
			}
			expected = last
		case <-ctx.Done():
			return nil
		}
	}
}

// writeUses writes when tokens were last used, until the context ends.
func (b *Bucket) writeUses(ctx context.Context, t *Tokens, logger *slog.Logger) {
	for {
		select {
		case hash := <-t.used:
			bucket, err := b.js.KeyValue(ctx, natsdeploy.TokenBucket)
			if err == nil {
				_, err = bucket.Put(ctx, usedKey+hash.String(), []byte(t.now().UTC().Format(time.RFC3339)))
			}
			if err != nil && ctx.Err() == nil {
				logger.Debug("the last use of a token was not written", "token", hash.ID(), "error", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// apply takes over one change. ok is false if the key holds no token now.
func apply(t *Tokens, e jetstream.KeyValueEntry, logger *slog.Logger) (hash Hash, ok bool) {
	text, record := strings.CutPrefix(e.Key(), recordKey)
	if !record {
		at, err := time.Parse(time.RFC3339, string(e.Value()))
		if err == nil && hash.UnmarshalText([]byte(strings.TrimPrefix(e.Key(), usedKey))) == nil {
			t.wasUsed(hash, at)
		}
		return Hash{}, false
	}
	if hash.UnmarshalText([]byte(text)) != nil {
		logger.Warn("the bucket of the access tokens has a key that is not mneme's", "key", e.Key())
		return Hash{}, false
	}
	if e.Operation() != jetstream.KeyValuePut {
		t.remove(hash)
		return hash, false
	}
	r, err := readRecord(e.Key(), e.Value())
	if err != nil {
		t.remove(hash)
		logger.Error("an access token is not accepted, because its record can't be read", "error", err)
		return hash, false
	}
	t.put(r)
	return hash, true
}

// state returns when the bucket was made, and its last revision.
func state(ctx context.Context, bucket jetstream.KeyValue) (made time.Time, last uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	status, err := bucket.Status(ctx)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		err = jetstream.ErrBucketNotFound
	}
	if err != nil {
		return time.Time{}, 0, err
	}
	info := status.(*jetstream.KeyValueBucketStatus).StreamInfo()
	return info.Created, info.State.LastSeq, nil
}
