package transcript

import (
	"cmp"
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"

	"mneme.dev/mneme/events"
)

const (
	kimiFormat = "kimi-code"
	kimiPrefix = "kimi_code:"
	// kimiMain is the folder of a session's agent that talks with the user. The other folders are those of its subagents.
	kimiMain = "main"
	kimiFile = "wire.jsonl"
)

// kimiLine is a line of an agent of Kimi Code: a change of what the model sees, or something else that happened. Each type
// of line uses some of the members.
type kimiLine struct {
	Type        text  `json:"type"`
	Time        int64 `json:"time"`
	Environment struct {
		Cwd text `json:"cwd"`
	} `json:"environmentDisclosure"`
	Cwd   text `json:"cwd"`   // of a config.update
	Model text `json:"model"` // of an llm.request or a usage.record
	Usage *struct {
		Input      int64 `json:"inputOther"`
		Output     int64 `json:"output"`
		CacheRead  int64 `json:"inputCacheRead"`
		CacheWrite int64 `json:"inputCacheCreation"`
	} `json:"usage"` // of a usage.record, which precedes the answer
	Message struct {
		ID     text       `json:"id"`
		Role   text       `json:"role"`
		Text   codexTexts `json:"content"`
		Origin struct {
			Kind text `json:"kind"`
			Name text `json:"name"`
		} `json:"origin"`
	} `json:"message"`
	Event          kimiEvent       `json:"event"`
	Summary        json.RawMessage `json:"summary"` // a text, or a message
	ContextSummary text            `json:"contextSummary"`
	Protocol       text            `json:"protocol_version"`
}

// kimiEvent is a part of a step, which is one answer of the model and its calls.
type kimiEvent struct {
	Type   text `json:"type"`
	UUID   text `json:"uuid"` // of the step at its begin and end
	Step   text `json:"stepUuid"`
	CallID text `json:"toolCallId"`
	Name   text `json:"name"`
	Part   struct {
		Type  text `json:"type"`
		Text  text `json:"text"`
		Think text `json:"think"`
	} `json:"part"`
	Args   json.RawMessage `json:"args"`
	Result struct {
		Output     codexTexts `json:"output"`
		IsError    bool       `json:"isError"`
		DurationMS *float64   `json:"durationMs"`
	} `json:"result"`
}

// kimi turns what an agent of a session recorded into items. The folders name the session and the agent:
// <session>/agents/<agent>/wire.jsonl.
type kimi struct {
	talk
	version   string
	places    places
	model     string
	requested bool            // model is that of a request: older versions record none, only the name that the user gave the model
	usage     json.RawMessage // of the answer that comes next
	answer    *kimiAnswer     // that may go on, nil if there is none
	step      string          // whose answer was added last
	answers   int             // of this step
}

// kimiAnswer is what the model has said in a step so far.
type kimiAnswer struct {
	step, at      string
	said, thought []string
	bytes         int
}

func newKimi(name string) converter {
	k := &kimi{talk: talk{source: "import/kimi_code", scoped: true, start: events.ConversationStarted{Agent: "Kimi Code"}}}
	agent, session := folderOf(name, 1), folderOf(name, 3)
	if folderOf(name, 2) == "agents" && session != "" {
		k.id = kimiPrefix + session
		if agent != kimiMain {
			k.id += ":" + agent
		}
	}
	return k
}

// isKimi recognizes the first line of a file. What the other lines have in common, other formats have too.
func isKimi(p *probe) bool {
	return !p.list && p.Type == "metadata" && p.Protocol != "" && p.base() == kimiFile
}

// end adds the answer whose step may go on.
func (k *kimi) end(out *batch) {
	from := len(out.items)
	k.finish(out)
	out.open(from, false)
}

func (k *kimi) value(out *batch, raw []byte) error {
	var l kimiLine
	if err := json.Unmarshal(raw, &l); err != nil {
		return err
	}
	if k.id == "" {
		return errors.New("the path does not name the session: it must end in <session>/agents/<agent>/" + kimiFile)
	}
	at := milliseconds(l.Time)
	place := k.id + ":" + k.places.at(out.line, string(l.Message.ID))
	switch l.Type {
	case "metadata":
		k.version = string(l.Protocol)
	case "profile.bind", "config.update": // the second one in older versions, which write it for other changes too
		if !k.started {
			k.start.Cwd = string(cmp.Or(l.Environment.Cwd, l.Cwd, text(k.start.Cwd)))
		}
	case "llm.request":
		k.model, k.requested = string(l.Model), true
	case "usage.record":
		if k.usage = l.usage(); !k.requested {
			k.model = string(l.Model)
		}
	case "context.append_message":
		k.finish(out)
		if l.Message.Origin.Kind != "injection" { // a reminder of the date, or of a mode
			k.message(out, place, at, &l)
		}
	case "context.append_loop_event":
		return k.part(out, at, &l.Event)
	case "context.apply_compaction":
		k.finish(out)
		if summary := l.summary(); summary != "" {
			k.say(out, place, at, &events.MessageCreated{Role: "system", Content: summary, Origin: originCompaction})
		}
	case "turn.ended", "turn.prompt":
		k.finish(out)
	case "":
		return errors.New("type: is missing")
	default:
		if kind, _, _ := strings.Cut(string(l.Type), "."); !kimiIgnored[kind] {
			out.skip(kimiFormat, k.version, string(l.Type))
		}
	}
	return nil
}

