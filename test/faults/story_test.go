package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/summary"
)

// summarized is a conversation with the summaries due in it, written as they became due, and a
// title.
func summarized(t *testing.T) []eventlog.Message {
	t.Helper()
	r, declared := &recording{}, summary.Projection()
	file, err := sqlitestore.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"), sqlitestore.SummariesCodec)
	require.NoError(t, err)
	store := &sqlitestore.Summaries{Store: file}
	defer func() { require.NoError(t, store.Close()) }()
	cp, err := store.Acquire(t.Context(), 0, declared.Fingerprint())
	require.NoError(t, err)
	limits := summary.DefaultSettings()
	limits.MaxContextChars = contextChars
	add := func(e events.Event) {
		cp, err = declared.Apply(t.Context(), store, cp, []eventlog.Message{r.store(t, e)})
		require.NoError(t, err)
	}
	event := func(id string, p events.Payload) events.Event {
		e, err := events.New("c", "test", id, p)
		require.NoError(t, err)
		return e
	}
	for n := range 30 {
		id := fmt.Sprint(n)
		add(event("u"+id, &events.MessageCreated{MessageID: "u" + id, Role: "user", Content: strings.Repeat("é", 500)}))
		add(event("a"+id, &events.MessageCreated{MessageID: "a" + id, Role: "assistant", Content: strings.Repeat("a", 300)}))
		add(event("c"+id, &events.ToolCalled{ToolCallID: id, ToolName: "Read", Arguments: json.RawMessage(`{"path":"x"}`)}))
		add(event("r"+id, &events.ToolReturned{ToolCallID: id, Result: events.TextResult(strings.Repeat("r", 1_000))}))
		if n == 0 {
			title := "Letters"
			e, err := events.New("c", summary.Source, "title", &events.ConversationUpdated{Title: &title})
			require.NoError(t, err)
			add(e)
		}
		for {
			_, plan, due, err := summary.Read(t.Context(), store, events.ConversationID{Tenant: tenant, ID: "c"}, limits, false)
			require.NoError(t, err)
			if !due {
				break
			}
			w := summary.Written{Method: "extractive", Draft: summary.Draft{Conversation: strings.Repeat("s", 1_200)}}
			for _, child := range plan.Children {
				w.Children = append(w.Children, child.ID)
			}
			e, err := w.Event("c", plan)
			require.NoError(t, err)
			add(e)
		}
	}
	return r.log
}

// stories returns the findings in the summaries and titles of a log.
func stories(t *testing.T, log []eventlog.Message) (done Told, found string) {
	t.Helper()
	var all []string
	done = oracleOf(t, log).checkStories(func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) })
	return done, strings.Join(all, "\n")
}

func TestCorrectSummariesHaveNoFindings(t *testing.T) {
	t.Parallel()
	log := summarized(t)
	done, found := stories(t, log)
	require.Empty(t, found)
	require.Equal(t, Told{Summaries: []int{9, 1}, Titles: 1}, done)
	// Nothing is expected of a deleted conversation.
	r := &recording{log: log[:40]}
	deleted, err := events.New("c", "test", "deleted", &events.ConversationDeleted{})
	require.NoError(t, err)
	r.store(t, deleted)
	done, found = stories(t, r.log)
	require.Empty(t, found)
	require.Zero(t, done.Titles)
}

// places returns the positions of a log's summaries, by level, with its title at level 0.
func places(t *testing.T, log []eventlog.Message) map[int][]int {
	t.Helper()
	at := map[int][]int{}
	for i, m := range log {
		r, _, err := m.Decode()
		require.NoError(t, err)
		if p, ok := r.Payload.(*events.SummaryWritten); ok {
			at[p.Level] = append(at[p.Level], i)
		} else if r.Source == summary.Source {
			at[0] = append(at[0], i)
		}
	}
	return at
}

