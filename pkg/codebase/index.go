package codebase

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"sync"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/recall"
)

// Limits of an index in memory.
const (
	// MaxScopes is how many scopes of an index are searched: the first ones, old versions included. One takes about a
	// kilobyte.
	MaxScopes = 250_000
	page      = 256 // versions read at once
)

// Index holds what searches of one index of code need. It grows with the log, and finds as of any sequence that it has
// reached. It is safe for concurrent use.
type Index struct {
	following sync.Mutex // held while the store is read
	last      uint64     // the last known version; changed by the caller that holds following

	mu      sync.RWMutex
	search  recall.Index
	scopes  []place
	files   []file
	of      map[string][]int32 // versions of a path, in their order
	left    int                // scopes over MaxScopes
	leftSeq uint64             // the version of the first of them
	bytes   int
}

// place is a scope.
type place struct {
	file int32
	n    int32 // in its version
}

// file is a version.
type file struct {
	seq      uint64
	eventID  string
	path     string
	language string
	removed  bool
	scopes   []Scope
	first    int32 // of its scopes in Index.scopes
}

// Bytes estimates the memory used.
func (x *Index) Bytes() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.bytes + x.search.Bytes()
}

// Follow reads the versions that are new in the store. If it fails, what it has read stays.
func (x *Index) Follow(ctx context.Context, r Reader, id events.ConversationID) error {
	x.following.Lock()
	defer x.following.Unlock()
	for {
		list, err := r.Versions(ctx, id, VersionQuery{From: x.last + 1, AsOf: math.MaxInt64, Limit: page})
		if err != nil {
			return err
		}
		if err := x.addAll(list); err != nil || len(list) < page {
			return err
		}
	}
}

func (x *Index) addAll(list []Version) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range list {
		if err := x.add(&list[i]); err != nil {
			return err
		}
		x.last = list[i].Seq
	}
	return nil
}

func (x *Index) add(v *Version) error {
	if x.of == nil {
		x.of = map[string][]int32{}
	}
	f := file{seq: v.Seq, eventID: strings.Clone(v.EventID), path: strings.Clone(v.Path), language: v.Language, removed: v.Removed, scopes: v.Scopes, first: int32(len(x.scopes))}
	x.of[f.path] = append(x.of[f.path], int32(len(x.files)))
	x.bytes += 128 + 2*len(f.path) + 64*len(f.scopes)
	data := v.Bags
	for n := range v.Scopes {
		bag, vectors, rest, err := nextBag(data)
		if err != nil {
			return err
		}
		if data = rest; len(x.scopes) >= MaxScopes {
			if x.left == 0 {
				x.leftSeq = v.Seq
			}
			x.left++
			continue
		}
		// Each version is a session of its own, because scopes of a file lend each other words and versions do not.
		bag.Session = f.path + "\x00" + itoa(v.Seq)
		x.scopes = append(x.scopes, place{int32(len(x.files)), int32(n)})
		number := uint64(len(x.scopes))
		if err := x.search.Add(number, bag); err != nil {
			return err
		}
		if len(bag.Passages) > 0 {
			if err := x.search.SetVectors(number, vectors); err != nil {
				return err
			}
		}
	}
	x.files = append(x.files, f)
	return nil
}

// Query asks for scopes.
type Query struct {
	Text   string
	Vector recall.Vector // of the text, by the built-in model; nil ranks by words alone
	// WordsOnly tells the code that makes the vector to leave it out.
	WordsOnly bool
	AsOf      uint64
	Limit     int
	Min       float64 // the least score
}

// Hit is a scope that was found.
type Hit struct {
	Seq      uint64 // of the version
	EventID  string
	N        int // in the version
	Path     string
	Language string
	Scope
	Text  string // set by [Fill]
	Score float64
	Parts recall.Parts
}

// Search returns the scopes that answer a query, best first. As of one sequence it always returns the same.
func (x *Index) Search(q Query) []Hit {
	x.mu.RLock()
	defer x.mu.RUnlock()
	end := x.until(q.AsOf)
	if end == 0 {
		return nil
	}
	most := 4 * q.Limit
	for {
		found := x.search.Search(recall.Query{Text: q.Text, Vector: q.Vector, AsOf: uint64(end), Limit: most})
		list := x.hits(found, q)
		if len(list) == q.Limit || most == 0 || len(found) < most {
			return list
		}
		most = 0 // many of them were replaced since
	}
}

func (x *Index) hits(found []recall.Hit, q Query) (list []Hit) {
	for _, h := range found {
		if len(list) == q.Limit || h.Score < q.Min {
			break
		}
		at := x.scopes[h.Seq-1]
		f := &x.files[at.file]
		if x.newest(f.path, q.AsOf) != at.file {
			continue
		}
		list = append(list, Hit{Seq: f.seq, EventID: f.eventID, N: int(at.n), Path: f.path, Language: f.language, Scope: f.scopes[at.n], Score: h.Score, Parts: h.Parts})
	}
	return list
}

// until returns how many scopes there were as of a sequence.
func (x *Index) until(asOf uint64) int {
	n, _ := slices.BinarySearchFunc(x.files, asOf, func(f file, asOf uint64) int {
		if f.seq <= asOf {
			return -1
		}
		return 1
	})
	if n == len(x.files) {
		return len(x.scopes)
	}
	return int(x.files[n].first)
}

// newest returns the version of a path that counts as of a sequence, -1 if none does.
func (x *Index) newest(path string, asOf uint64) int32 {
	list := x.of[path]
	for i := len(list) - 1; i >= 0; i-- {
		if f := &x.files[list[i]]; f.seq <= asOf {
			if f.removed {
				return -1
			}
			return list[i]
		}
	}
	return -1
}

// Left returns how many scopes are not searched as of a sequence, because the index is too large.
func (x *Index) Left(asOf uint64) int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.left == 0 || asOf < x.leftSeq {
		return 0
	}
	return x.left
}

// Files returns how many files and scopes the index holds as of a sequence.
func (x *Index) Files(asOf uint64) (files, scopes int) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for path := range x.of {
		if i := x.newest(path, asOf); i >= 0 {
			files++
			scopes += len(x.files[i].scopes)
		}
	}
	return files, scopes
}

// At returns the scopes that the newest version of a file holds around lines, smallest first, or nil. Lines 0 to 0 mean
// all.
func (x *Index) At(path string, from, to int, asOf uint64) (list []Hit) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	i := x.newest(path, asOf)
	if i < 0 {
		return nil
	}
	f := &x.files[i]
	for n, s := range f.scopes {
		if from == 0 && to == 0 || s.Start <= to && s.End >= from {
			list = append(list, Hit{Seq: f.seq, EventID: f.eventID, N: n, Path: path, Language: f.language, Scope: s})
		}
	}
	slices.SortStableFunc(list, func(a, b Hit) int { return cmp.Compare(a.End-a.Start, b.End-b.Start) })
	return list
}

// Fill reads the texts of hits.
func Fill(ctx context.Context, r Reader, id events.ConversationID, list []Hit) error {
	seqs := make([]uint64, 0, len(list))
	for _, h := range list {
		seqs = append(seqs, h.Seq)
	}
	slices.Sort(seqs)
	if seqs = slices.Compact(seqs); len(seqs) == 0 {
		return nil
	}
	texts, err := r.Texts(ctx, id, seqs)
	if err != nil {
		return err
	}
	for i := range list {
		if of := texts[list[i].Seq]; list[i].N < len(of) {
			list[i].Text = of[list[i].N]
		}
	}
	return nil
}
