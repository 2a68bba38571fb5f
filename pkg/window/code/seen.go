package code

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/plain"
	"mneme.dev/mneme/pkg/recall"
)

// maxBytes limits what is kept, approximately; the newest calls stay.
const maxBytes = 4 * maxChars

// Seen is the code that tools showed and wrote in a conversation below some sequence, as far
// back as a context has read it, with its ranking data. A context that starts from the Seen of
// another one reads only new calls and results that were missing. It changes no context.
//
// It is immutable, and belongs to one conversation in one generation, as graph.Lineage.Descent
// identifies it. Nil is none.
type Seen struct {
	cwd   string              // of the conversation; paths are relative to it
	calls []*seenCall         // oldest first, without gaps; never changed
	whole bool                // nothing was called before them
	texts map[span]rankedText // of passages, and of the query
}

// seenCall is a call. It has the code that the call showed or wrote if the call concerns exactly
// one file.
type seenCall struct {
	graph.Position
	ref     graph.Ref
	eventID string

	path     string // "" if there is no such file
	tool     string
	kind     files.Kind // read or write
	written  *fragment
	replaced []uint64 // hashes of the lines that it replaced
	result   seenResult
}

// seenResult is the result of a call; its sequence is 0 if there is no result yet.
type seenResult struct {
	seq     uint64
	eventID string
	failed  bool
	lent    bool      // lent by a branch to an inherited call, until the branch has such a call itself
	text    *fragment // of a file that was read
}

// rankedText is the ranking data of a passage or of a query, and its cost on its own.
type rankedText struct {
	recall.Text
	cost int
}

// span identifies a passage: lines that an event showed or wrote.
type span struct {
	seq      uint64
	turn     int // of the call; part of the key, because a result that a branch inherited may later get another call
	part     int // of a scope of an index, which no call showed; 0 otherwise
	from, to int
}

var fileTools = files.DefaultTable()

// upTo returns a copy of the calls below a sequence; none if paths are relative to another directory.
func (s *Seen) upTo(end uint64, cwd string) Seen {
	if s == nil || s.cwd != cwd {
		return Seen{cwd: cwd}
	}
	out := *s
	out.calls = slices.Clone(s.calls[:s.below(end)])
	return out
}

// below counts the calls below a sequence.
func (s *Seen) below(end uint64) int {
	n, _ := slices.BinarySearchFunc(s.calls, end, func(c *seenCall, end uint64) int {
		if c.Seq < end {
			return -1
		}
		return 1
	})
	return n
}

// at returns the call at a sequence, nil if there is none or it was not read.
func (s *Seen) at(seq uint64) *seenCall {
	if i := s.below(seq); i < len(s.calls) && s.calls[i].Seq == seq {
		return s.calls[i]
	}
	return nil
}

// Kept returns the newest calls of a context and the ranking data of its passages, for the next
// context.
func (c *Search) Kept() *Seen {
	s := &Seen{cwd: c.seen.cwd, whole: c.seen.whole, calls: slices.Clone(c.seen.calls), texts: maps.Clone(c.ranked)}
	if more := len(s.calls) - maxCalls; more > 0 {
		s.calls, s.whole = s.calls[more:], false
	}
	for s.Bytes() > maxBytes && len(s.calls) > 0 {
		s.calls, s.whole = s.calls[(len(s.calls)+1)/2:], false
	}
	return s
}

// Newest returns the sequence of the last call, 0 if there is none.
func (s *Seen) Newest() uint64 {
	if s == nil || len(s.calls) == 0 {
		return 0
	}
	return s.calls[len(s.calls)-1].Seq
}

// Bytes estimates the memory used.
func (s *Seen) Bytes() (n int) {
	for _, c := range s.calls {
		n += 256 + len(c.path) + len(c.tool) + 8*len(c.replaced) + c.written.bytes() + c.result.text.bytes()
	}
	for _, text := range s.texts {
		n += 104 + 8*len(text.Terms) + len(text.Vector)
	}
	return n
}

// call returns the call before the last i ones below the end of the context, or nil if there
// are not that many.
func (c *Search) call(ctx context.Context, i int) (*seenCall, error) {
	s := &c.seen
	if !c.fresh {
		if err := c.refresh(ctx); err != nil {
			return nil, err
		}
		c.fresh = true
	}
	if i >= len(s.calls) && !s.whole {
		if err := c.readOlder(ctx); err != nil {
			return nil, err
		}
	}
	if n := len(s.calls); i < n {
		return s.calls[n-1-i], nil
	}
	return nil, nil
}

// refresh reads the new calls, and the results that were missing. If one page cannot hold the
// new calls, it starts over.
func (c *Search) refresh(ctx context.Context) error {
	s := &c.seen
	if len(s.calls) == 0 {
		s.whole = false
		return nil
	}
	list, err := c.read(ctx, graph.TranscriptQuery{From: s.Newest() + 1, Before: c.src.End})
	if err != nil {
		return err
	}
	if len(list) == callPage {
		*s = Seen{cwd: s.cwd}
		return nil
	}
	s.calls = append(s.calls, list...)
	return c.resolve(ctx, s.calls[max(0, len(s.calls)-maxCalls):])
}

