package hook

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"mneme.dev/mneme/internal/frame"
	"mneme.dev/mneme/internal/hook/ring"
	"mneme.dev/mneme/pkg/plain"
)

// Limits of what an agent is shown, in Unicode code points, the frame included.
const (
	MaxAtStart  = 8_000 // at the start of a session; agents cut at 10,000
	MaxAtPrompt = 1_500
	storyShare  = 4_000 // of MaxAtStart, after a compaction or on resume
)

// Doorbell is told that a session's transcript has grown. Ring must return at once, and must not trust the path,
// because anyone can send the event. It must ignore a path outside of the folders where the agent keeps its
// transcripts. The path is empty if the agent's hooks do not name it.
type Doorbell interface {
	Ring(tenant, agent, session, path string, turn Turn)
}

// Turn says what an event means for the turn that a transcript records.
type Turn int

// Turns.
const (
	Goes  Turn = iota // nothing is known
	Began             // it begins, or the session does
	Ended             // the agent has answered, or its session has ended; it may still write the last lines
)

// Text is a text for an agent, and the sequence of the log as of which it was made.
type Text struct {
	Text string
	Seq  uint64
}

// Passage is a message of another conversation of the project, which the search ranks high.
type Passage struct {
	Conversation string
	Seq          uint64
	Label        string   // says where it is from
	Text         string   //
	Files        []string // that were touched in its turn, or else in its conversation, the most used first
}

// Past is what can be shown.
type Past interface {
	// Project returns the context of the project that a folder belongs to, without one conversation, in at most
	// maxChars characters. The text is empty if there is no such project yet.
	Project(ctx context.Context, tenant, folder, except string, maxChars int) (Text, error)
	// Story returns what a conversation was about. It is empty if the conversation is not known yet.
	Story(ctx context.Context, tenant, conversation string, maxChars int) (Text, error)
	// Said returns the passages that fit a prompt best, the best first, none of them of the
	// conversation except or inherited by it.
	Said(ctx context.Context, tenant, folder, except, prompt string, limit int) ([]Passage, uint64, error)
}

// Desk takes the events of hooks. It is safe for concurrent use.
type Desk struct {
	doorbell Doorbell
	memory   memory
	now      func() time.Time
}

// NewDesk returns a desk. doorbell may be nil.
func NewDesk(doorbell Doorbell) *Desk { return &Desk{doorbell: doorbell, now: time.Now} }

// Fired returns the sessions of a tenant whose hooks have reached this server since it started, the newest
// first, at most 2,000 of all tenants.
func (d *Desk) Fired(tenant string) []Fired { return d.memory.list(tenant) }

// Take takes an event, rings the doorbell, and returns the text that the agent is to see, "" for none. An event that
// arrives late gets none, because its agent has continued.
func (d *Desk) Take(ctx context.Context, past Past, tenant string, a *Agent, e ring.Event, late bool) (string, error) {
	where := place{tenant, a.Name, e.Session}
	d.memory.fired(where, Fired{Agent: a.Name, Session: e.Session, Transcript: e.Transcript, Folder: e.Folder, Event: e.Name, At: d.now().UTC()})
	if d.doorbell != nil {
		session, subagent := a.turns(e, late)
		transcript := e.Transcript
		if a.apart {
			transcript = ""
		}
		if transcript != "" || e.Subagent == "" {
			d.doorbell.Ring(tenant, a.Name, e.Session, transcript, session)
		}
		if e.SubagentTranscript != "" {
			d.doorbell.Ring(tenant, a.Name, e.Session, e.SubagentTranscript, subagent)
		}
	}
	if e.Subagent != "" || e.Folder == "" {
		return "", nil
	}
	m := a.moment(e.Name, e.Source)
	d.note(where, a, e, m)
	if late {
		return "", nil
	}
	text, err := d.say(ctx, past, where, a, e, m)
	if err != nil || text.Text == "" {
		return "", err
	}
	sum := sha256.Sum256([]byte(text.Text))
	id := "hook-" + hex.EncodeToString(sum[:8])
	d.memory.spoke(where, id)
	return frame.Wrap(id, text.Seq, text.Text), nil
}

// note remembers what an event changes for the session's next ones.
func (d *Desk) note(where place, a *Agent, e ring.Event, m moment) {
	if m == compacted || m == begins && e.Source == "clear" {
		d.memory.forget(where)
	}
	if a.owes(e, m) {
		d.memory.owe(where, isAgain(e, m), true)
	}
}

