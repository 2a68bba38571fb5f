package access

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// touchEvery is the shortest time between two writes of a token's last use.
const touchEvery = time.Minute

// Tokens are the tokens that a server accepts, in memory. A check costs a checksum, a hash and a lookup. Only for a token
// that is not known, a few times a second, the bucket is asked too.
//
// The lookup is by hash, so how long it takes says nothing about any token.
type Tokens struct {
	now func() time.Time

	asking asking

	mu      sync.RWMutex
	entries map[Hash]*entry
	watched *watched // nil if nobody can be asked about a token

	used chan Hash // to be written as used now
}

type entry struct {
	grant   Grant
	end     context.CancelFunc
	touched atomic.Int64 // when the last use was written, in Unix seconds
}

// NewTokens returns an empty set: it accepts nothing.
func NewTokens(now func() time.Time) *Tokens {
	return &Tokens{now: now, asking: newAsking(), entries: map[Hash]*entry{}, used: make(chan Hash, 1024)}
}

// Check returns what a token grants, or [ErrInvalid]. It returns [ErrUnavailable] if it does not know the token and the
// bucket, which may, does not answer or is asked about too many others.
func (t *Tokens) Check(ctx context.Context, token string) (*Grant, error) {
	hash, ok := HashOf(token)
	if !ok {
		return nil, ErrInvalid
	}
	e := t.entry(hash)
	if e == nil {
		if err := t.ask(ctx, hash); err != nil {
			return nil, err
		}
		if e = t.entry(hash); e == nil {
			return nil, ErrInvalid
		}
	}
	now := t.now()
	if !e.grant.Expires.IsZero() && !now.Before(e.grant.Expires) {
		return nil, ErrInvalid
	}
	t.touch(hash, e, now)
	return &e.grant, nil
}

func (t *Tokens) entry(hash Hash) *entry {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.entries[hash]
}

// touch asks for the last use to be written, at most once in touchEvery.
func (t *Tokens) touch(hash Hash, e *entry, now time.Time) {
	last := e.touched.Load()
	if now.Unix()-last < int64(touchEvery/time.Second) || !e.touched.CompareAndSwap(last, now.Unix()) {
		return
	}
	select {
	case t.used <- hash:
	default: // the channel is full; a use after touchEvery asks again
	}
}

// put adds a token, or replaces its record.
func (t *Tokens) put(r Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.set(r)
}

// set is put with t.mu held.
func (t *Tokens) set(r Record) {
	old := t.entries[r.Hash]
	ended, end := context.WithCancel(context.Background())
	e := &entry{grant: Grant{Rights: r.Rights, Name: r.Name, Subject: "token:" + r.Hash.ID(), Expires: r.Expires, Ended: []context.Context{ended}}, end: end}
	if old != nil {
		if old.grant.Rights == r.Rights && old.grant.Name == r.Name && old.grant.Expires.Equal(r.Expires) {
			end()
			return
		}
		e.touched.Store(old.touched.Load())
		old.end()
	}
	t.entries[r.Hash] = e
}

// remove revokes a token and ends what its bearer has running.
func (t *Tokens) remove(hash Hash) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.entries[hash]; e != nil {
		e.end()
		delete(t.entries, hash)
	}
}

// keep revokes every token that is not in the list.
func (t *Tokens) keep(list map[Hash]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for hash, e := range t.entries {
		if !list[hash] {
			e.end()
			delete(t.entries, hash)
		}
	}
}

// wasUsed notes that some process has written the last use of a token.
func (t *Tokens) wasUsed(hash Hash, at time.Time) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if e := t.entries[hash]; e != nil && at.Unix() > e.touched.Load() {
		e.touched.Store(at.Unix())
	}
}

// Len returns how many tokens are known.
func (t *Tokens) Len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.entries)
}
