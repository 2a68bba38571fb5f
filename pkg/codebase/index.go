package codebase

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/recall"
)

// MaxScopes is how many scopes an [Index] searches by default. One takes about a kilobyte of memory.
const MaxScopes = 250_000

const page = 256 // versions read at once

// Index holds what searches of one index of code need. It grows with the log, and answers as of any sequence that it has
// reached, except that [Index.Past] names searches of which another one must answer. The zero value is ready. It is safe
// for concurrent use.
type Index struct {
	// Max is how many scopes are searched; 0 means [MaxScopes].
	Max int
	// Until is the last sequence that the index takes in; 0 means that it follows the log.
	Until uint64

	following sync.Mutex // held while the store is read
	building  *searched  // of a new epoch; used by the caller that holds following

	mu    sync.RWMutex
	files []file             // every version, in the order of the log
	of    map[string][]int32 // versions of a path, in their order
	bytes int
	epochs
	searched *searched
	ready    uint64 // the last version that answers consider
}

// file is a version.
type file struct {
	seq      uint64
	eventID  string
	path     string
	language string
	removed  bool
	scopes   []Scope
	epoch    int // the last one that searches it, 0 if none does
}

// Bytes estimates the memory used.
func (x *Index) Bytes() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.searched == nil {
		return x.bytes
	}
	return x.bytes + x.searched.index.Bytes()
}

// Follow reads the versions that are new in the store. If it fails, what it has read stays.
func (x *Index) Follow(ctx context.Context, r Reader, id events.ConversationID) error {
	x.following.Lock()
	defer x.following.Unlock()
	q := VersionQuery{AsOf: math.MaxInt64, Limit: page}
	if x.Until != 0 {
		q.AsOf = min(q.AsOf, x.Until)
	}
	for {
		if q.From = 0; len(x.files) > 0 {
			q.From = x.files[len(x.files)-1].seq + 1
		}
		list, err := r.Versions(ctx, id, q)
		if err != nil {
			return err
		}
		x.addAll(list)
		if len(list) < page {
			return x.load(ctx, r, id)
		}
	}
}

func (x *Index) addAll(list []Version) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.of == nil {
		x.of = map[string][]int32{}
	}
	for i := range list {
		x.add(&list[i])
	}
}

// load reads what searches need of the versions of the epoch. Until it has done so, answers are as of the versions before.
func (x *Index) load(ctx context.Context, r Reader, id events.ConversationID) error {
	s := x.searched
	if s == nil || s.epoch != x.epoch {
		if x.building == nil || x.building.epoch != x.epoch {
			x.building = &searched{epoch: x.epoch}
		}
		s = x.building
	}
	for s.versions < len(x.members) {
		part := x.members[s.versions:min(s.versions+page, len(x.members))]
		seqs := make([]uint64, len(part))
		for i, n := range part {
			seqs[i] = x.files[n].seq
		}
		bags, err := r.Bags(ctx, id, seqs)
		if err != nil {
			return err
		}
		x.mu.Lock()
		for _, n := range part {
			if err == nil {
				err = s.add(n, &x.files[n], bags[x.files[n].seq])
			}
		}
		x.mu.Unlock()
		if err != nil {
			return err
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.searched, x.building = s, nil
	if len(x.files) > 0 {
		x.ready = x.files[len(x.files)-1].seq
	}
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
	end := 0
	if x.searched != nil {
		end = x.searched.until(x.files, min(q.AsOf, x.ready))
	}
	if end == 0 {
		return nil
	}
	most := 4 * q.Limit
	for {
		found := x.searched.index.Search(recall.Query{Text: q.Text, Vector: q.Vector, AsOf: uint64(end), Limit: most})
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
		at := x.searched.scopes[h.Seq-1]
		f := &x.files[at.file]
		if x.newest(f.path, q.AsOf) != at.file {
			continue
		}
		list = append(list, Hit{Seq: f.seq, EventID: f.eventID, N: int(at.n), Path: f.path, Language: f.language, Scope: f.scopes[at.n], Score: h.Score, Parts: h.Parts})
	}
	return list
}

// newest returns the version of a path that counts as of a sequence, -1 if none does.
func (x *Index) newest(path string, asOf uint64) int32 {
	list, asOf := x.of[path], min(asOf, x.ready)
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

// Left returns how many of the scopes that count as of a sequence are not searched, because they are too many.
func (x *Index) Left(asOf uint64) (left int) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if !x.full {
		return 0
	}
	for path := range x.of {
		if i := x.newest(path, asOf); i >= 0 && x.files[i].epoch != x.epoch {
			left += len(x.files[i].scopes)
		}
	}
	return left
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
