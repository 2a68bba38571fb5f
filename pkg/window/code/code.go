// Package code finds the code that a context shows: pieces of files that tools showed or wrote, each
// line in its newest version, ranked by how well they match a query and how recently they were
// touched. [Seen] keeps what was read for the next context.
package code

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/plain"
	"mneme.dev/mneme/pkg/recall"
)

// Limits of the search for relevant code.
const (
	maxPassages  = 100     // the newest ones
	maxCalls     = 300     // the newest ones
	callPage     = 50      // calls read at once
	maxChars     = 500_000 // approximate length of their texts
	passageChars = 500     // characters
	leastLine    = 20      // characters that make a line distinctive
	leastRepeat  = 3       // such lines; repeats of at least this many are left out
	leastFresh   = 30      // unseen characters of a passage
	maxArguments = 3_000   // characters of each call that code is ranked by
)

// Reader is what a search reads; every [graph.Reader] has it.
type Reader interface {
	Transcript(ctx context.Context, id events.ConversationID, q graph.TranscriptQuery) ([]graph.Entry, error)
	Results(ctx context.Context, id events.ConversationID, calls []graph.Ref, asOf uint64) (map[graph.Ref]graph.ToolResult, error)
}

// Source says where a search reads, and what its results cost.
type Source struct {
	Graph        Reader
	Conversation events.ConversationID
	Cwd          string                 // of the conversation; paths are relative to it
	End          uint64                 // the search sees everything below this sequence
	Excluded     func(path string) bool // files to leave out
	Cost         func(p *Passage) int   // characters of a passage as shown, without a label
	LabelCost    func(path string) int  // characters of the label above the first passage of a file
}

// Search finds the passages of files that tools showed or wrote and the context does not show
// already. It belongs to one context; one goroutine at a time may use it.
type Search struct {
	Passages []Passage // found by Cut, ordered by Rank
	Left     []LeftOut // scopes that Cut left out

	src      Source
	seen     Seen
	indexed  []Passage           // scopes of the project, newest first
	excluded []LeftOut           // other scopes, best first
	limit    int                 // of passages, while they are cut
	fresh    bool                // seen reaches the end of the context
	ranked   map[span]rankedText // passages, and the texts they are ranked by
	joined   map[span]int        // costs of joined passages
	known    knownLines          // during Cut
}

// New starts a search. seen is what an earlier search of the conversation kept, or nil.
func New(src Source, seen *Seen) *Search {
	return &Search{src: src, seen: seen.upTo(src.End, src.Cwd), ranked: map[span]rankedText{}, joined: map[span]int{}, known: knownLines{state: map[uint64]lineState{}}}
}

// Shown is a message or a call that the context already shows. Cut and ResultCut report whether its
// text or arguments, and its result, are shown shortened.
type Shown struct {
	Seq       uint64
	Text      string
	Arguments string // JSON
	Cut       bool
	ResultSeq uint64
	Result    *string // nil if there is none
	ResultCut bool
}

// Passage is a run of adjacent lines of a file.
type Passage struct {
	Path    string
	Tool    string // the call that showed or wrote it
	EventID string
	Seq     uint64
	Turn    int
	Said    recall.Parts // how well it matches the query
	Score   float64

	of        *fragment
	part      int  // the number of a scope in its file, from 1; 0 for code that a tool showed
	wordsOnly bool // its meaning does not count
	from      int  // lines of the text, to excluded
	to        int
	cost      int // characters on its own; 0 if not measured yet
	place     int // of its file, among the files shown
}

// Text returns the lines of a passage.
func (p *Passage) Text() string { return p.of.between(p.from, p.to) }

// Cost is the cost of a passage without a label.
func (c *Search) Cost(p *Passage) int {
	if p.cost > 0 {
		return p.cost
	}
	n, ok := c.joined[p.span()]
	if !ok {
		n = c.src.Cost(p)
		c.joined[p.span()] = n
	}
	return n
}

func (p *Passage) span() span { return span{p.Seq, p.Turn, p.part, p.from, p.to} }

// Start returns the number of its first line in the file, 0 if unknown.
func (p *Passage) Start() int {
	if p.of.first == 0 {
		return 0
	}
	return p.of.first + p.from
}

// End returns the number of its last line.
func (p *Passage) End() int {
	if p.of.first == 0 {
		return 0
	}
	return p.of.first + p.to - 1
}

// Cut makes the passages. If several texts contain a line, the newest counts; replaced lines and lines already shown
// are left out. It reads as many calls as it needs.
func (c *Search) Cut(ctx context.Context, shown []Shown) error {
	if _, err := c.call(ctx, 0); err != nil { // reads the new calls
		return err
	}
	known := &c.known
	clear(known.state)
	whole := map[uint64]bool{} // shown uncut
	for i := range shown {
		it := &shown[i]
		whole[it.Seq] = whole[it.Seq] || !it.Cut
		whole[it.ResultSeq] = !it.ResultCut
		known.seeItem(it, c.seen.at(it.Seq))
	}
	c.Passages, c.Left = c.Passages[:0], append(c.Left[:0], c.excluded...)
	c.limit = maxPassages
	chars, scopes := 0, 0
	for i := 0; len(c.Passages) < c.limit && i < maxCalls && chars < maxChars; i++ {
		call, err := c.call(ctx, i)
		if err != nil {
			return err
		}
		if call == nil {
			break
		}
		scopes = c.addIndexed(scopes, call.Seq, known)
		p, replaced, ok := call.shown(&c.src)
		if !ok {
			continue
		}
		if chars += p.of.chars; whole[p.Seq] {
			continue
		}
		c.add(p, known)
		for _, line := range replaced {
			if known.state[line] == lineNew {
				known.state[line] = lineGone
			}
		}
	}
	c.addIndexed(scopes, 0, known)
	return nil
}

