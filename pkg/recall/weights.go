package recall

// weights are the constants of the ranking.
type weights struct {
	k1, b  float64 // of BM25
	length float64 // how much less the best passage counts for each e-fold increase in the passages of a message

	lexical float64 // BM25's share of what a message says, where there are vectors; the rest is the cosine's
	expect  float64 // the share of a query's words that a message must hold for BM25 to count in full

	nearness [reach]float64 // the share of a higher score that a message borrows from a direct neighbor, and from one two messages away
	session  float64        // of the mean of its session's best scores

	speaker, date, role float64 // added if the query names them
}

// standard is what all searches use. The numbers are round. make tune compares them with others:
// change one only if the mean over the sets gains and the worst set does not lose.
//
// The usual b of 0.75 is for whole documents; passages are of similar length, so length says less.
// Of many passages one is good by chance, hence length. expect is for queries in other words than
// those of the conversation: only common words are in both, and the best message by these is not
// as good as one that holds the whole query.
var standard = weights{
	k1: 1.2, b: 0.4, length: 0.2,
	lexical: 0.3, expect: 0.35,
	nearness: [reach]float64{0.6, 0.4}, session: 0.3,
	speaker: 0.1, date: 0.35, role: 0.15,
}

// dense is the cosine's share.
func (w *weights) dense() float64 { return 1 - w.lexical }

const (
	reach       = 2 // how many messages away a neighbor can be
	sessionBest = 3 // how many of its best messages a session is judged by
)
