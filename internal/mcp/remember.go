package mcp

import (
	"context"
	"encoding/hex"
	"errors"
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
	Text    string   `json:"text"`
	Project string   `json:"project"`
	Tags    []string `json:"tags"`
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
	id, ack, err := c.notes(ctx, p, key)
	if err != nil || ack != 0 {
		return noted(id, p, ack, true), err
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
	return noted(id, p, last.Seq, last.Duplicate), nil
}

func noted(id events.ConversationID, p project.Project, seq uint64, duplicate bool) answer {
	return answer{value: remembered{Ref: refTo(id.ID, seq), Project: plain.Clip(plain.Line(p.Name), headProject), Seq: seq, Duplicate: duplicate}, bare: true}
}

// notes returns the conversation that takes a note now, and the sequence of the note if the read model has it there, else 0.
// Nothing is read of a deleted conversation, so notes go on in another one: see [project.Again].
func (c *call) notes(ctx context.Context, p project.Project, key string) (id events.ConversationID, seq uint64, err error) {
	g, _, err := c.pins.Graph(ctx)
	if err != nil {
		return id, 0, err
	}
	for n := 1; ; n++ {
		id = events.ConversationID{Tenant: c.tenant, ID: project.Conversation(events.NotesPrefix, project.Again(p.Name, n))}
		e := events.Event{Subject: id.ID, Source: sourceOfNotes, ID: key}
		held, err := g.Holders(ctx, []projection.Claim{{Conversation: id, Key: e.Identity(id.Tenant)}})
		if err != nil {
			return id, 0, err
		}
		holder, ok := held[0]
		if ok && holder.Content.IsZero() {
			continue
		}
		if deleted, err := c.deleted(ctx, id); err != nil || !deleted {
			return id, holder.Seq, err
		}
	}
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
