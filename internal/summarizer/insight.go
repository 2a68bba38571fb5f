package summarizer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/summarizer/bounded"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/project"
	"mneme.dev/mneme/pkg/summary"
	"mneme.dev/mneme/pkg/summary/llm"
)

// Analyst is a model that says what a session was about, and tells the story of sessions.
type Analyst interface {
	Model() string
	Analyse(ctx context.Context, in summary.Input) (summary.Insight, summary.Usage, error)
	InsightPromptHash() string
	Tell(ctx context.Context, in summary.Input) (summary.Draft, summary.Usage, error)
	StoryPromptHash() string
}

// Kinds of the events that record insights and chapters.
var (
	kindInsight   = events.Kind(events.TypeInsightWritten)
	kindStory     = events.Kind(events.TypeStoryWritten)
	kindWithdrawn = events.Kind(events.TypeStoryWithdrawn)
)

const (
	// worthAnalysing is how many new characters make a session worth a call, counted as for summaries.
	worthAnalysing = summary.MinThreshold
	// maxAnalysed is how many characters that no summary covers the model reads, the newest.
	maxAnalysed = 30_000
)

// unusable is a conversation that the model could not analyse.
type unusable struct {
	chars int // of the conversation then
	err   error
}

// reflect analyses a conversation that is finished, and then writes the chapters of its project's story that are due.
// If the conversation only needs to rest longer to count as finished, it returns when to look again.
func (r *Reactor) reflect(ctx context.Context, c summary.Conversation, profile Profile) (again time.Time, err error) {
	model, ok := profile.Model.(Analyst)
	if !ok || profile.StoryAfter <= 0 || c.Chars < worthAnalysing {
		return again, nil
	}
	seq, partition, err := r.Log.Last(ctx, c.ID.Tenant, c.ID.ID)
	if err != nil {
		return again, err
	}
	last, err := r.Log.Get(ctx, seq)
	if err != nil {
		return again, err
	}
	if finished := last.Stored.Add(profile.StoryAfter); time.Now().Before(finished) {
		return finished, nil
	}
	newest, err := r.newest(ctx, c.ID, kindInsight)
	if err != nil {
		return again, err
	}
	if err := r.awaitProjects(ctx, partition, max(newest, c.LastSeq)); err != nil {
		return again, err
	}
	d, err := r.digest(ctx, c.ID)
	if err != nil || d == nil {
		return again, err
	}
	written := false
	if d.Insight == nil || c.Chars-d.Insight.Chars >= worthAnalysing {
		if written, err = r.analyse(ctx, c, profile, model, newest); err != nil {
			return again, err
		}
	}
	if d.Place.Name == "" {
		return again, nil
	}
	return again, r.tellStory(ctx, c.ID.Tenant, d.Place.Name, profile, written)
}

// digest reads what is known about a conversation in its project; nil if nothing is.
func (r *Reactor) digest(ctx context.Context, id events.ConversationID) (d *project.Digest, err error) {
	err = r.projects(ctx, func(p project.Reader) error {
		list, err := p.Digests(ctx, []events.ConversationID{id}, graph.Latest)
		if err == nil {
			d = list[0]
		}
		return err
	})
	return d, err
}

// analyse has the model read a conversation and publishes its answer. If an answer can't be used, or does not come in time
// again and again until the deadline, the model is not asked again before the conversation has grown. While the model is
// away, there is no deadline.
func (r *Reactor) analyse(ctx context.Context, c summary.Conversation, profile Profile, model Analyst, newest uint64) (written bool, err error) {
	r.mu.Lock()
	failed, ok := r.unusable[c.ID]
	r.mu.Unlock()
	if ok && c.Chars-failed.chars < worthAnalysing {
		return false, nil
	}
	eventID := fmt.Sprintf("insight/%s/%d-%d", summary.TaskSession, c.Turn, c.Chars)
	e, err := r.made(c.ID, eventID, func() (e events.Event, err error) {
		in, err := r.session(ctx, c)
		if err != nil {
			return e, err
		}
		found, usage, err := model.Analyse(ctx, in)
		r.count(func(f *Figures) { f.pay(usage) })
		if llm.IsTimeout(err) {
			if r.silentFor(c.ID) < profile.Deadline {
				return e, &silence{err, profile.Deadline}
			}
			err = fmt.Errorf("%w: for %s, %w", summary.ErrUnusable, profile.Deadline, err)
		}
		if err != nil {
			return e, err
		}
		r.answered(c.ID)
		answer, err := answerOf(found)
		if err != nil {
			return e, err
		}
		return events.New(c.ID.ID, summary.Source, eventID, &events.InsightWritten{
			Task: summary.TaskSession, Answer: answer, Turns: c.Turn, Chars: c.Chars, Model: model.Model(), PromptHash: model.InsightPromptHash(),
		})
	})
	if errors.Is(err, summary.ErrUnusable) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if _, known := r.unusable[c.ID]; !known {
			bounded.MakeRoom(r.unusable, maxSeen, nil)
		}
		r.unusable[c.ID] = unusable{c.Chars, err}
		return false, nil
	}
	if err != nil {
		return false, err
	}
	seq, err := r.publish(ctx, c.ID, e, kindInsight, newest)
	if err != nil {
		return false, ignoreConflict(err)
	}
	r.mu.Lock()
	delete(r.unusable, c.ID)
	r.figures.Insights++
	r.mu.Unlock()
	return true, r.awaitProjects(ctx, r.Log.PartitionOf(c.ID.Tenant, c.ID.ID), seq)
}

