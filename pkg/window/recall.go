package window

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/harness"
	"mneme.dev/mneme/pkg/plain"
	"mneme.dev/mneme/pkg/recall"
	"mneme.dev/mneme/pkg/window/code"
)

// Recall ranks the content of a conversation by how well it matches a query.
type Recall interface {
	// Search ranks the messages up to a sequence. It sets the query's vector itself.
	Search(ctx context.Context, id events.ConversationID, q recall.Query) (Found, error)
	// SearchTools ranks the results of tools up to a sequence by words, or returns them newest first if
	// the query has none.
	SearchTools(ctx context.Context, id events.ConversationID, q recall.Query) (ToolsFound, error)
	// Rank ranks texts that are not messages, after a search in their conversation. It needs no
	// server: if it compares by meaning, it uses built-in embeddings. A hit has the number of its
	// text, from 1 on, as its sequence. The texts should seldom change, because their ranking data
	// is cached.
	Rank(id events.ConversationID, q recall.Query, texts []string) Found
	// Embedding returns the function that makes the vectors by which code is ranked if a request has a
	// query, and the name of its model for manifests. If the function is nil, code is ranked by words alone.
	Embedding() (embed func(text string) recall.Vector, model string)
	// SeenCode returns what KeepCode kept of this conversation; nil for nothing.
	SeenCode(id events.ConversationID) *code.Seen
	KeepCode(id events.ConversationID, s *code.Seen)
}

// Found is the result of a search.
type Found struct {
	Hits    []recall.Hit   // best first
	Further recall.Further // what follows the hits
	Model   string         // name of the embeddings used, "" for none
	Missing string         // which embeddings should have been used, and why they were not; "" for nothing
	// EmbeddedUpTo is the sequence of the last message whose vectors were used, if vectors can lag;
	// else 0.
	EmbeddedUpTo uint64
	MinCosine    float64 // a similarity that unrelated texts seldom reach with this model

	Reranked *Reranked // nil if no reranking was asked for
}

// maxQueryChars is how many characters of a query count. Its beginning says what it is about; a log or a
// file pasted after that would only distort the search.
const maxQueryChars = 2_000

// query returns the search text for the past: the request's query, or else the newest message with which the user asked for
// something.
func (b *builder) query() string {
	text := b.req.Query
	if text == "" && b.asked != nil {
		text = harness.Said(b.asked.Content.Text)
	}
	return plain.Prefix(text, maxQueryChars)
}

// past is a search result, as far as it was read.
type past struct {
	Found
	unread  []recall.Hit // best first; nothing further down is read
	below   uint64
	read    []candidate // best first
	excerpt int         // how many characters of a message are shown
	chars   int         // of read
	repeats int         // characters that repeat what a read message says
	retold  int         // how many summaries are shown
}

// candidate is a message that a search found.
type candidate struct {
	hit     recall.Hit
	message *graph.Message
	text    string // the part of it that is shown
	cost    int    // with its text, but without a label
}

// search ranks the past, only once.
func (b *builder) search(ctx context.Context) error {
	if b.src.Recall == nil || b.past != nil {
		return nil
	}
	b.past = &past{below: graph.Latest}
	if strings.TrimSpace(b.query()) == "" {
		return nil
	}
	q := b.pastQuery()
	if len(b.req.Rerank.Order) == 0 { // an order may name any hit
		q.Limit = min(q.Limit, b.req.MaxChars/usualMessage+maxFoundPage)
	}
	found, err := b.src.Recall.Search(ctx, b.req.Conversation, q)
	if err == nil {
		err = b.src.rerank(ctx, b.req.Conversation, q.Text, b.req.Rerank, &found)
	}
	b.past.Found, b.past.unread = found, found.Hits
	return err
}

// pastQuery asks for all hits that a context may need.
func (b *builder) pastQuery() recall.Query {
	most := b.req.MaxChars/leastMessage + maxFoundPage
	return recall.Query{Text: b.query(), AsOf: b.end - 1, EmbeddedUpTo: b.req.EmbeddedUpTo, Limit: most, Most: most}
}

// searchFurther describes the further hits too.
func (b *builder) searchFurther(ctx context.Context) error {
	p, q := b.past, b.pastQuery()
	if p.EmbeddedUpTo != 0 {
		q.EmbeddedUpTo = p.EmbeddedUpTo
	}
	found, err := b.src.Recall.Search(ctx, b.req.Conversation, q)
	if err != nil {
		return err
	}
	known := make(map[uint64]bool, len(p.Hits))
	for i := range p.Hits {
		known[p.Hits[i].Seq] = true
	}
	more := slices.DeleteFunc(found.Hits, func(h recall.Hit) bool { return known[h.Seq] })
	p.Hits, p.Further = append(slices.Clip(p.Hits), more...), recall.Further{}
	p.unread = append(slices.Clip(p.unread), more...)
	return nil
}

// leastMessage is about half the smallest cost of a message, in characters. It bounds how many hits
// a context full of short messages may need when the recent turns already show the best of them.
const leastMessage = 6

// usualMessage is less than most messages cost. It bounds how many hits are described at first: a context seldom needs
// more, and then searches again.
const usualMessage = 100

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