// kimiIgnored are the first words of the types of lines that are not part of the conversation, or repeat it.
var kimiIgnored = map[string]bool{
	"agent": true, "background": true, "micro_compaction": true, "runtime": true, "permission": true, "plugin": true, "llm": true, "token_counting": true, "prompt": true,
	"turn": true, "context": true, "tools": true, "full_compaction": true, "compaction": true, "config": true, "cron": true, "file_history": true,
	"forked": true, "goal": true, "hook": true, "interaction": true, "mcp": true, "plan": true, "plan_mode": true, "plugin_command": true,
	"session": true, "shell": true, "skill": true, "subagent": true, "swarm_mode": true, "task": true, "tool": true, "tower": true,
	"tower_mode": true, "error": true, "warning": true, "event": true,
}

// kimiHook matches what Kimi Code puts around the text of one hook.
var kimiHook = regexp.MustCompile(`(?s)^<hook_result hook_event="[A-Za-z]*">\n(.*)\n</hook_result>$`)

// kimiSaid are the kinds of messages that the user caused, though a program wrote them.
var kimiSaid = map[text]bool{"skill_activation": true, "plugin_command": true, "shell_command": true}

// message adds a message that is no answer of the model.
func (k *kimi) message(out *batch, id, at string, l *kimiLine) {
	m := &events.MessageCreated{Role: string(cmp.Or(l.Message.Role, "user")), Content: l.Message.Text.join()}
	switch kind := l.Message.Origin.Kind; {
	case kind == "" || kind == "user" || kind == "system_trigger" && l.Message.Origin.Name == "subagent":
	case kind == "compaction_summary":
		m.Role, m.Origin = "system", originCompaction
	case kimiSaid[kind]:
		m.Origin = originMeta
	default: // what a hook said, the end of a task
		m.Role, m.Origin = "system", originMeta
		if text := kimiHook.FindStringSubmatch(m.Content); text != nil {
			m.Content = text[1]
		}
	}
	k.say(out, id, at, m)
}

// part takes a part of a step. The answer is complete when a tool is called, or the step ends.
func (k *kimi) part(out *batch, at string, e *kimiEvent) error {
	step := string(e.Step)
	switch e.Type {
	case "content.part":
		if k.answer == nil || k.answer.step != step || k.answer.bytes > MaxLineBytes/4 {
			k.finish(out)
			k.answer = &kimiAnswer{step: step}
		}
		k.answer.at = at
		k.answer.add(string(e.Part.Type), string(e.Part.Text), string(e.Part.Think))
	case "tool.call":
		if e.CallID == "" {
			return errors.New("event.toolCallId: is missing")
		}
		if k.answer == nil && k.step != step {
			k.answer = &kimiAnswer{step: step, at: at}
		}
		k.finish(out)
		k.call(out, string(e.CallID), at, k.id+":"+step, string(cmp.Or(e.Name, "unknown")), e.Args)
	case "tool.result":
		if e.CallID == "" {
			return errors.New("event.toolCallId: is missing")
		}
		k.returned(out, at, e)
	case "step.begin", "step.end":
		k.finish(out)
	case "":
		return errors.New("event.type: is missing")
	default:
		out.skip(kimiFormat, k.version, string(e.Type))
	}
	return nil
}

func (a *kimiAnswer) add(kind, said, thought string) {
	a.bytes += len(said) + len(thought) + len(kind)
	switch {
	case kind == "text":
		a.said = append(a.said, said)
	case kind != "think":
		a.said = append(a.said, "["+kind+"]")
	case thought != "": // else it is encrypted
		a.thought = append(a.thought, thought)
	}
}

// finish adds the answer that the model has given, if there is one. What it says in the same step after a call has an id of
// its own.
func (k *kimi) finish(out *batch) {
	a := k.answer
	if a == nil {
		return
	}
	if a.step != k.step {
		k.answers = 0
	}
	k.answers++
	id := k.id + ":" + a.step
	if k.answers > 1 {
		id += ":" + strconv.Itoa(k.answers)
	}
	k.say(out, id, a.at, &events.MessageCreated{
		Role: "assistant", Content: strings.Join(a.said, "\n"), Reasoning: strings.Join(a.thought, "\n"), Model: k.model, Usage: k.usage,
	})
	k.answer, k.step, k.usage = nil, a.step, nil
}

// returned adds the result of a call.
func (k *kimi) returned(out *batch, at string, e *kimiEvent) {
	k.answerAfter(out, string(e.CallID), at, e.Result.Output.join(), new(!e.Result.IsError), e.Result.DurationMS)
}

// usage returns the counts of tokens under the names that pi gives them, which are known.
func (l *kimiLine) usage() json.RawMessage {
	if l.Usage == nil {
		return nil
	}
	usage, _ := json.Marshal(map[string]int64{ // numbers alone
		"input": l.Usage.Input, "output": l.Usage.Output, "cacheRead": l.Usage.CacheRead, "cacheWrite": l.Usage.CacheWrite,
	})
	return usage
}

// summary returns the text that has replaced the beginning of the context.
func (l *kimiLine) summary() string {
	var message struct {
		Text codexTexts `json:"content"`
	}
	var summary text
	if isObject(l.Summary) {
		_ = json.Unmarshal(l.Summary, &message)
		summary = text(message.Text.join())
	} else if given(l.Summary) != nil {
		_ = json.Unmarshal(l.Summary, &summary)
	}
	return string(cmp.Or(summary, l.ContextSummary))
}
