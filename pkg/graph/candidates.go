package graph

import (
	"cmp"
	"context"
	"slices"

	"mneme/pkg/recall"
)

// What a search over all conversations of a tenant looks at, whatever there is.
const (
	// MaxCandidates is how many conversations are ranked.
	MaxCandidates = 50
	// MaxMatches is how many messages and titles these are found by, the best ones.
	MaxMatches = 300
	// MaxMatchesEach is how many of those are read of one conversation.
	MaxMatchesEach = 8
	// MaxQueryTerms is how many terms of a query count, the first ones.
	MaxQueryTerms = 64
	// MaxOpening is how many messages a conversation opens with: those of user and
	// assistant with text among its first [OpeningWithin].
	MaxOpening    = 4
	OpeningWithin = 32
)

// wordsWithin is where the passages of a message begin that are found over all
// conversations, in bytes: what a message is about is said at its beginning.
const wordsWithin = 2_000

// SearchReader reads what a search over all conversations of a tenant needs. Which ones are
// found is up to the backend's own index, so two backends may differ.
type SearchReader interface {
	// Candidates finds the conversations that may be what some terms ask for, at most
	// [MaxCandidates], by their titles and by what user and assistant said. It never finds
	// one of another tenant, or one that is deleted.
	Candidates(ctx context.Context, tenant string, q CandidateQuery) ([]Candidate, error)
}

// CandidateQuery asks for conversations.
type CandidateQuery struct {
	Terms  []string // of package recall; of more than [MaxQueryTerms] the first ones count
	Except string   // the id of a conversation that is left out
	// Fresh waits until everything that is applied is found. A backend that indexes what
	// it applies in the same commit need not wait.
	Fresh bool
}

// Candidate is a conversation that may be what is searched for.
type Candidate struct {
	Conversation
	Opening []Bag // of what it opens with
	Said    []Bag // of the messages that have terms of the query, or the best of them, in the order of the log
}

// wordsOf are the terms by which a message is found over all conversations, each once, in
// ascending order: those of its first passages. What tools and runtimes say has none: that
// most conversations have in common.
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

// TitleWords are the terms by which a conversation is found by its title.
func TitleWords(title string) []string {
	if len(title) > wordsWithin {
		title = title[:wordsWithin]
	}
	return QueryTerms(title)
}

// QueryTerms are the terms of a text, each once, in the order of the text.
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

// TermMatch is a message that has terms of a query, or a title.
type TermMatch[K comparable] struct {
	Key   K      // of the conversation
	Seq   uint64 // 0 for its title
	Score float64
}

// Shortlisted is a conversation with its best matches, in the order of their sequences.
type Shortlisted[K comparable] struct {
	Key  K
	Seqs []uint64
}

// Shortlist takes the best matches, and of them the conversations whose best match is
// best, in this order. Of equal ones the newer comes first, or else what came first.
// Backends share it.
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
