package recall

import (
	"cmp"
	"math"
	"slices"
	"sync"
)

// Query asks for messages.
type Query struct {
	Text   string
	Vector Vector // embedding of the text after [Index.Unnamed]; nil ranks without vectors
	AsOf   uint64 // only messages up to this sequence count; 0 means all
	Limit  int    // maximum number of hits; 0 means all
	Most   int    // up to so many in all, what follows the hits is found too, but only in short, see [Further]

	// Prefixes are beginnings of words: each stands for up to 64 terms of the messages that begin so.
	Prefixes []string

	// EmbeddedUpTo is the sequence of the last message whose vectors count; 0 means all. It
	// repeats an earlier search in which later vectors did not exist yet.
	EmbeddedUpTo uint64

	// Among says how common words are, instead of the index: for scores that are compared with those of other indexes.
	Among *Statistics

	By Method // the zero value ranks by everything

	weights *weights // nil means standard; only measurements set another
}

// Method says what messages are ranked by.
type Method int

// The methods. ByWords and ByMeaning rank each message by itself, to compare them with Fused.
const (
	Fused     Method = iota // words, meaning, surroundings, speaker, date and role
	ByWords                 // BM25 alone
	ByMeaning               // the cosine alone; without a vector nothing is found
)

// Hit is a message that was found.
type Hit struct {
	Seq    uint64
	Score  float64 // the sum of Parts
	Parts  Parts
	BM25   float64 // of its best passage by BM25, not scaled
	Cosine float64 // of its best passage by cosine; 0 without vectors

	Passage    int // number of its best passage by both
	Start, End int // its byte range in the content
}

// Parts are the summands of a score.
type Parts struct {
	Lexical    float64 `json:"lexical"`    // BM25, relative to the best message's
	Dense      float64 `json:"dense"`      // the cosine of the embeddings
	Neighbours float64 `json:"neighbours"` // what nearby messages say and it does not
	Session    float64 `json:"session"`    // the best messages of its session
	Speaker    float64 `json:"speaker"`    // the query names who speaks
	Date       float64 `json:"date"`       // the query names its date
	Role       float64 `json:"role"`       // the query asks for messages of its role
}

// Sum returns the score.
func (p Parts) Sum() float64 {
	return p.Lexical + p.Dense + p.Neighbours + p.Session + p.Speaker + p.Date + p.Role
}

// Further is what a search says in short about the messages that come after its hits: a hit costs more to describe
// than to find.
type Further struct {
	Seqs []uint64 // in no order
	BM25 float64  // the highest of theirs
}

// Search returns the messages that answer a query, best first, and the earlier of equal
// ones first. A message is not a hit if its role is all that speaks for it: without a
// vector, a query of stop words that names no speaker and no date finds nothing.
func (x *Index) Search(q Query) []Hit {
	hits, _ := x.SearchFurther(q)
	return hits
}

// SearchFurther is [Index.Search] that also returns what follows the hits, up to [Query.Most].
func (x *Index) SearchFurther(q Query) ([]Hit, Further) {
	n := x.until(q.AsOf)
	if n == 0 {
		return nil, Further{}
	}
	terms := x.terms(&q, n)
	r := rank(x, n, q.Vector, x.until(q.EmbeddedUpTo), terms, q.Among, cmp.Or(q.weights, &standard))
	defer r.release()
	r.asked = x.asked(q.Text, n)
	if r.by = q.By; r.by == Fused {
		r.score()
	} else {
		r.scoreAlone()
	}
	best, further := r.order(q.Limit, q.Most)
	return r.hits(best), r.further(further)
}

// terms returns the terms of a query to the first n messages.
func (x *Index) terms(q *Query, n int) []string {
	terms := queryTerms(q.Text)
	if len(q.Prefixes) > 0 {
		terms = append(terms, x.begun(q.Prefixes, int(x.firsts[n]))...)
		slices.Sort(terms)
		terms = slices.Compact(terms)
	}
	return terms
}

// ranking is one query over the first n messages. Its slices are used again by later
// searches, because a long conversation's are megabytes.
type ranking struct {
	x *Index
	n int
	w *weights

	among *Statistics // nil means those of the messages themselves
	by    Method

	byMeaning bool
	cosines   []float64 // by passage; these two are set only by meaning
	topCos    []float64 // by message

	bm25    []float64 // by passage
	topBM25 []float64 // by message
	maxBM25 float64
	full    float64   // the BM25 score that counts as 1
	worded  []float64 // by message: what it borrows from its neighbors, not scaled
	term    term

	sessions []best
	asked    asked
	scores   []float64 // by message, 0 for no hit
	grades   []int32   // by grade, where its candidates begin
	found    []candidate
}

