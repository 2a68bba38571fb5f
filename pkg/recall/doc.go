// Package recall finds what a query asks for inside one conversation: it splits texts
// into passages, makes terms of them, and ranks passages by BM25.
//
// Everything here is pure and computes in float64 without fused operations, so the same
// texts give the same terms, scores and order in every process, over every store.
//
//	text ──Passages──▶ passage ──BagOf──▶ Bag ──Index.Add──▶ Index
//	query ─────────────────────BagOf──▶ Bag ──Index.Scores──▶ a score for each passage
//
// A [Bag] is what is stored with a message, so that an index is loaded without its texts.
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
// Changing any of this changes the terms that are stored: it needs a rebuild of what
// was derived.
package recall