// answerOf returns an insight in the form of an event.
func answerOf(found summary.Insight) (answer map[string]json.RawMessage, err error) {
	raw, err := json.Marshal(found)
	if err == nil {
		err = json.Unmarshal(raw, &answer)
	}
	return answer, err
}

// session reads what the model is shown of a whole conversation: the summaries that no higher one consolidates, and the
// newest entries that no summary covers.
func (r *Reactor) session(ctx context.Context, c summary.Conversation) (in summary.Input, err error) {
	if err := r.awaitGraph(ctx, r.Log.PartitionOf(c.ID.Tenant, c.ID.ID), c.LastSeq); err != nil {
		return in, err
	}
	err = r.graph(ctx, func(g graph.Reader) error {
		if err := r.covered(ctx, g, c.ID, summary.Plan{First: c.Ledger.Next(1, c.FirstSeq), Last: c.LastSeq}, &in); err != nil {
			return err
		}
		list, err := g.Summaries(ctx, c.ID, graph.SummaryQuery{Frontier: true, AsOf: c.LastSeq, Limit: scanPage})
		slices.Reverse(list) // oldest first
		for _, s := range list {
			in.Children = append(in.Children, summary.Draft{Conversation: s.Conversation, Actions: s.Actions, Findings: s.Findings, Topics: s.Topics})
		}
		return err
	})
	in.Entries = newestOf(in.Entries)
	return in, err
}

// newestOf returns the newest entries of at most maxAnalysed characters, and at least one.
func newestOf(list []summary.Entry) []summary.Entry {
	total := 0
	for i := len(list) - 1; i >= 0; i-- {
		if total += utf8.RuneCountInString(list[i].Text); total > maxAnalysed && i < len(list)-1 {
			return list[i+1:]
		}
	}
	return list
}

// projects lends the read model "projects" for the duration of the call.
func (r *Reactor) projects(ctx context.Context, read func(project.Reader) error) error {
	return view.Lend(ctx, r.Views.Models.Projects, read)
}

// forget withdraws the chapters that cover a deleted conversation, and has their other sessions told again.
func (r *Reactor) forget(ctx context.Context, c summary.Conversation) error {
	if !r.Profiles.tells() {
		return nil // readers leave out such chapters anyway
	}
	if err := r.awaitProjects(ctx, r.Log.PartitionOf(c.ID.Tenant, c.ID.ID), c.LastSeq); err != nil {
		return err
	}
	names := map[string]bool{}
	err := r.projects(ctx, func(p project.Reader) error {
		list, err := project.Telling(ctx, p, c.ID, graph.Latest)
		if err != nil {
			return err
		}
		ids := make([]events.ConversationID, len(list))
		for i, id := range list {
			ids[i] = events.ConversationID{Tenant: c.ID.Tenant, ID: id}
		}
		digests, err := p.Digests(ctx, ids, graph.Latest)
		for _, d := range digests {
			if d != nil && d.Chapter != nil {
				names[d.Chapter.Project] = true
			}
		}
		return err
	})
	for name := range names {
		err = errors.Join(err, r.tellStory(ctx, c.ID.Tenant, name, r.Profiles.Default, true))
	}
	return err
}

// isDuplicate reports whether somebody else has published the same event, perhaps in other words.
func isDuplicate(ack eventlog.Ack, err error) bool {
	return err == nil && ack.Duplicate || errors.Is(err, eventlog.ErrOtherContent) || errors.Is(err, eventlog.ErrConflict)
}
