package view_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/recall"
	"mneme.dev/mneme/pkg/window"
)

// add appends events to a conversation in one batch.
func (s *store) add(t require.TestingT, conversation string, payloads ...events.Payload) {
	var list []eventlog.Message
	for _, p := range payloads {
		list = append(list, s.message(t, conversation, fmt.Sprint(s.name, "e", s.seq+1), p))
	}
	var err error
	s.cp, err = s.graph.Apply(s.t.Context(), s.model, s.cp, list)
	require.NoError(t, err)
}

// message returns the next message of the log.
func (s *store) message(t require.TestingT, conversation, event string, p events.Payload) eventlog.Message {
	s.seq++
	e, err := events.New(conversation, "test", event, p)
	require.NoError(t, err)
	subject, err := events.Address{Tenant: "t", Conversation: conversation, Kind: events.Kind(e.Type)}.Subject()
	require.NoError(t, err)
	header, body := events.EncodeMessage(e)
	return eventlog.Message{Seq: s.seq, Subject: subject, Header: nats.Header(header), Data: body}
}

// something draws an event that can happen next in a conversation.
func (s *store) something(t *rapid.T) events.Payload {
	n := s.seq + uint64(rapid.IntRange(1, 1_000_000).Draw(t, "id"))
	call := fmt.Sprint("k", rapid.IntRange(0, 20).Draw(t, "call"))
	switch rapid.IntRange(0, 9).Draw(t, "what") {
	case 0, 1, 2:
		role := rapid.SampledFrom([]string{"user", "assistant", "system"}).Draw(t, "role")
		return &events.MessageCreated{MessageID: fmt.Sprint("m", n), Role: role, Content: strings.Repeat("word ", rapid.IntRange(1, 2_000).Draw(t, "long"))}
	case 3, 4, 5:
		return &events.ToolCalled{ToolCallID: call, ToolName: "Read", Arguments: json.RawMessage(`{"file_path":"/a.go"}`)}
	case 6, 7:
		return &events.ToolReturned{ToolCallID: call, Result: events.TextResult(strings.Repeat("line\n", rapid.IntRange(1, 9_000).Draw(t, "long")))}
	case 8:
		return &events.ConversationStarted{Title: fmt.Sprint("Title ", n)}
	default:
		if rapid.IntRange(0, 15).Draw(t, "deleted") == 0 {
			return &events.ConversationDeleted{}
		}
		return &events.MessageCreated{MessageID: fmt.Sprint("m", n), Role: "user", Content: "And then?"}
	}
}

// read does what a request reads: the rows of the end, older rows, found messages,
// summaries.
func read(ctx context.Context, t *rapid.T, g window.Graph, conversation string, asOf uint64, reads []func(end uint64) (any, error)) (answers []any) {
	c, err := g.Conversation(ctx, id(conversation), asOf)
	if err != nil {
		require.ErrorIs(t, err, graph.ErrNotFound)
		return nil
	}
	answers = append(answers, c)
	for _, one := range reads {
		answer, err := one(min(asOf, c.LastSeq) + 1)
		require.NoError(t, err)
		answers = append(answers, answer)
	}
	return answers
}

