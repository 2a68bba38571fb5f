package mcp

import (
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/frame"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/plain"
	"mneme.dev/mneme/pkg/project"
	"mneme.dev/mneme/pkg/projection"
)

// sourceOfNotes is the CloudEvents source of notes.
const sourceOfNotes = "mneme/mcp"

type rememberArguments struct {
	Text     string   `json:"text"`
	Project  string   `json:"project"`
	Tags     []string `json:"tags"`
	Replaces string   `json:"replaces"`
}

type remembered struct {
	Ref       string `json:"ref"`
	Project   string `json:"project"`
	Seq       uint64 `json:"seq"`
	Duplicate bool   `json:"duplicate"`
}

// remember stores a note, and answers when the log has acknowledged it. The id of a note is a hash of all its content,
// so the same note is stored once, whoever sends it again. What mneme has shown to the agent is left out, as from all that
// agents record.
func (c *call) remember(ctx context.Context, in rememberArguments) (answer, error) {
	said, _ := frame.Strip(strings.ToValidUTF8(in.Text, "\uFFFD"))
	if said = strings.TrimSpace(said); said == "" {
		return answer{}, refuse("text is empty, or holds only what mneme has shown: there is nothing to remember")
	}
	if in.Project == everything {
		return answer{}, refuse("a note belongs to one project: name it")
	}
	p, err := c.find(ctx, in.Project, graph.Latest)
	if err != nil {
		return answer{}, err
	}
	if len(in.Tags) > 0 {
		said += "\n[tags: " + plain.Line(strings.Join(in.Tags, ", ")) + "]"
	}
	speaker := plain.Speaker(c.client)
	sum := events.DigestOf(p.Name, said, speaker)
	key := hex.EncodeToString(sum[:])
	id, key, known, err := c.notes(ctx, p, key, said)
	if err != nil {
		return answer{}, err
	}
	var old *events.Event
	if in.Replaces != "" {
		var refused refusal
		var hidden uint64
		old, hidden, err = c.replaced(ctx, p, in.Replaces, key, said)
		if err != nil && (known == 0 || !errors.As(err, &refused)) { // the same call again finds nothing more to replace
			return answer{}, err
		}
		if known != 0 && known <= hidden {
			key, known = keyAfter(key), 0
		}
	}
	if known != 0 {
		return noted(id, p, known, true), c.withdraw(ctx, old)
	}
	start, err := events.New(id.ID, sourceOfNotes, "start", &events.ConversationStarted{Title: "Notes", Agent: "mneme", Project: p.Name})
	if err != nil {
		return answer{}, err
	}
	message, err := events.New(id.ID, sourceOfNotes, key, &events.MessageCreated{MessageID: key, Role: "user", Content: said, Speaker: speaker, Origin: events.OriginNote})
	if err != nil {
		return answer{}, err
	}
	start.Time = time.Now().UTC()
	message.Time = start.Time
	if c.Admit != nil {
		settle, err := c.Admit(c.tenant, 2, len(start.Data)+len(message.Data))
		if err != nil {
			return answer{}, err
		}
		defer settle()
	}
	acks, err := c.Log.PublishAll(ctx, c.tenant, []events.Event{start, message})
	if err != nil {
		return answer{}, err
	}
	last := acks[len(acks)-1]
	return noted(id, p, last.Seq, last.Duplicate), c.withdraw(ctx, old)
}

func noted(id events.ConversationID, p project.Project, seq uint64, duplicate bool) answer {
	return answer{value: remembered{Ref: refTo(id.ID, seq), Project: plain.Clip(plain.Line(p.Name), headProject), Seq: seq, Duplicate: duplicate}, bare: true}
}

// notes returns the conversation that takes a note now, and the sequence of the note if the read model has it there, else 0.
// Nothing is read of a deleted conversation, so notes go on in another one: see [project.Again]. A note that was withdrawn, or
// that says the same as a line that was, gets another key, so that it can be remembered again.
func (c *call) notes(ctx context.Context, p project.Project, first, said string) (id events.ConversationID, key string, seq uint64, err error) {
	g, _, err := c.pins.Graph(ctx)
	if err != nil {
		return id, first, 0, err
	}
	key = first
	for n := 1; ; {
		id = events.ConversationID{Tenant: c.tenant, ID: project.Conversation(events.NotesPrefix, project.Again(p.Name, n))}
		e := events.Event{Subject: id.ID, Source: sourceOfNotes, ID: key}
		held, err := g.Holders(ctx, []projection.Claim{{Conversation: id, Key: e.Identity(id.Tenant)}})
		if err != nil {
			return id, key, 0, err
		}
		holder, ok := held[0]
		deleted := ok && holder.Content.IsZero()
		if !deleted {
			if deleted, err = c.deleted(ctx, id); err != nil {
				return id, key, 0, err
			}
		}
		if deleted {
			n++
			continue
		}
		if !ok {
			return id, key, 0, nil
		}
		if withdrawn, err := c.withdrawn(ctx, p, id, key, said, holder.Seq); err != nil || !withdrawn {
			return id, key, holder.Seq, err
		}
		key = keyAfter(key)
	}
}

