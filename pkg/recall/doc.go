// Package recall finds what a query asks for inside one conversation: it splits messages
// into passages, makes terms of them, and ranks messages by what their passages say and
// by what stands around them.
//
// Everything here is pure and computes without fused operations and without what differs
// between processors, so the same messages give the same terms, scores and order in every
// process, over every store.
//
//	message ──NewBag──▶ Bag ──Index.Add──────────┐
//	passage ──a model──▶ Vector ──SetVectors──▶ Index ──Search──▶ Hits
//	query ───────────────────────────────────────┘
//
// A [Bag] is what is stored with a message, so that an index is loaded without texts. Who
// has no vectors does without them.
//
// # Ranking
//
// A message's score is the sum of its [Parts]:
//
//   - Lexical and Dense: BM25 of its best passage relative to the best of all messages,
//     0.3 of it, and 0.7 of the best cosine; all of BM25 where there are no vectors.
//   - Neighbours: half of the best such score among the two messages before it and the
//     two after it in its session. An answer stands beside its question, and says little
//     of what it is about.
//   - Session: 0.2 of the mean of the three best messages of its session, by both of these.
//   - Speaker: 0.12 if the query names who speaks, and no other who takes part.
//   - Date: 0.18 if the query names its date or month.
//   - Role: 0.15 if it is a user's who has no name. What the user said is asked for more
//     often than what the assistant made of it, and is shorter.
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