func TestCachedRowsEqualTheStores(t *testing.T) {
	s, n := newStore(t), 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		ctx, conversation := s.t.Context(), fmt.Sprint("c", n)
		cache := view.NewCache(rapid.SampledFrom([]int{1 << 30, 1 << 10}).Draw(t, "budget"), nil)
		type drawn struct {
			what               int
			back, limit, other int
			calls, oldest      bool
			role               string
		}
		var reads []drawn
		for range rapid.IntRange(1, 8).Draw(t, "reads") {
			reads = append(reads, drawn{
				rapid.SampledFrom([]int{0, 1, 2, 2, 3, 4}).Draw(t, "read"), rapid.SampledFrom([]int{0, 0, 7, 60, 300}).Draw(t, "back"), rapid.SampledFrom([]int{1, 5, 60}).Draw(t, "limit"), rapid.IntRange(0, 80).Draw(t, "other"),
				rapid.Bool().Draw(t, "calls"), rapid.IntRange(0, 2).Draw(t, "oldest") == 0, rapid.SampledFrom([]string{"", "user"}).Draw(t, "role"),
			})
		}
		uncovered := s.seq + 1 // not covered by a summary
		for range rapid.IntRange(1, 12).Draw(t, "requests") {
			var batch []events.Payload
			for range rapid.IntRange(0, 40).Draw(t, "events") {
				batch = append(batch, s.something(t))
				if _, deleted := batch[len(batch)-1].(*events.ConversationDeleted); deleted {
					uncovered = s.seq + uint64(len(batch)) + 1
				}
			}
			if last := s.seq + uint64(len(batch)); rapid.Bool().Draw(t, "summarised") && uncovered <= last {
				batch = append(batch, &events.SummaryWritten{SummaryID: fmt.Sprint("s", last), Level: 1, FirstSeq: uncovered, LastSeq: last, Conversation: "It was said.", Method: "extractive"})
				uncovered = last + 1
			}
			s.add(t, conversation, batch...)
			s.add(t, "another", batch...) // competes for memory if the budget is small
			asOf := graph.Latest
			if rapid.Bool().Draw(t, "past") {
				asOf = s.seq - uint64(rapid.IntRange(0, 60).Draw(t, "back"))
			}
			edition := editionOf(s, conversation)
			kept := cache.Graph(s.model, edition)
			of := func(g window.Graph) (list []func(end uint64) (any, error)) {
				for _, d := range reads {
					list = append(list, func(end uint64) (any, error) {
						before := end - min(end-1, uint64(d.back))
						switch d.what {
						case 0, 1:
							q := graph.TranscriptQuery{Before: before, Limit: d.limit, CallsOnly: d.calls, OldestFirst: d.oldest}
							if d.other > 40 {
								q.From = end - min(end, uint64(d.other))
							}
							return g.Transcript(ctx, id(conversation), q)
						case 2:
							return g.Messages(ctx, id(conversation), graph.MessageQuery{Before: before, Limit: d.limit, Role: d.role, OldestFirst: d.oldest})
						case 3:
							var seqs []uint64
							for k := range uint64(d.limit) {
								if seq := end - min(end, uint64(d.other)) + 2*k; seq > 0 && seq < end {
									seqs = append(seqs, seq)
								}
							}
							return g.MessagesAt(ctx, id(conversation), seqs)
						default:
							return g.Summaries(ctx, id(conversation), graph.SummaryQuery{AsOf: end - 1, Frontier: d.oldest, Limit: d.limit})
						}
					})
				}
				return list
			}
			_, err := cache.Of(view.Source{Messages: s.model, Edition: edition}).Search(ctx, id(conversation), recall.Query{Text: "word"})
			if err != nil {
				require.ErrorIs(t, err, graph.ErrNotFound)
			}
			require.Equal(t, read(ctx, t, s.model, conversation, asOf, of(s.model)), read(ctx, t, kept, conversation, asOf, of(kept)))
		}
	})
}

// counting counts reads of a store.
type counting struct {
	window.Graph
	rows, reads int
}

func (c *counting) Transcript(ctx context.Context, id events.ConversationID, q graph.TranscriptQuery) ([]graph.Entry, error) {
	list, err := c.Graph.Transcript(ctx, id, q)
	c.rows, c.reads = c.rows+len(list), c.reads+1
	return list, err
}

func (c *counting) MessagesAt(ctx context.Context, id events.ConversationID, seqs []uint64) ([]graph.Message, error) {
	list, err := c.Graph.MessagesAt(ctx, id, seqs)
	c.rows, c.reads = c.rows+len(list), c.reads+1
	return list, err
}

func (c *counting) Messages(ctx context.Context, id events.ConversationID, q graph.MessageQuery) ([]graph.Message, error) {
	list, err := c.Graph.Messages(ctx, id, q)
	c.rows, c.reads = c.rows+len(list), c.reads+1
	return list, err
}

func (c *counting) Summaries(ctx context.Context, id events.ConversationID, q graph.SummaryQuery) ([]graph.Summary, error) {
	list, err := c.Graph.Summaries(ctx, id, q)
	c.rows, c.reads = c.rows+len(list), c.reads+1
	return list, err
}

func TestNextContextReadsOnlyNewRows(t *testing.T) {
	s, cache := newStore(t), view.NewCache(1<<30, nil)
	talk := func(turns int) {
		var batch []events.Payload
		for range turns {
			m := fmt.Sprint("m", s.seq, "-", len(batch))
			batch = append(
				batch,
				&events.MessageCreated{MessageID: "u" + m, Role: "user", Content: "What of the parser?"},
				&events.MessageCreated{MessageID: m, Role: "assistant", Content: strings.Repeat("It reads the words. ", 20)},
				&events.ToolCalled{ToolCallID: m, MessageID: m, ToolName: "Read", Arguments: json.RawMessage(`{"file_path":"/a.go"}`)},
				&events.ToolReturned{ToolCallID: m, Result: events.TextResult(strings.Repeat("a line of code\n", 20))},
			)
		}
		s.add(t, "c", batch...)
	}
	context := func() (rows, reads int) {
		t.Helper()
		below := &counting{Graph: s.model}
		req := window.Request{Conversation: id("c"), MaxChars: 20_000}
		search := cache.Of(view.Source{Messages: s.model})
		got, err := window.Build(t.Context(), window.Source{Graph: cache.Graph(below, ""), Recall: search}, req)
		require.NoError(t, err)
		want, err := window.Build(t.Context(), window.Source{Graph: s.model, Recall: search}, req)
		require.NoError(t, err)
		require.Equal(t, want, got)
		return below.rows, below.reads
	}
	talk(300)
	rows, _ := context()
	require.Greater(t, rows, 100)
	_, reads := context() // fetch what the first context read before its search
	require.Equal(t, 2, reads)
	rows, reads = context()
	require.Zero(t, rows)
	require.Zero(t, reads)
	talk(1)
	rows, _ = context()
	require.LessOrEqual(t, rows, 4+30, "the list of queries begins elsewhere")
	talk(100)
	rows, _ = context()
	require.Greater(t, rows, 100, "with so many new rows the cache starts over")
	_, reads = context()
	require.Zero(t, reads)
}

