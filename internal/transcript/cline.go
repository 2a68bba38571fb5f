package transcript

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"mneme.dev/mneme/events"
)

const (
	clineFormat   = "cline"
	clineHistory  = "api_conversation_history.json"
	clineMessages = ".messages.json"
)

// clineFamily are the agents that record like Cline, by the extension whose folder holds the tasks.
var clineFamily = []struct{ folder, prefix, agent string }{
	{"rooveterinaryinc.roo-cline", "roo", "Roo Code"},
	{"kilocode.kilo-code", "kilo", "Kilo Code"},
	{"saoudrizwan.claude-dev", "cline", "Cline"}, // and any other folder
}

// clineSession is what newer versions of Cline write. Older ones, Roo and Kilo Code write the list alone.
type clineSession struct {
	SessionID    text              `json:"sessionId"`
	SystemPrompt text              `json:"system_prompt"`
	Messages     []json.RawMessage `json:"messages"`
}

type clineMessage struct {
	ID        text        `json:"id"`
	Role      text        `json:"role"`
	Content   clineBlocks `json:"content"`
	TS        json.Number `json:"ts"`
	ModelInfo struct {
		ModelID text `json:"modelId"`
		ID      text `json:"id"` // newer versions
	} `json:"modelInfo"`
	Metrics            json.RawMessage `json:"metrics"`
	IsSummary          bool            `json:"isSummary"`
	IsTruncationMarker bool            `json:"isTruncationMarker"`
	Metadata           struct {
		Kind text `json:"kind"`
	} `json:"metadata"`
}

// clineUsageOf returns the counts of tokens in the metrics of a message. Older versions have them in an object.
func clineUsageOf(metrics json.RawMessage) json.RawMessage {
	var older struct {
		Tokens json.RawMessage `json:"tokens"`
	}
	if json.Unmarshal(or(metrics, "{}"), &older) == nil && given(older.Tokens) != nil {
		return older.Tokens
	}
	return inclusiveUsage(metrics)
}

// inclusiveUsage takes counts whose input includes what is in the cache, and returns them under names that say what each one counts.
func inclusiveUsage(raw json.RawMessage) json.RawMessage {
	var m struct {
		Input      *int64 `json:"inputTokens"`
		Output     int64  `json:"outputTokens"`
		CacheRead  int64  `json:"cacheReadTokens"`
		CacheWrite int64  `json:"cacheWriteTokens"`
	}
	if json.Unmarshal(or(raw, "{}"), &m) != nil || m.Input == nil {
		return nil
	}
	usage, _ := json.Marshal(map[string]int64{ // numbers alone, under the names that pi gives them, which are known
		"input": max(0, *m.Input-m.CacheRead-m.CacheWrite), "output": m.Output, "cacheRead": m.CacheRead, "cacheWrite": m.CacheWrite,
	})
	return usage
}

// clineBlocks is the content of a message, and its JSON.
type clineBlocks struct {
	blocks
	raw json.RawMessage
}

func (c *clineBlocks) UnmarshalJSON(raw []byte) error {
	c.raw = append(json.RawMessage{}, raw...)
	return c.blocks.UnmarshalJSON(raw)
}

// cline turns a task into items.
//
// A file is rewritten as a whole, and messages are taken out of its middle when the model's context is full. So the id
// of a message that has none itself is neither its place nor a chain of hashes: it is a hash of its time and content,
// with a number if the file holds the same again.
type cline struct {
	talk
	prefix string
	folder string // that the system prompt names
	seen   map[string]int
}

func newCline(name string) converter {
	c := &cline{talk: talk{scoped: true}, seen: map[string]int{}}
	for _, f := range clineFamily {
		c.prefix, c.start.Agent = f.prefix, f.agent
		if strings.Contains(name, f.folder) {
			break
		}
	}
	c.source = "import/" + c.prefix
	task := folderOf(name, 1)
	if stem, ok := strings.CutSuffix(strings.TrimSuffix(folderOf(name, 0), ".gz"), clineMessages); ok {
		task = stem
	}
	if task != "" {
		c.id = c.prefix + ":" + task
	}
	if ms, err := strconv.ParseInt(task, 10, 64); err == nil && len(task) == len("1700000000000") {
		c.began = milliseconds(ms)
	}
	return c
}

