package window

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"mneme.dev/mneme/pkg/recall"
	"mneme.dev/mneme/pkg/window/plain"
)

// Limits of the search for relevant code.
const (
	maxCodePassages = 100     // the newest ones
	maxCodeCalls    = 300     // the newest ones
	codePage        = 50      // calls read at once
	maxCodeChars    = 500_000 // approximate length of their texts
	codePassage     = 500     // characters
	leastCodeLine   = 20      // characters that make a line distinctive
	leastRepeat     = 3       // such lines; repeats of at least this many are left out
	leastFresh      = 30      // unseen characters of a passage
	maxCodeQuery    = 1_000   // characters of the query, and approximately of what was said last

	codeQueryCalls   = 20    // the last ones; code is ranked by them
	maxCodeArguments = 3_000 // characters of each
)

// code holds the passages of files that tools showed or wrote and the recent turns do not show.
type code struct {
	seen   SeenCode
	fresh  bool                // seen reaches the end of the context
	ranked map[span]rankedText // passages, and the texts they are ranked by
	query  *recall.Text        // the ranking query; nil until it is made
	joined map[span]int        // costs of joined passages
	model  string              // name of the embeddings used, "" for none

	beside   []shownItem // what the recent turns show
	passages []passage   // best first
}

// shownItem is an event in the recent turns. The more characters they have, the more of it they
// show.
type shownItem struct {
	seq   uint64
	chars int
}

// passage is a run of adjacent lines of a file.
type passage struct {
	path    string
	tool    string // the call that showed or wrote it
	of      *codeText
	from    int // lines of the text, to excluded
	to      int
	eventID string
	seq     uint64
	turn    int
	said    recall.Parts // how well it matches the query
	score   float64
	cost    int // characters on its own; 0 if not measured yet
	place   int // of its file, among the files shown
}

// text returns the lines of a passage.
func (p *passage) text() string { return p.of.between(p.from, p.to) }

// costOf is the cost of a passage without a label.
func (c *code) costOf(p *passage) int {
	if p.cost > 0 {
		return p.cost
	}
	n, ok := c.joined[p.span()]
	if !ok {
		n = codeItem(p, 0).measured().Chars
		c.joined[p.span()] = n
	}
	return n
}

func (p *passage) span() span { return span{p.seq, p.turn, p.from, p.to} }

// start returns the number of its first line in the file, 0 if unknown.
func (p *passage) start() int {
	if p.of.first == 0 {
		return 0
	}
	return p.of.first + p.from
}

// end returns the number of its last line.
func (p *passage) end() int {
	if p.of.first == 0 {
		return 0
	}
	return p.of.first + p.to - 1
}

// cutCode makes the passages. If several texts have a line, the newest counts; replaced lines and
// lines already shown are left out. It reads as many calls as it needs.
func (b *builder) cutCode(ctx context.Context, shown []Item) error {
	c := b.code
	if _, err := b.codeCall(ctx, 0); err != nil { // reads the new calls
		return err
	}
	known := knownLines{state: map[uint64]lineState{}}
	whole := map[uint64]bool{} // shown uncut
	for i := range shown {
		it := &shown[i]
		whole[it.Seq] = whole[it.Seq] || it.WholeChars == 0
		whole[it.ResultSeq] = it.ResultWholeChars == 0
		known.seeItem(it, c.seen.at(it.Seq))
	}
	c.passages = c.passages[:0]
	chars := 0
	for i := 0; len(c.passages) < maxCodePassages && i < maxCodeCalls && chars < maxCodeChars; i++ {
		call, err := b.codeCall(ctx, i)
		if err != nil {
			return err
		}
		if call == nil {
			break
		}
		p, replaced, ok := call.shown(b)
		if !ok {
			continue
		}
		if chars += p.of.chars; whole[p.seq] {
			continue
		}
		c.add(p, &known)
		for _, line := range replaced {
			if known.state[line] == lineNew {
				known.state[line] = lineGone
			}
		}
	}
	return nil
}

// knownLines holds what is known of lines, by their hashes.
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
func (k *knownLines) seeItem(it *Item, call *codeCall) {
	k.see(it.Text)
	if call == nil {
		call = &codeCall{}
	}
	switch {
	case it.Result == nil:
	case call.result.text != nil && call.result.seq == it.ResultSeq && it.ResultWholeChars == 0:
		k.seeLines(call.result.text.lines)
	default:
		text, _ := unnumbered(plain.Lines(*it.Result))
		k.see(text)
	}
	switch {
	case it.Arguments == "":
	case call.written != nil && it.WholeChars == 0:
		k.seeLines(call.written.lines)
	default:
		written, _ := changes(it.Arguments)
		for _, text := range written {
			k.see(text)
		}
	}
}

// see notes the lines of a text.
func (k *knownLines) see(text string) {
	for line := range strings.SplitSeq(text, "\n") {
		if line = told(line); plain.Length(line) >= leastCodeLine {
			k.state[hashOf(line)] = lineSeen
		}
	}
}

// seeLines notes lines that are already cut.
func (k *knownLines) seeLines(all []codeLine) {
	for i := range all {
		if all[i].told >= leastCodeLine {
			k.state[all[i].hash] = lineSeen
		}
	}
}

// add cuts a text into passages of unseen lines. It drops a small rest of a larger text in which
// little is new.
func (c *code) add(whole passage, known *knownLines) {
	all := whole.of.lines
	marks := known.mark(all)
	from, chars, fresh := 0, 0, 0 // of the passage; fresh counts its unseen characters
	end := func(to int) {
		if scrap := to-from < len(all) && fresh < leastFresh; fresh > 0 && !scrap && len(c.passages) < maxCodePassages {
			p := whole
			p.from, p.to = from, to
			c.passages = append(c.passages, p)
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
		if chars+need > codePassage {
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
func (k *knownLines) mark(all []codeLine) []lineMark {
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
		if line.told < leastCodeLine {
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

// rank scores the passages by four measures, each up to 1: how well their words match the query,
// how well their meaning does (unless embed is nil), how recently their file was touched, and how
// recently they were shown. late is the weight of the last two. It reports whether meaning took
// part.
func (c *code) rank(embed func(text string) recall.Vector, late float64) (byMeaning bool) {
	said, byMeaning := recall.Rank(*c.query, c.codeTexts(embed))
	filesRank, callRank := map[string]int{}, map[uint64]int{}
	for i := range c.passages {
		p := &c.passages[i]
		if _, ok := filesRank[p.path]; !ok {
			filesRank[p.path] = len(filesRank)
		}
		if _, ok := callRank[p.seq]; !ok {
			callRank[p.seq] = len(callRank)
		}
		p.said = said[i]
		p.score = p.said.Sum() + late*(1/float64(1+filesRank[p.path])+3/float64(3+callRank[p.seq]))
	}
	slices.SortStableFunc(c.passages, func(a, b passage) int { return cmp.Compare(b.score, a.score) })
	return byMeaning
}
