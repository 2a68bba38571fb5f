// Package recall finds what a query asks for inside one conversation, or which one it is
// about: it splits messages into passages, makes terms of them, and ranks messages by what
// their passages say and by what stands around them.
//
// Everything here is pure and computes without fused operations and without what differs
// between processors, so the same messages give the same terms, scores and order in every
// process, over every store.
//
//	message ──NewBag──▶ Bag ──Index.Add──────────┐
//	passage ──a model──▶ Vector ──SetVectors──▶ Index ──Search──▶ Hits
//	query ───────────────────────────────────────┘
//
// Conversations are ranked by a few messages of each, see [Conversations].
//
// A [Bag] is what is stored with a message, so that an index is loaded without texts. Who
// has no vectors does without them.
//
// # Ranking
//
// A message's score is the sum of its [Parts]:
//
//   - Lexical and Dense: BM25 of its best passage relative to the best of all messages,
//     0.3 of it, and 0.7 of its best cosine; all of BM25 where there are no vectors. Of a
//     message of n passages BM25 is divided by 1 + 0.2 ln n: of many, one is good by
//     chance.
//   - Neighbours: of what the message before or after it in its session has more than
//     itself, 0.6; of what the next but one has, 0.4; and of these the most. By BM25 that
//     is taken term by term, so a message is lent the words of a query that it lacks and
//     its neighbours have. An answer stands beside its question, and says little of what it
//     is about.
//   - Session: 0.3 of the mean of the three best messages of its session, by all of these.
//   - Speaker: 0.1 if the query names who speaks, and no other who takes part.
//   - Date: 0.35 if the query names its date or month.
//   - Role: 0.15 if it is a user's who has no name, or the assistant's if the query asks
//     what "you" said. What the user said is asked for most, and is shorter.
//
// On recorded conversations it finds this share of the evidence of questions (recall@5 and
// @10, percent, over single messages):
//
//	                                LoCoMo      BEAM 100K
//	without vectors                 70.3  79.6  47.4  54.3
//	with package static             74.6  82.8  50.1  58.5
//	with the model it is made from  75.0  84.2
//
// # Terms
//
//   - A word is lower-cased, freed of accents (on Latin letters) and stemmed by the
//     English Snowball stemmer. Stop words are left out. Words of other languages go the
//     same way: their stems may be odd, but query and passage get the same one.
//   - An identifier is split at case and underscore, and indexed whole too:
//     parseHTTPRequest is parsehttprequest, pars, http, request.
//   - A path or dotted name is indexed whole, by its last element, and by its words:
//     pkg/store/read_all.go is pkg/store/read_all.go, read_all.go, read_all, pkg, store,
//     read, go.
//   - A number keeps its decimal point and loses its thousands separators: 1,250.5 is
//     1250.5.
//   - Chinese and Japanese, which put no space between words, are indexed by overlapping
//     pairs of characters.
//
// Changing any of this, or how passages are cut, changes the bags that are stored: it
// needs a rebuild of what was derived.
package recall
