package graph

import (
	"cmp"
	"context"
	"slices"

	"mneme.dev/mneme/pkg/recall"
)

// Limits of a search over all conversations of a tenant.
const (
	// MaxCandidates is how many conversations are ranked.
	MaxCandidates = 50
	// MaxMatches is how many of the best matching messages and titles count.
	MaxMatches = 300
	// MaxMatchesEach is how many of these matches are read per conversation.
	MaxMatchesEach = 8
	// MaxQueryTerms is how many of a query's first terms count.
	MaxQueryTerms = 64
	// MaxOpening is how many messages a conversation opens with: those of user and
	// assistant with text among its first [OpeningWithin].
	MaxOpening    = 4
	OpeningWithin = 32
	// MaxKeepAsked is about how many of the best matching messages are passed to [CandidateQuery.Keep]. KeepAskedAtOnce
	// is how many texts of them are read at a time: at most 8 MiB.
	MaxKeepAsked    = 2_000
	KeepAskedAtOnce = 128
)

// wordsWithin limits, in bytes, where a passage may begin to be found over all
// conversations: a message states its subject at its beginning.
const wordsWithin = 2_000

// SearchReader reads the candidates of a search over all conversations of a tenant. The
// backend's own index finds them, so two backends may find different ones.
type SearchReader interface {
	// Candidates finds the conversations that best match some terms, at most
	// [MaxCandidates], by their titles and by what user and assistant said. It never finds
	// one of another tenant, or one that is deleted.
	Candidates(ctx context.Context, tenant string, q CandidateQuery) ([]Candidate, error)
}

// CandidateQuery asks for conversations.
type CandidateQuery struct {
	Terms  []string // from package recall; only the first [MaxQueryTerms] count
	Except string   // the id of a conversation to leave out
	Only   []string // the ids of the conversations to search, at most a few thousand; nil means all
	// Keep says which messages are found; nil keeps all. With Keep, conversations are not found by
	// their titles, and candidates have no opening. FromSeq and ToSeq, which need Keep, narrow the
	// search down to these sequences, both included; 0 means no limit.
	Keep           func(m *Message) bool
	FromSeq, ToSeq uint64
	// Fresh waits until all applied events can be found. A backend that indexes events
	// in the commit that applies them need not wait.
	Fresh bool
}

// Candidate is a conversation that may match a search.
type Candidate struct {
	Conversation
	Opening []Bag // of its opening messages
	Said    []Bag // of the best messages with terms of the query, in log order
}

// wordsOf returns the distinct terms by which a message is found over all conversations,
// in ascending order: the terms of its first passages. Output of tools and runtimes has
// none, because most conversations share it.
func wordsOf(bag recall.Bag) []string {
	if bag.Role != "user" && bag.Role != "assistant" {
		return nil
	}
	within := 0
	for within < len(bag.Passages) && bag.Passages[within].Start < wordsWithin {
		within++
	}
	if within == len(bag.Passages) {
		return bag.Terms
	}
	used := make([]bool, len(bag.Terms))
	for _, p := range bag.Passages[:within] {
		for _, c := range p.Counts {
			used[c.Term] = true
		}
	}
	words := make([]string, 0, len(bag.Terms))
	for i, term := range bag.Terms {
		if used[i] {
			words = append(words, term)
		}
	}
	return words
}

// TitleWords returns the terms of a title by which its conversation is found.
func TitleWords(title string) []string {
	if len(title) > wordsWithin {
		title = title[:wordsWithin]
	}
	return QueryTerms(title)
}

// QueryTerms returns the distinct terms of a text, in the order of the text.
func QueryTerms(text string) []string {
	terms := recall.AppendTerms(nil, text)
	known := make(map[string]bool, len(terms))
	return slices.DeleteFunc(terms, func(term string) bool {
		if known[term] {
			return true
		}
		known[term] = true
		return false
	})
}

// TermMatch is a message or a title that has terms of a query.
type TermMatch[K comparable] struct {
	Key   K      // of the conversation
	Seq   uint64 // 0 for its title
	Score float64
}

// Shortlisted is a conversation with its best matches, in order of sequence.
type Shortlisted[K comparable] struct {
	Key  K
	Seqs []uint64
}

// Shortlist groups the best matches by conversation and orders the conversations by
// their best match. Between equal ones the newer comes first, else the order of matches
// decides. Backends share it.
func Shortlist[K comparable](matches []TermMatch[K]) []Shortlisted[K] {
	slices.SortStableFunc(matches, func(a, b TermMatch[K]) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.Seq, a.Seq)) })
	var list []Shortlisted[K]
	place := map[K]int{}
	for _, m := range matches[:min(len(matches), MaxMatches)] {
		i, known := place[m.Key]
		if !known {
			if len(list) == MaxCandidates {
				continue
			}
			i, place[m.Key] = len(list), len(list)
			list = append(list, Shortlisted[K]{Key: m.Key})
		}
		if m.Seq != 0 && len(list[i].Seqs) < MaxMatchesEach {
			list[i].Seqs = append(list[i].Seqs, m.Seq)
		}
	}
	for i := range list {
		slices.Sort(list[i].Seqs)
	}
	return list
}
