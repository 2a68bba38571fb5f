package erasure

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/project"
	"mneme.dev/mneme/pkg/summary"
)

// ErrNothing means that a scope holds no conversation.
var ErrNothing = errors.New("there is nothing to erase")

// Scope says what to erase: exactly one of Conversation, Project, All and Before.
type Scope struct {
	Tenant       string    `json:"tenant"`
	Conversation string    `json:"conversation,omitempty"`
	Project      string    `json:"project,omitempty"`
	All          bool      `json:"all,omitempty"`       // the whole tenant
	Before       time.Time `json:"before,omitzero"`     // conversations without an event since
	Retention    bool      `json:"retention,omitempty"` // asked for by the setting, with Before
}

// Check returns why the scope is invalid.
func (s Scope) Check() error {
	chosen := 0
	for _, is := range []bool{s.Conversation != "", s.Project != "", s.All, !s.Before.IsZero()} {
		if is {
			chosen++
		}
	}
	if chosen != 1 || s.Tenant == "" {
		return errors.New("name a tenant and exactly one of conversation, project, all and before")
	}
	return nil
}

// Found is a conversation of a scope.
type Found struct {
	ID     string
	Events uint64 // that the log holds, except for the tombstone of an earlier erasure
}

// Find lists the conversations of a scope, sorted: those that the log holds, deleted ones included. It leaves out
// conversations of which an earlier erasure left only the tombstone, unless the scope names them.
//
// For a project it finds the conversations that belong to it now, the deleted ones that would, its memory and the index of
// its code. With a conversation it finds the chapters of stories that cover it.
func (s Scope) Find(ctx context.Context, log *eventlog.Log, g graph.Reader, r project.Reader) ([]Found, error) {
	list, err := s.find(ctx, log, g, r)
	if err != nil || len(list) == 0 || s.All {
		return list, err
	}
	return s.withChapters(ctx, log, list)
}

// withChapters adds the chapters that cover a conversation in the list, deleted chapters included. It reads from the
// log which conversations a chapter covers.
func (s Scope) withChapters(ctx context.Context, log *eventlog.Log, list []Found) ([]Found, error) {
	erased := map[string]bool{}
	for _, f := range list {
		erased[f.ID] = true
	}
	chapters, err := log.WithKind(ctx, s.Tenant, kindStory)
	if err != nil {
		return nil, err
	}
	for _, id := range chapters {
		m, err := log.LastOfKind(ctx, s.Tenant, id, kindStory)
		if errors.Is(err, eventlog.ErrNotFound) || erased[id] {
			continue
		}
		if err != nil {
			return nil, err
		}
		e, _, err := m.Decode()
		chapter, ok := e.Payload.(*events.StoryWritten)
		if err != nil || !ok || !slices.ContainsFunc(chapter.Told, func(t events.Told) bool { return erased[t.ID] }) {
			continue
		}
		n, err := s.count(ctx, log, id)
		if err != nil {
			return nil, err
		}
		list = append(list, Found{id, n})
	}
	slices.SortFunc(list, func(a, b Found) int { return strings.Compare(a.ID, b.ID) })
	return list, nil
}

// count counts the events of a conversation that the log holds, except for tombstones of erasures.
func (s Scope) count(ctx context.Context, log *eventlog.Log, id string) (n uint64, err error) {
	state, err := log.State(ctx)
	if err != nil {
		return 0, err
	}
	err = log.Conversation(ctx, s.Tenant, id, state.Head, func(m eventlog.Message) error {
		if !isTombstone(&m) {
			n++
		}
		return nil
	})
	return n, err
}

func (s Scope) find(ctx context.Context, log *eventlog.Log, g graph.Reader, r project.Reader) ([]Found, error) {
	if s.Conversation != "" {
		return s.one(ctx, log, g)
	}
	held, err := log.Held(ctx, s.Tenant)
	if err != nil {
		return nil, err
	}
	living := map[string]bool{} // whether they belong to the scope
	var p project.Project
	if s.Project != "" {
		if p, err = project.Find(ctx, r, s.Tenant, s.Project, graph.Latest); err != nil {
			return nil, err
		}
	}
	if !s.All {
		if living, err = s.living(ctx, log, held, g, r, p); err != nil {
			return nil, err
		}
	}
	own := map[string]bool{} // what belongs to the project by its name
	for _, name := range p.Names {
		own[project.Conversation(events.CodePrefix, name)] = true
		own[project.Conversation(events.MemoryPrefix, name)] = true
		own[project.Conversation(events.NotesPrefix, name)] = true
	}
	var list []Found
	for _, id := range slices.Sorted(maps.Keys(held)) {
		total := uint64(0)
		for _, n := range held[id] {
			total += n
		}
		if total == held[id][kindDeleted] {
			if total, err = withoutTombstone(ctx, log, s.Tenant, id, total); err != nil {
				return nil, err
			}
		}
		belongs := s.All || own[id]
		in, lives := living[id]
		switch {
		case belongs || total == 0 || !s.Before.IsZero() && ageless(id) && held[id][kindDeleted] == 0:
		case lives:
			belongs = in
		default:
			if belongs, err = s.held(ctx, log, r, p, id, held[id]); err != nil {
				return nil, err
			}
		}
		if belongs && total > 0 {
			list = append(list, Found{id, total})
		}
	}
	return list, nil
}

// ageless reports whether a conversation holds the memory, the notes or the code of a project: what nobody has changed for
// years still counts.
func ageless(id string) bool {
	return strings.HasPrefix(id, events.CodePrefix) || strings.HasPrefix(id, events.MemoryPrefix) || strings.HasPrefix(id, events.NotesPrefix)
}

