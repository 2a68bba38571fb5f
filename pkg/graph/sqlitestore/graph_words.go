package sqlitestore

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
)

// tag begins the terms of a tenant in the index. Two tenants may have the same tag: then they share
// term lists, and the conversations tell the results apart.
func tag(tenant string) string { return events.DigestOf("tenant", tenant).String()[:6] + ":" }

// tagged is a document of the index.
func tagged(tag string, words []string) string {
	var text strings.Builder
	for _, word := range words {
		if word = token(word); word == "" {
			continue
		}
		text.WriteString(tag)
		text.WriteString(word)
		text.WriteByte(' ')
	}
	return text.String()
}

// token returns a term without the characters at which the tokenizer would split it: the parentheses of "(1)", which a
// circled number becomes, or the comma of "a/1,000". The index has no positions, so it refuses to look for more than
// one token at once.
func token(term string) string {
	return strings.Map(func(r rune) rune {
		if r >= utf8.RuneSelf || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || strings.ContainsRune(tokenMarks, r) {
			return r
		}
		return -1
	}, term)
}

// tokens returns the distinct tokens of a query's terms, as far as these count.
func tokens(terms []string) (list []string) {
	for _, term := range terms[:min(len(terms), graph.MaxQueryTerms)] {
		if term = token(term); term != "" && !slices.Contains(list, term) {
			list = append(list, term)
		}
	}
	return list
}

func (t graphTx) saveWords(ctx context.Context, bags []projection.Of[graph.State, graph.Bag]) error {
	tags := map[*graph.State]string{}
	var list []*projection.Of[graph.State, graph.Bag]
	for i := range bags {
		b := &bags[i]
		if len(b.Row.Words) == 0 {
			continue
		}
		if tags[b.State] == "" {
			tags[b.State] = tag(b.State.ID.Tenant)
		}
		list = append(list, b)
	}
	_, err := t.Insert(ctx, Insertion{Into: "words (rowid, text)", Width: 2}, len(list), func(args []any, i int) []any {
		b := list[i]
		return append(args, b.Row.Seq, tagged(tags[b.State], b.Row.Words))
	})
	return err
}

const (
	deleteTitle = "DELETE FROM title_words WHERE rowid = ?"
	insertTitle = "INSERT INTO title_words (rowid, text) VALUES (?, ?)"
	deleteWords = "DELETE FROM words WHERE rowid IN (SELECT b.seq FROM bag AS b INDEXED BY bag_by_conversation WHERE b.c = ?)"
)

// saveTitles indexes the titles of conversations with a new description.
func (t graphTx) saveTitles(ctx context.Context, u *graph.Unit) error {
	for i := range u.Versions {
		v := &u.Versions[i]
		if v.Row.Ended != 0 {
			continue
		}
		if _, err := t.Exec(ctx, deleteTitle, v.State.Key); err != nil {
			return err
		}
		words := graph.TitleWords(v.Row.Title)
		if len(words) == 0 {
			continue
		}
		if _, err := t.Exec(ctx, insertTitle, v.State.Key, tagged(tag(v.State.ID.Tenant), words)); err != nil {
			return err
		}
	}
	return nil
}

// A search examines the newest messages of each term, up to a limit for all terms together, and then, one part at a
// time, the best of those by their terms alone. So the most that a search costs does not depend on the amount of data.
const (
	maxPostings   = 1 << 15
	leastPostings = 512
	mostPostings  = 4096
	weighedAtOnce = 500
)

