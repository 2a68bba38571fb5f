package window

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/recall"
)

// Recall ranks what a conversation holds by what it has to do with a query.
type Recall interface {
	// Search ranks the messages up to a sequence. It sets the vector of the query itself.
	Search(ctx context.Context, id events.ConversationID, q recall.Query) (Found, error)
	// Rank ranks texts that are no messages, after a search in their conversation. It needs
	// no server: by meaning it compares with built-in embeddings, if at all. A hit has the
	// place of its text, from 1 on, for a sequence. Which texts there are should change
	// seldom: what is made of them is kept.
	Rank(id events.ConversationID, q recall.Query, texts []string) Found
	// Code is what is kept of the code that tools have shown there, in this conversation
	// or lineage, from one context to the next. It is never nil.
	Code(id events.ConversationID) *CodeCache
}

// Found is what a search has found.
type Found struct {
	Hits    []recall.Hit // the best first
	Model   string       // of the embeddings that took part, "" for none
	Missing string       // what should have taken part and did not, and why; "" for nothing
	// EmbeddedUpTo is the sequence of the last message whose vectors took part, where
	// these come late; else 0.
	EmbeddedUpTo uint64
	MinCosine    float64 // what unrelated texts seldom reach with that model
}

// maxQueryChars is how much of a query counts: its beginning says what it is about, and
// a dump behind it would be searched for.
const maxQueryChars = 2_000

// query is what the past is searched for: what was asked for, or else what the user said
// last.
func (b *builder) query() string {
	text := b.req.Query
	if text == "" && b.newest != nil {
		text = b.newest.Content.Text
	}
	return prefix(text, maxQueryChars)
}

// past is what a search has found, as far as it was read.
type past struct {
	Found
	unread  []recall.Hit // the best first; of those from below on nothing is read any more
	below   uint64
	read    []candidate // the best first
	excerpt int         // how many characters of a message are shown
	chars   int         // of read
	repeats int         // characters of what says again what one of read says
	retold  int         // summaries that are shown
}

// candidate is a message that a search has found.
type candidate struct {
	hit     recall.Hit
	message *graph.Message
	text    string // that is shown of it
	cost    int    // with its text, but without a label
}

// search ranks the past, once.
func (b *builder) search(ctx context.Context) error {
	if b.src.Recall == nil || b.past != nil {
		return nil
	}
	b.past = &past{below: graph.Latest}
	query := b.query()
	if strings.TrimSpace(query) == "" {
		return nil
	}
	found, err := b.src.Recall.Search(ctx, b.req.Conversation, recall.Query{Text: query, AsOf: b.end - 1, EmbeddedUpTo: b.req.EmbeddedUpTo, Limit: b.req.MaxChars/leastMessage + maxFoundPage})
	b.past.Found, b.past.unread = found, found.Hits
	return err
}

// leastMessage is about half of what a message takes at least, in characters: so many hits
// may be needed where a context is full of such, and the recent turns show the best of them.
const leastMessage = 6

// How much of a message is shown: a sixteenth of the room, within these limits.
const (
	leastExcerpt = 600
	mostExcerpt  = 4_000
	excerptShare = 16
)

// Limits of how many found messages are read at once.
const (
	minFoundPage = 32
	maxFoundPage = 512
)

// fillPast reads the best of what was found below a sequence, until it fills a room. What
// stands behind that is left out for good: the recent turns show it.
func (b *builder) fillPast(ctx context.Context, before uint64, room int) error {
	p := b.past
	if p == nil || len(p.Hits) == 0 {
		return nil
	}
	if p.excerpt == 0 {
		p.excerpt = min(max(room/excerptShare, leastExcerpt), mostExcerpt)
	}
	p.below = min(p.below, before)
	p.read = slices.DeleteFunc(p.read, func(c candidate) bool { return c.message.Seq >= before || b.shown[c.message.Seq] })
	p.chars = 0
	for i := range p.read {
		p.chars += p.read[i].cost
	}
	for len(p.unread) > 0 && p.chars+p.repeats < room {
		average := 200
		if len(p.read) > 0 {
			average = max(1, p.chars/len(p.read))
		}
		page := p.next(min(max((room-p.chars)/average, minFoundPage), maxFoundPage))
		if len(page) == 0 {
			break
		}
		read, err := readHits(ctx, b.src.Graph, b.req.Conversation, page, p.excerpt)
		if err != nil {
			return err
		}
		for _, c := range read {
			if b.shown[c.message.Seq] {
				continue
			}
			c.cost = b.relevantItem(&c, "").Chars
			if slices.ContainsFunc(p.read, c.repeats) {
				p.repeats += c.cost
				continue
			}
			p.read, p.chars = append(p.read, c), p.chars+c.cost
		}
	}
	return nil
}

// next takes up to n hits from those that are unread.
func (p *past) next(n int) (page []recall.Hit) {
	for len(page) < n && len(p.unread) > 0 {
		if h := p.unread[0]; h.Seq < p.below {
			page = append(page, h)
		}
		p.unread = p.unread[1:]
	}
	return page
}

// left counts the hits that next would take.
func (p *past) left() (n int) {
	for i := range p.unread {
		if p.unread[i].Seq < p.below {
			n++
		}
	}
	return n
}

// repeats tells whether a message says again what another one says.
func (c *candidate) repeats(o candidate) bool {
	return o.message.Role == c.message.Role && o.message.Content == c.message.Content
}

// readHits reads the messages of hits, in their order.
func readHits(ctx context.Context, g Graph, id events.ConversationID, hits []recall.Hit, excerpt int) ([]candidate, error) {
	seqs := make([]uint64, len(hits))
	for i, h := range hits {
		seqs[i] = h.Seq
	}
	messages, err := g.MessagesAt(ctx, id, seqs)
	if err != nil {
		return nil, err
	}
	var list []candidate
	for _, h := range hits {
		i, ok := slices.BinarySearchFunc(messages, h.Seq, func(m graph.Message, seq uint64) int { return cmp.Compare(m.Seq, seq) })
		if !ok {
			continue // deleted since
		}
		list = append(list, candidate{hit: h, message: &messages[i], text: excerptOf(messages[i].Content, h.Start, h.End, excerpt)})
	}
	return list, nil
}

// excerptOf shows a text as far as so many characters go: whole, or what stands around its
// bytes from start to end, with a mark where something is left out.
func excerptOf(body graph.Body, start, end, room int) string {
	text := body.Text
	if body.Whole() && textCost(text) <= room {
		return plain(text)
	}
	end = min(end, len(text))
	start = min(start, end)
	room -= 2*length(cutMark) + 2 // and line ends where the parts meet
	head, found, tail := unixLines(text[:start]), unixLines(text[start:end]), unixLines(text[end:])
	best := fitting(found, room)
	room -= textCost(best)
	before := endWithin(head, room/2)
	room -= textCost(before)
	after := ""
	if len(best) == len(found) {
		after = fitting(tail, room)
	}
	shown := plain(before + best + after)
	if len(before) < len(head) {
		shown = "[…] " + strings.TrimLeft(shown, " \n")
	}
	if len(after) < len(tail) || !body.Whole() {
		shown = wholeWords(shown) + cutMark
	}
	return shown
}

// endWithin is the end of a text that takes at most room characters in the Markdown, from
// the beginning of a word on.
func endWithin(text string, room int) string {
	for n := room; n > 0; n /= 2 {
		part := suffix(text, n)
		if textCost(part) > room {
			continue
		}
		if i := strings.IndexAny(part, " \n"); len(part) < len(text) && i >= 0 {
			part = part[i+1:]
		}
		return part
	}
	return ""
}
