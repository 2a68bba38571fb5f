package neo4jstore

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
)

// The index words has the terms of messages and titles. Go code makes the terms, so the
// analyzer only splits them at spaces. The index is eventually consistent, so that Lucene
// does not delay commits: a message can be found a moment after it can be read.
//
// Neo4j resolves index entries when they are read, and a new node may have reused the number
// of a deleted one. So a match is checked: it must be of the generation and tenant, of a
// listed conversation, and settled.

// scopeWord is the first word of every indexed text of a tenant in this generation. No term
// begins with "=".
func (s *store) scopeWord(tenant string) string {
	return "=" + s.digestKey(events.DigestOf("tenant", tenant))
}

// words returns the text to index, "" if there are no terms.
func (s *store) words(tenant string, words []string) string {
	if len(words) == 0 {
		return ""
	}
	return s.scopeWord(tenant) + " " + strings.Join(words, " ")
}

// searchFor returns a query for texts of a tenant with some of these terms. Inside quotes
// only a quote and a backslash are special. The scope has no weight, so it does not affect
// the score.
func (s *store) searchFor(tenant string, terms []string) string {
	quoted := make([]string, len(terms))
	for i, term := range terms {
		quoted[i] = `"` + inQuotes.Replace(term) + `"`
	}
	return `+words:"` + s.scopeWord(tenant) + `"^0 +words:(` + strings.Join(quoted, " ") + ")"
}

var inQuotes = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// excepted is how many more matches are examined if one conversation is left out, because
// that conversation has the best matches.
const excepted = 3 * graph.MaxMatches

// among is how many more matches are examined if only some conversations or messages are searched: the index does not know which.
const among = 30 * graph.MaxMatches

const (
	awaitWords = "CALL db.index.fulltext.awaitEventuallyConsistentIndexRefresh()"

	selectMatches = `CALL db.index.fulltext.queryNodes('words', $query, {limit: $limit}) YIELD node AS n, score
		MATCH (c:Conversation {key: coalesce(n.conversation, n.key)}) WHERE c.listed = $listed AND c.key <> $except AND ($only IS NULL OR c.key IN $only)
		MATCH (s:GraphSettled {key: c.checkpoint}) WHERE c.first_seq <= s.seq AND coalesce(n.seq, 0) <= s.seq AND ($from IS NULL OR n.seq >= $from AND n.seq <= $to)
		RETURN c.key, coalesce(n.seq, 0), score`
)

var selectAsked = "UNWIND $in.rows AS r MATCH (n:Message) WHERE n.conversation = r[0] AND n.seq = r[1] RETURN " + messageProps.list("n")

var selectCandidates = `UNWIND $in.rows AS r MATCH (c:Conversation {key: r[0]}) WHERE c.listed = $listed MATCH (s:GraphSettled {key: c.checkpoint})
	RETURN c.key, ` + conversationProps.list("c") + `,
		COLLECT { MATCH (n:Message) USING INDEX SEEK n:Message(conversation, seq) WHERE n.conversation = c.key AND n.seq > 0 AND n.seq <= s.seq
			WITH n ORDER BY n.conversation, n.seq LIMIT $within WITH n WHERE n.terms IS NOT NULL AND n.role IN ['user', 'assistant']
			RETURN [n.seq, n.n, n.terms, n.vectors] LIMIT $opening },
		COLLECT { UNWIND r[1] AS seq MATCH (n:Message) WHERE n.conversation = c.key AND n.seq = seq AND n.terms IS NOT NULL RETURN [n.seq, n.n, n.terms, n.vectors] }`