// fillPast reads the best hits below a sequence until they fill a room. Hits from that sequence on
// are dropped, because the recent turns show them.
func (b *builder) fillPast(ctx context.Context, before uint64, room int) error {
	p := b.past
	if p == nil || len(p.Hits) == 0 {
		return nil
	}
	p.excerpt = cmp.Or(p.excerpt, min(max(room/excerptShare, leastExcerpt), mostExcerpt))
	p.below = min(p.below, before)
	p.read = slices.DeleteFunc(p.read, func(c candidate) bool { return c.message.Seq >= before || b.shown[c.message.Seq] })
	p.chars = 0
	said := make(map[saying]bool, len(p.read))
	for i := range p.read {
		p.chars += p.read[i].cost
		said[p.read[i].says()] = true
	}
	for p.more() && p.chars+p.repeats < room {
		average := 200
		if len(p.read) > 0 {
			average = max(1, p.chars/len(p.read))
		}
		page, err := b.nextHits(ctx, min(max((room-p.chars)/average, minFoundPage), maxFoundPage))
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}
		read, err := readHits(ctx, b.src.Graph, b.req.Conversation, page, p.excerpt, nil)
		if err != nil {
			return err
		}
		for _, c := range read {
			if b.shown[c.message.Seq] {
				continue
			}
			c.cost = b.relevantItem(&c, "").Chars
			if said[c.says()] {
				p.repeats += c.cost
				continue
			}
			said[c.says()] = true
			p.read, p.chars = append(p.read, c), p.chars+c.cost
		}
	}
	return nil
}

// more reports whether there are unread hits.
func (p *past) more() bool { return len(p.unread) > 0 || len(p.Further.Seqs) > 0 }

// nextHits takes up to n unread hits.
func (b *builder) nextHits(ctx context.Context, n int) ([]recall.Hit, error) {
	p := b.past
	page := p.next(n)
	if len(page) == n || len(p.Further.Seqs) == 0 {
		return page, nil
	}
	if err := b.searchFurther(ctx); err != nil {
		return nil, err
	}
	return append(page, p.next(n-len(page))...), nil
}

// next takes up to n unread hits, without the further ones.
func (p *past) next(n int) (page []recall.Hit) {
	for len(page) < n && len(p.unread) > 0 {
		if h := p.unread[0]; h.Seq < p.below {
			page = append(page, h)
		}
		p.unread = p.unread[1:]
	}
	return page
}

// left counts the hits that nextHits would take.
func (p *past) left() (n int) {
	for i := range p.unread {
		if p.unread[i].Seq < p.below {
			n++
		}
	}
	for _, seq := range p.Further.Seqs {
		if seq < p.below {
			n++
		}
	}
	return n
}

// saying is equal for messages that say the same.
type saying struct {
	role    string
	content graph.Body
}

func (c *candidate) says() saying { return saying{c.message.Role, c.message.Content} }

// readHits reads the messages of hits, in their order. focus, unless it is nil, narrows down what an
// excerpt shows of the best passage.
func readHits(ctx context.Context, g Graph, id events.ConversationID, hits []recall.Hit, excerpt int, focus focus) ([]candidate, error) {
	list, err := readMessages(ctx, g, id, hits)
	for i := range list {
		list[i].cut(excerpt, focus)
	}
	return list, err
}

// readMessages is readHits without the texts to show.
func readMessages(ctx context.Context, g Graph, id events.ConversationID, hits []recall.Hit) (list []candidate, err error) {
	seqs := make([]uint64, len(hits))
	for i, h := range hits {
		seqs[i] = h.Seq
	}
	messages, err := g.MessagesAt(ctx, id, seqs)
	if err != nil {
		return nil, err
	}
	for _, h := range hits {
		i, ok := slices.BinarySearchFunc(messages, h.Seq, func(m graph.Message, seq uint64) int { return cmp.Compare(m.Seq, seq) })
		if ok { // otherwise it was deleted since
			list = append(list, candidate{hit: h, message: &messages[i]})
		}
	}
	return list, nil
}

// cut sets the text that is shown, at most this many characters.
func (c *candidate) cut(excerpt int, focus focus) {
	start, end := focus.on(c.message.Content, c.hit.Start, c.hit.End, excerpt)
	c.text = excerptOf(c.message.Content, start, end, excerpt)
}

// excerptOf returns at most this many characters of a text: all of it, or the part around its bytes
// from start to end, with a mark where something is left out.
func excerptOf(body graph.Body, start, end, room int) string {
	text := body.Text
	if body.Whole() && textCost(text) <= room {
		return plain.Text(text)
	}
	end = min(end, len(text))
	start = min(start, end)
	room -= 2 * plain.Length(cutMark)
	whole := room
	room -= 2 // for line ends where the parts meet
	head, found, tail := plain.Lines(text[:start]), plain.Lines(text[start:end]), plain.Lines(text[end:])
	best := fitting(found, room)
	room -= textCost(best)
	before := endWithin(head, room/2)
	room -= textCost(before)
	after := ""
	if len(best) == len(found) {
		after = fitting(tail, room)
	}
	joined := plain.Text(before + best + after)
	shown := fitting(joined, whole) // where they meet there may be more line ends
	ends := len(after) == len(tail) && len(shown) == len(joined) && body.Whole()
	if len(before) < len(head) {
		shown = "[…] " + strings.TrimLeft(shown, " \n")
	}
	if !ends {
		shown = wholeWords(shown) + cutMark
	}
	return shown
}

// endWithin returns the end of a text, from the beginning of a word, in at most room characters of
// Markdown.
func endWithin(text string, room int) string {
	for n := room; n > 0; n /= 2 {
		part := plain.Suffix(text, n)
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
