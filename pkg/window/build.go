package window

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/graph"
)

// The budget of a context, in Unicode code points.
const (
	DefaultMaxChars = 100_000
	MinMaxChars     = 500 // below this, two cut messages with their headings and marks would not fit
	MaxMaxChars     = 10_000_000
)

// Strategies of a request, see the package comment.
const (
	StrategyHybrid   = "hybrid"
	StrategyRelevant = "relevant"
	StrategyLevels   = "levels"
	StrategyRecent   = "recent"
	StrategyPruned   = "pruned"
)

// Request says which context to build.
type Request struct {
	Conversation events.ConversationID
	Query        string // search text for the past; "" means the newest message with which the user asked for something
	MaxChars     int    // Unicode code points, headings and marks included; 0 means DefaultMaxChars
	Strategy     string // "" means hybrid
	AsOf         uint64 // a sequence; 0 means latest
	EmbeddedUpTo uint64 // see recall.Query; 0 means all
	Rerank       Reranking
	Condense     string   // how to show large old results; "" means extractive
	Exclude      []string // patterns of files to leave out; nil means files.DefaultExclusions
	Candidates   bool     // list in the manifest what was left out; this builds the context with larger budgets too
	Follow       uint64   // with Candidates: say in the manifest where the event at this sequence is shown; 0 for none
}

// How to show tool results that are over 1,000 characters and older than the last 3 messages.
const (
	CondenseOff        = "off"        // like any other result
	CondenseClear      = "clear"      // as a placeholder
	CondenseExtractive = "extractive" // the first and last lines, and lines that mention errors
	CondenseLLM        = "llm"        // a model's condensed text; extractive if there is none
)

var condenseModes = []string{CondenseOff, CondenseClear, CondenseExtractive, CondenseLLM}

// InvalidError names the field of a request that was refused, and why.
type InvalidError struct {
	Field  string
	Reason string
}

func (e *InvalidError) Error() string { return e.Field + ": " + e.Reason }

// Searches reports whether contexts of a strategy search the past; "" means hybrid.
func Searches(strategy string) bool {
	return slices.ContainsFunc(strategies[cmp.Or(strategy, StrategyHybrid)], func(s section) bool { return s.name == SectionRelevant })
}

// Strategies lists the names of the strategies, sorted.
func Strategies() []string { return slices.Sorted(maps.Keys(strategies)) }

func (r Request) withDefaults() (Request, error) {
	r.MaxChars = cmp.Or(r.MaxChars, DefaultMaxChars)
	if r.MaxChars < MinMaxChars || r.MaxChars > MaxMaxChars {
		return r, &InvalidError{"max_chars", fmt.Sprintf("%d is not between %d and %d", r.MaxChars, MinMaxChars, MaxMaxChars)}
	}
	r.Strategy = cmp.Or(r.Strategy, StrategyHybrid)
	if _, ok := strategies[r.Strategy]; !ok {
		return r, &InvalidError{"strategy", fmt.Sprintf("%q is not known; there are %s", r.Strategy, strings.Join(Strategies(), ", "))}
	}
	r.Condense = cmp.Or(r.Condense, CondenseExtractive)
	if !slices.Contains(condenseModes, r.Condense) {
		return r, &InvalidError{"condense", fmt.Sprintf("%q is not known; there are %s", r.Condense, strings.Join(condenseModes, ", "))}
	}
	r.AsOf = cmp.Or(r.AsOf, graph.Latest)
	return r, nil
}

