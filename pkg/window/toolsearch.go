package window

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/plain"
	"mneme.dev/mneme/pkg/recall"
)

// ToolsFound is the result of a search among the results of tools.
type ToolsFound struct {
	Hits []CalledHit // best first; newest first if the query has no words
	// From is the first sequence that was searched, if a long conversation has older results that
	// were not; else 0.
	From uint64
}

// CalledHit is a tool result that was found, with what is known about its call.
type CalledHit struct {
	recall.Hit
	Ref   graph.Ref // of the call
	Turn  int       // of the result
	Tool  string    // "" if the call is unknown
	Files []string  // that the call's arguments name
}

// ToolHit is a tool result that a search shows.
type ToolHit struct {
	Call   graph.ToolCall // the zero value if it is unknown
	Result graph.ToolResult
	About  string // the call's main argument, cut; "" for none
	Text   string // the result as shown: whole, or the part around the best passage
	Match  Match

	Duplicates int // results of the same tool with the same text that were left out, see [Distinct]
}

// Distinct collects tool results that were found, and leaves out those of the same conversation and tool
// with the same text as an earlier one: agents read the same files and run the same tests many times.
type Distinct struct {
	Hits  []ToolHit
	known map[sameResult]int // its place in Hits
}

type sameResult struct {
	conversation events.ConversationID
	tool         string
	text         graph.Body // its hash tells apart two images of the same name
	err          string
}

// Add adds a result, and reports whether it is a new one.
func (d *Distinct) Add(of events.ConversationID, h ToolHit) bool {
	same := sameResult{of, h.Call.ToolName, h.Result.Result, h.Result.Error}
	if at, known := d.known[same]; known {
		d.Hits[at].Duplicates++
		return false
	}
	if d.known == nil {
		d.known = map[sameResult]int{}
	}
	d.known[same] = len(d.Hits)
	d.Hits = append(d.Hits, h)
	return true
}

// SearchTools finds the results of tools that have the words of a query, best first, or without words the newest ones
// that its filter keeps. Equal results are returned once. Only the words count: a result is compared by BM25 alone.
// next is the number of hits passed so far if there may be more, else 0. It returns graph.ErrNotFound as Build does.
func SearchTools(ctx context.Context, src Source, q SearchQuery) (hits []ToolHit, found ToolsFound, next int, err error) {
	found, err = src.Recall.SearchTools(ctx, q.Conversation, recall.Query{Text: q.Text, Prefixes: q.Prefixes, AsOf: q.AsOf, Among: q.Among, By: recall.ByWords})
	if err != nil || len(found.Hits) == 0 {
		return nil, found, 0, err
	}
	best := found.Hits[0].Score
	keep := q.Keep.ofCalls()
	var distinct Distinct
	at, examined := min(q.From, len(found.Hits)), 0
	for at < len(found.Hits) && len(distinct.Hits) < q.Limit && examined < MaxExamined {
		var page []CalledHit
		from, most := at, min(PageOf(q.Limit-len(distinct.Hits), examined == 0), MaxExamined-examined)
		for at < len(found.Hits) && len(page) < most {
			if h := found.Hits[at]; keep(&h) {
				page = append(page, h)
			}
			at++
		}
		examined += len(page)
		read, err := ReadTools(ctx, src, q, page, best)
		if err != nil {
			return nil, found, 0, err
		}
		for _, h := range read {
			if distinct.Add(q.Conversation, h); len(distinct.Hits) == q.Limit {
				at = from + 1 + slices.IndexFunc(found.Hits[from:], func(c CalledHit) bool { return c.Seq == h.Result.Seq })
				break
			}
		}
	}
	if at < len(found.Hits) {
		next = at
	}
	return distinct.Hits, found, next, nil
}

// ToolCandidates is [SearchTools] without reading the results: it finds those that the filter keeps by their place and their
// call, for [ReadTools]. from is [ToolsFound.From].
func ToolCandidates(ctx context.Context, src Source, q SearchQuery) (hits []CalledHit, from uint64, err error) {
	found, err := src.Recall.SearchTools(ctx, q.Conversation, recall.Query{Text: q.Text, Prefixes: q.Prefixes, AsOf: q.AsOf, Among: q.Among, By: recall.ByWords})
	keep := q.Keep.ofCalls()
	return slices.DeleteFunc(found.Hits, func(h CalledHit) bool { return !keep(&h) }), found.From, err
}