// changed returns a log in which one message is replaced at the same sequence.
func changed(t *testing.T, log []eventlog.Message, i int, change func(e *events.Event, p events.Payload) events.Payload) []eventlog.Message {
	t.Helper()
	log = slices.Clone(log)
	r, _, err := log[i].Decode()
	require.NoError(t, err)
	e := r.Event
	payload := change(&e, r.Payload)
	e, err = events.New(e.Subject, e.Source, e.ID, payload)
	require.NoError(t, err)
	at := &recording{}
	m := at.store(t, e)
	m.Seq = log[i].Seq
	log[i] = m
	return log
}

func TestErrorsInSummariesOfALogAreFound(t *testing.T) {
	t.Parallel()
	right := summarized(t)
	last, at := right[len(right)-1].Seq, places(t, right)
	title, one, above := at[0][0], at[1], at[2][0]
	newest := one[len(one)-1]
	without := func(i int) []eventlog.Message { return slices.Delete(slices.Clone(right), i, i+1) }
	again := func(log []eventlog.Message, i int, change func(e *events.Event, p events.Payload) events.Payload) []eventlog.Message {
		m := changed(t, right, i, change)[i]
		m.Seq = last + 1
		return append(slices.Clone(log), m)
	}
	same := func(_ *events.Event, p events.Payload) events.Payload { return p }
	written := func(change func(p *events.SummaryWritten)) func(*events.Event, events.Payload) events.Payload {
		return func(_ *events.Event, p events.Payload) events.Payload {
			change(p.(*events.SummaryWritten))
			return p
		}
	}
	for name, c := range map[string]struct {
		log  []eventlog.Message
		says string
	}{
		"the same event twice": {again(right, one[1], same), "of a summarizer 2 times"},
		"a range twice": {again(right, newest, func(e *events.Event, p events.Payload) events.Payload {
			e.ID = "other"
			p.(*events.SummaryWritten).SummaryID = "other"
			return p
		}), "covers a range that level 1 already covers"},
		"a gap":                    {without(one[len(one)-2]), "lost: nothing of level 1 covers"},
		"an overlap":               {changed(t, right, one[2], written(func(p *events.SummaryWritten) { p.FirstSeq-- })), "covers a range that level 1 already covers"},
		"half a step":              {changed(t, right, newest, written(func(p *events.SummaryWritten) { p.LastSeq-- })), "within a step"},
		"the future":               {changed(t, right, one[0], written(func(p *events.SummaryWritten) { p.LastSeq = last })), fmt.Sprintf("covers 1 to %d", last)},
		"other input":              {changed(t, right, newest, written(func(p *events.SummaryWritten) { p.CharsIn++ })), "was made of"},
		"other turns":              {changed(t, right, newest, written(func(p *events.SummaryWritten) { p.LastTurn++ })), "was made of"},
		"too long":                 {changed(t, right, newest, written(func(p *events.SummaryWritten) { p.CharsOut = 1_501 })), "has 1501 characters"},
		"a model":                  {changed(t, right, newest, written(func(p *events.SummaryWritten) { p.Method = "llm" })), `is written like this: "llm"`},
		"children":                 {changed(t, right, newest, written(func(p *events.SummaryWritten) { p.Children = []string{"x"} })), "has children"},
		"a lost child":             {changed(t, right, above, written(func(p *events.SummaryWritten) { p.Children = p.Children[1:] })), "consolidates"},
		"longer than its children": {changed(t, right, above, written(func(p *events.SummaryWritten) { p.LastSeq++ })), "consolidates"},
		"other input of children":  {changed(t, right, above, written(func(p *events.SummaryWritten) { p.CharsIn-- })), "its children have"},
		"the last two are missing": {slices.Delete(without(newest), one[len(one)-2], one[len(one)-2]+1), "wait for a summary, which was due"},
		"level 2 is missing":       {without(above), "wait for one of level 2, which was due"},
		"no title":                 {without(title), "nobody gave it a title"},
		"two titles": {again(right, title, func(e *events.Event, p events.Payload) events.Payload {
			e.ID = "title again"
			return p
		}), "given a title 2 times"},
		"a title over a title": {again(changed(t, right, title, func(e *events.Event, p events.Payload) events.Payload {
			e.Source = "somebody"
			return p
		}), title, same), "although it had one"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, found := stories(t, c.log)
			require.Contains(t, found, c.says)
		})
	}
}

