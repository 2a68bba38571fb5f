package analysis_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/analysis"
	"mneme.dev/mneme/internal/mnemetest/llmtest"
	"mneme.dev/mneme/pkg/summary/llm"
)

// held is a memory with conversations of a few characters each.
type held struct {
	mu      sync.Mutex
	ids     []string
	size    map[string]analysis.Size
	answers map[string][]analysis.Answer
	stored  map[string]string // content of events by their id
	deleted string            // a conversation that was deleted since it was listed
	grow    bool              // each conversation grows when it is read
	full    error             // no answer can be stored
}

func newHeld(n int) *held {
	h := &held{size: map[string]analysis.Size{}, answers: map[string][]analysis.Answer{}, stored: map[string]string{}}
	for i := range n {
		id := fmt.Sprintf("c%02d", i)
		h.ids, h.size[id] = append(h.ids, id), analysis.Size{Turns: 1, Chars: 400}
	}
	return h
}

func (h *held) Conversations(context.Context) (list []analysis.Conversation, err error) {
	for _, id := range h.ids {
		list = append(list, analysis.Conversation{ID: id})
	}
	return list, nil
}

func (h *held) Answers(_ context.Context, id string, yield func(*analysis.Answer)) (analysis.Size, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.deleted == id {
		return analysis.Size{}, fmt.Errorf("not found: %w", analysis.ErrDeleted)
	}
	for _, a := range h.answers[id] {
		yield(&a)
	}
	return h.size[id], nil
}

func (h *held) Record(_ context.Context, id, _ string, _ int) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if size := h.size[id]; h.grow {
		h.size[id] = analysis.Size{Turns: size.Turns + 1, Chars: size.Chars + 1}
	}
	return "the record of " + id, nil
}

func (h *held) Deleted(context.Context, string) (bool, error) { return false, nil }

func (h *held) Store(_ context.Context, e events.Event) (uint64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.full != nil {
		return 0, h.full
	}
	r, err := events.Record(e)
	if err != nil {
		return 0, err
	}
	id := e.Subject + " " + e.ID
	if was, ok := h.stored[id]; ok && was != string(e.Data) {
		return 0, errors.New("the log holds other content with this id")
	}
	h.stored[id] = string(e.Data)
	p := r.Payload.(*events.InsightWritten)
	list := h.answers[e.Subject]
	seq := uint64(len(list) + 1)
	h.answers[e.Subject] = append(list, analysis.Answer{Seq: seq, Answer: p.Answer, Model: p.Model, PromptHash: p.PromptHash, Size: analysis.Size{Turns: p.Turns, Chars: p.Chars}})
	return seq, nil
}

// run does a whole analysis.
func run(t *testing.T, h *held, e *llmtest.Endpoint, change func(*analysis.Run)) *analysis.Analyst {
	t.Helper()
	a := begin(t, h, e, change)
	a.Ask(t.Context())
	require.NoError(t, a.Reduce(t.Context()))
	return a
}

// begin finds what an analysis has to ask about.
func begin(t *testing.T, h *held, e *llmtest.Endpoint, change func(*analysis.Run)) *analysis.Analyst {
	t.Helper()
	question, err := analysis.Question("Count.", "")
	require.NoError(t, err)
	model, err := llm.New(llm.Profile{Provider: llm.OpenAI, URL: e.URL(), Model: "canned", Timeout: time.Minute, MaxTokens: 100})
	require.NoError(t, err)
	r := analysis.Run{Question: question, Model: model, MaxChars: 1000, Parallel: 2}
	if change != nil {
		change(&r)
	}
	a := analysis.New(h, r)
	require.NoError(t, a.Find(t.Context()))
	return a
}