// ReadTools reads results that were found, in their order, and keeps those that the filter keeps by their time and text. best
// is the score that their relevance is relative to.
func ReadTools(ctx context.Context, src Source, q SearchQuery, list []CalledHit, best float64) (hits []ToolHit, err error) {
	if len(list) == 0 {
		return nil, nil
	}
	asOf := cmp.Or(q.AsOf, graph.Latest)
	refs := make([]graph.Ref, len(list))
	for i, h := range list {
		refs[i] = h.Ref
	}
	results, err := src.Graph.Results(ctx, q.Conversation, refs, asOf)
	if err != nil {
		return nil, err
	}
	calls, err := src.Graph.Calls(ctx, q.Conversation, refs, asOf)
	if err != nil {
		return nil, err
	}
	keep := q.Keep.ofResults()
	for _, h := range list {
		r, ok := results[h.Ref]
		if !ok || r.Seq != h.Seq || !keep(&r) { // the first two: deleted since
			continue
		}
		call, text := calls[h.Ref], ResultText(&r)
		start, end := q.focus().on(text, h.Start, h.End, q.MaxChars)
		hits = append(hits, ToolHit{
			Call: call, Result: r, About: mainArgument(call.Arguments.Text), Text: excerptOf(text, start, end, q.MaxChars), Match: *match(h.Hit, best),
		})
	}
	return hits, nil
}

// ResultText returns what a search sees of a result: its text and its error.
func ResultText(r *graph.ToolResult) graph.Body {
	switch {
	case r.Error == "" || r.Error == r.Result.Text:
		return r.Result
	case r.Result.Text == "":
		return graph.NewBody(r.Error)
	}
	b := r.Result
	b.Text += "\n" + r.Error
	b.Bytes += 1 + len(r.Error)
	b.Chars += 1 + plain.Length(r.Error)
	return b
}

// mainArguments are the arguments that say what a call was about, under the names that agents use,
// the most telling first.
var mainArguments = []string{
	"command", "cmd", "script", "pattern", "query", "regex", "file_path", "notebook_path", "path", "filename", "url", "description", "prompt", "patch", "input",
}

// maxAbout is the most that is shown of an argument.
const maxAbout = 200

// mainArgument returns the argument that says what a call was about, on one line and cut; all of
// the arguments if none of their names is known.
func mainArgument(arguments string) string {
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &members) != nil {
		var text string
		if json.Unmarshal([]byte(arguments), &text) != nil {
			text = arguments
		}
		return plain.Clip(plain.Flat(text), maxAbout)
	}
	for _, name := range mainArguments {
		var text string
		var list []string
		raw := members[name]
		if json.Unmarshal(raw, &text) != nil && json.Unmarshal(raw, &list) == nil {
			text = strings.Join(list, " ")
		}
		if text = plain.Flat(text); text != "" {
			return plain.Clip(text, maxAbout)
		}
	}
	if len(members) == 0 {
		return ""
	}
	return plain.Clip(plain.Flat(arguments), maxAbout)
}

// ofCalls returns which results are kept by their place and their call.
func (f *Filter) ofCalls() func(h *CalledHit) bool {
	ofFile := graph.FileMatcher(f.File)
	return func(h *CalledHit) bool {
		return (f.Tool == "" || strings.EqualFold(h.Tool, f.Tool)) && (f.File == "" || slices.ContainsFunc(h.Files, ofFile)) &&
			h.Seq >= f.FromSeq && (f.ToSeq == 0 || h.Seq <= f.ToSeq) &&
			h.Turn >= f.FromTurn && (f.ToTurn == 0 || h.Turn <= f.ToTurn)
	}
}

// ofResults returns a function that reports whether a result's time and text fit the filter.
func (f *Filter) ofResults() func(r *graph.ToolResult) bool {
	contains, without := phrases(f.Contains), phrases(f.Without)
	return func(r *graph.ToolResult) bool {
		return f.inTime(r.Time) && fits(ResultText(r).Text, contains, without)
	}
}
