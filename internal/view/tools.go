package view

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/sourcegraph/conc/iter"
	"golang.org/x/sync/semaphore"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/recall"
	"mneme.dev/mneme/pkg/window"
)

// toolPage is how many rows of a conversation are read at a time to index its tool results.
const toolPage = 500

// RowReader reads the rows of a conversation; every [graph.Reader] does.
type RowReader interface {
	Transcript(ctx context.Context, id events.ConversationID, q graph.TranscriptQuery) ([]graph.Entry, error)
}

// tools indexes the tool results of a conversation by their words. It is made at the first search
// for them, because most conversations never see one, and results are most of what is recorded.
// What is valid in it follows the rule of [Cache]: rows are added in the order of the log and never
// change within an edition.
//
// It holds at most a share of the cache. If a conversation has more results, it holds the newest: it
// is built from the end, and when it grows too large, it begins again with the newer half.
type tools struct {
	refreshing *semaphore.Weighted // as in entry
	loaded     bool                // as in entry
	last       uint64              // sequence of the last row read
	from       uint64              // rows before it are left out, 0 for none

	mu    sync.RWMutex
	index *recall.Index
	rows  []resultRow // in the order of the log
	calls map[graph.Ref]calledRow
	bytes int // of rows and calls, approximate
}

// resultRow is what is kept of a result besides its terms.
type resultRow struct {
	seq  uint64
	turn int
	ref  graph.Ref // of its call
}

// calledRow is what is kept of a call.
type calledRow struct {
	seq   uint64
	tool  string
	files []string
}

// Approximate cost of a row besides its texts.
const (
	resultRowBytes = 48 * 5 / 4
	calledRowBytes = 144
)

func newTools() *tools {
	return &tools{refreshing: semaphore.NewWeighted(1), index: &recall.Index{}, calls: map[graph.Ref]calledRow{}}
}

// maxTools is the largest size of the index of one conversation's tool results, in bytes.
func (c *Cache) maxTools() int { return max(c.budget/4, 1<<20) }

// loadTools indexes the tool results of a conversation unless they are in memory, as load does.
func (s *search) loadTools(ctx context.Context, id events.ConversationID, whole bool) error {
	e := s.cache.of(key{id, s.source.Edition})
	s.loaded = e
	t := e.tools
	if err := t.refreshing.Acquire(ctx, 1); err != nil {
		return err
	}
	defer t.refreshing.Release(1)
	if t.loaded {
		return nil
	}
	if err := place(ctx, s.cache.loading); err != nil {
		return err
	}
	defer s.cache.loading.Release(1)
	err := t.read(ctx, s.source.Rows, id, s.cache.maxTools())
	s.cache.resize(e, &e.toolBytes, t.size())
	if err == nil {
		t.loaded = whole
	}
	return s.done(ctx, e, err)
}

// refreshTools brings the index of a conversation's tool results up to date. from is the first sequence in it.
func (s *search) refreshTools(ctx context.Context, id events.ConversationID) (t *tools, from uint64, err error) {
	if s.source.Rows == nil {
		return nil, 0, errors.New("this search has no tool results")
	}
	e := s.entry(id)
	t = e.tools
	if err := t.refreshing.Acquire(ctx, 1); err != nil {
		return nil, 0, err
	}
	err = t.read(ctx, s.source.Rows, id, s.cache.maxTools())
	from = t.from
	t.refreshing.Release(1)
	s.cache.resize(e, &e.toolBytes, t.size())
	return t, from, s.done(ctx, e, err)
}

// toolBytes returns the size of the index that was loaded.
func (s *search) toolBytes() int {
	if s.loaded == nil {
		return 0
	}
	return s.loaded.tools.size()
}

// countTools adds how common the words of a query are in the tool results of a conversation after a sequence.
func (s *search) countTools(ctx context.Context, id events.ConversationID, q recall.Query, after uint64, all *recall.Statistics) error {
	e := s.loaded
	t, _, err := s.refreshTools(ctx, id)
	if err != nil {
		return err
	}
	s.loaded = e // what is counted is searched, even if the cache has dropped it since
	t.mu.RLock()
	defer t.mu.RUnlock()
	all.Count(t.index, q, after)
	return nil
}

// SearchTools implements window.Recall.
func (s *search) SearchTools(ctx context.Context, id events.ConversationID, q recall.Query) (found window.ToolsFound, err error) {
	t, from, err := s.refreshTools(ctx, id)
	if found.From = from; err != nil {
		return found, err
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	if strings.TrimSpace(q.Text) == "" && len(q.Prefixes) == 0 {
		for _, row := range slices.Backward(t.rows) {
			if q.AsOf == 0 || row.seq <= q.AsOf {
				found.Hits = append(found.Hits, t.hit(&row, recall.Hit{Seq: row.seq}, q.AsOf))
			}
		}
		return found, nil
	}
	for _, h := range t.index.Search(q) {
		i, _ := slices.BinarySearchFunc(t.rows, h.Seq, func(r resultRow, seq uint64) int { return cmp.Compare(r.seq, seq) })
		found.Hits = append(found.Hits, t.hit(&t.rows[i], h, q.AsOf))
	}
	return found, nil
}

// hit returns a result with what is known about its call as of a sequence.
func (t *tools) hit(row *resultRow, h recall.Hit, asOf uint64) window.CalledHit {
	out := window.CalledHit{Hit: h, Ref: row.ref, Turn: row.turn}
	if call := graph.Find(t.calls, row.ref); asOf == 0 || call.seq <= asOf {
		out.Tool, out.Files = call.tool, call.files
	}
	return out
}

// size returns the approximate memory of the index.
func (t *tools) size() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.index.Bytes() + t.bytes
}