var rankings = sync.Pool{New: func() any { return &ranking{} }}

// rank compares the first n messages with a query by words and, if the query has a vector, by
// meaning. Only the first embedded messages have vectors.
func rank(x *Index, n int, query Vector, embedded int, terms []string, among *Statistics, w *weights) *ranking {
	r := rankings.Get().(*ranking)
	r.among = among
	r.x, r.n, r.w, r.by = x, n, w, Fused
	var both sync.WaitGroup
	both.Go(func() { r.dense(query, embedded) })
	r.lexical(terms)
	both.Wait()
	if r.byMeaning {
		r.full /= r.w.agree.of(r.topBM25, r.topCos, r.maxBM25)
	}
	return r
}

// release keeps the slices for another search.
func (r *ranking) release() {
	r.x, r.w, r.among = nil, nil, nil
	rankings.Put(r)
}

// sized returns a slice of n numbers, made of s if that is large enough. They may be any.
func sized(s []float64, n int) []float64 {
	if cap(s) < n {
		return make([]float64, n, n+n/8)
	}
	return s[:n]
}

// zeros is sized with zeros.
func zeros(s []float64, n int) []float64 {
	s = sized(s, n)
	clear(s)
	return s
}

// passages returns how many passages the messages have.
func (r *ranking) passages() int { return int(r.x.firsts[r.n]) }

// own returns the parts of a score that a message earns by itself, and what it borrows.
func (r *ranking) own(i int) (lexical, dense, borrowed float64) {
	lexical, borrowed = r.relative(r.topBM25[i]), r.relative(r.worded[i])
	if r.byMeaning {
		dense = float64(r.w.dense() * r.topCos[i])
		borrowed = float64(r.w.dense()*r.lends(i)) + borrowed
	}
	return lexical, dense, borrowed
}

// best holds the best scores of a session's messages, best first, and then the session's
// part of a score.
type best struct {
	top   [sessionBest]float64
	count int
	part  float64
}

// score computes the scores, 0 for messages that are not hits. It adds up the parts in the
// order of [Parts.Sum].
func (r *ranking) score() {
	r.scores = sized(r.scores, r.n)
	inParts(r.n, func(from, to int) {
		for i := from; i < to; i++ {
			lexical, dense, borrowed := r.own(i)
			r.scores[i] = lexical + dense + borrowed
		}
	})
	r.session()
	inParts(r.n, func(from, to int) {
		for i := from; i < to; i++ {
			session, speaker, date, role := r.beside(i)
			if score := r.scores[i] + session + speaker + date + role; score > role {
				r.scores[i] = score
			} else {
				r.scores[i] = 0
			}
		}
	})
}

// scoreAlone computes the scores of a method that looks at each message by itself.
func (r *ranking) scoreAlone() {
	r.scores = sized(r.scores, r.n)
	for i := range r.n {
		p := r.parts(i)
		r.scores[i] = max(0, p.Sum())
	}
}

// session scores each session by its best messages.
func (r *ranking) session() {
	if cap(r.sessions) < len(r.x.newest) {
		r.sessions = make([]best, len(r.x.newest))
	}
	r.sessions = r.sessions[:len(r.x.newest)]
	clear(r.sessions)
	for i, score := range r.scores {
		s := &r.sessions[r.x.messages[i].session]
		if s.count == sessionBest && score <= s.top[sessionBest-1] {
			continue
		}
		for k := range min(s.count+1, sessionBest) {
			if k == s.count || score > s.top[k] {
				s.top[k], score = score, s.top[k]
			}
		}
		s.count = min(s.count+1, sessionBest)
	}
	for i := range r.sessions {
		s := &r.sessions[i]
		var sum float64
		for _, score := range s.top[:s.count] {
			sum += score
		}
		if s.count > 0 {
			s.part = float64(r.w.session * (sum / float64(s.count)))
		}
	}
}

// beside returns the parts of a message's score that do not come from what it says.
func (r *ranking) beside(i int) (session, speaker, date, role float64) {
	m := &r.x.messages[i]
	session = r.sessions[m.session].part
	if r.asked.speaker >= 0 && m.speaker == r.asked.speaker {
		speaker = r.w.speaker
	}
	if len(r.asked.dates) > 0 && slices.ContainsFunc(r.asked.dates, m.date.Matches) {
		date = r.w.date
	}
	if m.speaker < 0 && m.role == r.asked.role {
		role = r.w.role
	}
	return session, speaker, date, role
}