// Candidates implements graph.SearchReader.
func (g *Graph) Candidates(ctx context.Context, tenant string, q graph.CandidateQuery) ([]graph.Candidate, error) {
	terms := q.Terms[:min(len(q.Terms), graph.MaxQueryTerms)]
	if len(terms) == 0 {
		return nil, nil
	}
	if q.Fresh {
		if _, err := g.Read(ctx, awaitWords, nil); err != nil {
			return nil, err
		}
	}
	params := map[string]any{"query": g.searchFor(tenant, terms), "limit": graph.MaxMatches, "listed": g.tenantKey(tenant), "except": "", "only": nil, "from": nil, "to": nil}
	if q.Except != "" {
		params["limit"], params["except"] = graph.MaxMatches+excepted, g.Key(events.ConversationID{Tenant: tenant, ID: q.Except})
	}
	if q.Only != nil {
		keys := make([]any, len(q.Only))
		for i, id := range q.Only {
			keys[i] = g.Key(events.ConversationID{Tenant: tenant, ID: id})
		}
		params["limit"], params["only"] = graph.MaxMatches+among, keys
	}
	if q.Keep != nil {
		params["limit"], params["from"], params["to"] = graph.MaxMatches+among, number(max(q.FromSeq, 1)), number(cmp.Or(q.ToSeq, graph.Latest))
	}
	rows, err := g.Read(ctx, selectMatches, params)
	if err != nil {
		return nil, err
	}
	matches := make([]graph.TermMatch[string], len(rows))
	for i, row := range rows {
		v := valuesOf(row)
		matches[i] = graph.TermMatch[string]{Key: v.text(), Seq: v.seq(), Score: take[float64](v)}
		if v.err != nil {
			return nil, v.err
		}
	}
	slices.SortStableFunc(matches, func(a, b graph.TermMatch[string]) int { return cmp.Compare(a.Key, b.Key) })
	if q.Keep != nil {
		if matches, err = g.kept(ctx, matches, q.Keep); err != nil {
			return nil, err
		}
	}
	return g.candidates(ctx, tenant, graph.Shortlist(matches), q.Keep == nil)
}

// kept returns the best matches whose messages keep keeps.
func (g *Graph) kept(ctx context.Context, matches []graph.TermMatch[string], keep func(*graph.Message) bool) (list []graph.TermMatch[string], err error) {
	slices.SortStableFunc(matches, func(a, b graph.TermMatch[string]) int { return cmp.Compare(b.Score, a.Score) })
	for part := range slices.Chunk(matches[:min(len(matches), graph.MaxKeepAsked)], graph.KeepAskedAtOnce) {
		asked := make([]any, len(part))
		for i, m := range part {
			asked[i] = []any{m.Key, number(m.Seq)}
		}
		rows, err := g.Read(ctx, selectAsked, In("rows", asked))
		if err != nil {
			return nil, err
		}
		kept := map[uint64]bool{}
		for _, row := range rows {
			v := valuesOf(row[0])
			m := scanMessage(v)
			if v.err != nil {
				return nil, v.err
			}
			kept[m.Seq] = keep(&m)
		}
		for _, m := range part {
			if kept[m.Seq] {
				list = append(list, m)
			}
		}
		if len(list) >= graph.MaxMatches {
			break
		}
	}
	return list, nil
}

// candidates reads conversations with the bags of their matches and, if asked, of their opening messages.
func (g *Graph) candidates(ctx context.Context, tenant string, shortlist []graph.Shortlisted[string], opening bool) (list []graph.Candidate, err error) {
	asked := make([]any, len(shortlist))
	place := map[string]int{}
	for i, s := range shortlist {
		seqs := make([]int64, len(s.Seqs))
		for k, seq := range s.Seqs {
			seqs[k] = number(seq)
		}
		asked[i], place[s.Key] = []any{s.Key, seqs}, i
	}
	params := In("rows", asked)
	params["listed"], params["within"], params["opening"] = g.tenantKey(tenant), graph.OpeningWithin, 0
	if opening {
		params["opening"] = graph.MaxOpening
	}
	rows, err := g.Read(ctx, selectCandidates, params)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(rows, func(a, b []any) int { return place[a[0].(string)] - place[b[0].(string)] })
	for _, row := range rows {
		v := valuesOf(row[1])
		c := graph.Candidate{Conversation: scanConversation(v)}
		bags := &values{list: row[2:]}
		c.Opening, c.Said = scanAll(bags, scanBag), scanAll(bags, scanBag)
		if err := cmp.Or(v.err, bags.err); err != nil {
			return nil, err
		}
		c.Said = slices.DeleteFunc(c.Said, func(b graph.Bag) bool {
			return slices.ContainsFunc(c.Opening, func(o graph.Bag) bool { return o.Seq == b.Seq })
		})
		slices.SortFunc(c.Said, func(a, b graph.Bag) int { return cmp.Compare(a.Seq, b.Seq) })
		list = append(list, c)
	}
	return list, nil
}