const (
	selectSaid     = "SELECT rowid FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC LIMIT ?"
	selectTitles   = "SELECT rowid FROM title_words WHERE title_words MATCH ? ORDER BY rowid DESC LIMIT ?"
	selectLastBag  = "SELECT coalesce(max(seq), 0) FROM bag"
	selectWeighed  = "SELECT b.seq, b.c, length(b.terms) FROM json_each(?) AS k CROSS JOIN bag AS b ON b.seq = k.value CROSS JOIN conversation AS v ON v.c = b.c AND v.tenant = ? AND v.deleted_seq = 0"
	selectNumbers  = "SELECT v.c FROM json_each(?) AS k CROSS JOIN conversation AS v ON v.tenant = ? AND v.id = k.value"
	selectByNumber = "SELECT " + conversationColumns + " FROM conversation AS k LEFT JOIN version AS v ON v.c = k.c AND v.ended = 0 WHERE k.c = ? AND k.tenant = ? AND k.deleted_seq = 0"

	selectOpening = `SELECT b.seq, b.n, b.terms, b.vectors FROM (SELECT seq FROM bag INDEXED BY bag_by_conversation WHERE c = ? ORDER BY seq LIMIT ?) AS first
		CROSS JOIN message AS m ON m.seq = first.seq CROSS JOIN bag AS b ON b.seq = first.seq WHERE m.role IN ('user', 'assistant') AND b.n <= ? ORDER BY first.seq LIMIT ?`
	selectAsked  = "SELECT " + messageColumns + " FROM message WHERE seq IN (SELECT k.value FROM json_each(?) AS k) ORDER BY seq"
	selectBagsAt = "SELECT b.seq, b.n, b.terms, b.vectors FROM json_each(?) AS k CROSS JOIN bag AS b ON b.seq = k.value WHERE b.c = ?"
)

// Candidates implements graph.SearchReader.
func (g *Graph) Candidates(ctx context.Context, tenant string, q graph.CandidateQuery) (list []graph.Candidate, err error) {
	err = g.Snapshot(ctx, func(query Queryer) error {
		matches, err := matches(query, tenant, q)
		if err != nil {
			return err
		}
		for _, found := range graph.Shortlist(matches) {
			var c graph.Candidate
			var key int64
			rows, err := query(selectByNumber, found.Key, tenant)
			if err := Each(rows, err, func(rows *sql.Rows) error { return scanConversation(rows, &key, &c.Conversation) }); err != nil {
				return err
			}
			if key == 0 { // a title under the same tag
				continue
			}
			if q.Keep == nil {
				rows, err = query(selectOpening, key, graph.OpeningWithin, graph.OpeningWithin, graph.MaxOpening)
				if c.Opening, err = bags(rows, err); err != nil {
					return err
				}
			}
			rows, err = query(selectBagsAt, marshal(seqsBut(found.Seqs, c.Opening)), key)
			if c.Said, err = bags(rows, err); err != nil {
				return err
			}
			list = append(list, c)
		}
		return nil
	})
	return list, err
}

// seqsBut leaves out the sequences of bags.
func seqsBut(seqs []uint64, list []graph.Bag) []uint64 {
	return slices.DeleteFunc(append([]uint64{}, seqs...), func(seq uint64) bool {
		return slices.ContainsFunc(list, func(b graph.Bag) bool { return b.Seq == seq })
	})
}

// matches holds the messages and titles that have terms of a query, or the best of them.
func matches(query Queryer, tenant string, q graph.CandidateQuery) (list []graph.TermMatch[int64], err error) {
	terms := tokens(q.Terms)
	if len(terms) == 0 {
		return nil, nil
	}
	var last float64
	rows, err := query(selectLastBag)
	if err := Each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&last) }); err != nil {
		return nil, err
	}
	limit := min(max(maxPostings/len(terms), leastPostings), mostPostings)
	weights, titles := map[uint64]float64{}, map[int64]float64{}
	to := cmp.Or(min(q.ToSeq, maxSeq), maxSeq)
	for _, term := range terms {
		expression := `"` + tag(tenant) + term + `"`
		said, err := postings(query, selectSaid, expression, min(q.FromSeq, maxSeq), to, limit)
		if err != nil {
			return nil, err
		}
		// The frequency is estimated as if every sequence of the log were a message. Terms that occur more often
		// than the limit count as equally frequent.
		rarity := math.Log(1 + last/(float64(len(said))+0.5))
		for _, seq := range said {
			weights[uint64(seq)] += rarity
		}
		if q.Keep != nil {
			continue
		}
		named, err := postings(query, selectTitles, expression, limit)
		if err != nil {
			return nil, err
		}
		for _, c := range named {
			titles[c] += rarity
		}
	}
	var only map[int64]bool
	if q.Only != nil {
		only = make(map[int64]bool, len(q.Only))
		rows, err := query(selectNumbers, marshal(q.Only), tenant)
		if err := Each(rows, err, func(rows *sql.Rows) error {
			var c int64
			err := rows.Scan(&c)
			only[c] = true
			return err
		}); err != nil {
			return nil, err
		}
	}
	var except int64
	if q.Except != "" {
		rows, err := query("SELECT c FROM conversation WHERE tenant = ? AND id = ?", tenant, q.Except)
		if err := Each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&except) }); err != nil {
			return nil, err
		}
	}
	for c, weight := range titles {
		if c != except && (only == nil || only[c]) {
			list = append(list, graph.TermMatch[int64]{Key: c, Score: weight * lengthFactor(0)})
		}
	}
	slices.SortFunc(list, func(a, b graph.TermMatch[int64]) int { return cmp.Compare(b.Key, a.Key) })
	said, err := weighed(query, tenant, weights, func(c int64) bool { return c != except && (only == nil || only[c]) }, q.Keep)
	return append(list, said...), err
}