// stateOf makes the read model "summaries" of a log and returns its file.
func stateOf(t *testing.T, log []eventlog.Message) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "state.db")
	store, err := sqlitestore.Open(t.Context(), path, sqlitestore.SummariesCodec)
	require.NoError(t, err)
	fill(t, summary.Projection(), store, log)
	require.NoError(t, store.Close())
	return path
}

func TestErrorsInSummariesOfAReadModelAreFound(t *testing.T) {
	t.Parallel()
	log := summarized(t)
	const one = "(SELECT seq FROM summary WHERE level = 1 ORDER BY seq LIMIT 1 OFFSET 3)"
	for name, c := range map[string]struct{ inGraph, inState, says string }{
		"nothing":             {},
		"lost from graph":     {"DELETE FROM summary WHERE seq = " + one, "", "graph: c: lost: the summary L1-"},
		"lost from summaries": {"", "DELETE FROM summary WHERE seq = " + one, "summaries: c: lost: the summary L1-"},
		"doubled in graph": {"INSERT INTO summary SELECT 100000, c, n, turn, step, event_id, source, time, summary_id, level, first_seq, last_seq, first_turn, last_turn, children, supersedes, conversation, actions, findings, topics, files, tools, turn_count, method, fallback_reason, model, prompt_hash, chars_in, chars_out FROM summary WHERE seq = " + one,
			"", "graph: c: foreign: the summary L1-"},
		"doubled in summaries":       {"", "INSERT INTO summary SELECT c, 'again', seq, level, first, last, first_turn, last_turn, chars, revised FROM summary WHERE seq = " + one, "foreign: the summary again"},
		"another range in graph":     {"UPDATE summary SET last_seq = last_seq + 1 WHERE seq = " + one, "", "graph: c: foreign: "},
		"another range in summaries": {"", "UPDATE summary SET first = first + 1 WHERE seq = " + one, "summaries: c: foreign: "},
		"another length":             {"", "UPDATE summary SET chars = chars + 1 WHERE seq = " + one, "summaries: c: lost: "},
		"counted once too often":     {"", "UPDATE checkpoint SET applied = applied + 1", "sqlite: summaries: "},
		"another mark":               {"", "UPDATE mark SET chars = chars + 1", "summaries: c is not the same"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			graphs, states := graphOf(t, log), stateOf(t, log)
			doctor(t, graphs, c.inGraph)
			doctor(t, states, c.inState)
			graphStore, err := sqlitestore.OpenReader(graphs, sqlitestore.GraphCodec)
			require.NoError(t, err)
			g := &sqlitestore.Graph{Store: graphStore}
			defer func() { require.NoError(t, g.Close()) }()
			stateStore, err := sqlitestore.OpenReader(states, sqlitestore.SummariesCodec)
			require.NoError(t, err)
			s := &sqlitestore.Summaries{Store: stateStore}
			defer func() { require.NoError(t, s.Close()) }()
			replayed, err := sqlitestore.OpenReader(stateOf(t, log), sqlitestore.SummariesCodec)
			require.NoError(t, err)
			right := &sqlitestore.Summaries{Store: replayed}
			defer func() { require.NoError(t, right.Close()) }()

			var all []string
			found := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
			o := oracleOf(t, log)
			require.NoError(t, o.checkSummaries(t.Context(), "sqlite", g, s, found))
			require.NoError(t, o.summaries.checkModel(t.Context(), "sqlite", s, found))
			one, err := hashes(t.Context(), s)
			require.NoError(t, err)
			other, err := hashes(t.Context(), right)
			require.NoError(t, err)
			o.checkHashes(o.summaries.name, one, other, found)
			if c.says == "" {
				require.Empty(t, all)
				return
			}
			require.Contains(t, strings.Join(all, "\n"), c.says)
		})
	}
}
