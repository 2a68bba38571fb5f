package codebase

import (
	"cmp"
	"slices"
	"strings"

	"mneme.dev/mneme/pkg/recall"
)

// epochs divide the versions of an index, because a search can't look at all scopes that there ever were. The first epoch
// begins with the first version, and each has the versions that follow, until no more scopes fit. If versions that were
// replaced hold at least a quarter of the room, a new epoch begins then, with the versions that count; until they do, further
// versions are left out.
//
// Only the versions decide, so an index that grew with the log and one that was read at once have the same epochs.
type epochs struct {
	epoch   int      // the number of the current one
	begins  []uint64 // the sequences with which epochs began, but for the first
	members []int32  // the versions of the current one, in the order of the log
	held    int      // scopes of the members
	stale   int      // scopes of members that were replaced
	full    bool     // a version was left out
}

// Past reports whether a search as of a sequence needs another index, and its Until: the scopes of that time are
// not searched here any more.
func (x *Index) Past(asOf uint64) (until uint64, past bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, begin := range x.begins {
		if asOf < begin {
			return begin - 1, true
		}
	}
	return 0, false
}

func (x *Index) add(v *Version) {
	x.epoch = max(x.epoch, 1)
	limit := cmp.Or(x.Max, MaxScopes)
	f := file{seq: v.Seq, eventID: strings.Clone(v.EventID), path: strings.Clone(v.Path), language: v.Language, removed: v.Removed, scopes: v.Scopes}
	if old := x.of[f.path]; len(old) > 0 {
		if o := &x.files[old[len(old)-1]]; o.epoch == x.epoch {
			x.stale += len(o.scopes)
		}
	}
	n := int32(len(x.files))
	x.files = append(x.files, f)
	x.of[f.path] = append(x.of[f.path], n)
	x.bytes += 128 + 2*len(f.path) + 64*len(f.scopes)
	fits := x.held+len(f.scopes) <= limit
	switch {
	case (x.full || !fits) && 4*x.stale >= limit:
		x.begin(limit)
	case fits:
		x.join(n)
	default:
		x.full = true
	}
}

func (x *Index) join(n int32) {
	f := &x.files[n]
	f.epoch = x.epoch
	x.held += len(f.scopes)
	if len(f.scopes) > 0 {
		x.members = append(x.members, n)
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
	x.epochs = epochs{epoch: x.epoch + 1, begins: append(x.begins, x.files[len(x.files)-1].seq), full: first > 0}
	for _, n := range counting[first:] {
		x.join(n)
	}
}

// searched is what searches look at.
type searched struct {
	epoch    int
	versions int // how many of the epoch's members it has
	index    recall.Index
	scopes   []place // a scope's number in the index is its number here plus one
}

// place is a scope.
type place struct {
	file int32
	n    int32 // in its version
}

// add adds a version with its bags.
func (s *searched) add(n int32, f *file, bags []byte) error {
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
		s.scopes = append(s.scopes, place{n, int32(i)})
		number := uint64(len(s.scopes))
		if err := s.index.Add(number, of.bag); err != nil {
			return err
		}
		if len(of.bag.Passages) > 0 {
			if err := s.index.SetVectors(number, of.vectors); err != nil {
				return err
			}
		}
	}
	s.versions++
	return nil
}

// until returns how many scopes there were as of a sequence.
func (s *searched) until(files []file, asOf uint64) int {
	n, _ := slices.BinarySearchFunc(s.scopes, asOf, func(p place, asOf uint64) int {
		if files[p.file].seq <= asOf {
			return -1
		}
		return 1
	})
	return n
}