// parts returns the parts of a message's score.
func (r *ranking) parts(i int) (p Parts) {
	switch r.by {
	case ByWords:
		return Parts{Lexical: r.relative(r.topBM25[i])}
	case ByMeaning:
		if r.byMeaning {
			p.Dense = float64(r.w.dense() * r.topCos[i])
		}
		return p
	}
	p.Lexical, p.Dense, p.Neighbours = r.own(i)
	p.Session, p.Speaker, p.Date, p.Role = r.beside(i)
	return p
}

type candidate struct {
	i     int
	score float64
}

// before orders candidates, the best first.
func (c candidate) before(o candidate) int {
	switch {
	case c.score > o.score:
		return -1
	case c.score < o.score:
		return 1
	}
	return c.i - o.i
}

// hits describes candidates.
func (r *ranking) hits(found []candidate) []Hit {
	hits := make([]Hit, len(found))
	inParts(len(found), func(from, to int) {
		for k := from; k < to; k++ {
			hits[k] = r.hit(found[k].i)
		}
	})
	return hits
}

// further describes candidates in short.
func (r *ranking) further(found []candidate) Further {
	f := Further{}
	if len(found) > 0 {
		f.Seqs = make([]uint64, len(found))
	}
	for k, c := range found {
		f.Seqs[k] = r.x.messages[c.i].seq
		first, end := r.x.span(c.i)
		for _, score := range r.bm25[first:end] {
			f.BM25 = max(f.BM25, score)
		}
	}
	return f
}

// maxGrades limits how many grades candidates are sorted into, so that the counts of the
// grades stay in the processor's cache.
const maxGrades = 1 << 15

// order returns the best candidates in order, at most limit if that is positive, and, up to most in all, the next ones
// in no order. Only a few of up to a hundred thousand are needed. So it sorts roughly into grades, and sorts within a
// grade only while the limit is not reached.
func (r *ranking) order(limit, most int) (best, further []candidate) {
	count, lowest, highest := 0, math.Inf(1), 0.0
	for _, score := range r.scores {
		if score > 0 {
			count++
			lowest, highest = min(lowest, score), max(highest, score)
		}
	}
	if limit <= 0 || limit > count {
		limit = count
	}
	most = min(max(limit, most), count)
	grades := min(max(count, 1), maxGrades)
	scale := 0.0
	if highest > lowest {
		scale = float64(grades-1) / (highest - lowest)
	}
	grade := func(score float64) int { return min(int((highest-score)*scale), grades-1) }
	r.grades = append(r.grades[:0], make([]int32, grades+1)...)
	for _, score := range r.scores {
		if score > 0 {
			r.grades[grade(score)+1]++
		}
	}
	last := 0 // the grade in which the most are reached
	for last < grades && int(r.grades[last]) < most {
		last++
		r.grades[last] += r.grades[last-1]
	}
	end := r.grades[:last] // of each grade so far
	if sum := int(r.grades[last]); cap(r.found) < sum {
		r.found = make([]candidate, sum)
	}
	found := r.found[:r.grades[last]]
	for i, score := range r.scores {
		if score == 0 {
			continue
		}
		if g := grade(score); g < last {
			found[end[g]] = candidate{i, score}
			end[g]++
		}
	}
	from := 0
	for _, to := range end {
		// Which of the last grade are among the most depends on their order.
		if to := int(to); to-from > 1 && (from < limit || to > most) {
			slices.SortFunc(found[from:to], candidate.before)
		}
		from = int(to)
	}
	return found[:limit], found[limit:most]
}

func (r *ranking) hit(i int) Hit {
	x, parts := r.x, r.parts(i)
	h := Hit{Seq: x.messages[i].seq, Score: parts.Sum(), Parts: parts}
	first, end := x.span(i)
	best := math.Inf(-1)
	for p := first; p < end; p++ {
		h.BM25 = max(h.BM25, r.bm25[p])
		score := r.relative(r.bm25[p])
		if r.byMeaning {
			score += float64(r.w.dense() * r.cosines[p])
		}
		if score > best {
			best = score
			h.Passage, h.Start, h.End = p-first, int(x.passages[p].start), int(x.passages[p].end)
		}
	}
	if r.byMeaning {
		h.Cosine = r.topCos[i]
	}
	return h
}