// isAgain reports whether a session that begins is not new.
func isAgain(e ring.Event, m moment) bool { return m == compacted || e.Source == "resume" }

// owes reports whether the agent is to see what belongs to a start at its next prompt. No model sees a text at a compaction.
func (a *Agent) owes(e ring.Event, m moment) bool {
	return a.prompt && m == begins || m == compacted && (a.prompt || a.events[e.Name] == compacted)
}

func (d *Desk) say(ctx context.Context, past Past, where place, a *Agent, e ring.Event, m moment) (Text, error) {
	conversation := a.conversation(e.Session)
	switch m {
	case begins, compacted:
		if a.owes(e, m) {
			return Text{}, nil
		}
		if m == compacted && e.Previous != "" {
			conversation = a.conversation(e.Previous)
		}
		return d.begin(ctx, past, where.tenant, conversation, e.Folder, isAgain(e, m))
	case asks:
		again, owed := d.memory.owed(where)
		if !owed {
			return d.prompt(ctx, past, where, conversation, e)
		}
		start, err := d.begin(ctx, past, where.tenant, conversation, e.Folder, again)
		var fits Text
		if err == nil {
			fits, err = d.prompt(ctx, past, where, conversation, e)
		}
		if err != nil { // the agent sees nothing: there was no time, for instance
			d.memory.owe(where, again, false)
			return Text{}, err
		}
		return joined(start, fits), nil
	}
	return Text{}, nil
}

// joined puts two texts one after the other.
func joined(a, b Text) Text {
	parts := slices.DeleteFunc([]string{strings.TrimSpace(a.Text), strings.TrimSpace(b.Text)}, func(s string) bool { return s == "" })
	return Text{strings.Join(parts, "\n\n"), max(a.Seq, b.Seq)}
}

// begin returns what a session sees at its start.
func (d *Desk) begin(ctx context.Context, past Past, tenant, conversation, folder string, again bool) (Text, error) {
	room := MaxAtStart - frame.Room
	var story Text
	var err error
	if again {
		if story, err = past.Story(ctx, tenant, conversation, storyShare); err != nil {
			return Text{}, err
		}
		if story.Text != "" {
			room -= plain.Length(story.Text) + 2
		}
	}
	project, err := past.Project(ctx, tenant, folder, conversation, room)
	if err != nil {
		return Text{}, err
	}
	return joined(story, project), nil
}

// Limits of an answer to a prompt. Measured with `mneme bench hook`, see docs/benchmarks.md: shorter texts, more files,
// and one passage per conversation name more of the files that are then touched.
const (
	considered  = 12
	maxPassages = 3   // each of another conversation
	maxChars    = 200 // of a passage
	maxFiles    = 8   // named with a passage
)

// prompt returns what fits a prompt, or nothing if nothing fits well enough.
func (d *Desk) prompt(ctx context.Context, past Past, where place, conversation string, e ring.Event) (Text, error) {
	asked, _ := frame.Strip(e.Prompt)
	names := namesOf(asked)
	if len(names) == 0 {
		return Text{}, nil
	}
	found, seq, err := past.Said(ctx, where.tenant, e.Folder, conversation, asked, considered)
	if err != nil {
		return Text{}, err
	}
	var out strings.Builder
	out.WriteString("Earlier sessions in this project, found by names in the prompt:\n")
	told, room := map[string]bool{conversation: true}, MaxAtPrompt-frame.Room
	texts := map[string]bool{} // a session that was continued as another one repeats what was said
	for _, p := range found {
		each := passage{p.Conversation, p.Seq}
		if len(told) > maxPassages || told[p.Conversation] || texts[p.Text] || !fits(names, p) || d.memory.was(where, each) {
			continue
		}
		text := line(p, names)
		if plain.Length(out.String())+plain.Length(text) > room || !d.memory.claim(where, each) {
			continue
		}
		out.WriteString(text)
		told[p.Conversation], texts[p.Text] = true, true
	}
	if len(told) == 1 {
		return Text{}, nil
	}
	return Text{strings.TrimSpace(out.String()), seq}, nil
}

// line shows a passage, and only the part around a name if the passage is long.
func line(p Passage, names map[string]bool) string {
	text := fmt.Sprintf("- %s: %s\n", p.Label, plain.Clip(around(plain.Flat(p.Text), names), maxChars))
	var files []string
	for _, name := range p.Files[:min(len(p.Files), maxFiles)] {
		files = append(files, plain.Clip(plain.Line(name), 80))
	}
	if len(files) > 0 {
		text += "  files then: " + strings.Join(files, ", ") + "\n"
	}
	return text
}
