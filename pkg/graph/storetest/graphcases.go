package storetest

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/recall"
)

type graphShop = workshop[*graph.Unit, graph.Store]

func graphCases(w graphShop) []namedCase {
	cases := []namedCase{
		asOfGraph(w),
		readersOfGraph(w),
		{"the first event creates the conversation, whatever it is", func(t *testing.T) {
			for _, p := range []events.Payload{
				message("m", "assistant", "x"), read("k", "/a"), result("k", "x", true),
				&events.ConversationUpdated{}, &events.ConversationStarted{},
			} {
				b := graphBench{w.bench(t)}
				h := NewHistory()
				h.Next = 7
				h.Add("c", p)
				b.apply(h.Messages)
				c := b.conversation("c")
				require.Equal(t, "active", c.Status, p.EventType())
				require.EqualValues(t, 7, c.FirstSeq)
				require.EqualValues(t, 7, c.LastSeq)
			}
		}},
		{"started describes the conversation, late and twice too", func(t *testing.T) {
			h := NewHistory()
			h.Add("c", message("m1", "user", "x"))
			h.Add("c", &events.ConversationStarted{Title: "one", Tags: []string{"a", "b"}, Agent: "agent", Model: "model", Cwd: "/w", Project: "p",
				MaxContextChars: 5, Profile: "fast", BranchedFrom: &events.BranchedAt{ConversationID: "root", MessageID: "m"}})
			h.Add("c", &events.ConversationStarted{Title: "two"})
			bothWays(t, w, h, func(t *testing.T, b graphBench) {
				require.Equal(t, graph.Description{
					Title: "two", Tags: []string{"a", "b"}, Status: "active", Agent: "agent", Model: "model", Cwd: "/w", Project: "p",
					MaxContextChars: 5, Profile: "fast", BranchedFrom: &events.BranchedAt{ConversationID: "root", MessageID: "m"},
				}, b.conversation("c").Description)
				require.Equal(t, "one", b.conversationAsOf("c", 2).Title)
				require.Equal(t, graph.Description{Status: "active"}, b.conversationAsOf("c", 1).Description)
			})
		}},
		{"updated changes only what it names", func(t *testing.T) {
			h := NewHistory()
			h.Add("c", &events.ConversationStarted{Title: "title", Tags: []string{"a"}, Agent: "agent"})
			h.Add("c", &events.ConversationUpdated{Status: "archived"})
			h.Add("c", &events.ConversationUpdated{Title: new("")})
			h.Add("c", &events.ConversationUpdated{Tags: &[]string{}})
			bothWays(t, w, h, func(t *testing.T, b graphBench) {
				require.Equal(t, graph.Description{Title: "title", Tags: []string{"a"}, Agent: "agent", Status: "archived"}, b.conversationAsOf("c", 2).Description)
				require.Equal(t, graph.Description{Tags: []string{"a"}, Agent: "agent", Status: "archived"}, b.conversationAsOf("c", 3).Description)
				c := b.conversation("c")
				require.Empty(t, c.Tags)
				require.Equal(t, "agent", c.Agent)
			})
		}},
		{"a read before the first event or of nobody's conversation finds nothing", func(t *testing.T) {
			b := graphBench{w.bench(t)}
			h := NewHistory()
			h.Next = 5
			h.Add("c", message("m", "user", "x"))
			b.apply(h.Messages)
			_, err := b.store.Conversation(b.ctx, id("c"), 4)
			require.ErrorIs(t, err, graph.ErrNotFound)
			for _, unknown := range []events.ConversationID{id("nobody"), {Tenant: "u", ID: "c"}, {}} {
				_, err = b.store.Conversation(b.ctx, unknown, graph.Latest)
				require.ErrorIs(t, err, graph.ErrNotFound)
				_, err = b.store.Messages(b.ctx, unknown, graph.MessageQuery{})
				require.ErrorIs(t, err, graph.ErrNotFound)
				_, err = b.store.Transcript(b.ctx, unknown, graph.TranscriptQuery{})
				require.ErrorIs(t, err, graph.ErrNotFound)
				_, err = b.store.Calls(b.ctx, unknown, refs("k"), graph.Latest)
				require.ErrorIs(t, err, graph.ErrNotFound)
				_, err = b.store.Results(b.ctx, unknown, refs("k"), graph.Latest)
				require.ErrorIs(t, err, graph.ErrNotFound)
			}
		}},
		{"nothing of a deleted conversation can be read", func(t *testing.T) {
			h := NewHistory()
			h.Add("c", message("m", "user", "x"))
			h.Add("c", read("k", "/a"))
			h.Add("c", &events.ConversationDeleted{})
			bothWays(t, w, h, func(t *testing.T, b graphBench) {
				for asOf := range uint64(4) {
					_, err := b.store.Conversation(b.ctx, id("c"), asOf)
					require.ErrorIs(t, err, graph.ErrNotFound)
				}
				_, err := b.store.Calls(b.ctx, id("c"), refs("k"), graph.Latest)
				require.ErrorIs(t, err, graph.ErrNotFound)
				list, err := b.store.Conversations(b.ctx, "t", graph.ConversationQuery{})
				require.NoError(t, err)
				require.Empty(t, list.Rows)
			})
		}},
		{"times that run backwards are data, order is the log's", func(t *testing.T) {
			h := NewHistory()
			at := time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.FixedZone("", 3600))
			for i := range 3 {
				h.Time = at.Add(-time.Duration(i) * time.Hour)
				h.Add("c", message("m"+strings.Repeat("x", i), "user", "x"))
			}
			h.Time = time.Time{}
			h.Add("c", message("untimed", "user", "x"))
			bothWays(t, w, h, func(t *testing.T, b graphBench) {
				list := b.messages("c", graph.MessageQuery{})
				require.Equal(t, []string{"", "2026-03-01T09:00:00.123456789Z", "2026-03-01T10:00:00.123456789Z", "2026-03-01T11:00:00.123456789Z"},
					[]string{list[0].Time, list[1].Time, list[2].Time, list[3].Time})
				c := b.conversation("c")
				require.Equal(t, "2026-03-01T11:00:00.123456789Z", c.CreatedAt)
				require.Equal(t, "2026-03-01T09:00:00.123456789Z", c.UpdatedAt)
			})
		}},
		{"texts may hold anything", func(t *testing.T) {
			odd := []string{"", "nul\x00in the middle\x00", "\x00", "é€😀", "e\u0301", "\u202E", "\uFFFD", "\uFEFFbom", "a\r\n\tb", "</s>", "\u2028", "\U0010FFFF", strings.Repeat("\x00", 100)}
			h := NewHistory()
			for i, s := range odd {
				m := message("m"+strings.Repeat("i", i), "assistant", s)
				m.Reasoning, m.Speaker, m.Session, m.Model, m.Origin = s, s, s, s, s
				if s != "" {
					m.References = []events.Reference{{File: s, StartLine: 1, EndLine: 2, Name: s}}
				}
				h.Add("c", m)
			}
			h.Add("c", &events.ConversationStarted{Title: odd[1], Tags: odd})
			bothWays(t, w, h, func(t *testing.T, b graphBench) {
				list := b.messages("c", graph.MessageQuery{})
				for i, s := range odd {
					m := list[len(odd)-1-i]
					for _, got := range []string{m.Content.Text, m.Reasoning.Text, m.Speaker, m.Session, m.Model, m.Via} {
						require.Equal(t, s, got)
					}
					require.Equal(t, graph.NewBody(s), m.Content)
					if s != "" {
						require.Equal(t, []events.Reference{{File: s, StartLine: 1, EndLine: 2, Name: s}}, m.References)
					}
				}
				require.Equal(t, odd, b.conversation("c").Tags)
				require.Equal(t, odd[1], b.conversation("c").Title)
			})
		}},
		{"data besides the texts is kept up to a size limit", func(t *testing.T) {
			b := graphBench{w.bench(t)}
			h := NewHistory()
			long := strings.Repeat("x", graph.MaxBodyBytes+1)
			tags, references := []string{"first"}, []events.Reference{{File: "first"}}
			for range 10 {
				tags, references = append(tags, long[:10_000]), append(references, events.Reference{File: long[:10_000]})
			}
			h.Add("c", &events.ConversationStarted{Title: long, Tags: tags, Cwd: long})
			h.Add("c", &events.MessageCreated{MessageID: "m", Role: "user", Content: "x", Usage: []byte(`"` + long + `"`), Model: long, References: references})
			b.apply(h.Messages)
			c := b.conversation("c")
			require.Equal(t, long[:graph.MaxBodyBytes], c.Title)
			require.Len(t, c.Cwd, 4<<10)
			require.Equal(t, tags[:7], c.Tags)
			m := must(b.store.Messages(b.ctx, id("c"), graph.MessageQuery{}))(t)[0]
			require.Equal(t, references[:7], m.References)
			require.Empty(t, m.Usage)
			require.Len(t, m.Model, 4<<10)
			h.Add("c", &events.ConversationUpdated{Title: &long, Tags: &tags})
			b.apply(h.Messages)
			c = b.conversation("c")
			require.Len(t, c.Title, graph.MaxBodyBytes)
			require.Len(t, c.Tags, 7)
		}},
		{"a long body is cut at a character and keeps the size of the whole", func(t *testing.T) {
			long := "x" + strings.Repeat("é", graph.MaxBodyBytes)
			h := NewHistory()
			m := message("m", "user", long)
			m.Reasoning = long
			h.Add("c", m)
			h.Add("c", call("k", "t", `"`+long+`"`))
			h.Add("c", result("k", long, true))
			exact := strings.Repeat("x", graph.MaxBodyBytes)
			h.Add("c", message("m2", "user", exact))
			bothWays(t, w, h, func(t *testing.T, b graphBench) {
				list := b.messages("c", graph.MessageQuery{})
				require.Equal(t, exact, list[0].Content.Text)
				require.True(t, list[0].Content.Whole())
				for _, body := range []graph.Body{list[1].Content, list[1].Reasoning, b.results("c", "k")["k"].Result} {
					require.Equal(t, long[:graph.MaxBodyBytes-1], body.Text, "an é has two bytes")
					require.Equal(t, len(long), body.Bytes)
					require.Equal(t, graph.MaxBodyBytes+1, body.Chars)
					require.Equal(t, events.DigestOf(long), body.Hash)
					require.False(t, body.Whole())
				}
				require.Equal(t, len(long)+2, b.calls("c", "k")["k"].Arguments.Bytes)
				require.Equal(t, 2*graph.MaxBodyBytes+1, b.conversation("c").TotalChars)
			})
		}},
		{"an image is kept as its name, and all the text around it", func(t *testing.T) {
			recorded := "Before. " + imageOf(90_000) + " Behind it a giraffe."
			const named = "Before. [image/png, 90 kB] Behind it a giraffe."
			same := func(recorded, text string) graph.Body {
				return graph.Body{Text: text, Bytes: len(text), Chars: len(text), Hash: events.DigestOf(recorded)}
			}
			h := NewHistory()
			h.Add("c", &events.ConversationStarted{Title: recorded})
			m := message("m", "user", recorded)
			m.Reasoning = imageOf(2_000)
			h.Add("c", m)
			h.Add("c", call("k", "t", `"`+recorded+`"`))
			failed := result("k", recorded, false)
			failed.Error = recorded
			h.Add("c", failed)
			bothWays(t, w, h, func(t *testing.T, b graphBench) {
				m := b.messages("c", graph.MessageQuery{})[0]
				require.Equal(t, same(recorded, named), m.Content)
				require.Equal(t, same(imageOf(2_000), "[image/png, 2 kB]"), m.Reasoning)
				require.True(t, m.Content.Whole())
				require.False(t, m.Content.Recorded())
				require.Equal(t, len(named), m.CumChars)
				require.Equal(t, same(`"`+recorded+`"`, `"`+named+`"`), b.calls("c", "k")["k"].Arguments)
				r := b.results("c", "k")["k"]
				require.Equal(t, same(recorded, named), r.Result)
				require.Equal(t, named, r.Error)
				c := b.conversation("c")
				require.Equal(t, named, c.Title)
				require.Equal(t, len(named), c.TotalChars)
				bag, _, _, err := must(b.store.Bags(b.ctx, id("c"), graph.BagQuery{}))(t)[0].Decode()
				require.NoError(t, err)
				require.Equal(t, recall.NewBag(recall.Message{Role: "user", Content: named}), bag)
			})
		}},
		{"a message comes back with all it has", func(t *testing.T) {
			b := graphBench{w.bench(t)}
			h := NewHistory()
			h.Time = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
			h.Next = 3
			m := &events.MessageCreated{
				MessageID: "m", Role: "assistant", Content: "content", Reasoning: "reasoning", Speaker: "speaker", Session: "session", Model: "model",
				Usage: []byte(`{"input":1}`), Origin: "compaction", References: []events.Reference{{File: "a.go", StartLine: 1, EndLine: 2, Name: "f"}, {File: "b.go"}},
			}
			h.AddAs("c", "event", m)
			b.apply(h.Messages)
			require.Equal(t, []graph.Message{{
				Position: graph.Position{Seq: 3, N: 1, Turn: 0, Step: 1}, Origin: graph.Origin{EventID: "event", Source: "storetest", Time: "2026-03-01T12:00:00Z"},
				MessageID: "m", Role: "assistant", Content: graph.NewBody("content"), Reasoning: graph.NewBody("reasoning"), Speaker: "speaker",
				Session: "session", Model: "model", Usage: `{"input":1}`, Via: "compaction", References: m.References, CumChars: 7,
			}}, b.messages("c", graph.MessageQuery{}))
		}},
		{"what has other content has another hash", func(t *testing.T) {
			variants := []events.Payload{
				message("m", "user", "x"), message("m", "assistant", "x"), message("m", "user", "y"), message("m2", "user", "x"),
				&events.MessageCreated{MessageID: "m", Role: "user", Content: "x", Reasoning: "r"},
				&events.MessageCreated{MessageID: "m", Role: "user", Content: "x", References: []events.Reference{{File: "f"}}},
				call("k", "t", `{}`), call("k", "t", `[]`), call("k", "t2", `{}`),
				&events.ToolCalled{ToolCallID: "k", ToolName: "t", Arguments: []byte(`{}`), MessageID: "m"},
				result("k", "x", true), result("k", "x", false), &events.ToolReturned{ToolCallID: "k", Result: events.JSONResult([]byte(`"x"`))},
				&events.ToolReturned{ToolCallID: "k", Result: events.JSONResult([]byte(`"x"`)), DurationMS: new(0.0)},
				&events.ConversationStarted{}, &events.ConversationStarted{Title: "x"}, &events.ConversationStarted{Tags: []string{"x"}},
				&events.ConversationStarted{BranchedFrom: &events.BranchedAt{ConversationID: "x", MessageID: "y"}},
				&events.ConversationUpdated{Status: "archived"}, &events.ConversationDeleted{},
			}
			seen := map[events.Digest]int{}
			for i, p := range variants {
				b := graphBench{w.bench(t)}
				h := NewHistory()
				h.Add("c", p)
				b.apply(h.Messages)
				hash := b.hash(id("c")).Hash
				require.NotContains(t, seen, hash, "%d and %d", seen[hash], i)
				seen[hash] = i
			}
		}},
		{"a read stops when nobody wants it any more", func(t *testing.T) {
			b := graphBench{w.bench(t)}
			h := NewHistory()
			realistic(h, "c", 20)
			b.apply(h.Messages)
			enough := errors.New("enough")
			ctx, cancel := context.WithCancel(b.ctx)
			cancel()
			_, err := b.store.Messages(ctx, id("c"), graph.MessageQuery{})
			require.Error(t, err)
			require.ErrorIs(t, b.store.Hashes(b.ctx, func(projection.ConversationHash) error { return enough }), enough)
			require.Len(t, b.messages("c", graph.MessageQuery{}), 50)
		}},
	}
	return slices.Concat(cases, turnCases(w), listCases(w), conversationCases(w), pagingCases(w), summaryCases(w), condensedCases(w), recallCases(w), candidateCases(w))
}

// imageOf returns a data URL with a picture of a size in bytes.
func imageOf(size int) string {
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\x01", size)))
}
