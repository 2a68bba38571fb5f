package recall

import (
	"cmp"
	"math"
	"slices"
)

// Constants of the ranking. They are round numbers, chosen by measurement on recorded
// conversations, and the same for all.
const (
	lexicalShare = 0.3 // of a message's own score, where there are vectors
	denseShare   = 0.7
	sessionShare = 0.3 // of the mean of its session's best scores
	speakerBonus = 0.1
	dateBonus    = 0.35
	roleBonus    = 0.15
)

// nearness is the share of a higher score that a message borrows from a direct neighbor,
// and from one two messages away.
var nearness = [...]float64{0.6, 0.4}

// sessionBest is how many of its best messages a session is judged by.
const sessionBest = 3

// Query asks for messages.
type Query struct {
	Text   string
	Vector Vector // embedding of the text after [Index.Unnamed]; nil ranks without vectors
	AsOf   uint64 // only messages up to this sequence count; 0 means all
	Limit  int    // maximum number of hits; 0 means all

	// EmbeddedUpTo is the sequence of the last message whose vectors count; 0 means all. It
	// repeats an earlier search in which later vectors did not exist yet.
	EmbeddedUpTo uint64
}

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

// Search returns the messages that answer a query, best first, and the earlier of equal
// ones first. A message is not a hit if its role is all that speaks for it: without a
// vector, a query of stop words that names no speaker and no date finds nothing.
func (x *Index) Search(q Query) []Hit {
	n := x.until(q.AsOf)
	if n == 0 {
		return nil
	}
	r := ranking{x: x, n: n, beside: make([]float64, n)}
	r.dense(q.Vector, x.until(q.EmbeddedUpTo))
	r.lexical(queryTerms(q.Text))
	r.session()
	r.asked = x.asked(q.Text, n)
	return r.best(q.Limit)
}

// ranking is one query over the first n messages.
type ranking struct {
	x *Index
	n int

	bm25    []float64 // by passage
	topBM25 []float64 // by message
	maxBM25 float64
	cosines []float64 // by passage; nil without vectors
	topCos  []float64 // by message

	beside   []float64 // by message: what it borrows from its neighbors
	sessions []float64 // by session
	asked    asked
}

// passages returns how many passages the messages have.
func (r *ranking) passages() int {
	if r.n == len(r.x.messages) {
		return len(r.x.passages)
	}
	return int(r.x.messages[r.n].first)
}

// around calls f for the messages near a message in its session, with the share that either
// borrows from the other.
func (r *ranking) around(i int, f func(j int, nearness float64)) {
	m := &r.x.messages[i]
	all := r.x.sessions[m.session].messages
	for d, near := range nearness {
		if before := int(m.place) - d - 1; before >= 0 {
			f(int(all[before]), near)
		}
		if after := int(m.place) + d + 1; after < len(all) && int(all[after]) < r.n {
			f(int(all[after]), near)
		}
	}
}

// own returns the parts of a score that a message earns by itself.
func (r *ranking) own(i int) (lexical, dense float64) {
	lexical = r.relative(r.topBM25[i])
	if r.cosines != nil {
		dense = float64(denseShare * r.topCos[i])
	}
	return lexical, dense
}

// session scores each session by its best messages.
func (r *ranking) session() {
	r.sessions = make([]float64, len(r.x.sessions))
	for s := range r.sessions {
		var top [sessionBest]float64 // its best scores, best first
		count := 0
		for _, i := range r.x.sessions[s].messages {
			if int(i) >= r.n {
				break
			}
			lexical, dense := r.own(int(i))
			score := lexical + dense + r.beside[i]
			for k := range min(count+1, sessionBest) {
				if k == count || score > top[k] {
					top[k], score = score, top[k]
				}
			}
			count = min(count+1, sessionBest)
		}
		var sum float64
		for _, score := range top[:count] {
			sum += score
		}
		if count > 0 {
			r.sessions[s] = float64(sessionShare * (sum / float64(count)))
		}
	}
}

// parts returns the parts of a message's score.
func (r *ranking) parts(i int) Parts {
	m := &r.x.messages[i]
	p := Parts{Neighbours: r.beside[i], Session: r.sessions[m.session]}
	p.Lexical, p.Dense = r.own(i)
	if r.asked.speaker >= 0 && m.speaker == r.asked.speaker {
		p.Speaker = speakerBonus
	}
	if slices.ContainsFunc(r.asked.dates, m.date.Matches) {
		p.Date = dateBonus
	}
	if m.speaker < 0 && m.role == r.asked.role {
		p.Role = roleBonus
	}
	return p
}

// best returns the best hits in order, at most limit if that is positive.
func (r *ranking) best(limit int) []Hit {
	if limit <= 0 || limit > r.n {
		limit = r.n
	}
	type candidate struct {
		i     int
		score float64
	}
	found := make([]candidate, 0, r.n)
	most := 0.0
	for i := range r.n {
		p := r.parts(i)
		if c := (candidate{i, p.Sum()}); c.score > p.Role {
			found, most = append(found, c), max(most, c.score)
		}
	}
	// Only a few of up to a hundred thousand hits are needed. So sort roughly into grades,
	// and sort within a grade only while the limit is not reached.
	const grades = 4096
	grade := func(c candidate) int { return grades - 1 - int(c.score/most*(grades-1)) }
	var begin, end [grades]int
	for _, c := range found {
		begin[grade(c)]++
	}
	sum := 0
	for g, n := range begin {
		begin[g], end[g] = sum, sum
		sum += n
	}
	ordered := make([]candidate, sum)
	for _, c := range found {
		if g := grade(c); begin[g] < limit {
			ordered[end[g]] = c
			end[g]++
		}
	}
	for g := range begin {
		slices.SortFunc(ordered[begin[g]:end[g]], func(a, b candidate) int { return cmp.Or(cmp.Compare(b.score, a.score), a.i-b.i) })
	}
	hits := make([]Hit, min(limit, len(found)))
	for k := range hits {
		hits[k] = r.hit(ordered[k].i)
	}
	return hits
}

func (r *ranking) hit(i int) Hit {
	x, parts := r.x, r.parts(i)
	h := Hit{Seq: x.messages[i].seq, Score: parts.Sum(), Parts: parts}
	first, end := x.span(i)
	best := math.Inf(-1)
	for p := first; p < end; p++ {
		h.BM25 = max(h.BM25, r.bm25[p])
		score := r.relative(r.bm25[p])
		if r.cosines != nil {
			score += float64(denseShare * r.cosines[p])
		}
		if score > best {
			best = score
			h.Passage, h.Start, h.End = p-first, int(x.passages[p].start), int(x.passages[p].end)
		}
	}
	if r.cosines != nil {
		h.Cosine = r.topCos[i]
	}
	return h
}