func (c *cline) value(out *batch, raw []byte) error {
	var s clineSession
	var err error
	if raw[0] == '[' {
		err = json.Unmarshal(raw, &s.Messages)
	} else {
		err = json.Unmarshal(raw, &s)
	}
	switch {
	case err != nil:
		return err
	case s.SessionID != "":
		c.id = c.prefix + ":" + string(s.SessionID)
	case c.id == "":
		return errors.New("neither the folder nor the file names the task: keep the name of its folder")
	}
	c.folder = folderIn(string(s.SystemPrompt), clineWorkingDirectory)
	eachPart(out, "messages", s.Messages, func(i int, m *clineMessage) error {
		first := len(out.items)
		c.message(out, m)
		if i == len(s.Messages)-1 {
			out.open(first, false) // it may still be written
		}
		return nil
	})
	return nil
}

// idOf returns the id of a message.
func (c *cline) idOf(m *clineMessage) string {
	if m.ID != "" {
		return c.id + ":" + string(m.ID)
	}
	sum := sha256.New()
	for _, part := range []string{string(m.TS), string(m.Role), string(plain(m.Content.raw))} {
		sum.Write([]byte(part))
		sum.Write([]byte{0})
	}
	id := c.id + ":" + hex.EncodeToString(sum.Sum(nil)[:12])
	c.seen[id]++
	if n := c.seen[id]; n > 1 {
		return id + ":" + strconv.Itoa(n)
	}
	return id
}

func (c *cline) message(out *batch, m *clineMessage) {
	id := c.idOf(m)
	ts, _ := m.TS.Int64()
	at := milliseconds(ts)
	switch {
	case m.IsTruncationMarker:
	case m.IsSummary, m.Metadata.Kind == "compaction_summary":
		content, _ := m.Content.text("")
		c.say(out, id, at, &events.MessageCreated{Role: "system", Content: content, Origin: originCompaction})
	case m.Role == "user":
		if !c.started {
			c.start.Cwd = cmp.Or(clineFolder(m.Content.blocks), c.folder)
		}
		c.results(out, at, m.Content)
		if content, origin, any := clinePrompt(m.Content.blocks); any {
			m := &events.MessageCreated{Role: "user", Content: content, Origin: origin}
			if origin != "" { // it begins no turn
				m.Role = "system"
			}
			c.say(out, id, at, m)
		}
	case m.Role == "assistant":
		said := &events.MessageCreated{Role: "assistant", Model: string(cmp.Or(m.ModelInfo.ModelID, m.ModelInfo.ID)), Usage: clineUsageOf(m.Metrics)}
		c.answered(out, id, at, said, m.Content.blocks)
	default:
		out.skip(clineFormat, "", messageOf(string(m.Role)))
	}
}

// results adds the results in a user's message.
func (c *cline) results(out *batch, at string, content clineBlocks) {
	var raws []struct {
		Content json.RawMessage `json:"content"`
	}
	_ = json.Unmarshal(content.raw, &raws) // a text has none
	for i := range content.blocks {
		b := &content.blocks[i]
		if b.Type != "tool_result" || b.ToolUseID == "" {
			continue
		}
		result, _ := b.Content.text("")
		fine := b.IsError != "true"
		success := &fine
		if i < len(raws) && fine {
			if said, succeeded, ok := clineOutcomes(raws[i].Content); ok {
				result, success = said, succeeded
			}
		}
		c.answer(out, b.ToolUseID, at, result, success)
	}
}

// clineOutcome is what a command, a file or a search of a call has brought. Newer versions of Cline return a list of them,
// or a single one as JSON in a text.
type clineOutcome struct {
	Query   text  `json:"query"`
	Result  *text `json:"result"`
	Error   text  `json:"error"`
	Success *bool `json:"success"`
}

// clineOutcomes returns the outcomes in a result as one text, and whether they succeeded, nil if only some did. ok is
// false if the result is none of them.
func clineOutcomes(raw json.RawMessage) (said string, success *bool, ok bool) {
	var list []clineOutcome
	var packed string
	if json.Unmarshal(raw, &packed) == nil && strings.HasPrefix(packed, `{"query":`) {
		raw = json.RawMessage("[" + packed + "]")
	}
	if json.Unmarshal(raw, &list) != nil || len(list) == 0 {
		return "", nil, false
	}
	var texts []string
	succeeded := 0
	for _, o := range list {
		if o.Result == nil || o.Success == nil {
			return "", nil, false
		}
		one := string(cmp.Or(*o.Result, o.Error))
		if len(list) > 1 {
			one = string(o.Query) + "\n" + one
		}
		texts = append(texts, one)
		if *o.Success {
			succeeded++
		}
	}
	if all := succeeded == len(list); all || succeeded == 0 {
		success = &all
	}
	return strings.Join(texts, "\n"), success, true
}