// keyAfter returns the key of a note that says the same as the note with this key, which is no longer shown.
func keyAfter(key string) string {
	sum := events.DigestOf(key)
	return hex.EncodeToString(sum[:])
}

// withdrawn reports whether a note was withdrawn, by this server or by an event that another producer published, or a line
// that says the same was withdrawn after the note's sequence.
func (c *call) withdrawn(ctx context.Context, p project.Project, id events.ConversationID, key, said string, seq uint64) (bool, error) {
	r, _, err := c.pins.Projects(ctx)
	if err != nil {
		return false, err
	}
	gone, err := project.ForgottenIn(ctx, r, p)
	if err != nil || gone.Hides(project.NoteLine(said), seq) {
		return err == nil, err
	}
	digests, err := r.Digests(ctx, []events.ConversationID{id}, graph.Latest)
	if err != nil {
		return false, err
	}
	if d := digests[0]; d != nil && d.Withdrew(sourceOfNotes, key) {
		return true, nil
	}
	e, err := project.NewWithdrawal(id.ID, sourceOfNotes, key, "")
	if err != nil {
		return false, err
	}
	at, err := project.WithdrawnAt(ctx, r, id, &e) // the digest knows only the newest
	return at != 0, err
}

// replaced makes the event that withdraws the line that a note replaces. It makes none for the note itself, whose key is given,
// and none for a line that says the same as the note: the newest is shown, and a withdrawal would hide both. If only one of
// several lines says the same, hidden is the last sequence at which the withdrawal hides it, also as a note: see
// [project.Forgotten].
func (c *call) replaced(ctx context.Context, p project.Project, ref, key, said string) (e *events.Event, hidden uint64, err error) {
	conversation, kind, n, err := parseRef(ref)
	if err != nil {
		return nil, 0, refuse("replaces is not the name of a line: give it as memory_context shows it, such as [ID, turn 7]")
	}
	if conversation, err = c.namedBy(ctx, conversation, func() (project.Project, error) { return p, nil }); err != nil {
		return nil, 0, err
	}
	r, _, err := c.pins.Projects(ctx)
	if err != nil {
		return nil, 0, err
	}
	id := events.ConversationID{Tenant: c.tenant, ID: conversation}
	digests, err := r.Digests(ctx, []events.ConversationID{id}, graph.Latest)
	if err != nil {
		return nil, 0, err
	}
	var of uint64
	var lines, texts []string
	if d := digests[0]; d != nil && slices.Contains(p.Names, d.Place.Name) {
		for _, l := range d.Lessons() {
			if kind == "turn" && uint64(l.Turn) == n || kind == "seq" && l.Seq == n {
				if l.Seq != of {
					lines = append(lines, refTo(conversation, l.Seq)+" ("+plain.Clip(l.Text, 60)+")")
				}
				of, texts = l.Seq, append(texts, l.Text)
			}
		}
	}
	switch {
	case len(lines) == 0:
		return nil, 0, refuse("%s taught this project nothing that is shown: leave replaces out, or name a line of What Was Learnt in memory_context", plain.Clip(plain.Line(ref), 120))
	case len(lines) > 1:
		return nil, 0, refuse("%s taught several lines: name one with replaces: %s", plain.Clip(plain.Line(ref), 120), strings.Join(lines, ", "))
	}
	if slices.ContainsFunc(texts, func(line string) bool { return project.SameLine(line, project.NoteLine(said)) }) {
		if len(texts) == 1 {
			return nil, 0, nil
		}
		hidden = of
	}
	stored, err := c.Log.Get(ctx, of)
	if err != nil {
		return nil, 0, err
	}
	taught, _, err := stored.Decode()
	if err != nil {
		return nil, 0, err
	}
	if taught.Source == sourceOfNotes && taught.ID == key {
		return nil, 0, nil // it is the note itself
	}
	withdrawal, err := project.NewWithdrawal(conversation, taught.Source, taught.ID, "replaced by a note")
	return &withdrawal, hidden, err
}

// withdraw stores a withdrawal, if there is one.
func (c *call) withdraw(ctx context.Context, e *events.Event) error {
	if e == nil {
		return nil
	}
	e.Time = time.Now().UTC()
	if c.Admit != nil {
		settle, err := c.Admit(c.tenant, 1, len(e.Data))
		if err != nil {
			return err
		}
		defer settle()
	}
	_, err := c.Log.Publish(ctx, c.tenant, *e)
	return err
}

// deleted reports whether a conversation was deleted. It asks the log, because the read model may not have applied that yet,
// and a note that is acknowledged must not be lost.
func (c *call) deleted(ctx context.Context, id events.ConversationID) (bool, error) {
	m, err := c.Log.LastOfKind(ctx, id.Tenant, id.ID, events.Kind(events.TypeConversationDeleted))
	if errors.Is(err, eventlog.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, _, invalid := m.Decode() // anyone may publish under this subject
	return invalid == nil, nil
}
