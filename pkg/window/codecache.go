package window

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/recall"
)

// CodeCache keeps the code that tools have shown and written in a conversation, and its ranking
// data, from one context to the next. A context then reads only new calls and results that were
// missing. The cached rows don't change as long as the store still has the newest cached call;
// otherwise the cache starts over. The cache never changes what a context shows.
//
// The zero value is an empty cache, ready to use. A cache serves one conversation, or one lineage
// of a branch (see graph.Lineage.Descent). Several contexts may use it at once: each works on its
// own copy, and the newest copy is kept.
type CodeCache struct {
	// Embed makes the vectors that rank code if a request has a query, always with the same model.
	// Nil ranks by words alone.
	Embed func(text string) recall.Vector
	// Model names that model in manifests.
	Model string

	// Resized, if not nil, receives the approximate number of bytes kept whenever it changes. It
	// must not use the cache.
	Resized func(bytes int)

	mu   sync.Mutex
	kept *seenCode // never changed; nil for nothing
}

// maxCodeBytes limits what is kept, approximately; the newest calls stay.
const maxCodeBytes = 4 * maxCodeChars

// seenCode holds the calls of a conversation below some sequence, as far back as they were read.
type seenCode struct {
	cwd   string              // of the conversation; paths are relative to it
	calls []*codeCall         // oldest first, without gaps; never changed
	whole bool                // nothing was called before them
	texts map[span]rankedText // of passages, and of the query
}

// codeCall is a call. It has the code that the call showed or wrote if the call concerns exactly
// one file.
type codeCall struct {
	graph.Position
	ref     graph.Ref
	eventID string

	path     string // "" if there is no such file
	tool     string
	kind     files.Kind // read or write
	written  *codeText
	replaced []uint64 // hashes of the lines that it replaced
	result   codeResult
}

// codeResult is the result of a call; its sequence is 0 if there is no result yet.
type codeResult struct {
	seq     uint64
	eventID string
	failed  bool
	lent    bool      // lent by a branch to an inherited call, until the branch has such a call itself
	text    *codeText // of a file that was read
}

// rankedText is the ranking data of a passage or of a query, and its cost on its own.
type rankedText struct {
	recall.Text
	cost int
}

// span identifies a passage: lines that an event showed or wrote.
type span struct {
	seq      uint64
	turn     int // of the call: a result lent by a branch may later belong to another call
	from, to int
}

var fileTools = files.DefaultTable()

// load copies the cached calls below a sequence, and returns what it copied from.
func (k *CodeCache) load(end uint64, cwd string) (s seenCode, from *seenCode) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kept == nil || k.kept.cwd != cwd {
		return seenCode{cwd: cwd}, k.kept
	}
	s = *k.kept
	s.calls = slices.Clone(s.calls[:s.below(end)])
	s.texts = maps.Clone(s.texts)
	return s, k.kept
}

// below counts the calls below a sequence.
func (s *seenCode) below(end uint64) int {
	n, _ := slices.BinarySearchFunc(s.calls, end, func(c *codeCall, end uint64) int {
		if c.Seq < end {
			return -1
		}
		return 1
	})
	return n
}

// at returns the call at a sequence, nil if there is none or it was not read.
func (s *seenCode) at(seq uint64) *codeCall {
	if i := s.below(seq); i < len(s.calls) && s.calls[i].Seq == seq {
		return s.calls[i]
	}
	return nil
}

