package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"mneme.dev/mneme/events"
)

// MaxSteps bounds the loop. The planner needs at most eight steps.
const MaxSteps = 12

// Options holds the question and where to look for the answer.
type Options struct {
	Dir      string       // the folder the question is about
	Question string       // in plain words
	Recorder *Recorder    // records everything that the agent does
	Progress func(string) // one line for each message and each result; nil for none
}

// Answer is the end of a turn.
type Answer struct {
	Text         string  `json:"answer"` // the text of the last message
	Places       []Place `json:"places"` // best first, empty if nothing was found
	Conversation string  `json:"conversation"`
	Seq          uint64  `json:"seq"`   // of the last message in the log
	Steps        int     `json:"steps"` // assistant messages, the answer among them
}

// step is what a model would return: a message, and the calls to make. A step without
// calls is the answer.
type step struct {
	says       string
	because    string
	calls      []call
	references []events.Reference
}

// Run answers one question in one turn of the recorder's conversation, and starts the
// conversation if it has no events yet.
//
// A failing tool is not an error. Run returns an error if the folder cannot be opened, the
// log does not accept an event, or ctx ends. Everything done until then is in the log, and
// an interrupted call has a result that says so.
func Run(ctx context.Context, o Options) (Answer, error) {
	if strings.TrimSpace(o.Question) == "" {
		return Answer{}, errors.New("the question is empty")
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	tools, err := openToolbox(o.Dir)
	if err != nil {
		return Answer{}, err
	}
	defer tools.close()
	if err := open(ctx, o.Recorder, tools.dir, o.Question); err != nil {
		return Answer{}, err
	}
	if _, err := o.Recorder.User(ctx, o.Question); err != nil {
		return Answer{}, err
	}

	plan := newPlanner(o.Question, tools)
	for n := 1; n <= MaxSteps; n++ {
		next := plan.next()
		seq, err := o.Recorder.Assistant(ctx, next.says, next.because, next.references...)
		if err != nil {
			return Answer{}, err
		}
		if len(next.calls) == 0 {
			return Answer{Text: next.says, Places: plan.places, Conversation: o.Recorder.Conversation, Seq: seq, Steps: n}, nil
		}
		o.Progress(next.says)
		for _, c := range next.calls {
			result, failure, err := perform(ctx, o, tools, c)
			if err != nil {
				return Answer{}, err
			}
			plan.saw(c, result, failure)
		}
	}
	return Answer{}, fmt.Errorf("no answer after %d steps", MaxSteps)
}

// open describes a conversation that has no events yet.
func open(ctx context.Context, r *Recorder, dir, question string) error {
	last, err := r.Last(ctx)
	if err != nil || last > 0 {
		return err
	}
	_, err = r.Started(ctx, events.ConversationStarted{Title: question, Agent: "scout", Cwd: dir})
	return err
}

// perform makes one call between its two events. It records the result even if ctx has
// ended in between, because every recorded call should have one.
func perform(ctx context.Context, o Options, tools *toolbox, c call) (result any, failure, err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	id := ulid.Make().String()
	if _, err := o.Recorder.Call(ctx, id, c.tool(), c); err != nil {
		return nil, nil, err
	}
	start := time.Now()
	result, failure = tools.do(ctx, c)
	took := time.Since(start)
	if _, err := o.Recorder.Return(context.WithoutCancel(ctx), id, result, failure, took); err != nil {
		return nil, nil, err
	}
	o.Progress(fmt.Sprintf("  %s → %s, %s", c, outcome(result, failure), max(took.Round(time.Millisecond), time.Millisecond)))
	return result, failure, nil
}
