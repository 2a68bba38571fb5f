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

// Index holds one index of code in memory, without its texts. It grows with the log, and answers as of any sequence that it
// has reached. The zero value is ready. It is safe for concurrent use.
type Index struct {
	// Max is how many scopes are searched; 0 means [MaxScopes].
	Max int

	following sync.Mutex // held while the store is read

	mu     sync.RWMutex
	files  []file             // every version, in the order of the log
	of     map[string][]int32 // versions of a path, in their order
	bytes  int
	epochs []epoch
	loaded *Epoch // the one that was searched last
}

// file is a version.
type file struct {
	seq      uint64
	eventID  string
	path     string
	language string
	removed  bool
	scopes   []Scope
	epoch    int // the number of the last epoch that has it, -1 if none has
}

// Bytes estimates the memory used.
func (x *Index) Bytes() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.loaded == nil {
		return x.bytes
	}
	return x.bytes + x.loaded.index.Bytes()
}

// Follow reads the versions that are new in the store. If it fails, what it has read stays.
func (x *Index) Follow(ctx context.Context, r Reader, id events.ConversationID) error {
	x.following.Lock()
	defer x.following.Unlock()
	return x.follow(ctx, r, id)
}

func (x *Index) follow(ctx context.Context, r Reader, id events.ConversationID) error {
	for {
		list, err := r.Versions(ctx, id, VersionQuery{From: x.last() + 1, AsOf: math.MaxInt64, Limit: page})
		if err != nil {
			return err
		}
		x.addAll(list)
		if len(list) < page {
			return nil
		}
	}
}

// last returns the sequence of the newest version.
func (x *Index) last() uint64 {
	if len(x.files) == 0 {
		return 0
	}
	return x.files[len(x.files)-1].seq
}

func (x *Index) addAll(list []Version) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range list {
		x.add(&list[i])
	}
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
