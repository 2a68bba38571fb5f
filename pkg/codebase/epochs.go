package codebase

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/recall"
)

// epoch is a part of an index's versions: a search can't look at all scopes that there ever were. The first epoch begins with
// the first version, and each takes in the versions that follow, until no more scopes fit. If versions that were replaced
// hold at least a quarter of the room, a new epoch begins then, with the versions that count; until they do, further
// versions are left out.
//
// Only the versions decide, so an index that grew with the log and one that was read at once have the same epochs.
type epoch struct {
	begin   uint64  // the sequence from which on it counts
	members []int32 // its versions that have scopes, in the order of the log
	held    int     // scopes of the members
	stale   int     // scopes of members that were replaced
	full    bool    // a version was left out
}

func (x *Index) add(v *Version) {
	if len(x.epochs) == 0 {
		x.epochs, x.of = []epoch{{}}, map[string][]int32{}
	}
	current, limit := len(x.epochs)-1, cmp.Or(x.Max, MaxScopes)
	f := file{seq: v.Seq, eventID: strings.Clone(v.EventID), path: strings.Clone(v.Path), language: v.Language, removed: v.Removed, scopes: v.Scopes, epoch: -1}
	e := &x.epochs[current]
	if old := x.of[f.path]; len(old) > 0 {
		if o := &x.files[old[len(old)-1]]; o.epoch == current {
			e.stale += len(o.scopes)
		}
	}
	n := int32(len(x.files))
	x.files = append(x.files, f)
	x.of[f.path] = append(x.of[f.path], n)
	x.bytes += 128 + 2*len(f.path) + 64*len(f.scopes)
	fits := e.held+len(f.scopes) <= limit
	switch {
	case (e.full || !fits) && 4*e.stale >= limit:
		x.begin(limit)
	case fits:
		x.join(n)
	default:
		e.full = true
	}
}

// join adds a version to the current epoch.
func (x *Index) join(n int32) {
	f, e := &x.files[n], &x.epochs[len(x.epochs)-1]
	f.epoch = len(x.epochs) - 1
	e.held += len(f.scopes)
	if len(f.scopes) > 0 {
		e.members = append(e.members, n)
	}
}

// begin begins an epoch with the newest version. If more scopes count than fit, those of the files that were indexed last
// are searched.
func (x *Index) begin(limit int) {
	var counting []int32
	for _, list := range x.of {
		if n := list[len(list)-1]; !x.files[n].removed {
			counting = append(counting, n)
		}
	}
	slices.Sort(counting)
	first, room := len(counting), limit
	for first > 0 && len(x.files[counting[first-1]].scopes) <= room {
		first--
		room -= len(x.files[counting[first]].scopes)
	}
	x.epochs = append(x.epochs, epoch{begin: x.last(), full: first > 0})
	for _, n := range counting[first:] {
		x.join(n)
	}
}

// Epoch is the part of an index that searches of a time look at.
type Epoch struct {
	x        *Index
	number   int
	until    uint64 // answers are as of this sequence at the latest
	versions int    // how many of the members it has
	index    recall.Index
	scopes   []place // a scope's number in the index is its number here plus one
}

// place is a scope.
type place struct {
	file int32
	n    int32 // in its version
}

// ErrChanged means that versions went away while they were read: the index was deleted or repaired.
var ErrChanged = errors.New("the index of code changed while it was read")