// answered adds a message of the model and its calls, as in Anthropic's API.
func (t *talk) answered(out *batch, id, at string, said *events.MessageCreated, content blocks) {
	var texts, thoughts []string
	for i := range content {
		switch b := &content[i]; b.Type {
		case "tool_use":
		case "thinking", "reasoning":
			if thought := b.Thinking + b.Text; thought != "" {
				thoughts = append(thoughts, thought)
			}
		default:
			if s, ok := b.shown(); ok {
				texts = append(texts, s)
			}
		}
	}
	said.Role, said.Content, said.Reasoning = "assistant", strings.Join(texts, "\n"), strings.Join(thoughts, "\n")
	t.say(out, id, at, said)
	for i := range content {
		if b := &content[i]; b.Type == "tool_use" {
			call := cmp.Or(b.ID, id+":c"+strconv.Itoa(i+1))
			t.call(out, call, at, id, b.Name, b.Input)
		}
	}
}

var (
	clineDetails = regexp.MustCompile(`(?s)<environment_details>.*?(?:</environment_details>|\z)`)
	clineTask    = regexp.MustCompile(`(?s)^\s*<(task|feedback|answer|user_message)>\n?(.*?)\n?</(?:task|feedback|answer|user_message)>\s*$`)
	clineNotice  = regexp.MustCompile(`(?s)^\s*<mode_notice>.*?</mode_notice>`)
	clineInput   = regexp.MustCompile(`(?s)^\s*<user_(?:input|command)(?: [^>]*)?>(.*)</user_(?:input|command)>(.*)$`) // what follows is attached
	clineResult  = regexp.MustCompile(`^\[[a-zA-Z_]+(?: for [^\n]*)?\] Result:`)
	clineWorks   = regexp.MustCompile(`# Current (?:Working|Workspace) Directory \(([^\n)]+)\)`)

	clineWorkingDirectory = regexp.MustCompile(`(?m)^\d+\. Working Directory: ([^\n]+)$`)
)

// clinePrompt returns what the user said in a message, without what the program adds to it. If the whole message comes
// from the program, such as results of calls that the model wrote as text, the origin is meta.
func clinePrompt(content blocks) (said, origin string, any bool) {
	var texts []string
	origin = originMeta
	for i := range content {
		b := &content[i]
		if b.Type == "tool_result" {
			continue
		}
		s, ok := b.shown()
		s = clineNotice.ReplaceAllString(clineDetails.ReplaceAllString(s, ""), "")
		if m := clineInput.FindStringSubmatch(s); m != nil {
			s = m[1] + m[2]
		}
		if s = strings.TrimSpace(s); !ok || s == "" {
			continue
		}
		if m := clineTask.FindStringSubmatch(s); m != nil {
			s = m[2]
		}
		texts = append(texts, s)
		program := clineResult.MatchString(s) || strings.HasPrefix(s, "[ERROR]") || strings.HasPrefix(s, "[TASK RESUMPTION]")
		if !program && (i == 0 || !clineResult.MatchString(texts[0])) { // a result is followed by its text
			origin = ""
		}
	}
	return strings.Join(texts, "\n"), origin, len(texts) > 0
}

// maxFolder is the length of a folder's name in characters. The expressions do not check it, because compiling that
// would take milliseconds at the start of every program.
const maxFolder = 1_000

// folderIn returns the folder that the first group of an expression matches, "" if there is none or it is too long.
func folderIn(text string, expression *regexp.Regexp) string {
	if m := expression.FindStringSubmatch(text); m != nil && utf8.RuneCountInString(m[1]) <= maxFolder {
		return m[1]
	}
	return ""
}

// clineFolder returns the folder in which a task works, "" if the first message does not say.
func clineFolder(content blocks) string {
	for i := range content {
		if folder := folderIn(content[i].Text, clineWorks); folder != "" {
			return folder
		}
	}
	return ""
}
