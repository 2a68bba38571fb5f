package recall

import (
	"cmp"
	"math"
	"slices"
)

// The constants of the ranking. They were chosen by measurement on recorded
// conversations and are the same for all.
const (
	// Of BM25. The usual 1.2 and 0.75 are for whole documents; a passage is short and of
	// even length, so a repetition and its length say less.
	k1 = 0.9
	b  = 0.4

	lexicalShare   = 0.3 // of a message's own score, where there are vectors
	denseShare     = 0.7
	neighbourShare = 0.5 // of the best score of those beside it
	sessionShare   = 0.2 // of the mean of the session's best scores
	speakerBonus   = 0.12
	dateBonus      = 0.18
	userBonus      = 0.15
)

// Reach is how many messages before and after it, of the same session, a message is
// judged by.
const Reach = 2

// sessionBest is how many messages a session is judged by.
const sessionBest = 3

// Query asks for messages.
type Query struct {
	Text   string
	Vector Vector // of [Index.Unnamed] of the text; nil ranks without vectors
	AsOf   uint64 // only messages up to this sequence count; 0 stands for all
	Limit  int    // of hits; 0 stands for all
}

// Hit is a message that was found.
type Hit struct {
	Seq    uint64
	Score  float64 // the sum of Parts
	Parts  Parts
	BM25   float64 // of its best passage, as it is
	Cosine float64 // of its best passage; 0 where there are no vectors

	Passage    int // the number of its best passage
	Start, End int // of that in the content, in bytes
}

// Parts are what a score consists of.
type Parts struct {
	Lexical    float64 // BM25, relative to the best message's
	Dense      float64 // the cosine of the embeddings
	Neighbours float64 // the best of the messages beside it
	Session    float64 // the best messages of its session
	Speaker    float64 // the query names who speaks
	Date       float64 // the query names its date
	Role       float64 // it is a user's
}

// Sum is the score.
func (p Parts) Sum() float64 {
	return p.Lexical + p.Dense + p.Neighbours + p.Session + p.Speaker + p.Date + p.Role
}

// Search returns the messages that answer a query, the best first, and of equal ones the
// earlier first. Found are those of which there is more to say than that a user wrote
// them: a query of stop words alone, that names no one and no date, finds nothing without
// a vector.
func (x *Index) Search(q Query) []Hit {
	n := x.until(q.AsOf)
	if n == 0 {
		return nil
	}
	r := ranking{x: x, n: n}
	r.lexical(queryTerms(q.Text))
	r.dense(q.Vector)
	r.own()
	r.neighbours()
	r.session()
	r.asked(q.Text)
	return r.best(q.Limit)
}

// queryTerms are the terms of a query, each once.
func queryTerms(text string) []string {
	terms := AppendTerms(nil, text)
	slices.Sort(terms)
	return slices.Compact(terms)
}

// ranking is one query over the first n messages.
type ranking struct {
	x *Index
	n int

	bm25     []float64 // by passage
	cosines  []float64 // by passage; nil without vectors
	topBM25  []float64 // by message
	topCos   []float64
	maxBM25  float64
	owns     []float64 // by message: lexical and dense
	beside   []float64
	sessions []float64 // by session

	speaker int32 // the one that is named, else -1
	dates   []Date
}

// passages is how many passages the messages have.
func (r *ranking) passages() int {
	if r.n == len(r.x.messages) {
		return len(r.x.passages)
	}
	return int(r.x.messages[r.n].first)
}

// lexical computes BM25 (S. Robertson and H. Zaragoza, The Probabilistic Relevance
// Framework: BM25 and Beyond, 2009) over passages, with
//
//	idf(t) = ln(1 + (N − df + 0.5) / (df + 0.5))
//	score  = Σ idf(t) · f · (k1 + 1) / (f + k1 · (1 − b + b · length / mean length))
func (r *ranking) lexical(terms []string) {
	x, total := r.x, r.passages()
	r.bm25 = make([]float64, total)
	if total > 0 {
		mean := float64(x.sums[total]) / float64(total)
		for _, term := range terms {
			id, ok := x.termOf[term]
			if !ok {
				continue
			}
			list := x.postings[id]
			df, _ := slices.BinarySearchFunc(list, int32(total), func(p posting, n int32) int { return cmp.Compare(p.passage, n) })
			idf := ln(1 + (float64(total-df)+0.5)/(float64(df)+0.5))
			for _, p := range list[:df] {
				norm := 1 - b + float64(b*float64(x.passages[p.passage].length))/mean
				f := float64(p.n)
				r.bm25[p.passage] += float64(idf * f * (k1 + 1) / (f + float64(k1*norm)))
			}
		}
	}
	r.topBM25 = r.tops(r.bm25)
	r.maxBM25 = slices.Max(r.topBM25)
}

// tops are the best scores of the messages' passages, 0 where there is no better.
func (r *ranking) tops(scores []float64) []float64 {
	tops := make([]float64, r.n)
	for i := range tops {
		first, end := r.x.span(i)
		for _, s := range scores[first:end] {
			tops[i] = max(tops[i], s)
		}
	}
	return tops
}