func TestOneAnswerIsMadeOfManyInSeveralSteps(t *testing.T) {
	t.Parallel()
	e, h := llmtest.New(t), newHeld(9)
	e.Reply(llmtest.Chat(`{"answer":"` + strings.Repeat("x", 450) + `"}`))
	a := run(t, h, e, func(r *analysis.Run) { r.Over = true })
	require.NotNil(t, a.Outcome().Over)
	require.Equal(t, 9+5+3+2+1, a.Outcome().Calls, "two answers at a time")
	again := run(t, h, e, func(r *analysis.Run) { r.Over = true })
	require.Equal(t, analysis.Estimate{Conversations: 9, Known: 9, Calls: 11, InputTokens: 4750}, again.Estimate())
	require.Equal(t, 11, again.Outcome().Calls)
}

func TestAConversationThatIsNamedTwiceIsPaidForOnce(t *testing.T) {
	t.Parallel()
	e, h := llmtest.New(t), newHeld(2)
	e.Reply(llmtest.Chat(`{"answer":"1"}`))
	h.ids = append(h.ids, h.ids...)
	a := run(t, h, e, nil)
	require.Equal(t, 2, a.Outcome().Calls)
	require.Len(t, a.Outcome().Conversations, 2)
}

func TestAConversationThatIsDeletedWhileOthersAreFoundIsLeftOut(t *testing.T) {
	t.Parallel()
	e, h := llmtest.New(t), newHeld(3)
	e.Reply(llmtest.Chat(`{"answer":"1"}`))
	h.deleted = "c01"
	a := run(t, h, e, nil)
	require.Len(t, a.Outcome().Conversations, 2)
	require.Zero(t, a.Outcome().Unanswered())
}

func TestAConversationThatGrowsIsAskedAboutAgain(t *testing.T) {
	t.Parallel()
	e, h := llmtest.New(t), newHeld(2)
	e.Reply(llmtest.Chat(`{"answer":"1"}`))
	h.grow = true
	require.Equal(t, 2, run(t, h, e, nil).Outcome().Calls)
	require.Equal(t, analysis.Size{Turns: 1, Chars: 400}, h.answers["c00"][0].Size, "what the conversation was when it was asked about")
	h.grow = false
	require.Equal(t, 2, run(t, h, e, nil).Outcome().Calls)
	require.Zero(t, run(t, h, e, nil).Outcome().Calls)
}

func TestARunGoesOnWhenAnotherOneHasAnsweredMeanwhile(t *testing.T) {
	t.Parallel()
	e, h := llmtest.New(t), newHeld(2)
	late := begin(t, h, e, nil)
	e.Reply(llmtest.Chat(`{"answer":"1"}`))
	run(t, h, e, nil)
	e.Reply(llmtest.Chat(`{"answer":"2"}`))
	late.Ask(t.Context())
	require.Empty(t, late.Outcome().Stopped)
	require.Zero(t, late.Outcome().Unanswered())
	require.Len(t, h.answers["c00"], 2, "both are paid for")
	require.Zero(t, run(t, h, e, nil).Outcome().Calls)
}

func TestARunStopsWhenAnswersCannotBeStored(t *testing.T) {
	t.Parallel()
	e, h := llmtest.New(t), newHeld(5)
	e.Reply(llmtest.Chat(`{"answer":"1"}`))
	h.full = errors.New("the log is full")
	out := run(t, h, e, func(r *analysis.Run) { r.Parallel, r.Over = 1, true }).Outcome()
	require.Equal(t, 1, out.Calls)
	require.Equal(t, 5, out.Unanswered())
	require.Contains(t, out.Stopped, "could not be stored: the log is full")
	require.Contains(t, out.OverError, "not asked")
}

func TestAQuestionNeedsATaskForItsSchema(t *testing.T) {
	t.Parallel()
	_, err := analysis.Question("", `{"a":{"type":"string"}}`)
	require.ErrorContains(t, err, "belongs to a task")
	for _, task := range []string{"", "session"} {
		q, err := analysis.Question(task, "")
		require.NoError(t, err)
		require.Equal(t, llm.SessionQuestion().Hash(), q.Hash())
	}
}