// one finds the conversation that the scope names, even if only a read model holds it.
func (s Scope) one(ctx context.Context, log *eventlog.Log, g graph.Reader) ([]Found, error) {
	n, err := s.count(ctx, log, s.Conversation)
	if err != nil {
		return nil, err
	}
	last, _, err := log.Last(ctx, s.Tenant, s.Conversation)
	if err != nil {
		return nil, err
	}
	if last == 0 {
		_, err = g.Conversation(ctx, events.ConversationID{Tenant: s.Tenant, ID: s.Conversation}, graph.Latest)
		if errors.Is(err, graph.ErrNotFound) {
			return nil, nil
		}
	}
	return []Found{{s.Conversation, n}}, err
}

// withoutTombstone counts the events of a conversation that has only deletions in the log.
func withoutTombstone(ctx context.Context, log *eventlog.Log, tenant, id string, total uint64) (uint64, error) {
	m, err := log.LastOfKind(ctx, tenant, id, kindDeleted)
	if errors.Is(err, eventlog.ErrNotFound) {
		return total, nil
	}
	if err == nil && isTombstone(&m) {
		total--
	}
	return total, err
}

// living lists the living conversations of the tenant, and whether they belong to the scope.
func (s Scope) living(ctx context.Context, log *eventlog.Log, held map[string]map[string]uint64, g graph.Reader, r project.Reader, p project.Project) (map[string]bool, error) {
	list := map[string]bool{}
	old := graph.ConversationQuery{UpdatedAt: graph.TimeRange{Before: s.Before}}
	for q := (graph.ConversationQuery{Created: true, Limit: 500}); ; {
		page, err := g.Conversations(ctx, s.Tenant, q)
		if err != nil {
			return nil, err
		}
		ids := make([]events.ConversationID, len(page.Rows))
		for i := range page.Rows {
			c := &page.Rows[i]
			ids[i], list[c.ID.ID] = c.ID, s.Project == "" && old.Matches(c)
			if s.Project == "" && (list[c.ID.ID] || c.UpdatedAt == "") {
				if list[c.ID.ID], err = s.old(ctx, log, c.ID.ID, held[c.ID.ID]); err != nil {
					return nil, err
				}
			}
		}
		if s.Project != "" {
			in, err := project.Among(ctx, r, p, ids)
			if err != nil {
				return nil, err
			}
			for i, id := range ids {
				list[id.ID] = in[i]
			}
		}
		if q.Before = page.Next; q.Before == 0 {
			return list, nil
		}
	}
}

// held reports whether a conversation that no read model lists, because it was deleted, belongs to the scope. It
// decides from the events that the log still holds.
func (s Scope) held(ctx context.Context, log *eventlog.Log, r project.Reader, p project.Project, id string, kinds map[string]uint64) (bool, error) {
	if s.Project != "" {
		m, err := log.LastOfKind(ctx, s.Tenant, id, events.Kind(events.TypeConversationStarted))
		if errors.Is(err, eventlog.ErrNotFound) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		e, _, err := m.Decode()
		began, ok := e.Payload.(*events.ConversationStarted)
		if err != nil || !ok {
			return false, nil //nolint:nilerr // an event that no read model accepts puts nothing into a project
		}
		return project.Holds(ctx, r, p, project.PlaceOf(began.Project, began.Repository, began.Cwd))
	}
	return s.old(ctx, log, id, kinds)
}

// old reports whether the newest event of a conversation is older than the scope's time. An event that has no time is as old
// as its place in the log. What mneme itself adds to a conversation says nothing about its age.
func (s Scope) old(ctx context.Context, log *eventlog.Log, id string, kinds map[string]uint64) (bool, error) {
	var newest uint64
	var at time.Time
	var hidden []string // kinds whose newest event is mneme's, which may hide newer ones than newest
	for kind := range kinds {
		if slices.Contains(added, kind) {
			continue
		}
		m, err := log.LastOfKind(ctx, s.Tenant, id, kind)
		if errors.Is(err, eventlog.ErrNotFound) || err == nil && m.Seq < newest {
			continue
		}
		if err != nil {
			return false, err
		}
		if when, ours := timeOf(m); ours {
			hidden = append(hidden, kind)
		} else {
			newest, at = m.Seq, when
		}
	}
	for _, kind := range hidden {
		for from := newest + 1; ; {
			m, err := log.NextOfKind(ctx, s.Tenant, id, kind, from)
			if errors.Is(err, eventlog.ErrNotFound) {
				break
			}
			if err != nil {
				return false, err
			}
			if when, ours := timeOf(m); !ours {
				newest, at = m.Seq, when
			}
			from = m.Seq + 1
		}
	}
	if newest == 0 {
		return false, nil
	}
	return at.Before(s.Before), nil
}

// timeOf returns the time of an event, or reports that it is of the summarizer, which writes titles too.
func timeOf(m eventlog.Message) (at time.Time, ours bool) {
	e, _, err := m.Decode()
	if err != nil || e.Time.IsZero() {
		at = m.Stored
	} else {
		at = e.Time
	}
	return at, err == nil && e.Source == summary.Source
}

// added are the kinds of events that mneme itself adds.
var added = []string{
	events.Kind(events.TypeSummaryWritten), events.Kind(events.TypeToolCondensed), events.Kind(events.TypeInsightWritten), events.Kind(events.TypeContextServed),
}

// Text describes the scope for a person.
func (s Scope) Text() string {
	switch {
	case s.Conversation != "":
		return fmt.Sprintf("conversation %s of tenant %s", s.Conversation, s.Tenant)
	case s.Project != "":
		return fmt.Sprintf("project %s of tenant %s", s.Project, s.Tenant)
	case s.All:
		return "tenant " + s.Tenant
	}
	return fmt.Sprintf("conversations of tenant %s without an event since %s", s.Tenant, s.Before.UTC().Format(time.RFC3339))
}
