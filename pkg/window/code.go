package window

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"mneme.dev/mneme/pkg/recall"
)

// Limits of what is looked at for the relevant code.
const (
	maxCodePassages = 100     // the newest ones
	maxCodeCalls    = 300     // the newest ones
	codePage        = 50      // calls read at once
	maxCodeChars    = 500_000 // about, of their texts
	codePassage     = 500     // characters
	leastCodeLine   = 20      // characters of a line that is told from others
	leastRepeat     = 3       // such lines, to be left out where they are repeated
	leastFresh      = 30      // characters of a passage that were not seen
	maxCodeQuery    = 1_000   // characters of what was asked, and about of what was said last

	codeQueryCalls   = 20    // the last ones, that code is ranked by
	maxCodeArguments = 3_000 // characters of each
)

// code are the passages of what tools have shown and written of files, of those that the
// recent turns do not show.
type code struct {
	seen   seenCode
	from   *seenCode           // what seen was made of
	fresh  bool                // seen has what came up to the end of the context
	anew   bool                // from can't be used
	ranked map[span]rankedText // passages, and what they are ranked for
	query  *recall.Text        // what they are ranked by; nil before that
	joined map[span]int        // what passages cost that were joined
	model  string              // of the embeddings that took part, "" for none

	beside   []shownItem // what the recent turns show
	passages []passage   // the best first
}

// shownItem is what the recent turns show of an event: in more characters more of it.
type shownItem struct {
	seq   uint64
	chars int
}

// passage is a piece of a file: lines that follow each other.
type passage struct {
	path    string
	tool    string // that showed or wrote it
	of      *codeText
	from    int // lines of the text, to not included
	to      int
	eventID string
	seq     uint64
	turn    int
	said    recall.Parts // what it says of the query
	score   float64
	cost    int // in characters, alone; 0 if it was not measured
	place   int // of its file, among those that are shown
}

// text are the lines of a passage.
func (p *passage) text() string { return p.of.between(p.from, p.to) }

// costOf is what a passage takes without a label.
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

// start is the number of its first line in the file, 0 if that is not known.
func (p *passage) start() int {
	if p.of.first == 0 {
		return 0
	}
	return p.of.first + p.from
}

// end is the number of its last line.
func (p *passage) end() int {
	if p.of.first == 0 {
		return 0
	}
	return p.of.first + p.to - 1
}

// cutCode makes the passages: of a line that several texts have the newest counts, what
// was replaced is gone, and what is shown already is left out. It reads as many calls as
// that takes.
func (b *builder) cutCode(ctx context.Context, shown []Item) error {
	c := b.code
	if _, err := b.codeCall(ctx, 0); err != nil { // reads what is new
		return err
	}
	known := knownLines{state: map[uint64]lineState{}}
	whole := map[uint64]bool{} // what is shown as it is
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

// knownLines says what is known of lines, by their hashes.
type knownLines struct {
	state map[uint64]lineState
	marks []lineMark // of the text at hand
}

// lineState is what newer passages say of a line.
type lineState uint8

const (
	lineNew  lineState = iota
	lineGone           // it was replaced
	lineSeen           // one of them has it, or it is shown
)

// lineMark is what becomes of a line of a text.
type lineMark uint8

const (
	markShort    lineMark = iota // told from no other
	markFresh                    // not seen yet
	markSeen                     // seen, but too few beside it are
	markRepeated                 // left out with those around it
	markGone                     // left out: it was replaced
)

// seeItem notes the lines of what is shown. call is what is known of it, nil for nothing:
// it spares reading the same texts again.
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
		text, _ := unnumbered(unixLines(*it.Result))
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
		if line = told(line); length(line) >= leastCodeLine {
			k.state[hashOf(line)] = lineSeen
		}
	}
}

// seeLines notes lines that are cut already.
func (k *knownLines) seeLines(all []codeLine) {
	for i := range all {
		if all[i].told >= leastCodeLine {
			k.state[all[i].hash] = lineSeen
		}
	}
}

// add cuts the text of a passage into passages of what was not seen yet. A scrap of a
// larger text, of which little is new, is none.
func (c *code) add(whole passage, known *knownLines) {
	all := whole.of.lines
	marks := known.mark(all)
	from, chars, fresh := 0, 0, 0 // of the passage; fresh are characters that were not seen
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

// mark marks the lines of a text, until the next one. Left out are those that were
// replaced, and where leastRepeat or more follow each other that were seen. Less is left,
// so that what stands around it can be read.
func (k *knownLines) mark(all []codeLine) []lineMark {
	k.marks = slices.Grow(k.marks[:0], len(all))[:len(all)]
	from, last, seen := 0, 0, 0 // of the lines at hand that were seen, with short ones between
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

// rank scores the passages by what they say of the query, in its words and, unless embed is
// nil, by its meaning, by how lately their file was touched, and by how lately they were
// shown, each up to 1; late is how much the last two count. It tells whether meaning took part.
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
