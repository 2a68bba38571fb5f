package window

import "context"

// Names of the sections.
const (
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
	rest      bool // takes what the others leave beside its share
	collected int  // its turn in collection; its place in the list is its place on the page
	// reserve is what the section needs for the messages that must survive, on top
	// of its share; nil for nothing.
	reserve func(b *builder) int
	// need is its room instead of the share; nil for the share.
	need func(b *builder) int
	// want is what the section can use at most, its heading included; nil for any room.
	want func(b *builder, heading string) int
	// collect fills the section in room characters, its heading included.
	collect func(ctx context.Context, b *builder, s section, room int) (filled, error)
}

// filled is what a section has collected, in the order of the page.
type filled struct {
	items   []Item
	dropped []Dropped
	room    int
	used    int

	embedding string // see SectionManifest
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
	pruned = section{
		name: SectionPruned, heading: "## Conversation",
		rest: true, collect: collectPruned,
	}
)

// strategies lists the sections of each strategy as they stand on the page.
var strategies = map[string][]section{
	StrategyHybrid:   {fewQueries.in(4), besideRelevant.in(2), relevant.in(6), relevantCode.in(5), story.in(3), accessed.in(1)},
	StrategyRelevant: {fewQueries.in(2), besideRelevant.in(1), relevant.in(3)},
	StrategyLevels:   {queries.in(3), levels.in(2), turns.in(1)},
	StrategyRecent:   {queries.in(2), turns.in(1)},
	StrategyPruned:   {pruned.in(1)},
}

// in gives a section its turn in collection. The queries come after the turns
// because they leave out what the turns show.
func (s section) in(turn int) section {
	s.collected = turn
	return s
}

// room is the share of a section, or what it can use of it.
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