// store keeps the newest calls of a context and the ranking data of its passages, unless another
// context has meanwhile stored newer calls.
func (k *CodeCache) store(c *code) {
	s := &seenCode{cwd: c.seen.cwd, whole: c.seen.whole, calls: slices.Clone(c.seen.calls), texts: maps.Clone(c.ranked)}
	if more := len(s.calls) - maxCodeCalls; more > 0 {
		s.calls, s.whole = s.calls[more:], false
	}
	bytes := s.bytes()
	for bytes > maxCodeBytes && len(s.calls) > 0 {
		s.calls, s.whole = s.calls[(len(s.calls)+1)/2:], false
		bytes = s.bytes()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if c.anew && k.kept == c.from || s.newest() >= k.kept.newest() {
		k.kept = s
		if k.Resized != nil {
			k.Resized(bytes)
		}
	}
}

// newest returns the sequence of the last call, 0 if there is none.
func (s *seenCode) newest() uint64 {
	if s == nil || len(s.calls) == 0 {
		return 0
	}
	return s.calls[len(s.calls)-1].Seq
}

// bytes estimates the memory used.
func (s *seenCode) bytes() (n int) {
	for _, c := range s.calls {
		n += 256 + len(c.path) + len(c.tool) + 8*len(c.replaced) + c.written.bytes() + c.result.text.bytes()
	}
	for _, text := range s.texts {
		n += 104 + 8*len(text.Terms) + len(text.Vector)
	}
	return n
}

// codeCall returns the call before the last i ones below the end of the context, or nil if there
// are not that many.
func (b *builder) codeCall(ctx context.Context, i int) (*codeCall, error) {
	s := &b.code.seen
	if !b.code.fresh {
		if err := b.refreshCode(ctx); err != nil {
			return nil, err
		}
		b.code.fresh = true
	}
	if i >= len(s.calls) && !s.whole {
		if err := b.readOlderCode(ctx); err != nil {
			return nil, err
		}
	}
	if n := len(s.calls); i < n {
		return s.calls[n-1-i], nil
	}
	return nil, nil
}

// refreshCode reads the new calls, and the results that were missing. It first rereads the newest
// cached call. If that call is gone or different, or if one page cannot reach from it to the newest
// call, it starts over.
func (b *builder) refreshCode(ctx context.Context) error {
	s := &b.code.seen
	if len(s.calls) == 0 {
		s.whole = false
		return nil
	}
	last := s.calls[len(s.calls)-1]
	list, err := b.readCode(ctx, graph.TranscriptQuery{From: last.Seq, Before: b.end})
	if err != nil {
		return err
	}
	if len(list) == 0 || list[0].Position != last.Position || list[0].eventID != last.eventID {
		b.code.seen, b.code.anew = seenCode{cwd: s.cwd}, true
		return nil
	}
	s.calls = append(s.calls, list[1:]...)
	return b.resolveCode(ctx, s.calls[max(0, len(s.calls)-maxCodeCalls):])
}

// readOlderCode reads the next older calls.
func (b *builder) readOlderCode(ctx context.Context) error {
	s := &b.code.seen
	before := b.end
	if len(s.calls) > 0 {
		before = s.calls[0].Seq
	}
	list, err := b.readCode(ctx, graph.TranscriptQuery{Before: before})
	if err != nil {
		return err
	}
	if err := b.resolveCode(ctx, list); err != nil {
		return err
	}
	s.calls, s.whole = slices.Concat(list, s.calls), len(list) < codePage
	return nil
}

// readCode reads a page of calls, oldest first.
func (b *builder) readCode(ctx context.Context, q graph.TranscriptQuery) ([]*codeCall, error) {
	q.Limit, q.CallsOnly = codePage, true
	entries, err := b.src.Graph.Transcript(ctx, b.req.Conversation, q)
	if err != nil {
		return nil, err
	}
	list := make([]*codeCall, len(entries))
	for i, e := range entries {
		list[len(list)-1-i] = newCodeCall(e.Call, b.code.seen.cwd)
	}
	return list, nil
}

// resolveCode reads the missing results of the given calls, except results that the context leaves
// out.
func (b *builder) resolveCode(ctx context.Context, list []*codeCall) error {
	open := func(c *codeCall) bool {
		return c.path != "" && (c.result.seq == 0 || c.result.lent) && !b.excluded(c.path)
	}
	var refs []graph.Ref
	for _, c := range list {
		if open(c) {
			refs = append(refs, c.ref)
		}
	}
	if len(refs) == 0 {
		return nil
	}
	found, err := b.src.Graph.Results(ctx, b.req.Conversation, refs, b.end-1)
	if err != nil {
		return err
	}
	for i, c := range list {
		if !open(c) {
			continue
		}
		resolved := *c
		resolved.result = codeResult{}
		if r, ok := found[c.ref]; ok {
			resolved.result = newCodeResult(&r, c)
		}
		list[i] = &resolved
	}
	return nil
}

// asked returns the terms of a call's arguments. They are cached like those of passages, under an
// empty span, which no passage has.
func (c *code) asked(call *graph.ToolCall) []uint64 {
	at := span{seq: call.Seq, turn: call.Turn}
	text, ok := c.seen.texts[at]
	if !ok {
		text.Text = recall.NewText(prefix(call.Arguments.Text, maxCodeArguments))
		slices.Sort(text.Terms)
		text.Terms = slices.Clone(slices.Compact(text.Terms))
	}
	c.ranked[at] = text
	return text.Terms
}

// codeTexts returns the ranking data of the passages and caches it for the next context.
func (c *code) codeTexts(embed func(text string) recall.Vector) []recall.Text {
	out := make([]recall.Text, len(c.passages))
	for i := range c.passages {
		p := &c.passages[i]
		at := p.span()
		text, ok := c.ranked[at]
		if !ok {
			text, ok = c.seen.texts[at]
		}
		if !ok {
			text = rankedText{recall.NewText(p.text()), codeItem(p, 0).measured().Chars}
		}
		if embed != nil && text.Vector == nil {
			text.Vector = embed(p.text())
		}
		out[i], p.cost, c.ranked[at] = text.Text, text.cost, text
	}
	return out
}

// newCodeCall prepares a call.
func newCodeCall(c *graph.ToolCall, cwd string) *codeCall {
	out := &codeCall{Position: c.Position, ref: c.Ref(), eventID: c.EventID}
	if !c.Arguments.Whole() {
		return out
	}
	list := fileTools.FromCall(files.Call{Tool: c.ToolName, Arguments: json.RawMessage(c.Arguments.Text), Cwd: cwd})
	list = slices.DeleteFunc(list, func(a files.Access) bool { return a.Kind != files.KindRead && a.Kind != files.KindWrite })
	if len(list) != 1 {
		return out
	}
	// a copy, because the path may be part of a long command
	out.tool = strings.Clone(c.ToolName)
	if out.path, out.kind = strings.Clone(list[0].Path), list[0].Kind; out.kind == files.KindWrite {
		out.written, out.replaced = writtenText(c.Arguments)
	}
	return out
}

// newCodeResult prepares the result of a call.
func newCodeResult(r *graph.ToolResult, c *codeCall) codeResult {
	out := codeResult{seq: r.Seq, eventID: r.EventID, failed: r.Success != nil && !*r.Success, lent: r.Depth != c.Depth}
	if c.kind == files.KindRead && !out.failed {
		text, first := unnumbered(unixLines(r.Result.Text))
		out.text = newCodeText(text, first, r.Result.Chars)
	}
	return out
}

// shown returns what a call showed or wrote as one passage, below the end of a context, and the
// lines that it replaced. It fails if there is nothing to show.
func (c *codeCall) shown(b *builder) (p passage, replaced []uint64, ok bool) {
	if c.path == "" || b.excluded(c.path) {
		return p, nil, false
	}
	p = passage{path: c.path, tool: c.tool, turn: c.Turn, seq: c.Seq, eventID: c.eventID, of: c.written}
	r := &c.result
	switch there := r.seq != 0 && r.seq < b.end; {
	case there && r.failed:
		return p, nil, false
	case c.kind == files.KindWrite:
		return p, c.replaced, true
	case there:
		p.seq, p.eventID, p.of = r.seq, r.eventID, r.text
		return p, nil, true
	}
	return p, nil, false
}