// dense computes cosines.
func (r *ranking) dense(query Vector) {
	x, total := r.x, min(r.passages(), len(r.x.norms))
	if len(query) != x.width || total == 0 || query == nil {
		return
	}
	norm, found := query.norm(), 0
	var sum float64
	cosines := make([]float64, r.passages())
	for p := range cosines {
		if p >= total || x.norms[p] == 0 {
			cosines[p] = math.NaN()
			continue
		}
		cosines[p] = float64(dot(query, x.vectors[p*x.width:(p+1)*x.width])) / float64(norm*x.norms[p])
		sum += cosines[p]
		found++
	}
	if found == 0 {
		return
	}
	// Of what has no vector yet nothing is known: it counts as the average.
	for p, c := range cosines {
		if math.IsNaN(c) {
			cosines[p] = sum / float64(found)
		}
	}
	r.cosines, r.topCos = cosines, r.tops(cosines)
}

// own makes a message's own score of both.
func (r *ranking) own() {
	r.owns = make([]float64, r.n)
	for i := range r.owns {
		l, d := r.parts(i)
		r.owns[i] = l + d
	}
}

func (r *ranking) parts(i int) (lexical, dense float64) {
	if r.maxBM25 > 0 {
		lexical = r.topBM25[i] / r.maxBM25
	}
	if r.cosines != nil {
		return float64(lexicalShare * lexical), float64(denseShare * r.topCos[i])
	}
	return lexical, 0
}

// passage is a passage's own score.
func (r *ranking) passage(p int) float64 {
	lexical := r.bm25[p] / cmp.Or(r.maxBM25, 1)
	if r.cosines == nil {
		return lexical
	}
	return float64(lexicalShare*lexical) + float64(denseShare*r.cosines[p])
}

// neighbours adds what the messages around say: an answer stands beside its question.
func (r *ranking) neighbours() {
	r.beside = make([]float64, r.n)
	for i := range r.beside {
		m := &r.x.messages[i]
		all := r.x.sessions[m.session].messages
		from, to := max(0, int(m.place)-Reach), min(len(all), int(m.place)+Reach+1)
		for _, j := range all[from:to] {
			if int(j) < r.n && int(j) != i {
				r.beside[i] = max(r.beside[i], r.owns[j])
			}
		}
		r.beside[i] = float64(neighbourShare * r.beside[i])
	}
}

// session adds what the whole session is about.
func (r *ranking) session() {
	r.sessions = make([]float64, len(r.x.sessions))
	for s := range r.sessions {
		var top [sessionBest]float64
		count := 0
		for _, i := range r.x.sessions[s].messages {
			if int(i) >= r.n {
				break
			}
			score := r.owns[i] + r.beside[i]
			for k := range min(count+1, sessionBest) {
				if k == count || score > top[k] {
					top[k], score = score, top[k]
				}
			}
			count = min(count+1, sessionBest)
		}
		if count > 0 {
			var sum float64
			for _, t := range top[:count] {
				sum += t
			}
			r.sessions[s] = float64(sessionShare * (sum / float64(count)))
		}
	}
}

// asked reads out of the query who and when is asked for.
func (r *ranking) asked(text string) {
	r.dates = Dates(text)
	r.speaker = -1
	named := 0
	for s, name := range r.x.participants(r.n) {
		if _, found := cutName(text, name); found {
			named++
			r.speaker = int32(s)
		}
	}
	if named != 1 {
		r.speaker = -1
	}
}

// score is the score of a message by its parts.
func (r *ranking) score(i int) Parts {
	m := &r.x.messages[i]
	p := Parts{Neighbours: r.beside[i], Session: r.sessions[m.session]}
	p.Lexical, p.Dense = r.parts(i)
	if r.speaker >= 0 && m.speaker == r.speaker {
		p.Speaker = speakerBonus
	}
	if slices.ContainsFunc(r.dates, m.date.Matches) {
		p.Date = dateBonus
	}
	if m.user && m.speaker < 0 {
		p.Role = userBonus
	}
	return p
}

// best are the limit best hits in order.
func (r *ranking) best(limit int) []Hit {
	if limit <= 0 || limit > r.n {
		limit = r.n
	}
	type candidate struct {
		i     int
		score float64
	}
	top := make([]candidate, 0, limit)
	for i := range r.n {
		p := r.score(i)
		c := candidate{i, p.Sum()}
		if c.score <= p.Role || len(top) == limit && c.score <= top[limit-1].score {
			continue
		}
		at, _ := slices.BinarySearchFunc(top, c, func(a, b candidate) int { return cmp.Or(cmp.Compare(b.score, a.score), a.i-b.i) })
		if len(top) == limit {
			top = top[:limit-1]
		}
		top = slices.Insert(top, at, c)
	}
	hits := make([]Hit, len(top))
	for k, c := range top {
		hits[k] = r.hit(c.i)
	}
	return hits
}

func (r *ranking) hit(i int) Hit {
	x, parts := r.x, r.score(i)
	h := Hit{Seq: x.messages[i].seq, Score: parts.Sum(), Parts: parts, BM25: r.topBM25[i]}
	first, end := x.span(i)
	best := math.Inf(-1)
	for p := first; p < end; p++ {
		if own := r.passage(p); own > best {
			best = own
			h.Passage, h.Start, h.End = p-first, int(x.passages[p].start), int(x.passages[p].end)
		}
	}
	if r.cosines != nil {
		h.Cosine = r.topCos[i]
	}
	return h
}
