package window

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/recall"
	"mneme.dev/mneme/pkg/window/plain"
)

// maxCodeBytes limits what is kept, approximately; the newest calls stay.
const maxCodeBytes = 4 * maxCodeChars

// SeenCode is the code that tools showed and wrote in a conversation below some sequence, as far
// back as a context has read it, with its ranking data. A context that starts from the SeenCode of
// another one reads only new calls and results that were missing. It changes no context.
//
// It is immutable, and belongs to one conversation in one generation, as graph.Lineage.Descent
// identifies it. Nil is none.
type SeenCode struct {
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

// upTo returns a copy of the calls below a sequence; none if paths are relative to another directory.
func (s *SeenCode) upTo(end uint64, cwd string) SeenCode {
	if s == nil || s.cwd != cwd {
		return SeenCode{cwd: cwd}
	}
	out := *s
	out.calls = slices.Clone(s.calls[:s.below(end)])
	return out
}

// below counts the calls below a sequence.
func (s *SeenCode) below(end uint64) int {
	n, _ := slices.BinarySearchFunc(s.calls, end, func(c *codeCall, end uint64) int {
		if c.Seq < end {
			return -1
		}
		return 1
	})
	return n
}

// at returns the call at a sequence, nil if there is none or it was not read.
func (s *SeenCode) at(seq uint64) *codeCall {
	if i := s.below(seq); i < len(s.calls) && s.calls[i].Seq == seq {
		return s.calls[i]
	}
	return nil
}

// kept returns the newest calls of a context and the ranking data of its passages, for the next
// context.
func (c *code) kept() *SeenCode {
	s := &SeenCode{cwd: c.seen.cwd, whole: c.seen.whole, calls: slices.Clone(c.seen.calls), texts: maps.Clone(c.ranked)}
	if more := len(s.calls) - maxCodeCalls; more > 0 {
		s.calls, s.whole = s.calls[more:], false
	}
	for s.Bytes() > maxCodeBytes && len(s.calls) > 0 {
		s.calls, s.whole = s.calls[(len(s.calls)+1)/2:], false
	}
	return s
}

// Newest returns the sequence of the last call, 0 if there is none.
func (s *SeenCode) Newest() uint64 {
	if s == nil || len(s.calls) == 0 {
		return 0
	}
	return s.calls[len(s.calls)-1].Seq
}

// Bytes estimates the memory used.
func (s *SeenCode) Bytes() (n int) {
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

// refreshCode reads the new calls, and the results that were missing. If one page cannot hold the
// new calls, it starts over.
func (b *builder) refreshCode(ctx context.Context) error {
	s := &b.code.seen
	if len(s.calls) == 0 {
		s.whole = false
		return nil
	}
	list, err := b.readCode(ctx, graph.TranscriptQuery{From: s.Newest() + 1, Before: b.end})
	if err != nil {
		return err
	}
	if len(list) == codePage {
		*s = SeenCode{cwd: s.cwd}
		return nil
	}
	s.calls = append(s.calls, list...)
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
		text.Text = recall.NewText(plain.Prefix(call.Arguments.Text, maxCodeArguments))
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
		text, first := unnumbered(plain.Lines(r.Result.Text))
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
