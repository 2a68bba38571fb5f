package storetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph"
)

// candidates returns the ids of a tenant's conversations that are found, the best first.
func (b graphBench) candidates(tenant, text, except string) (ids []string) {
	b.t.Helper()
	for _, c := range b.found(tenant, text, except) {
		require.Equal(b.t, tenant, c.ID.Tenant)
		ids = append(ids, c.ID.ID)
	}
	return ids
}

func (b graphBench) found(tenant, text, except string) []graph.Candidate {
	b.t.Helper()
	list, err := b.store.Candidates(b.ctx, tenant, graph.CandidateQuery{Terms: graph.QueryTerms(text), Except: except, Fresh: true})
	require.NoError(b.t, err)
	return list
}

func seqsOf(list []graph.Bag) (seqs []uint64) {
	for _, b := range list {
		seqs = append(seqs, b.Seq)
	}
	return seqs
}

// candidateCases test what a search over all conversations of a tenant finds.
func candidateCases(w graphShop) []namedCase {
	return []namedCase{
		{"conversations are found by what user and assistant said, and by nothing else", func(t *testing.T) {
			h := NewHistory()
			h.Add("user", message("a", "user", "The parsers fail on ÉCLAIRS."))
			h.Add("assistant", message("a", "assistant", "See parseConfig in pkg/Store/read_all.go and 日本語."))
			h.Add("system", message("a", "system", "zebra"))
			h.Add("thought", &events.MessageCreated{MessageID: "a", Role: "assistant", Content: "hello", Reasoning: "zebra"})
			h.Add("tool", call("k", "zebra", `{"zebra":1}`))
			h.Add("tool", result("k", "zebra", true))
			h.Add("stops", message("a", "user", "and then it was"))
			h.Add("long", message("a", "user", strings.Repeat("giraffe ", 400)+"zebra"))
			bothWays(t, w, h, func(t *testing.T, b graphBench) {
				for text, want := range map[string][]string{
					"parser": {"user"}, "Failing": {"user"}, "eclair": {"user"}, "config": {"assistant"}, "parseconfig": {"assistant"},
					"pkg/store/read_all.go": {"assistant"}, "read_all.go": {"assistant"}, "日本": {"assistant"}, "giraffes": {"long"},
					"zebra": nil, "and then": nil, "nobody": nil, `pkg\store`: {"assistant"}, "": nil, "AND OR NOT *": nil, `say "fail" (now)`: {"user"},
				} {
					require.Equal(t, want, b.candidates("t", text, ""), text)
				}
				require.ElementsMatch(t, []string{"user", "assistant"}, b.candidates("t", "parser read_all nobody", ""))
			})
		}},
		{"a search among some conversations or messages finds them behind better matches of others", func(t *testing.T) {
			h := NewHistory()
			mine := h.Add("mine", message("a", "user", "a long message in which the zebra is one word of many, so that others match better"))
			h.Add("mine", message("b", "user", "begin"))
			h.Add("titled", &events.ConversationStarted{Title: "the zebra and many other words of a title"})
			for i := range graph.MaxMatches + 10 {
				h.Add(fmt.Sprint("other", i%60), message(fmt.Sprint("m", i), "assistant", "zebra"))
			}
			later := h.Add("later", message("a", "user", "another long message in which the zebra is one word of many, so that others match better"))
			ofUser := func(m *graph.Message) bool { return m.Role == "user" }
			another := func(m *graph.Message) bool { return strings.HasPrefix(m.Content.Text, "another") }
			none := func(*graph.Message) bool { return false }
			type found map[string][]uint64 // the messages of conversations
			bothWays(t, w, h, func(t *testing.T, b graphBench) {
				require.NotContains(t, b.candidates("t", "zebra", ""), "mine")
				for name, c := range map[string]struct {
					query graph.CandidateQuery
					want  found
				}{
					"some conversations":    {graph.CandidateQuery{Only: []string{"mine", "titled", "nobody"}}, found{"mine": nil, "titled": nil}},
					"one":                   {graph.CandidateQuery{Only: []string{"mine"}}, found{"mine": nil}},
					"no conversation":       {graph.CandidateQuery{Only: []string{}}, found{}},
					"of a role":             {graph.CandidateQuery{Keep: ofUser}, found{"mine": {mine}, "later": {later}}},
					"up to a sequence":      {graph.CandidateQuery{Keep: ofUser, ToSeq: later - 1}, found{"mine": {mine}}},
					"from a sequence on":    {graph.CandidateQuery{Keep: ofUser, FromSeq: mine + 1}, found{"later": {later}}},
					"between two sequences": {graph.CandidateQuery{Keep: ofUser, FromSeq: mine, ToSeq: mine}, found{"mine": {mine}}},
					"where there are none":  {graph.CandidateQuery{Keep: ofUser, FromSeq: later + 1}, found{}},
					"of a role, of one":     {graph.CandidateQuery{Keep: ofUser, Only: []string{"later", "titled"}}, found{"later": {later}}},
					"of a role, but of one": {graph.CandidateQuery{Keep: ofUser, Except: "later"}, found{"mine": {mine}}},
					"with a text":           {graph.CandidateQuery{Keep: another}, found{"later": {later}}},
					"no message":            {graph.CandidateQuery{Keep: none}, found{}},
				} {
					c.query.Terms, c.query.Fresh = []string{"zebra"}, true
					list, err := b.store.Candidates(b.ctx, "t", c.query)
					require.NoError(t, err)
					got := found{}
					for _, one := range list {
						got[one.ID.ID] = nil
						if c.query.Keep != nil {
							require.Empty(t, one.Opening)
							got[one.ID.ID] = seqsOf(one.Said)
						}
					}
					require.Equal(t, c.want, got, name)
				}
			})
		}},
		{"conversations are found by the title they have now", func(t *testing.T) {
			h := NewHistory()
			h.Add("c", &events.ConversationStarted{Title: "Zebras at dawn"})
			h.Add("d", &events.ConversationStarted{Title: "Walking zebras"})
			h.Add("d", &events.ConversationUpdated{Title: new("Walking giraffes")})
			h.Add("d", &events.ConversationUpdated{Status: "archived"})
			h.Add("e", message("a", "user", "zebra"))
			h.Add("e", &events.ConversationUpdated{Title: new("Nothing")})
			h.Add("f", &events.ConversationStarted{Title: "Zebra"})
			h.Add("f", &events.ConversationUpdated{Title: new("")})
			bothWays(t, w, h, func(t *testing.T, b graphBench) {
				require.ElementsMatch(t, []string{"c", "e"}, b.candidates("t", "zebra", ""))
				require.Equal(t, []string{"d"}, b.candidates("t", "giraffe", ""))
				list := b.found("t", "dawn", "")
				require.Len(t, list, 1)
				require.Equal(t, "Zebras at dawn", list[0].Title)
				require.Empty(t, list[0].Said)
			})
		}},
		{"a conversation is found with what it opens with and its messages that fit", func(t *testing.T) {
			h := NewHistory()
			h.Add("c", message("s", "system", "zebra"))
			for i := range 5 {
				h.Add("c", message(fmt.Sprint("o", i), "user", "begin")) // 2 to 6
			}
			h.Add("c", message("x", "assistant", "")) // 7
			for i := range 20 {
				h.Add("c", message(fmt.Sprint("m", i), "assistant", strings.Repeat("giraffe ", i)+"zebra")) // 8 to 27
			}
			h.Add("late", message("first", "system", "hello")) // 28
			for i := range graph.OpeningWithin {
				h.Add("late", message(fmt.Sprint("e", i), "assistant", ""))
			}
			h.Add("late", message("last", "user", "lion"))
			bothWays(t, w, h, func(t *testing.T, b graphBench) {
				list := b.found("t", "zebras", "")
				require.Len(t, list, 1)
				c := list[0]
				require.Equal(t, []uint64{2, 3, 4, 5}, seqsOf(c.Opening))
				require.Equal(t, 27, c.MessageCount)
				require.Len(t, c.Said, graph.MaxMatchesEach)
				require.Contains(t, seqsOf(c.Said), uint64(8), "which says nothing else")
				for i, bag := range c.Said {
					require.Greater(t, bag.Seq, uint64(5))
					require.True(t, i == 0 || bag.Seq > c.Said[i-1].Seq)
					_, vectors, _, err := bag.Decode()
					require.NoError(t, err)
					require.NotEmpty(t, vectors)
				}
				late := b.found("t", "lion", "")
				require.Len(t, late, 1)
				require.Empty(t, late[0].Opening)
				require.Len(t, late[0].Said, 1)
			})
		}},
		{"nothing of another tenant is found", func(t *testing.T) {
			h := NewHistory()
			h.Add("c", message("a", "user", "zebra"))
			h.Tenant = "u"
			h.Add("c", message("a", "user", "giraffe"))
			h.Add("d", &events.ConversationStarted{Title: "Zebra"})
			h.Tenant = "=1/t \"zebra\" +*"
			h.Add("e", message("a", "user", "zebra"))
			bothWays(t, w, h, func(t *testing.T, b graphBench) {
				require.Equal(t, []string{"c"}, b.candidates("t", "zebra giraffe", ""))
				require.ElementsMatch(t, []string{"c", "d"}, b.candidates("u", "zebra giraffe", ""))
				require.Equal(t, []string{"d"}, b.candidates("u", "zebra", ""))
				require.Equal(t, []string{"e"}, b.candidates(h.Tenant, "zebra", ""))
				require.Empty(t, b.candidates("nobody", "zebra", ""))
				require.Empty(t, b.candidates("", "zebra", ""))
			})
		}},
		{"nothing of a deleted conversation is found", func(t *testing.T) {
			h := NewHistory()
			h.Add("c", &events.ConversationStarted{Title: "Lions"})
			h.Add("c", message("a", "user", "zebra"))
			h.Add("d", message("a", "user", "zebra"))
			h.Add("c", message("b", "assistant", "giraffe"))
			h.Add("c", &events.ConversationDeleted{})
			h.Add("c", message("f", "user", "zebra")) // refused
			bothWays(t, w, h, func(t *testing.T, b graphBench) {
				require.Equal(t, []string{"d"}, b.candidates("t", "zebra giraffe lion", ""))
			})
		}},
		{"a dropped conversation is not found, and when it is applied again it is found as before", func(t *testing.T) {
			h := NewHistory()
			h.Add("c", &events.ConversationStarted{Title: "Lions"})
			h.Add("c", message("a", "user", "zebra zebra"))
			h.Add("d", message("a", "user", "a zebra beside a giraffe"))
			h.Add("c", message("b", "assistant", "zebra, nothing else"))
			var own []eventlog.Message
			for _, m := range h.Messages {
				if a, _ := events.ParseSubject(m.Subject); a.Conversation == "c" {
					own = append(own, m)
				}
			}
			bothWays(t, w, h, func(t *testing.T, b graphBench) {
				before := b.found("t", "zebra lion", "")
				require.Len(t, before, 2)
				for range 2 {
					b.drop(id("c"))
					require.Equal(t, []string{"d"}, b.candidates("t", "zebra lion", ""))
					b.rewind(0)
					b.apply(own)
					require.ElementsMatch(t, before, b.found("t", "zebra lion", ""))
				}
			})
		}},
		{"the best are found, so many and no more, and one can be left out", func(t *testing.T) {
			h := NewHistory()
			for i := range graph.MaxCandidates + 20 {
				h.Add(fmt.Sprint("c", i), message("a", "user", "a zebra and a lot of other animals, all of which live far away from here"))
			}
			for i := range 2 * graph.MaxMatches {
				h.Add("many", message(fmt.Sprint(i), "user", "zebra"))
			}
			h.Add("best", message("a", "user", "zebra, giraffe"))
			b := graphBench{w.bench(t)}
			b.apply(h.Messages)
			require.Len(t, b.candidates("t", "animals zebra", ""), graph.MaxCandidates)
			require.Equal(t, "best", b.candidates("t", "zebra giraffe", "")[0])
			require.Equal(t, []string{"best", "many"}, b.candidates("t", "giraffe zebra", "")[:2])
			others := b.candidates("t", "zebra giraffe", "many")
			require.Len(t, others, graph.MaxCandidates)
			require.NotContains(t, others, "many")
			require.Equal(t, "best", others[0])
			require.NotContains(t, b.candidates("t", "zebra giraffe", "best"), "best")
		}},
		{"what a branch inherits is found in the conversation that said it", func(t *testing.T) {
			h := NewHistory()
			h.Add("c", message("a", "user", "zebra"))
			h.Add("x", &events.ConversationStarted{BranchedFrom: &events.BranchedAt{ConversationID: "c", MessageID: "a"}})
			h.Add("x", message("b", "user", "giraffe"))
			bothWays(t, w, h, func(t *testing.T, b graphBench) {
				require.Equal(t, []string{"c"}, b.candidates("t", "zebra", ""))
				require.Equal(t, []string{"x"}, b.candidates("t", "giraffe", ""))
			})
		}},
	}
}
