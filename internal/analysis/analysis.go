// Package analysis has a language model do a task with many conversations, and keeps each answer as an event of
// its conversation. So an answer is paid for once, and an interrupted run continues when it is started again.
package analysis

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/summary"
	"mneme.dev/mneme/pkg/summary/llm"
	"mneme.dev/mneme/pkg/window"
)

// Source is the source of the events that hold the answers.
const Source = "mneme/analyze"

// Memory is where conversations are read and answers stored.
type Memory interface {
	// Conversations lists the conversations to analyze.
	Conversations(ctx context.Context) ([]Conversation, error)
	// Answers calls yield for each stored answer about a conversation, and returns how large the conversation is. It
	// returns [ErrDeleted] if the conversation was deleted.
	Answers(ctx context.Context, conversation string, yield func(*Answer)) (Size, error)
	// Record returns what the model reads of a conversation: a context, found by query if that is not empty.
	Record(ctx context.Context, conversation, query string, maxChars int) (string, error)
	// Deleted reports whether a conversation has been deleted.
	Deleted(ctx context.Context, conversation string) (bool, error)
	// Store appends an event to the log.
	Store(ctx context.Context, e events.Event) (seq uint64, err error)
}

// Conversation names a conversation.
type Conversation struct{ ID, Title string }

// Strategy returns how a [Memory] chooses the context that it returns as a record.
func Strategy(query string) string {
	if query == "" {
		return window.StrategyLevels
	}
	return window.StrategyHybrid
}

// Size is how large a conversation is: an answer with the same size is about the whole of it.
type Size struct{ Turns, Chars int }

// Answer is a stored answer.
type Answer struct {
	Seq               uint64
	Answer            map[string]json.RawMessage
	Model, PromptHash string
	Size              Size
}

// Run is a task, and what it may take.
type Run struct {
	Question *llm.Question
	Model    *llm.Writer
	Over     bool // then combine all answers into one
	MaxChars int  // how much of a conversation the model reads
	Parallel int  // how many conversations it is asked about at the same time
	// MaxCalls and MaxTokens (in and out) are the most that the run may use of the model; 0 for no limit. The number of
	// tokens is known only when a call ends, so concurrent calls can exceed the limit by one call each.
	MaxCalls  int
	MaxTokens int64
	// Progress is called after each question to the model, with the number of finished conversations; may be nil. Calls
	// do not overlap.
	Progress func(done, of int, last *Analyzed)
}

// Analyzed is what is known about one conversation.
type Analyzed struct {
	Conversation string                     `json:"conversation_id"`
	Title        string                     `json:"title,omitempty"`
	Answer       map[string]json.RawMessage `json:"answer,omitempty" doc:"absent if there is none"`
	Known        bool                       `json:"known" doc:"the answer was stored before, and cost nothing now"`
	Seq          uint64                     `json:"seq,omitempty" doc:"sequence of the event that holds the answer"`
	Error        string                     `json:"error,omitempty" doc:"why there is no answer"`

	size Size
}

// Outcome is the result of a run.
type Outcome struct {
	Task          string                     `json:"task" doc:"session: the task that is done if none is given"`
	Model         string                     `json:"model"`
	Conversations []*Analyzed                `json:"conversations" doc:"in the order in which they were listed"`
	Over          map[string]json.RawMessage `json:"over,omitempty" doc:"with map_reduce: the one answer over all; it is not stored"`
	OverError     string                     `json:"over_error,omitempty" doc:"with map_reduce: why there is no answer over all"`
	Stopped       string                     `json:"stopped,omitempty" doc:"why the run ended before all were asked about; the same request continues it"`
	Calls         int                        `json:"calls" doc:"calls of the model"`
	InputTokens   int64                      `json:"input_tokens"`
	OutputTokens  int64                      `json:"output_tokens"`
}

// Estimate is what a run would use of the model.
type Estimate struct {
	Conversations int   `json:"conversations" doc:"conversations that fit the selection and have something to read"`
	Known         int   `json:"known" doc:"how many of them have an answer already, which costs nothing"`
	Calls         int   `json:"calls" doc:"model calls, if none has to be repeated"`
	InputTokens   int64 `json:"input_tokens" doc:"about how many tokens it reads: a quarter of the characters"`
}

// Analyst does a run. Its methods are called in the order Find, Ask, Reduce.
type Analyst struct {
	Run
	memory Memory
	budget *llm.Budget
	mu     sync.Mutex // of out
	out    Outcome
	cause  error // why it stopped
}

