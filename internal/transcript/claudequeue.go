package transcript

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/harness"
)

// claudeQueue holds the prompts that the user sends while the agent works. Each of them waits in a queue, and the
// transcript has a line for each operation:
//
//	enqueue   it waits
//	dequeue   it begins a turn, and is a line of the user then
//	remove    the agent was shown it within its turn
//	popAll    the user took all of them back
//
// A prompt that was shown within a turn is never a line of the user. Depending on the version of Claude Code it is told of
// by the remove, by an attachment, or by both in any order, and a remove names its text or the first one in the queue. A
// remove with another reason than having been shown is a prompt that the user took back.
type claudeQueue struct {
	waiting []queuedPrompt
	shown   map[string]int                // how many were shown, by the hash of their text
	told    map[carrierOfPrompt]promptSet // of which of these a carrier has yet to tell
}

// promptSet holds for the hash of a text how often a carrier has yet to tell of it, and since which message of the agent.
type promptSet map[string]struct{ count, since int }

// maxApart is how many messages of the agent may begin between the two lines that tell of a prompt. Older versions write
// one of them alone, and the same words may come again.
const maxApart = 2

type queuedPrompt struct {
	content blocks
	at      string
}

type carrierOfPrompt int

const (
	byRemove carrierOfPrompt = iota
	byAttachment
)

// maxQueued bounds the prompts that wait.
const maxQueued = 1_000

// claudeAttachment is what an attachment of type queued_command holds.
type claudeAttachment struct {
	Type      text            `json:"type"`
	Prompt    blocks          `json:"prompt"`
	Mode      text            `json:"commandMode"`
	Timestamp text            `json:"timestamp"`
	Origin    json.RawMessage `json:"origin"`
}

func newClaudeQueue() claudeQueue {
	return claudeQueue{shown: map[string]int{}, told: map[carrierOfPrompt]promptSet{byRemove: {}, byAttachment: {}}}
}

// queued takes an operation of the queue.
func (c *claudeCode) queued(out *batch, l *claudeLine) error {
	q := &c.queue
	var content blocks
	if given(l.Content) != nil && json.Unmarshal(l.Content, &content) != nil {
		content = nil
	}
	switch l.Operation {
	case "enqueue":
		if len(q.waiting) < maxQueued {
			q.waiting = append(q.waiting, queuedPrompt{content, string(l.Timestamp)})
		}
	case "dequeue":
		q.take(content)
	case "remove":
		prompt, found := q.take(content)
		prompt.at = cmp.Or(prompt.at, string(l.Timestamp))
		if found && (l.Reason == "" || l.Reason == "absorbed_mid_turn") {
			c.prompted(out, byRemove, prompt, false)
		}
	case "popAll":
		q.waiting = nil
	}
	return nil
}

// attached takes the attachment that tells of a prompt. Other attachments are what the program puts beside a prompt.
func (c *claudeCode) attached(out *batch, l *claudeLine) error {
	var a claudeAttachment
	if !bytes.Contains(l.Attachment, []byte("queued_command")) || json.Unmarshal(l.Attachment, &a) != nil || a.Type != "queued_command" { // others may be long
		return nil
	}
	content, _ := a.Prompt.text("")
	c.prompted(out, byAttachment, queuedPrompt{a.Prompt, string(cmp.Or(a.Timestamp, l.Timestamp))}, a.Mode == "task-notification" || byProgram(a.Origin, content))
	return nil
}

// take takes a prompt with this content out of the queue; without content, the first one. A prompt that was not seen
// in the queue is returned as it is.
func (q *claudeQueue) take(content blocks) (p queuedPrompt, found bool) {
	key := content.key()
	for i := range q.waiting {
		if p = q.waiting[i]; key == "" || p.content.key() == key {
			q.waiting = append(q.waiting[:i:i], q.waiting[i+1:]...)
			return p, true
		}
	}
	return queuedPrompt{content: content}, key != ""
}

// key returns what a prompt is compared by: its words, or if it has only images and the like, their types. It is "" if the
// prompt is empty.
func (bs blocks) key() string {
	var words []string
	for i := range bs {
		if bs[i].Type == "text" {
			words = append(words, bs[i].Text)
		}
	}
	said := strings.TrimSpace(strings.Join(words, "\n"))
	if said == "" {
		shown, _ := bs.text("text")
		if said = shown; said == "" {
			return ""
		}
	}
	sum := sha256.Sum256([]byte(said))
	return hex.EncodeToString(sum[:])
}

// prompted adds a prompt that the agent was shown within its turn, unless the other carrier has told of it. program says that
// no person wrote it. It has no id of its own: that is its text, and how often the session has it.
func (c *claudeCode) prompted(out *batch, by carrierOfPrompt, p queuedPrompt, program bool) {
	q, key := &c.queue, p.content.key()
	if key == "" {
		return
	}
	if due := q.told[by][key]; due.count > 0 && c.messages-due.since <= maxApart {
		due.count--
		q.told[by][key] = due
		return
	}
	due := q.told[1-by][key]
	if c.messages-due.since > maxApart {
		due.count = 0
	}
	due.count, due.since = due.count+1, c.messages
	q.told[1-by][key] = due
	q.shown[key]++
	content, _ := p.content.text("")
	c.start(out)
	sum := sha256.Sum256([]byte(strconv.Itoa(q.shown[key]) + ":" + key))
	id, l := "queued:"+hex.EncodeToString(sum[:8]), &claudeLine{Timestamp: text(p.at)}
	if program || isNotification(content) {
		c.message(out, "msg:"+id, l, &events.MessageCreated{Role: "user", Content: content, Origin: originMeta})
		return
	}
	c.asked(out, id, l, content)
}

// byProgram reports whether the origin of a prompt says that no person wrote it but, say, another session. Older versions of
// Claude Code give none. The task that the lead of a team gives is what a prompt is, whatever its origin.
func byProgram(origin json.RawMessage, prompt string) bool {
	var o struct {
		Kind text `json:"kind"`
	}
	if json.Unmarshal(or(origin, "{}"), &o) != nil {
		return false
	}
	return o.Kind != "" && o.Kind != "human" && o.Kind != "channel" && // a channel is a chat in which a person writes
		harness.Said(prompt) == prompt
}

// isNotification reports whether a text in the user's name is what the program says of a task in the background.
func isNotification(text string) bool {
	return strings.HasPrefix(strings.TrimSpace(text), "<task-notification>")
}