// readOlder reads the next older calls.
func (c *Search) readOlder(ctx context.Context) error {
	s := &c.seen
	before := c.src.End
	if len(s.calls) > 0 {
		before = s.calls[0].Seq
	}
	list, err := c.read(ctx, graph.TranscriptQuery{Before: before})
	if err != nil {
		return err
	}
	if err := c.resolve(ctx, list); err != nil {
		return err
	}
	s.calls, s.whole = slices.Concat(list, s.calls), len(list) < callPage
	return nil
}

// read reads a page of calls, oldest first.
func (c *Search) read(ctx context.Context, q graph.TranscriptQuery) ([]*seenCall, error) {
	q.Limit, q.CallsOnly = callPage, true
	entries, err := c.src.Graph.Transcript(ctx, c.src.Conversation, q)
	if err != nil {
		return nil, err
	}
	list := make([]*seenCall, len(entries))
	for i, e := range entries {
		list[len(list)-1-i] = newSeenCall(e.Call, c.seen.cwd)
	}
	return list, nil
}

// resolve reads the missing results of the given calls, except results that the context leaves
// out.
func (c *Search) resolve(ctx context.Context, list []*seenCall) error {
	open := func(call *seenCall) bool {
		return call.path != "" && (call.result.seq == 0 || call.result.lent) && !c.src.Excluded(call.path)
	}
	var refs []graph.Ref
	for _, call := range list {
		if open(call) {
			refs = append(refs, call.ref)
		}
	}
	if len(refs) == 0 {
		return nil
	}
	found, err := c.src.Graph.Results(ctx, c.src.Conversation, refs, c.src.End-1)
	if err != nil {
		return err
	}
	for i, call := range list {
		if !open(call) {
			continue
		}
		resolved := *call
		resolved.result = seenResult{}
		if r, ok := found[call.ref]; ok {
			resolved.result = newSeenResult(&r, call)
		}
		list[i] = &resolved
	}
	return nil
}

// Terms returns the terms of a call's arguments. They are cached like those of passages, under an
// empty span, which no passage has.
func (c *Search) Terms(call *graph.ToolCall) []uint64 {
	at := span{seq: call.Seq, turn: call.Turn}
	text, ok := c.seen.texts[at]
	if !ok {
		text.Text = recall.NewText(plain.Prefix(call.Arguments.Text, maxArguments))
		slices.Sort(text.Terms)
		text.Terms = slices.Clone(slices.Compact(text.Terms))
	}
	c.ranked[at] = text
	return text.Terms
}

// texts returns the ranking data of the passages and caches it for the next context.
func (c *Search) texts(embed func(text string) recall.Vector) []recall.Text {
	out := make([]recall.Text, len(c.Passages))
	for i := range c.Passages {
		p := &c.Passages[i]
		at := p.span()
		text, ok := c.ranked[at]
		if !ok {
			text, ok = c.seen.texts[at]
		}
		if !ok {
			text = rankedText{recall.NewText(p.Text()), c.src.Cost(p)}
		}
		if embed != nil && text.Vector == nil && !p.wordsOnly {
			text.Vector = embed(p.Text())
		}
		out[i], p.cost, c.ranked[at] = text.Text, text.cost, text
	}
	return out
}

// newSeenCall prepares a call.
func newSeenCall(c *graph.ToolCall, cwd string) *seenCall {
	out := &seenCall{Position: c.Position, ref: c.Ref(), eventID: c.EventID}
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

// newSeenResult prepares the result of a call.
func newSeenResult(r *graph.ToolResult, c *seenCall) seenResult {
	out := seenResult{seq: r.Seq, eventID: r.EventID, failed: r.Success != nil && !*r.Success, lent: r.Depth != c.Depth}
	if c.kind == files.KindRead && !out.failed {
		text, first := Unnumbered(plain.Lines(r.Result.Text))
		out.text = newFragment(text, first, r.Result.Chars)
	}
	return out
}

// shown returns what a call showed or wrote as one passage, below the end of a context, and the
// lines that it replaced. It fails if there is nothing to show.
func (c *seenCall) shown(src *Source) (p Passage, replaced []uint64, ok bool) {
	if c.path == "" || src.Excluded(c.path) {
		return p, nil, false
	}
	p = Passage{Path: c.path, Tool: c.tool, Turn: c.Turn, Seq: c.Seq, EventID: c.eventID, of: c.written}
	r := &c.result
	switch there := r.seq != 0 && r.seq < src.End; {
	case there && r.failed:
		return p, nil, false
	case c.kind == files.KindWrite:
		return p, c.replaced, true
	case there:
		p.Seq, p.EventID, p.of = r.seq, r.eventID, r.text
		return p, nil, true
	}
	return p, nil, false
}