// Build builds a context. It returns an [*InvalidError] or graph.ErrNotFound, see
// the package comment.
func Build(ctx context.Context, src Source, req Request) (*Context, error) {
	req, err := req.withDefaults()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	g := &gathered{done: make(chan struct{})}
	defer func() {
		cancel()
		g.once.Do(func() { close(g.done) }) // nothing was begun
		<-g.done                            // what is read belongs to this request
	}()
	c, err := build(ctx, src, req, g)
	if err == nil && req.Candidates {
		c.follow(req.Follow)
		err = c.tryBudgets(ctx, src, req, g)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// build builds the context of a request that has its defaults.
func build(ctx context.Context, src Source, req Request, g *gathered) (_ *Context, err error) {
	b := &builder{src: src, req: req, shown: map[uint64]bool{}}
	if b.conversation, err = src.Graph.Conversation(ctx, req.Conversation, req.AsOf); err != nil {
		return nil, err
	}
	if b.excluded = files.ExcludeOutside(b.conversation.Cwd, excludedByDefault); req.Exclude != nil {
		b.excluded = files.Exclude(req.Exclude)
	}
	b.excluded = remembered(b.excluded)
	b.end = min(req.AsOf, b.conversation.LastSeq) + 1
	if err := errors.Join(b.findAnchors(ctx), b.findFrontier(ctx)); err != nil {
		return nil, fmt.Errorf("context of conversation %q: %w", req.Conversation.ID, err)
	}
	list := strategies[req.Strategy]
	if src.Earlier != nil && Young(&b.conversation, req.MaxChars) && slices.ContainsFunc(list, func(s section) bool { return s.name == SectionEarlier }) {
		b.gathered = g
		g.begin(ctx, src.Earlier, b.query()) // in parallel with the other sections
	}
	filled, err := b.fill(ctx, list)
	if err != nil {
		return nil, fmt.Errorf("context of conversation %q: %w", req.Conversation.ID, err)
	}
	return b.assemble(list, filled), nil
}

// remembered asks about each path only once: tools touch the same few files again and again.
func remembered(excluded func(path string) bool) func(path string) bool {
	known := map[string]bool{}
	return func(path string) bool {
		out, ok := known[path]
		if !ok {
			out = excluded(path)
			known[path] = out
		}
		return out
	}
}

var excludedByDefault = files.Exclude(files.DefaultExclusions)

// builder is one run of Build.
type builder struct {
	src          Source
	req          Request // with its defaults
	conversation graph.Conversation
	excluded     func(path string) bool // files to leave out
	end          uint64                 // the context sees everything below this sequence

	// The two anchors, see anchors.go. Both are nil if no user wrote a message; they are equal if a
	// user wrote only one.
	newest, first, asked  *graph.Message
	newestItem, firstItem Item

	frontier []Item // summaries, oldest range first

	// What the sections collected so far have returned; only fill writes it.
	used   int             // by them and the frame
	shown  map[uint64]bool // sequences of what they show
	recent recent          // what the recent turns show

	gathered *gathered // of earlier sessions; nil if they are not shown

	// The searches, made once: nil before, or if search is not possible.
	past     *past
	code     *codeSearch
	pastRoom int // the least that the relevant past needs
}

// fill collects the sections, in their order of collection.
func (b *builder) fill(ctx context.Context, list []section) ([]filled, error) {
	out := make([]filled, len(list))
	b.used = frameCost
	left := b.req.MaxChars - frameCost
	reserved := make([]int, len(list))
	for i, s := range list {
		if s.reserve != nil {
			reserved[i] = s.reserve(b)
			left -= reserved[i]
		}
	}
	for turn := 1; turn <= len(list); turn++ {
		i := slices.IndexFunc(list, func(s section) bool { return s.collected == turn })
		s := list[i]
		room := s.room(b)
		if s.rest {
			room = left
			for _, later := range list {
				if later.collected > turn {
					room -= later.room(b)
				}
			}
			room = max(0, room)
		}
		// left is negative if an earlier section did not need this section's reserve
		room = max(0, min(room, left)+reserved[i])
		f, err := s.collect(ctx, b, s, room)
		if err != nil {
			return nil, err
		}
		f.room = max(f.room, room)
		f.used = sectionCost(s.heading, f.items)
		left += reserved[i] - f.used
		b.used += f.used
		for i := range f.items {
			b.shown[f.items[i].Seq] = true
		}
		if f.recent != nil {
			b.recent = *f.recent
		}
		out[i] = f
	}
	return out, nil
}