// New makes an analyst.
func New(m Memory, r Run) *Analyst {
	return &Analyst{
		Run: r, memory: m, budget: llm.NewCap(r.MaxCalls, r.MaxTokens),
		out: Outcome{Task: r.Question.Task, Model: r.Model.Model(), Conversations: []*Analyzed{}},
	}
}

// Outcome returns what is known so far.
func (a *Analyst) Outcome() *Outcome { return &a.out }

// Cause returns why the run stopped before all conversations were asked about, nil if it did not.
func (a *Analyst) Cause() error { return a.cause }

// Find lists the conversations, each once, and the answers that are stored already. It leaves out conversations in
// which nothing was said, and those that are deleted while it works.
func (a *Analyst) Find(ctx context.Context) error {
	list, err := a.memory.Conversations(ctx)
	if err != nil {
		return err
	}
	once := map[string]bool{}
	list = slices.DeleteFunc(list, func(c Conversation) bool {
		again := once[c.ID]
		once[c.ID] = true
		return again
	})
	found := make([]*Analyzed, len(list))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(a.Parallel)
	for i, c := range list {
		group.Go(func() (err error) {
			if found[i], err = a.known(ctx, c); errors.Is(err, ErrDeleted) {
				return nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, r := range found {
		if r != nil && r.size.Chars > 0 {
			a.out.Conversations = append(a.out.Conversations, r)
		}
	}
	return nil
}

// known reads the newest stored answer about the whole of a conversation as it is now.
func (a *Analyst) known(ctx context.Context, c Conversation) (*Analyzed, error) {
	r := &Analyzed{Conversation: c.ID, Title: c.Title}
	var newest Answer
	size, err := a.memory.Answers(ctx, c.ID, func(s *Answer) {
		if s.PromptHash == a.Question.Hash() && s.Model == a.out.Model {
			newest = *s
		}
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.ID, err)
	}
	if r.size = size; newest.Seq > 0 && newest.Size == size {
		r.Answer, r.Known, r.Seq = newest.Answer, true, newest.Seq
	}
	return r, nil
}

// todo are the conversations without an answer.
func (a *Analyst) todo() (list []*Analyzed) {
	for _, r := range a.out.Conversations {
		if !r.Known {
			list = append(list, r)
		}
	}
	return list
}

// The assumptions of an estimate.
const (
	tokenChars  = 4     // characters of a token, about
	answerChars = 1_000 // characters of an answer, about
)

// Estimate returns what Ask and Reduce would use.
func (a *Analyst) Estimate() Estimate {
	todo := a.todo()
	e := Estimate{Conversations: len(a.out.Conversations), Known: len(a.out.Conversations) - len(todo), Calls: len(todo)}
	chars := 0
	for _, r := range todo {
		chars += min(r.size.Chars, a.MaxChars)
	}
	if a.Over {
		together := max(2, a.MaxChars/answerChars)
		for n := len(a.out.Conversations); n > 0; {
			calls := (n + together - 1) / together
			e.Calls += calls
			chars += n * answerChars
			if n = calls; n == 1 {
				n = 0
			}
		}
	}
	e.InputTokens = int64(chars / tokenChars)
	return e
}

// storeError means that an answer could not be stored.
type storeError struct{ error }

func (e *storeError) Unwrap() error { return e.error }

// Error implements error.
func (e *storeError) Error() string { return "the answer could not be stored: " + e.error.Error() }

// ErrDeleted means that a conversation was deleted since it was listed. If the model has read it by then, its answer is
// not stored: it would bring back what an erasure removes.
var ErrDeleted = errors.New("the conversation was deleted in the meantime")

// Ask asks about each conversation without an answer. It stops when the model is not available, a cap or a quota is
// reached, or answers can't be stored: the next ones would be paid for and lost.
func (a *Analyst) Ask(ctx context.Context) {
	todo := a.todo()
	ctx, stop := context.WithCancelCause(llm.Spending(ctx, a.budget))
	defer stop(nil)
	done := 0
	var telling sync.Mutex
	var group errgroup.Group
	group.SetLimit(a.Parallel)
	for _, r := range todo {
		group.Go(func() error {
			if ctx.Err() != nil {
				r.Error = "not asked: " + context.Cause(ctx).Error()
				return nil
			}
			err := a.ask(ctx, r)
			var lost *storeError
			switch {
			case err == nil:
			case ctx.Err() != nil && !errors.As(err, &lost): // another call found out, or the user ended the run
				r.Error = "not answered: " + context.Cause(ctx).Error()
			default:
				r.Error = err.Error()
				if errors.Is(err, summary.ErrUnavailable) || errors.As(err, &lost) {
					stop(err)
				}
			}
			telling.Lock()
			defer telling.Unlock()
			if done++; a.Progress != nil {
				a.Progress(done, len(todo), r)
			}
			return nil
		})
	}
	_ = group.Wait()
	if ctx.Err() != nil {
		a.cause = context.Cause(ctx)
		a.out.Stopped = a.cause.Error()
	}
}

// ask asks about one conversation and stores the answer. If the conversation grows before the answer comes, the
// stored answer names the earlier size, so the next run asks again.
func (a *Analyst) ask(ctx context.Context, r *Analyzed) error {
	query := ""
	if a.Question.Task != summary.TaskSession { // search for what the task is about
		query = a.Question.Task
	}
	record, err := a.memory.Record(ctx, r.Conversation, query, a.MaxChars)
	if err != nil {
		return err
	}
	answer, usage, err := a.Model.Ask(ctx, a.Question, record)
	a.pay(usage)
	if err != nil {
		return err
	}
	id := fmt.Sprintf("analysis/%s/%s/%d-%d", a.Question.Hash(), a.out.Model, r.size.Turns, r.size.Chars)
	e, err := events.New(r.Conversation, Source, id, &events.InsightWritten{
		Task: a.Question.Task, Answer: answer, Turns: r.size.Turns, Chars: r.size.Chars, Model: a.out.Model, PromptHash: a.Question.Hash(),
	})
	if err != nil {
		return err
	}
	e.ID += "/" + events.DigestOf(string(e.Data)).String() // another run may answer at the same time, in other words
	ctx = context.WithoutCancel(ctx)                       // it is paid for
	deleted, err := a.memory.Deleted(ctx, r.Conversation)
	if err != nil {
		return &storeError{err}
	}
	if deleted {
		return ErrDeleted
	}
	seq, err := a.memory.Store(ctx, e)
	if err != nil {
		return &storeError{err}
	}
	r.Answer, r.Seq = answer, seq
	return nil
}

func (a *Analyst) pay(u summary.Usage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.out.Calls, a.out.InputTokens, a.out.OutputTokens = a.out.Calls+u.Calls, a.out.InputTokens+u.InputTokens, a.out.OutputTokens+u.OutputTokens
}

// Reduce combines all answers into one, if the run asks for that: as many at a time as fit into a record, until there
// is one.
func (a *Analyst) Reduce(ctx context.Context) error {
	if !a.Over || ctx.Err() != nil {
		return ctx.Err()
	}
	if a.cause != nil {
		a.out.OverError = "not asked: " + a.out.Stopped
		return nil
	}
	if err := a.reduce(llm.Spending(ctx, a.budget)); err != nil {
		a.out.Over, a.out.OverError = nil, err.Error()
		return fmt.Errorf("the answer over all: %w; the answers about the conversations are stored", err)
	}
	return nil
}

func (a *Analyst) reduce(ctx context.Context) error {
	var texts []string
	for _, r := range a.out.Conversations {
		if r.Answer != nil {
			raw, err := json.Marshal(r.Answer)
			if err != nil {
				return err
			}
			texts = append(texts, r.Conversation+": "+string(raw))
		}
	}
	over := a.Question.Over()
	for len(texts) > 0 {
		var next []string
		for n := 0; len(texts) > 0; texts, n = texts[n:], 0 {
			size := 0
			for n < len(texts) && (n < 2 || size+len(texts[n]) <= a.MaxChars) { // at least two, so that it ends
				size += len(texts[n])
				n++
			}
			answer, usage, err := a.Model.Ask(ctx, over, strings.Join(texts[:n], "\n\n"))
			a.pay(usage)
			if err != nil {
				return err
			}
			raw, err := json.Marshal(answer)
			if err != nil {
				return err
			}
			a.out.Over, next = answer, append(next, "several: "+string(raw))
		}
		if len(next) < 2 {
			return nil
		}
		texts = next
	}
	return nil
}

// Unanswered returns how many conversations have no answer.
func (o *Outcome) Unanswered() (n int) {
	for _, r := range o.Conversations {
		if r.Answer == nil {
			n++
		}
	}
	return n
}

// inWords is the form of an answer without a schema.
const inWords = `{"answer": {"type": "string"}}`

// Question returns the question of a task with the schema of its answers, "" for answers in words. Without a task it is
// the question about a session.
func Question(task, schema string) (*llm.Question, error) {
	if task == "" || task == summary.TaskSession {
		if schema != "" {
			return nil, errors.New("a schema belongs to a task: say what the model should do")
		}
		return llm.SessionQuestion(), nil
	}
	return llm.NewQuestion(task, cmp.Or(schema, inWords))
}
