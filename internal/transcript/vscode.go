package transcript

import (
	"cmp"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"mneme.dev/mneme/events"
)

const (
	vscodeFormat = "vscode-chat"
	vscodePrefix = "vscode_chat:"
)

// vscodeRequest is a prompt and what it led to.
type vscodeRequest struct {
	ID        text          `json:"requestId"`
	Timestamp json.Number   `json:"timestamp"`
	Message   vscodePrompt  `json:"message"`
	Model     text          `json:"modelId"`
	Response  vscodeParts   `json:"response"`
	Canceled  bool          `json:"isCanceled"`
	State     *vscodeState  `json:"modelState"`
	Result    *vscodeResult `json:"result"`
}

type vscodeState struct {
	Value     int         `json:"value"`
	Completed json.Number `json:"completedAt"`
}

// vscodeResult is what the extension that answers keeps: the model's answers as they were.
type vscodeResult struct {
	Error struct {
		Message text `json:"message"`
	} `json:"errorDetails"`
	Metadata struct {
		Model   text          `json:"resolvedModel"`
		Rounds  []vscodeRound `json:"toolCallRounds"`
		Results map[string]struct {
			Content []struct {
				Value json.RawMessage `json:"value"`
			} `json:"content"`
		} `json:"toolCallResults"`
	} `json:"metadata"`
}