// read adds the rows after the last known one. If ctx ends first, what was read stays.
func (t *tools) read(ctx context.Context, r RowReader, id events.ConversationID, limit int) error {
	if t.last == 0 {
		if err := t.readNewest(ctx, r, id, limit); err != nil {
			return err
		}
	}
	for {
		list, err := r.Transcript(ctx, id, graph.TranscriptQuery{From: t.last + 1, Limit: toolPage, OldestFirst: true})
		if err != nil || len(list) == 0 {
			return err
		}
		if err := t.add(prepare(list)); err != nil {
			return fmt.Errorf("tool results of conversation %q: %w", id.ID, err)
		}
		t.last = list[len(list)-1].Position().Seq
		if t.size() > limit && len(t.rows) > 1 {
			t.halve()
		} else if len(list) < toolPage {
			return nil
		}
	}
}

// readNewest makes the index of the newest results, about as many as the limit allows: it reads from the
// end, because most results of a very long conversation would be forgotten again.
func (t *tools) readNewest(ctx context.Context, r RowReader, id events.ConversationID, limit int) error {
	var pages [][]prepared
	var last, before uint64
	bytes, terms := 0, map[string]bool{}
	for {
		list, err := r.Transcript(ctx, id, graph.TranscriptQuery{Before: before, Limit: toolPage})
		if err != nil {
			return err
		}
		if len(list) == 0 {
			before = 0
			break
		}
		before = list[len(list)-1].Position().Seq
		last = max(last, list[0].Position().Seq)
		slices.Reverse(list)
		page := prepare(list)
		first := len(page)
		for first > 0 && bytes < limit-limit/8 { // what comes next also needs room
			first--
			bytes += page[first].size(terms)
		}
		pages = append(pages, page)
		if first > 0 {
			before = list[first].Position().Seq
			for i := range page[:first] {
				page[i].result = nil // calls stay: the oldest results may be theirs
			}
			break
		}
		if len(list) < toolPage {
			before = 0
			break
		}
	}
	for _, page := range slices.Backward(pages) {
		if err := t.add(page); err != nil {
			return fmt.Errorf("tool results of conversation %q: %w", id.ID, err)
		}
	}
	t.last, t.from = last, before
	return nil
}

var fileTools = files.DefaultTable()

// prepared is a row to be added: a result with its terms, or a call.
type prepared struct {
	result *resultRow
	bag    recall.Bag
	ref    graph.Ref
	call   *calledRow
}

// prepare takes the terms of results.
func prepare(list []graph.Entry) []prepared {
	return iter.Map(list, func(e *graph.Entry) (p prepared) {
		switch {
		case e.Result != nil:
			p.ref = e.Result.Ref()
			p.result = &resultRow{e.Result.Seq, e.Result.Turn, p.ref}
			p.bag = recall.NewBag(recall.Message{Content: window.ResultText(e.Result).Text})
		case e.Call != nil:
			p.ref = e.Call.Ref()
			p.call = &calledRow{seq: e.Call.Seq, tool: e.Call.ToolName}
			if !e.Call.Arguments.Whole() {
				break
			}
			for _, a := range fileTools.FromCall(files.Call{Tool: e.Call.ToolName, Arguments: json.RawMessage(e.Call.Arguments.Text)}) {
				p.call.files = append(p.call.files, strings.Clone(a.Path)) // it may be part of a long command
			}
		}
		return p
	})
}

// size returns about how much an index grows by a row, given the terms that are known.
func (p *prepared) size(terms map[string]bool) int {
	if p.result == nil {
		return p.bytes()
	}
	n := p.bytes() + recall.BagBytes(&p.bag)
	for _, term := range p.bag.Terms {
		if !terms[term] {
			terms[term] = true
			n += recall.TermBytes + len(term)
		}
	}
	return n
}

// bytes returns the approximate memory of a row without its terms.
func (p *prepared) bytes() (n int) {
	switch {
	case p.result != nil:
		return resultRowBytes + len(p.ref.ID)
	case p.call != nil:
		n = calledRowBytes + len(p.ref.ID) + len(p.call.tool)
		for _, file := range p.call.files {
			n += 16 + len(file)
		}
	}
	return n
}

// add adds rows in the order of the log.
func (t *tools) add(list []prepared) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range list {
		p := &list[i]
		t.bytes += p.bytes()
		switch {
		case p.result != nil:
			if err := t.index.Add(p.result.seq, p.bag); err != nil {
				return err
			}
			t.rows = append(t.rows, *p.result)
		case p.call != nil:
			t.calls[p.ref] = *p.call
		}
	}
	return nil
}

// halve forgets the older half of the results, and all terms: those of the newer half are read again.
// The calls of the results that stay are mostly from shortly before them.
func (t *tools) halve() {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(t.rows)
	before := t.rows[n/4].seq
	t.from = t.rows[n/2].seq
	t.last = t.from - 1
	kept := newTools()
	for ref, call := range t.calls {
		if call.seq >= before && call.seq < t.from {
			kept.calls[ref] = call
			p := prepared{ref: ref, call: &call}
			kept.bytes += p.bytes()
		}
	}
	t.index, t.rows, t.calls, t.bytes = kept.index, nil, kept.calls, kept.bytes
}
