// Package recall finds the messages of one conversation that answer a query, or the
// conversations that a query is about. It splits messages into passages, turns passages
// into terms, and ranks messages by their passages and by the messages around them.
//
// Everything here is pure. It avoids fused operations and anything else that differs
// between processors, so the same messages give the same terms, scores and order in every
// process and over every store.
//
//	message ──NewBag──▶ Bag ──Index.Add──────────┐
//	passage ──a model──▶ Vector ──SetVectors──▶ Index ──Search──▶ Hits
//	query ───────────────────────────────────────┘
//
// Conversations are ranked by a few messages of each, see [Conversations].
//
// A [Bag] is stored with each message, so an index is loaded without texts. Vectors are
// optional.
//
// # Ranking
//
// A message's score is the sum of its [Parts]:
//
//   - Lexical and Dense: 0.35 of the BM25 of its best passage, relative to the best of all messages,
//     and 0.65 of its best cosine; BM25 alone where there are no vectors. For a message of n passages
//     BM25 is divided by 1 + 0.2 ln n, because one of many passages is good by chance. If no message
//     reaches 0.35 of the idfs of the query's terms, those not found included, the scores are relative
//     to that: the query is in other words than the messages, so meaning decides more. Nor does BM25
//     count in full if all messages with the query's words are far from it by meaning: in full if
//     the product of cosine and relative BM25 reaches 0.9 of the best cosine, not at all below 0.3.
//   - Neighbours: what nearby messages of its session have more than the message itself: 0.6 of
//     it for the previous and next message, 0.4 for those two away; the largest counts. For BM25
//     this is done term by term, so a message borrows the words of a query that it lacks and its
//     neighbors have: an answer follows its question, but says little of the topic.
//   - Session: 0.3 of the mean score so far of the three best messages of its session.
//   - Speaker: 0.1 if the query names its speaker and no other participant.
//   - Date: 0.35 if the query names its date or month.
//   - Role: 0.15 for a user's message without a speaker's name, or the assistant's if the query
//     asks what "you" said. Most queries ask for what the user said, which is also shorter.
//
// On recorded conversations it finds this share of the evidence for questions (recall@5 and
// @10 in percent, over single messages):
//
//	                                LoCoMo      BEAM 100K
//	without vectors                 70.7  80.0  47.4  54.3
//	with package static             73.2  82.2  51.6  61.4
//
// # Terms
//
//   - A word is lower-cased, stripped of accents (on Latin letters) and stemmed by the English
//     Snowball stemmer. Stop words are left out. Words of other languages are treated alike: their
//     stems may be odd, but query and passage get the same ones.
//   - An identifier is split at case changes and underscores, and also indexed whole:
//     parseHTTPRequest is parsehttprequest, pars, http, request.
//   - A path or dotted name is indexed whole, by its last element and by its words:
//     pkg/store/read_all.go is pkg/store/read_all.go, read_all.go, read_all, pkg, store,
//     read, go.
//   - A number keeps its decimal point and loses its thousands separators: 1,250.5 is
//     1250.5.
//   - Scripts without spaces between words are indexed by overlapping pairs of characters: Chinese,
//     Japanese, Thai, Lao, Khmer and Burmese.
//
// A change of any of this, or of how passages are cut, changes the stored bags, so the read
// models need a rebuild.
package recall