// Load reads the newest calls, which Cut needs.
func (c *Search) Load(ctx context.Context) error {
	_, err := c.call(ctx, 0)
	return err
}

// knownLines holds what is known about lines. The key is the hash of a line.
type knownLines struct {
	state map[uint64]lineState
	marks []lineMark // of the current text
}

// lineState says how newer passages treat a line.
type lineState uint8

const (
	lineNew  lineState = iota
	lineGone           // it was replaced
	lineSeen           // a newer passage has it, or it is already shown
)

// lineMark says what happens to a line of a text.
type lineMark uint8

const (
	markShort    lineMark = iota // too short to be distinctive
	markFresh                    // not seen yet
	markSeen                     // seen, but too few of its neighbors are
	markRepeated                 // left out with its neighbors
	markGone                     // left out: replaced
)

// seeItem notes the lines of what is shown. call, which may be nil, is the known call and saves
// reading the same texts again.
func (k *knownLines) seeItem(it *Shown, call *seenCall) {
	k.see(it.Text)
	if call == nil {
		call = &seenCall{}
	}
	switch {
	case it.Result == nil:
	case call.result.text != nil && call.result.seq == it.ResultSeq && !it.ResultCut:
		k.seeLines(call.result.text.lines)
	default:
		text, _ := Unnumbered(plain.Lines(*it.Result))
		k.see(text)
	}
	switch {
	case it.Arguments == "":
	case call.written != nil && !it.Cut:
		k.seeLines(call.written.lines)
	default:
		written, _ := Changes(it.Arguments)
		for _, text := range written {
			k.see(text)
		}
	}
}

// see notes the lines of a text.
func (k *knownLines) see(text string) {
	for line := range strings.SplitSeq(text, "\n") {
		if line = told(line); plain.Length(line) >= leastLine {
			k.state[hashOf(line)] = lineSeen
		}
	}
}

// seeLines notes lines of a text that is already split.
func (k *knownLines) seeLines(all []fragmentLine) {
	for i := range all {
		if all[i].told >= leastLine {
			k.state[all[i].hash] = lineSeen
		}
	}
}

// add cuts a text into passages of unseen lines. It drops a small rest of a larger text in which
// little is new.
func (c *Search) add(whole Passage, known *knownLines) {
	all := whole.of.lines
	marks := known.mark(all)
	from, chars, fresh := 0, 0, 0 // of the passage; fresh counts its unseen characters
	end := func(to int) {
		if scrap := to-from < len(all) && fresh < leastFresh; fresh > 0 && !scrap && len(c.Passages) < c.limit {
			p := whole
			p.from, p.to = from, to
			c.Passages = append(c.Passages, p)
		}
		from, chars, fresh = to, 0, 0
	}
	for i := range all {
		line := &all[i]
		if marks[i] >= markRepeated {
			end(i)
			from = i + 1
			continue
		}
		need := int(line.chars) + 2
		if chars+need > passageChars {
			end(i)
		}
		if marks[i] == markFresh {
			fresh += int(line.told)
		}
		chars += need
	}
	end(len(all))
	for i := range all {
		if marks[i] == markFresh || marks[i] == markGone {
			known.state[all[i].hash] = lineSeen
		}
	}
}

// mark marks the lines of a text; the result is valid until the next call. It leaves out replaced
// lines and runs of at least leastRepeat seen lines. Shorter runs stay, so that the lines around
// them remain readable.
func (k *knownLines) mark(all []fragmentLine) []lineMark {
	k.marks = slices.Grow(k.marks[:0], len(all))[:len(all)]
	from, last, seen := 0, 0, 0 // of the current run of seen lines, with short lines between
	end := func() {
		if seen >= leastRepeat {
			for i := from; i <= last; i++ {
				k.marks[i] = markRepeated
			}
		}
		seen = 0
	}
	for i := range all {
		line := &all[i]
		if line.told < leastLine {
			k.marks[i] = markShort
			continue
		}
		switch k.state[line.hash] {
		case lineSeen:
			if k.marks[i] = markSeen; seen == 0 {
				from = i
			}
			last, seen = i, seen+1
		case lineGone:
			end()
			k.marks[i] = markGone
		default:
			end()
			k.marks[i] = markFresh
		}
	}
	end()
	return k.marks
}

// Rank scores the passages by four measures, each up to 1: how well their words match the query,
// how well their meaning does (unless embed is nil), how recently their file was touched, and how
// recently they were shown. late is the weight of the last two. It reports whether meaning was
// compared.
func (c *Search) Rank(query recall.Text, embed func(text string) recall.Vector, late float64) (byMeaning bool) {
	said, byMeaning := recall.Rank(query, c.texts(embed))
	filesRank, callRank := map[string]int{}, map[uint64]int{}
	for i := range c.Passages {
		p := &c.Passages[i]
		if _, ok := filesRank[p.Path]; !ok {
			filesRank[p.Path] = len(filesRank)
		}
		p.Said = said[i]
		if p.part > 0 { // nobody touched it
			p.Score = p.Said.Sum() + late/float64(1+filesRank[p.Path])
			continue
		}
		if _, ok := callRank[p.Seq]; !ok {
			callRank[p.Seq] = len(callRank)
		}
		// The conversion keeps the compiler from fusing the operations, which only some processors do.
		p.Score = p.Said.Sum() + float64(late*(1/float64(1+filesRank[p.Path])+3/float64(3+callRank[p.Seq])))
	}
	slices.SortStableFunc(c.Passages, func(a, b Passage) int { return cmp.Compare(b.Score, a.Score) })
	return byMeaning
}