// Epoch follows the store and returns what searches as of a sequence look at. If it fails, what it has read stays, except
// after [ErrChanged]: then the Index is of no use any more.
func (x *Index) Epoch(ctx context.Context, r Reader, id events.ConversationID, asOf uint64) (*Epoch, error) {
	x.following.Lock()
	defer x.following.Unlock()
	if err := x.follow(ctx, r, id); err != nil {
		return nil, err
	}
	number, until := 0, x.last()
	for n, e := range x.epochs {
		if e.begin <= asOf {
			number = n
		} else {
			until = e.begin - 1
			break
		}
	}
	e := x.loaded
	if e == nil || e.number != number {
		e = &Epoch{x: x, number: number}
		x.mu.Lock()
		x.loaded = e
		x.mu.Unlock()
	}
	if len(x.epochs) == 0 {
		return e, nil
	}
	for members := x.epochs[number].members; e.versions < len(members); {
		if err := e.read(ctx, r, id, members[e.versions:min(e.versions+page, len(members))]); err != nil {
			return nil, err
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	e.until = until
	return e, nil
}

// read reads what searches need of some versions.
func (e *Epoch) read(ctx context.Context, r Reader, id events.ConversationID, members []int32) error {
	seqs := make([]uint64, len(members))
	for i, n := range members {
		seqs[i] = e.x.files[n].seq
	}
	bags, err := r.Bags(ctx, id, seqs)
	if err != nil {
		return err
	}
	e.x.mu.Lock()
	defer e.x.mu.Unlock()
	for i, n := range members {
		of, there := bags[seqs[i]]
		if !there {
			return ErrChanged
		}
		if err := e.add(n, &e.x.files[n], of); err != nil {
			return err
		}
	}
	return nil
}

// add adds a version with its bags.
func (e *Epoch) add(n int32, f *file, bags []byte) error {
	type one struct {
		bag     recall.Bag
		vectors []recall.Vector
	}
	list := make([]one, len(f.scopes))
	for i := range list {
		var err error
		if list[i].bag, list[i].vectors, bags, err = nextBag(bags); err != nil {
			return err
		}
		// Each version is a session of its own, because scopes of a file lend each other words and versions do not.
		list[i].bag.Session = f.path + "\x00" + itoa(f.seq)
	}
	for i, of := range list {
		e.scopes = append(e.scopes, place{n, int32(i)})
		number := uint64(len(e.scopes))
		if err := e.index.Add(number, of.bag); err != nil {
			return err
		}
		if len(of.bag.Passages) > 0 {
			if err := e.index.SetVectors(number, of.vectors); err != nil {
				return err
			}
		}
	}
	e.versions++
	return nil
}

// Search returns the scopes that answer a query, best first. As of one sequence it always returns the same.
func (e *Epoch) Search(q Query) []Hit {
	e.x.mu.RLock()
	defer e.x.mu.RUnlock()
	q.AsOf = min(q.AsOf, e.until)
	end, _ := slices.BinarySearchFunc(e.scopes, q.AsOf, func(p place, asOf uint64) int {
		if e.x.files[p.file].seq <= asOf {
			return -1
		}
		return 1
	})
	if end == 0 {
		return nil
	}
	most := 4 * q.Limit
	for {
		found := e.index.Search(recall.Query{Text: q.Text, Vector: q.Vector, AsOf: uint64(end), Limit: most})
		list := e.hits(found, q)
		if len(list) == q.Limit || most == 0 || len(found) < most {
			return list
		}
		most = 0 // many of them were replaced since
	}
}

func (e *Epoch) hits(found []recall.Hit, q Query) (list []Hit) {
	for _, h := range found {
		if len(list) == q.Limit || h.Score < q.Min {
			break
		}
		at := e.scopes[h.Seq-1]
		f := &e.x.files[at.file]
		if e.x.newest(f.path, q.AsOf) != at.file {
			continue
		}
		list = append(list, Hit{Seq: f.seq, EventID: f.eventID, N: int(at.n), Path: f.path, Language: f.language, Scope: f.scopes[at.n], Score: h.Score, Parts: h.Parts})
	}
	return list
}

// Left returns how many of the scopes that count as of a sequence are not searched, because they are too many.
func (e *Epoch) Left(asOf uint64) (left int) {
	x := e.x
	x.mu.RLock()
	defer x.mu.RUnlock()
	if len(x.epochs) == 0 || !x.epochs[e.number].full {
		return 0
	}
	for path := range x.of {
		if n := x.newest(path, min(asOf, e.until)); n >= 0 {
			if _, searched := slices.BinarySearch(x.epochs[e.number].members, n); !searched {
				left += len(x.files[n].scopes)
			}
		}
	}
	return left
}
