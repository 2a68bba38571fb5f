package view

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"mneme.dev/mneme/pkg/window"
	"mneme.dev/mneme/pkg/window/projects"
)

// Earlier returns what a context of this view gathers of the earlier sessions of its project. Until another message of
// the user changes the query, an agent's next contexts show the same, so what the last one showed is kept. If the last
// one had no room for earlier sessions, nothing is read until a context asks what fits. models are the read models that
// e reads.
func (v *View) Earlier(e *projects.Earlier, models ...Model) window.Earlier {
	cache := v.pins.views.Cache
	if cache == nil {
		return e
	}
	return &rememberedEarlier{Earlier: e, cache: cache, key: key{v.ID, v.edition()}, models: models}
}

type rememberedEarlier struct {
	*projects.Earlier
	cache  *Cache
	key    key
	models []Model
}

// shownEarlier is what a context showed of earlier sessions.
type shownEarlier struct {
	version string // of what was read
	room    int
	stable  bool // the context before had the same room, or there was none; if not, items are not kept
	items   []window.Item
}

// earlier keeps what the last context of a conversation showed.
type earlier struct {
	last   atomic.Pointer[shownEarlier]
	noRoom atomic.Bool // the last context had no room for earlier sessions
	bytes  int         // guarded by Cache.mu
}

// Gather implements window.Earlier.
func (r *rememberedEarlier) Gather(ctx context.Context, query string) (fit func(room int) ([]window.Item, error), err error) {
	e := r.cache.held(r.key)
	if e == nil {
		return r.Earlier.Gather(ctx, query)
	}
	if e.earlier.noRoom.Swap(true) { // unless the context asks what fits; a context that does not ask cancels the read
		return func(room int) ([]window.Item, error) {
			fit, err := r.gather(ctx, e, query)
			if err != nil {
				return nil, err
			}
			return fit(room)
		}, nil
	}
	return r.gather(ctx, e, query)
}

// gather is Gather for a context that may ask what fits.
func (r *rememberedEarlier) gather(ctx context.Context, e *entry, query string) (fit func(room int) ([]window.Item, error), err error) {
	version, err := r.version(ctx, query) // before the rows are read: if they are newer than this version, no later context asks for it
	if err != nil {
		return nil, err
	}
	last := e.earlier.last.Load()
	known := last != nil && last.stable && last.version == version
	var now func(room int) ([]window.Item, error)
	if !known {
		if now, err = r.read(ctx, e, query, version); err != nil {
			return nil, err
		}
	}
	return func(room int) (_ []window.Item, err error) {
		e.earlier.noRoom.Store(false)
		if known && room == last.room {
			return slices.Clone(last.items), nil
		}
		if now == nil {
			if now, err = r.read(ctx, e, query, version); err != nil {
				return nil, err
			}
		}
		return now(room)
	}, nil
}

// version identifies everything that Gather returns for a query.
func (r *rememberedEarlier) version(ctx context.Context, query string) (string, error) {
	positions, err := EarlierPositions(ctx, r.Earlier, r.models...)
	return strings.Join(append(positions, query), " "), err
}

// EarlierPositions identifies what e gathers from these read models. Events after the conversation began change it only if
// they change the project's names or delete something.
func EarlierPositions(ctx context.Context, e *projects.Earlier, models ...Model) ([]string, error) {
	version, err := e.Version(ctx)
	if err != nil {
		return nil, err
	}
	positions := []string{version}
	for _, m := range models {
		cps, err := m.Store.Checkpoints(ctx)
		if err != nil {
			return nil, err
		}
		for _, cp := range cps {
			positions = append(positions, fmt.Sprintf("%s %d %d %d %d", m.Name, m.Generation, cp.Partition, min(cp.Seq, e.UpTo()), cp.Repairs))
		}
	}
	return positions, nil
}

// read gathers, and keeps what the context shows.
func (r *rememberedEarlier) read(ctx context.Context, e *entry, query, version string) (func(room int) ([]window.Item, error), error) {
	fit, err := r.Earlier.Gather(ctx, query)
	if err != nil {
		return nil, err
	}
	return func(room int) (items []window.Item, err error) {
		if fit != nil {
			if items, err = fit(room); err != nil {
				return nil, err
			}
		}
		last := e.earlier.last.Load()
		now := &shownEarlier{version: version, room: room, stable: last == nil || last.room == room}
		if now.stable {
			now.items = slices.Clone(items)
		}
		e.earlier.last.Store(now)
		r.cache.resize(e, &e.earlier.bytes, now.size())
		return items, nil
	}, nil
}

// size returns the approximate memory.
func (s *shownEarlier) size() int {
	const item, note, header = 400, 40, 16 // without texts
	n := len(s.version)
	for i := range s.items {
		it := &s.items[i]
		n += item + len(it.Label) + len(it.Text)
		for _, one := range it.Notes {
			n += note + len(one.Label) + len(one.Text)
		}
		for _, name := range it.Names {
			n += header + len(name)
		}
	}
	return n
}
