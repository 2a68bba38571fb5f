package summarizer

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/summarizer/bounded"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/project"
	"mneme.dev/mneme/pkg/summary"
)

// eventStory is the id of the event that records a chapter, in the conversation of the chapter.
const eventStory = "story"

// storyOf identifies the story of a project.
type storyOf struct{ tenant, project string }

// telling is the state of a story in this process. A process examines each story once, and again whenever it has
// analysed a session of its project.
type telling struct {
	busy   bool
	again  bool // something has changed since this work began
	looked bool // nothing was due at the last look
}

// begin reports whether the caller is to examine a story. Only one caller at a time is.
func (r *Reactor) begin(of storyOf, changed bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stories[of]
	if s == nil {
		bounded.MakeRoom(r.stories, maxSeen, func(s *telling) bool { return s.busy })
		s = &telling{}
		r.stories[of] = s
	}
	if s.busy {
		s.again = s.again || changed
		return false
	}
	if s.looked && !changed && !s.again {
		return false
	}
	s.busy, s.again = true, false
	return true
}

// end ends what begin began.
func (r *Reactor) end(of storyOf, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stories[of]
	s.busy, s.looked = false, err == nil
}

// tellStory writes the chapters that are due of a project's story. changed says that a session has been analysed or
// deleted since the last call.
func (r *Reactor) tellStory(ctx context.Context, tenant, name string, profile Profile, changed bool) error {
	model, ok := profile.Model.(Analyst)
	if !ok {
		return nil
	}
	var p project.Project
	find := func() error {
		return r.projects(ctx, func(of project.Reader) (err error) {
			p, err = project.Find(ctx, of, tenant, name, graph.Latest)
			return err
		})
	}
	if err := find(); err != nil {
		return err
	}
	for of := (storyOf{tenant, p.Name}); r.begin(of, changed); changed = false {
		var err error
		last, step := "", ""
		for more := true; more && err == nil && ctx.Err() == nil; last = step {
			if err = find(); err == nil {
				step, more, err = r.nextChapter(ctx, p, model, profile.Settings.Threshold(2))
			}
			if err == nil && more && step == last { // somebody else published events that look like the summarizer's
				err = fmt.Errorf("the story of %q does not change by %s", p.Name, step)
			}
		}
		r.end(of, err)
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// nextChapter withdraws chapters that must go, or writes the next chapter. It reports whether there was something to
// do, and which chapters that was about: the same ones again would be in vain.
func (r *Reactor) nextChapter(ctx context.Context, p project.Project, model Analyst, threshold int) (step string, more bool, err error) {
	var plan project.Plan
	err = r.projects(ctx, func(of project.Reader) (err error) {
		plan, err = project.Due(ctx, of, p, threshold)
		return err
	})
	if err != nil {
		return "", false, err
	}
	step = strings.Join(plan.Withdrawn, " ")
	for _, id := range plan.Withdrawn {
		if err := r.withdraw(ctx, events.ConversationID{Tenant: p.Tenant, ID: id}); err != nil {
			return step, false, err
		}
	}
	if plan.Level == 0 {
		return step, len(plan.Withdrawn) > 0, nil
	}
	id, known, err := r.chapterID(ctx, p, &plan)
	if err != nil {
		return step, false, err
	}
	step = id.ID
	partition := r.Log.PartitionOf(id.Tenant, id.ID)
	if known != 0 { // published by another process, or by this one before it was killed
		return step, true, r.awaitProjects(ctx, partition, known)
	}
	e, err := r.made(id, eventStory, func() (e events.Event, err error) {
		chapter, err := r.writeChapter(ctx, p, &plan, model)
		if err != nil {
			return e, err
		}
		return events.New(id.ID, summary.Source, eventStory, chapter)
	})
	if err != nil {
		return step, false, err
	}
	// The model may have worked on it for minutes: a chapter must not cover sessions that were deleted in the
	// meantime.
	for _, t := range plan.Told {
		of := events.ConversationID{Tenant: p.Tenant, ID: t.ID}
		if deleted, err := r.deleted(ctx, of); err != nil || deleted > 0 {
			if err == nil {
				r.drop(id, eventStory)
				err = r.awaitProjects(ctx, r.Log.PartitionOf(of.Tenant, of.ID), deleted)
			}
			return step, true, err
		}
	}
	ack, err := r.Log.PublishAfter(ctx, p.Tenant, e, kindStory, 0)
	r.tried(id, eventStory, err)
	if isDuplicate(ack, err) {
		if ack.Seq, err = r.newest(ctx, id, kindStory); err != nil {
			return step, false, err
		}
	} else if err == nil {
		r.count(func(f *Figures) { f.Chapters++ })
	}
	if err != nil {
		return step, false, err
	}
	return step, true, r.awaitProjects(ctx, partition, ack.Seq)
}

// chapterID returns the conversation of a chapter, and the sequence of its event if it is in the log already.
func (r *Reactor) chapterID(ctx context.Context, p project.Project, plan *project.Plan) (id events.ConversationID, known uint64, err error) {
	for n := 0; ; n++ {
		id = events.ConversationID{Tenant: p.Tenant, ID: project.ChapterID(p.Name, plan.Level, plan.Told, plan.Children, n)}
		withdrawn, err := r.newest(ctx, id, kindWithdrawn)
		if err != nil {
			return id, 0, err
		}
		erased, err := r.deleted(ctx, id)
		if err != nil {
			return id, 0, err
		}
		if withdrawn == 0 && erased == 0 {
			known, err = r.newest(ctx, id, kindStory)
			return id, known, err
		}
	}
}

// writeChapter has the model write a chapter. If its answer can't be used, the chapter is written without the model,
// because a retry would cost again and fail again; if the model does not answer, the story waits.
func (r *Reactor) writeChapter(ctx context.Context, p project.Project, plan *project.Plan, model Analyst) (*events.StoryWritten, error) {
	in := summary.Input{Children: plan.Texts}
	w := summary.Written{Method: "llm", Model: model.Model(), PromptHash: model.StoryPromptHash()}
	var usage summary.Usage
	var err error
	w.Draft, usage, err = model.Tell(ctx, in)
	r.count(func(f *Figures) { f.pay(usage) })
	if errors.Is(err, summary.ErrUnusable) {
		w = summary.Written{Method: "extractive", FallbackReason: err.Error()}
		w.Draft, _, err = r.Profiles.Without.Write(ctx, in)
	}
	if err != nil {
		return nil, err
	}
	chapter := &events.StoryWritten{
		Project: p.Name, Names: plan.Names, Level: plan.Level, Told: plan.Told, Children: append([]string{}, plan.Children...), Began: plan.Began, Ended: plan.Ended,
		Conversation: w.Conversation, Actions: w.Actions, Findings: append([]string{}, w.Findings...), Topics: append([]string{}, w.Topics...),
		Method: w.Method, FallbackReason: w.FallbackReason, Model: w.Model, PromptHash: w.PromptHash, CharsIn: plan.Chars,
	}
	chapter.CharsOut = project.Chars(w.Draft)
	return chapter, nil
}

// withdraw withdraws a chapter.
func (r *Reactor) withdraw(ctx context.Context, id events.ConversationID) error {
	e, err := events.New(id.ID, summary.Source, "withdrawn", &events.StoryWithdrawn{Reason: "what it tells of was deleted, or another chapter tells of it"})
	if err != nil {
		return err
	}
	ack, err := r.Log.PublishAfter(ctx, id.Tenant, e, kindWithdrawn, 0)
	if isDuplicate(ack, err) {
		ack.Seq, err = r.newest(ctx, id, kindWithdrawn)
	}
	if err != nil {
		return fmt.Errorf("withdraw %s: %w", id.ID, err)
	}
	return r.awaitProjects(ctx, r.Log.PartitionOf(id.Tenant, id.ID), ack.Seq)
}