// postings returns the newest rows of the index that have a term.
func postings(query Queryer, statement string, args ...any) (list []int64, err error) {
	rows, err := query(statement, args...)
	return All(rows, err, func(rows *sql.Rows, row *int64) error { return rows.Scan(row) })
}

// weighed returns the messages with the greatest weights, of the tenant and of the conversations that
// searched accepts, if keep keeps them. The scores discount long messages, because they have many terms.
func weighed(query Queryer, tenant string, weights map[uint64]float64, searched func(c int64) bool, keep func(*graph.Message) bool) (list []graph.TermMatch[int64], err error) {
	seqs := slices.SortedFunc(maps.Keys(weights), func(a, b uint64) int { return cmp.Or(cmp.Compare(weights[b], weights[a]), cmp.Compare(b, a)) })
	var lengths []float64
	total, asked := 0.0, 0
	for part := range slices.Chunk(seqs, weighedAtOnce) {
		var found []graph.TermMatch[int64]
		var long []float64
		rows, err := query(selectWeighed, marshal(part), tenant)
		if err := Each(rows, err, func(rows *sql.Rows) error {
			var m graph.TermMatch[int64]
			var length float64
			if err := rows.Scan(&m.Seq, &m.Key, &length); err != nil || !searched(m.Key) {
				return err
			}
			m.Score = weights[m.Seq]
			found, long = append(found, m), append(long, length)
			return nil
		}); err != nil {
			return nil, err
		}
		var kept map[uint64]bool
		if keep != nil && len(found) > 0 {
			if kept, err = keeps(query, found, keep); err != nil {
				return nil, err
			}
			asked += len(found)
		}
		for i, m := range found {
			if keep == nil || kept[m.Seq] {
				list, lengths, total = append(list, m), append(lengths, long[i]), total+long[i]
			}
		}
		if len(list) >= graph.MaxMatches || asked >= graph.MaxKeepAsked {
			break
		}
	}
	for i := range list {
		list[i].Score *= lengthFactor(lengths[i] / (total / float64(len(list))))
	}
	return list, nil
}

// keeps returns the sequences of the matches whose messages keep keeps.
func keeps(query Queryer, matches []graph.TermMatch[int64], keep func(*graph.Message) bool) (map[uint64]bool, error) {
	kept := map[uint64]bool{}
	for part := range slices.Chunk(matches, graph.KeepAskedAtOnce) {
		seqs := make([]uint64, len(part))
		for i, m := range part {
			seqs[i] = m.Seq
		}
		list, err := messages(query, selectAsked, marshal(seqs))
		if err != nil {
			return nil, err
		}
		for i := range list {
			kept[list[i].Seq] = keep(&list[i])
		}
	}
	return kept, nil
}

// lengthFactor is BM25's factor for a term that occurs once in a text of this length, relative to a
// text of mean length.
func lengthFactor(length float64) float64 {
	const k1, b = 1.2, 0.75
	return (k1 + 1) / (1 + k1*(1-b+b*length))
}