// editionOf returns the edition of a conversation, as a view finds it.
func editionOf(s *store, conversation string) string {
	lineage, err := graph.LineageOf(s.t.Context(), s.model, id(conversation), graph.Latest)
	if err != nil {
		require.ErrorIs(s.t, err, graph.ErrNotFound)
		return ""
	}
	return lineage.Descent()
}

// A read model of another generation may have other rows at the same places.
func TestEachEditionHasRowsAndAnIndexOfItsOwn(t *testing.T) {
	one, other, cache := newStore(t), newStore(t), view.NewCache(1<<30, nil)
	other.name = "other"
	for n := range 5 {
		one.say("c", fmt.Sprint("This is ", n))
		other.say("c", fmt.Sprint("That is ", n))
	}
	build := func(c *view.Cache, s *store, edition string) *window.Context {
		t.Helper()
		got, err := window.Build(t.Context(), window.Source{Graph: c.Graph(s.model, edition), Recall: c.Of(view.Source{Messages: s.model, Edition: edition})}, window.Request{Conversation: id("c")})
		require.NoError(t, err)
		return got
	}
	build(cache, one, "1")
	build(cache, one, "1")
	require.Equal(t, build(view.NewCache(1<<30, nil), other, "2").Markdown(), build(cache, other, "2").Markdown())
	require.Equal(t, 2, cache.Figures().Indexes)
}

// A retried message takes the place of a later copy that had stood in for it. Neither the
// counts nor the newest row show the change.
func TestRepairInvalidatesCachedRows(t *testing.T) {
	s, cache := newStore(t), view.NewCache(1<<30, nil)
	said := func(message string) *events.MessageCreated {
		return &events.MessageCreated{MessageID: message, Role: "user", Content: "The word is " + message}
	}
	var log []eventlog.Message
	for _, message := range []string{"one", "two", "three", "two", "four"} {
		log = append(log, s.message(t, "c", message, said(message)))
	}
	build := func() string {
		t.Helper()
		lineage, err := graph.LineageOf(t.Context(), s.model, id("c"), graph.Latest)
		require.NoError(t, err)
		source := window.Source{Graph: cache.Graph(s.model, lineage.Descent()), Recall: cache.Of(view.Source{Messages: s.model, Edition: lineage.Descent()})}
		got, err := window.Build(t.Context(), source, window.Request{Conversation: id("c")})
		require.NoError(t, err)
		return strings.Join(regexp.MustCompile("The word is ([a-z]+)").FindAllString(got.Markdown(), -1), "\n")
	}
	var err error
	s.cp, err = s.graph.Apply(t.Context(), s.model, s.cp, slices.Delete(slices.Clone(log), 1, 2))
	require.NoError(t, err)
	build()
	before := build()
	_, _, err = s.graph.Reapply(t.Context(), s.model, s.cp, id("c"), log)
	require.NoError(t, err)
	after := build()
	require.NotEqual(t, before, after)
	require.Less(t, strings.Index(after, "two"), strings.Index(after, "three"))
}

// Rows too large to cache leave the memory to others and change no answer.
func TestOnlyTheNewestLargeRowsAreCached(t *testing.T) {
	s, cache := newStore(t), view.NewCache(1<<30, nil)
	for n := range 200 {
		s.say("c", fmt.Sprint("The parser, ", n, strings.Repeat(" reads words", 3_000)))
	}
	req := window.Request{Conversation: id("c"), MaxChars: 5_000_000}
	build := func(c *view.Cache) *window.Context {
		t.Helper()
		got, err := window.Build(t.Context(), window.Source{Graph: c.Graph(s.model, ""), Recall: c.Of(view.Source{Messages: s.model})}, req)
		require.NoError(t, err)
		return got
	}
	want := build(view.NewCache(1<<30, nil))
	for range 3 {
		require.Equal(t, want, build(cache))
	}
	require.Less(t, cache.Figures().Bytes, 4_000_000)
	require.Greater(t, cache.Figures().Bytes, 1_000_000)
}
