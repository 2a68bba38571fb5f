package window

import "context"

// Names of the sections.
const (
	SectionEarlier  = "earlier_sessions"
	SectionQueries  = "last_user_queries"
	SectionRelevant = "relevant_past_context"
	SectionCode     = "relevant_code_context"
	SectionTurns    = "recent_turns"
	SectionStory    = "story_so_far"
	SectionFiles    = "recently_accessed_files"
	SectionPruned   = "conversation"
)

// Headings of the sections that hold an anchor.
const (
	queriesHeading = "## Last User Queries"
	turnsHeading   = "## Recent Conversation (Raw)"
)

// section declares one section of a context.
type section struct {
	name      string
	heading   string
	share     int  // percent of the budget
	rest      bool // also takes what the others leave
	collected int  // its position in collection; its position in the list is that on the page
	// reserve returns what the section needs for the anchors on top of its share. If it is nil, it needs nothing.
	reserve func(b *builder) int
	// need, if not nil, returns the room that the section gets instead of its share.
	need func(b *builder) int
	// want returns the most characters that the section can use, including its heading. If it is nil,
	// the section can use any number.
	want func(b *builder, heading string) int
	// collect fills the section in room characters, heading included.
	collect func(ctx context.Context, b *builder, s section, room int) (filled, error)
}

// filled is a collected section, in page order.
type filled struct {
	items   []Item
	dropped []Dropped
	room    int
	used    int

	candidates []Candidate // see builder.leave

	embedding string // see SectionManifest
	indexed   *IndexedManifest
	recent    *recent // what the others need from the recent turns; nil if another section returns it
}

// recent is the newest end of the conversation, which the recent turns show.
type recent struct {
	steps   []step  // as far as they were read
	spoken  float64 // the share of messages in their text
	awaited int     // the room for results that the model waits for

	items      []Item // shown
	whole      bool   // they show everything uncut
	rawFrom    uint64 // they show everything from this sequence on
	queriesEnd uint64 // user messages below this sequence are not among them
}

var (
	queries = section{
		name: SectionQueries, heading: queriesHeading,
		share: 5, rest: true, reserve: reserveFirst, collect: collectQueries,
	}
	fewQueries = section{
		name: SectionQueries, heading: queriesHeading,
		share: 5, reserve: reserveFirst, collect: collectQueries,
	}
	turns = section{
		name: SectionTurns, heading: turnsHeading,
		share: 5, rest: true, reserve: reserveNewest, collect: collectTurns,
	}
	relevant = section{
		name: SectionRelevant, heading: "## Relevant Past Context (relevance in %, confidence: 1.0)",
		rest: true, need: func(b *builder) int { return b.pastRoom }, collect: collectRelevant,
	}
	relevantCode = section{
		name: SectionCode, heading: "## Relevant Code Context (confidence: 0.5)",
		share: codeShare, rest: true, need: needCode, collect: collectCode,
	}
	besideRelevant = section{
		name: SectionTurns, heading: turnsHeading,
		share: 5, rest: true, reserve: reserveNewest, collect: collectTurnsBesideRelevant,
	}
	story = section{
		name: SectionStory, heading: "## Story So Far",
		share: 10, want: wantStory, collect: collectStory,
	}
	levels = section{
		name: SectionStory, heading: "## Story So Far",
		share: 50, want: wantStory, collect: collectStory,
	}
	accessed = section{
		name: SectionFiles, heading: "## Recently Accessed Files",
		share: 5, collect: collectFiles,
	}
	earlier = section{
		name: SectionEarlier, heading: "## From Earlier Sessions",
		rest: true, collect: collectEarlier,
	}
	pruned = section{
		name: SectionPruned, heading: "## Conversation",
		rest: true, collect: collectPruned,
	}
)

// strategies lists the sections of each strategy in page order.
var strategies = map[string][]section{
	StrategyHybrid:   {earlier.in(7), fewQueries.in(4), besideRelevant.in(2), relevant.in(6), relevantCode.in(5), story.in(3), accessed.in(1)},
	StrategyRelevant: {fewQueries.in(2), besideRelevant.in(1), relevant.in(3)},
	StrategyLevels:   {queries.in(3), levels.in(2), turns.in(1)},
	StrategyRecent:   {queries.in(2), turns.in(1)},
	StrategyPruned:   {pruned.in(1)},
}

// in sets a section's turn in collection. The queries come after the turns because they leave out
// what the turns show.
func (s section) in(turn int) section {
	s.collected = turn
	return s
}

// room returns a section's share, or less if it cannot use all of it.
func (s section) room(b *builder) int {
	room := share(b.req.MaxChars, s.share)
	if s.need != nil {
		room = s.need(b)
	}
	if s.want != nil {
		room = min(room, s.want(b, s.heading))
	}
	return room
}