// vscodeRound is one answer of the model with its calls.
type vscodeRound struct {
	Response text `json:"response"`
	Thinking struct {
		Text texts `json:"text"`
	} `json:"thinking"`
	Calls []struct {
		ID        text            `json:"id"`
		Name      text            `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"toolCalls"`
}

// vscodePrompt is the text of a prompt, which older versions have as a string.
type vscodePrompt string

func (p *vscodePrompt) UnmarshalJSON(raw []byte) error {
	var object struct {
		Text  text `json:"text"`
		Parts []struct {
			Text text `json:"text"`
		} `json:"parts"`
	}
	if raw[0] != '{' {
		return (*text)(p).UnmarshalJSON(raw)
	}
	if err := json.Unmarshal(raw, &object); err != nil {
		return err
	}
	all := string(object.Text)
	for i := range object.Parts {
		if object.Text == "" {
			all += string(object.Parts[i].Text)
		}
	}
	*p = vscodePrompt(all)
	return nil
}

// vscodePart is a part of an answer as it is displayed.
type vscodePart struct {
	Kind      text            `json:"kind"`
	Value     json.RawMessage `json:"value"`
	Content   vscodeText      `json:"content"`
	Name      text            `json:"name"`
	Reference struct {
		Path text `json:"path"`
		URI  struct {
			Path text `json:"path"`
		} `json:"uri"`
	} `json:"inlineReference"`
	Tool   text       `json:"toolId"`
	CallID text       `json:"toolCallId"`
	Says   vscodeText `json:"invocationMessage"`
	Said   vscodeText `json:"pastTenseMessage"`
	Data   struct {
		Command struct {
			Original text `json:"original"`
			Tool     text `json:"toolEdited"`
			User     text `json:"userEdited"`
		} `json:"commandLine"`
	} `json:"toolSpecificData"`
}

// vscodeText is a text, or an object with one as its value.
type vscodeText string

func (t *vscodeText) UnmarshalJSON(raw []byte) error {
	var object struct {
		Value text `json:"value"`
	}
	if raw[0] != '{' {
		return (*text)(t).UnmarshalJSON(raw)
	}
	err := json.Unmarshal(raw, &object)
	*t = vscodeText(object.Value)
	return err
}

// vscodeParts are those of an answer. Older versions have a list of texts too.
type vscodeParts []vscodePart

func (ps *vscodeParts) UnmarshalJSON(raw []byte) error {
	*ps = nil
	if raw[0] != '[' {
		return nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return err
	}
	for _, raw := range list {
		var p vscodePart
		if raw[0] == '"' {
			p.Value = raw
		} else if err := json.Unmarshal(raw, &p); err != nil {
			return err
		}
		*ps = append(*ps, p)
	}
	return nil
}

// end adds the session. A request that may still be answered is open.
func (v *vscode) end(out *batch) {
	read := out.line
	title, t, err := v.requests(out)
	v.flush(out, read)
	out.line = read
	if err != nil {
		out.refuse(err)
	}
	if t != nil && t.started && title != "" {
		t.titled(out, title)
		out.items[len(out.items)-1].Open = true // what comes next stands before it
	}
}

// requests adds the requests, and returns the title of the session. Without a session, the talk is nil.
func (v *vscode) requests(out *batch) (title string, t *talk, err error) {
	if v.state == nil {
		return "", nil, nil
	}
	session, requests := v.all()
	raw, err := json.Marshal([]any{session["sessionId"], session["creationDate"], session["customTitle"]})
	if err != nil {
		return "", nil, err
	}
	var id, name text
	var began json.Number // Unix milliseconds
	if err := json.Unmarshal(raw, &[]any{&id, &began, &name}); err != nil {
		return "", nil, err
	}
	if id == "" {
		return "", nil, errors.New("sessionId: is missing")
	}
	created, _ := began.Int64()
	t = &talk{
		id: vscodePrefix + string(id), source: "import/vscode_chat", began: milliseconds(created), scoped: true,
		start: events.ConversationStarted{Agent: "VS Code", Cwd: v.folder},
	}
	for i, request := range requests {
		v.flush(out, v.lines[i])
		out.line = v.lines[i]
		var r vscodeRequest
		if raw, err = json.Marshal(request); err == nil {
			err = json.Unmarshal(raw, &r)
		}
		if err != nil {
			refuseAt(out, "requests", i, err)
			continue
		}
		if r.ID == "" {
			refuseAt(out, "requests", i, errors.New("requestId: is missing"))
			continue
		}
		r.add(out, t, i+1 == len(requests))
	}
	return string(name), t, nil
}

// answered reports whether an answer is as it will be.
func (r *vscodeRequest) answered(last bool) bool {
	const complete, cancelled, failed = 1, 2, 3
	if r.State != nil {
		return r.State.Value == complete || r.State.Value == cancelled || r.State.Value == failed
	}
	return !last || r.Canceled || r.Result != nil
}

// add adds a prompt and the answers to it.
func (r *vscodeRequest) add(out *batch, t *talk, last bool) {
	asked, _ := r.Timestamp.Int64()
	at, id := milliseconds(asked), t.id+":"+string(r.ID)
	t.say(out, id, at, &events.MessageCreated{Role: "user", Content: string(r.Message)})
	first := len(out.items)
	var rounds []vscodeRound
	model := string(r.Model)
	if r.Result != nil {
		rounds, model = r.Result.Metadata.Rounds, cmp.Or(string(r.Result.Metadata.Model), model)
	}
	if r.State != nil {
		if ended, _ := r.State.Completed.Int64(); ended > 0 && len(rounds) < 2 {
			at = milliseconds(ended)
		}
	}
	for i := range rounds {
		round := &rounds[i]
		message := id + ":" + strconv.Itoa(i+1)
		t.say(out, message, at, &events.MessageCreated{
			Role: "assistant", Content: string(round.Response), Reasoning: round.Thinking.Text.join(), Model: model,
		})
		for n := range round.Calls {
			c := &round.Calls[n]
			call := cmp.Or(string(c.ID), message+":c"+strconv.Itoa(n+1))
			t.call(out, call, at, message, cmp.Or(string(c.Name), "unknown"), c.Arguments)
			if result, there := r.Result.Metadata.Results[string(c.ID)]; there {
				var said strings.Builder
				for _, part := range result.Content {
					vscodeTexts(&said, part.Value)
				}
				t.answer(out, call, at, said.String(), nil)
			}
		}
	}
	if len(rounds) == 0 {
		r.displayed(out, t, id+":1", at, model)
	}
	if r.Result != nil && r.Result.Error.Message != "" {
		t.say(out, id+":error", at, &events.MessageCreated{Role: "system", Content: string(r.Result.Error.Message), Origin: originMeta})
	}
	if !r.answered(last) {
		out.open(first, false)
	}
}

// displayed adds an answer of which only what was displayed is kept, as when the user stopped it.
func (r *vscodeRequest) displayed(out *batch, t *talk, id, at, model string) {
	var said, thought strings.Builder
	var calls []*vscodePart
	for i := range r.Response {
		switch p := &r.Response[i]; p.Kind {
		case "":
			said.WriteString(unquoted(p.Value))
		case "markdownContent", "markdownVuln":
			said.WriteString(string(p.Content))
		case "thinking":
			var list texts
			if len(p.Value) > 0 && list.UnmarshalJSON(p.Value) == nil {
				thought.WriteString(list.join())
			}
		case "inlineReference":
			name := cmp.Or(string(p.Name), folderOf(string(cmp.Or(p.Reference.Path, p.Reference.URI.Path)), 0))
			said.WriteString("`" + name + "`")
		case "toolInvocationSerialized":
			calls = append(calls, p)
		default:
			if !vscodeKinds[p.Kind] {
				out.skip(vscodeFormat, "", "part of kind "+string(p.Kind))
			}
		}
	}
	if said.Len()+thought.Len() == 0 && len(calls) == 0 {
		return
	}
	t.say(out, id, at, &events.MessageCreated{Role: "assistant", Content: said.String(), Reasoning: thought.String(), Model: model})
	for i, p := range calls {
		call := cmp.Or(string(p.CallID), id+":c"+strconv.Itoa(i+1))
		arguments := "{}"
		if c := p.Data.Command; c.Original != "" {
			arguments = string(shellArguments(string(cmp.Or(c.User, c.Tool, c.Original))))
		}
		t.call(out, call, at, id, cmp.Or(strings.TrimPrefix(string(p.Tool), "copilot_"), "unknown"), json.RawMessage(arguments))
		if result := string(cmp.Or(p.Said, p.Says)); result != "" {
			t.answer(out, call, at, result, nil)
		}
	}
}

// vscodeKinds are the known kinds of parts that say nothing.
var vscodeKinds = map[text]bool{
	"codeblockUri": true, "command": true, "confirmation": true, "elicitationSerialized": true, "extensions": true, "hook": true, "mcpServersStarting": true,
	"multiDiffData": true, "notebookEditGroup": true, "prepareToolInvocation": true, "progressMessage": true, "progressTask": true, "progressTaskSerialized": true,
	"pullRequest": true, "questionCarousel": true, "clearToPreviousToolInvocation": true, "textEditGroup": true, "treeData": true, "undoStop": true, "warning": true,
	"workspaceEdit": true, "disabledClaudeHooks": true,
}

// vscodeTexts adds the texts of a part of a result: a text, or a tree with texts in its leaves.
func vscodeTexts(to *strings.Builder, raw json.RawMessage) {
	if len(raw) == 0 {
		return
	}
	if raw[0] == '"' {
		to.WriteString(unquoted(raw))
		return
	}
	var n vscodeNode
	if json.Unmarshal(raw, &n) == nil {
		n.write(to)
	}
}

// vscodeNode is a node of the tree that an extension renders a result as.
type vscodeNode struct {
	Node     *vscodeNode  `json:"node"` // of the root
	Text     text         `json:"text"`
	NewLine  bool         `json:"lineBreakBefore"`
	Children []vscodeNode `json:"children"`
}

func (n *vscodeNode) write(to *strings.Builder) {
	if n.NewLine && to.Len() > 0 && !strings.HasSuffix(to.String(), "\n") {
		to.WriteByte('\n')
	}
	to.WriteString(string(n.Text))
	if n.Node != nil {
		n.Node.write(to)
	}
	for i := range n.Children {
		n.Children[i].write(to)
	}
}
