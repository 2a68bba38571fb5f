package window_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/window"
	"mneme.dev/mneme/pkg/window/chat"
	"mneme.dev/mneme/pkg/window/marks"
)

// part is one element of a list of messages, whatever the API.
type part struct {
	role   string // system, user, assistant; tool for a result
	text   string
	call   string // id, of a call or a result
	name   string // the tool's name in a call; text then holds the arguments
	failed bool
}

// openAIParts returns the parts of the messages for OpenAI's API, and makes the API's checks. test/modelsdk reads the golden
// files with the API's published types.
func openAIParts(c *window.Context) ([]part, error) {
	var list []part
	var open []string // calls of the previous message that have no result yet
	before := "system"
	for i, m := range chat.OpenAI(c, chat.Inline).Messages {
		allowed := chat.OpenAIMessage{Role: m.Role, Content: m.Content}
		switch m.Role {
		case "system", "user":
		case "assistant":
			allowed.ToolCalls = m.ToolCalls
		case "tool":
			allowed.ToolCallID = m.ToolCallID
		default:
			return nil, fmt.Errorf("message %d has the role %q", i, m.Role)
		}
		if !reflect.DeepEqual(allowed, m) {
			return nil, fmt.Errorf("message %d has what no %s message may have: %+v", i, m.Role, m)
		}
		if len(open) > 0 && m.Role != "tool" {
			return nil, fmt.Errorf("message %d: no result of call %s", i, open[0])
		}
		if m.Content != "" && strings.TrimSpace(m.Content) == "" {
			return nil, fmt.Errorf("message %d has a blank text", i)
		}
		switch {
		case m.Role == "system" && i > 0:
			return nil, fmt.Errorf("message %d is the system's", i)
		case m.Role == "user" && before == "user", m.Role == "assistant" && (before == "assistant" || before == "system"):
			return nil, fmt.Errorf("message %d is the %s's after the %s's", i, m.Role, before)
		case m.Role == "tool":
			if !slices.Contains(open, m.ToolCallID) || m.Content == "" {
				return nil, fmt.Errorf("message %d is the result of no call, or empty", i)
			}
			open = slices.DeleteFunc(open, func(id string) bool { return id == m.ToolCallID })
			text, failed := strings.CutPrefix(m.Content, "(failed) ")
			list = append(list, part{role: m.Role, text: text, call: m.ToolCallID, failed: failed})
		case m.Content != "":
			list = append(list, part{role: m.Role, text: m.Content})
		case len(m.ToolCalls) == 0:
			return nil, fmt.Errorf("message %d is empty", i)
		}
		for _, call := range m.ToolCalls {
			if call.Type != "function" {
				return nil, fmt.Errorf("message %d has a call of type %q", i, call.Type)
			}
			open = append(open, call.ID)
			list = append(list, part{role: m.Role, call: call.ID, name: call.Function.Name, text: call.Function.Arguments})
		}
		before = m.Role
	}
	if len(open) > 0 || before == "assistant" {
		return nil, errors.New("the end is the assistant's")
	}
	return list, nil
}

// anthropicParts does the same for Anthropic's API.
func anthropicParts(c *window.Context) ([]part, error) {
	made := chat.Anthropic(c, chat.Inline)
	var list []part
	if made.System != "" {
		list = append(list, part{role: "system", text: made.System})
	}
	var open []string
	for i, m := range made.Messages {
		if want := []string{"user", "assistant"}[i%2]; m.Role != want {
			return nil, fmt.Errorf("message %d is the %s's", i, m.Role)
		}
		if len(m.Content) == 0 {
			return nil, fmt.Errorf("message %d is empty", i)
		}
		results := 0
		for j, block := range m.Content {
			allowed := chat.AnthropicBlock{Type: block.Type}
			switch block.Type {
			case "text":
				allowed.Text = block.Text
				if strings.TrimSpace(block.Text) == "" {
					return nil, fmt.Errorf("message %d has a blank text", i)
				}
				list = append(list, part{role: m.Role, text: block.Text})
			case "tool_use":
				allowed.ID, allowed.Name, allowed.Input = block.ID, block.Name, block.Input
				open = append(open, block.ID)
				list = append(list, part{role: m.Role, call: block.ID, name: block.Name, text: string(block.Input)})
			case "tool_result":
				allowed.ToolUseID, allowed.Content, allowed.IsError = block.ToolUseID, block.Content, block.IsError
				if results++; j != results-1 || len(block.Content) != 1 || block.Content[0].Type != "text" || strings.TrimSpace(block.Content[0].Text) == "" {
					return nil, fmt.Errorf("message %d has a result that is not at its beginning or blank", i)
				}
				if !slices.Contains(open, block.ToolUseID) {
					return nil, fmt.Errorf("message %d has the result of no call", i)
				}
				open = slices.DeleteFunc(open, func(id string) bool { return id == block.ToolUseID })
				list = append(list, part{role: "tool", text: block.Content[0].Text, call: block.ToolUseID, failed: block.IsError})
			default:
				return nil, fmt.Errorf("message %d has a block of type %q", i, block.Type)
			}
			if !reflect.DeepEqual(allowed, block) {
				return nil, fmt.Errorf("message %d has what no %s block may have: %+v", i, block.Type, block)
			}
		}
		if m.Role == "user" && len(open) > 0 {
			return nil, fmt.Errorf("message %d: no result of call %s", i, open[0])
		}
	}
	if len(made.Messages)%2 == 0 && len(made.Messages) > 0 {
		return nil, errors.New("the end is the assistant's")
	}
	return list, nil
}

var (
	idOfCall   = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,40}$`)
	nameOfTool = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
)

// checkChat: the APIs accept both lists of messages, and both lists have the same parts: everything that is shown,
// within the budget.
func checkChat(c *window.Context, _ truth) error {
	openAI, err := openAIParts(c)
	if err != nil {
		return fmt.Errorf("openai: %w", err)
	}
	anthropic, err := anthropicParts(c)
	if err != nil {
		return fmt.Errorf("anthropic: %w", err)
	}
	ids := map[string]bool{}
	chars := 0
	for _, p := range openAI {
		chars += utf8.RuneCountInString(p.text) + utf8.RuneCountInString(p.name)
		if p.failed {
			chars += len("(failed) ")
		}
		if p.name == "" {
			continue
		}
		if !idOfCall.MatchString(p.call) || ids[p.call] || !nameOfTool.MatchString(p.name) || !strings.HasPrefix(p.text, "{") || !json.Valid([]byte(p.text)) {
			return fmt.Errorf("no API takes the call %q of %q with %s", p.call, p.name, p.text)
		}
		ids[p.call] = true
	}
	if chars > c.MaxChars {
		return fmt.Errorf("the messages have %d characters, the budget is %d", chars, c.MaxChars)
	}
	if err := samePartsAs(openAI, anthropic); err != nil {
		return err
	}
	return checkShown(c, openAI)
}

// samePartsAs: Anthropic may split into several texts what OpenAI has in one.
func samePartsAs(openAI, anthropic []part) error {
	flat := func(list []part) (out []string) {
		for i, p := range list {
			if p.name != "" {
				var v any
				_ = json.Unmarshal([]byte(p.text), &v)
				p.text = mustJSON(v)
			}
			if i > 0 && p.call == "" && list[i-1].call == "" && p.role == list[i-1].role {
				out[len(out)-1] += "\n\n" + p.text
				continue
			}
			out = append(out, fmt.Sprintf("%s %s %s %v: %s", p.role, p.call, p.name, p.failed, p.text))
		}
		return out
	}
	a, b := flat(openAI), flat(anthropic)
	if !slices.Equal(a, b) {
		return fmt.Errorf("openai and anthropic differ:\n%q\n%q", a, b)
	}
	return nil
}

// checkShown: texts and calls of the conversation are in messages of their roles, in order; each
// call has the arguments and the result of its item. The other sections come before them, and the
// system message is the fixed sentence.
func checkShown(c *window.Context, list []part) error {
	calls, results := []part{}, map[string]part{}
	for _, p := range list {
		if p.name != "" {
			calls = append(calls, p)
		} else if p.role == "tool" {
			results[p.call] = p
		}
	}
	if len(list) > 0 && (list[0].role != "system" || list[0].text != marks.Notice) {
		return fmt.Errorf("the system message is %q", list[0].text)
	}
	left := list
	take := func(role, text string) error {
		for ; len(left) > 0; left = left[1:] {
			if left[0].role != role {
				continue
			}
			if _, rest, ok := strings.Cut(left[0].text, text); ok {
				left = slices.Clone(left)
				left[0].text = rest
				return nil
			}
		}
		return fmt.Errorf("%q is not a text of the %s, or out of order", text, role)
	}
	for _, s := range c.Sections {
		if s.Name != window.SectionTurns && s.Name != window.SectionPruned {
			if list[1].role != "user" || !strings.HasPrefix(list[1].text, "<record ") || !strings.Contains(list[1].text, s.Heading+"\n\n") {
				return fmt.Errorf("the first message has no %s", s.Heading)
			}
			continue
		}
		for _, it := range s.Items {
			switch it.Kind {
			case window.KindMessage, window.KindLeftOut:
				role, text := it.Role, it.Text
				if role == "system" || role == "" || it.Origin != "" {
					role, text = "user", asShown(it.Text)
				}
				if strings.TrimSpace(text) == "" {
					continue
				}
				if err := take(role, text); err != nil {
					return err
				}
			case window.KindToolCall:
				call := calls[0]
				calls = calls[1:]
				if err := take("assistant", call.text); err != nil {
					return err
				}
				if idOfCall.MatchString(it.ToolCallID) && call.call != it.ToolCallID {
					return fmt.Errorf("call %s has become %s", it.ToolCallID, call.call)
				}
				result := results[call.call]
				want := "No result."
				if it.Result != nil {
					want = strings.TrimSpace(*it.Result)
				}
				if result.failed != (it.Success != nil && !*it.Success) || !strings.Contains(result.text, want) {
					return fmt.Errorf("the result of call %s is %q (failed: %v)", call.call, result.text, result.failed)
				}
				if strings.HasPrefix(it.Arguments, "{") && json.Valid([]byte(it.Arguments)) && call.text != it.Arguments {
					return fmt.Errorf("the arguments of call %s are %s", call.call, call.text)
				}
			}
		}
	}
	return nil
}

func TestGoldenChats(t *testing.T) {
	for _, c := range []struct {
		name string
		talk func(*talk)
		req  window.Request
	}{
		{"odd", odd, window.Request{}},
		{"long_turn", longTurn, window.Request{MaxChars: 1_200}},
		{"pruned_story", summarised, window.Request{MaxChars: 3_000, Strategy: "pruned"}},
		{"no_user", noUser, window.Request{}},
		{"failed_call", func(c *talk) {
			c.user("Read it.")
			c.call("t1", "read_file", args{"path": "a.go"})
			c.result("t1", false, "no such file")
		}, window.Request{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			conversation := newTalk(t, "golden")
			c.talk(conversation)
			got := conversation.build(c.req)
			got.Manifest = nil
			for format, made := range map[string]any{"openai": chat.OpenAI(got, chat.Inline), "anthropic": chat.Anthropic(got, chat.Inline)} {
				data, err := json.MarshalIndent(made, "", "  ")
				require.NoError(t, err)
				golden(t, c.name+"_"+format+".json", string(data)+"\n")
			}
		})
	}
}

// partsOf returns the parts of both formats, without the system's.
func partsOf(t *testing.T, c *talk, req window.Request) []part {
	t.Helper()
	got := c.build(req)
	require.NoError(t, checkRules(got, truthOf(c.events, 1, 0)))
	list, err := openAIParts(got)
	require.NoError(t, err)
	return slices.DeleteFunc(list, func(p part) bool { return p.role == "system" })
}

func TestWhatFollowsTheAssistantsLastWordIsTheUsersTurn(t *testing.T) {
	list := partsOf(t, newTalk(t, "c").user("Go on.").assistant("").assistant("Done.\n").assistant(" \n"), window.Request{})
	assert.Equal(t, []part{{role: "user", text: "Go on."}, {role: "assistant", text: "Done."}, {role: "user", text: "[no answer yet]"}}, list)
}

func TestAConversationThatTheAssistantBeginsHasAUsersMessageBefore(t *testing.T) {
	list := partsOf(t, newTalk(t, "c").assistant("Hello!").user("").assistant("How can I help?").user(" \n"), window.Request{Strategy: "pruned"})
	assert.Equal(t, []part{
		{role: "user", text: "[the beginning]"}, {role: "assistant", text: "Hello!"}, {role: "user", text: "(empty)"},
		{role: "assistant", text: "How can I help?"}, {role: "user", text: "(empty)"},
	}, list)
}

func TestStepsWithoutATextAreNotOneStep(t *testing.T) {
	c := newTalk(t, "c").user("Look.")
	c.assistant("").call("a", "read", args{}).result("a", true, "A")
	c.assistant("").call("b", "read", args{}).call("c", "read", args{}).result("c", false, "C").result("b", true, "")
	list := partsOf(t, c, window.Request{})
	assert.Equal(t, []part{
		{role: "user", text: "Look."},
		{role: "assistant", call: "a", name: "read", text: "{}"}, {role: "tool", call: "a", text: "A"},
		{role: "assistant", call: "b", name: "read", text: "{}"}, {role: "assistant", call: "c", name: "read", text: "{}"},
		{role: "tool", call: "b", text: "(empty)"}, {role: "tool", call: "c", text: "C", failed: true},
	}, list)
}

func TestIDsAndNamesBecomeSuchThatAPIsTake(t *testing.T) {
	long := strings.Repeat("x", 60)
	c := newTalk(t, "c").user("Look.").assistant("I do.")
	for _, id := range []string{"toolu_01-a", "functions.read:0", "functions.read/0", long + "1", long + "2", "日本"} {
		c.call(id, "mcp: read/"+long, args{}).result(id, true, id)
	}
	var ids []string
	for _, p := range partsOf(t, c, window.Request{}) {
		if p.name != "" {
			ids = append(ids, p.call)
			assert.Equal(t, "mcp__read_"+long[:54], p.name)
		}
	}
	assert.Equal(t, []string{
		"toolu_01-a", "functions_read_0-c216cab2", "functions_read_0-92f2bbbb", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-434e006c", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-580bb3b6", "__-cf2abf0c",
	}, ids, "the same in every context")
}

// Each quote takes two characters in the text of an object.
func TestArgumentsThatWereCutAreAnObjectInNoMoreRoom(t *testing.T) {
	c := newTalk(t, "c").user("Go.").assistant("I write.")
	c.call("t1", "write", args{"text": strings.Repeat(`"`, 30_000)}).result("t1", true, "ok")
	c.call("t2", "write", strings.Repeat("\x01", 5_000)).call("t3", "write", []int{1, 2}).call("t4", "write", "text")
	for budget := window.MinMaxChars; budget < 40_000; budget += 731 {
		var cut []string
		for _, p := range partsOf(t, c, window.Request{MaxChars: budget}) {
			switch p.call + p.name {
			case "t1write":
				cut = append(cut, p.text)
			case "t3write":
				assert.JSONEq(t, `{"arguments":[1,2]}`, p.text)
			case "t4write":
				assert.JSONEq(t, `{"arguments":"text"}`, p.text)
			}
		}
		if budget < 2_000 {
			continue
		}
		require.Len(t, cut, 1, budget)
		var object map[string]string
		require.NoError(t, json.Unmarshal([]byte(cut[0]), &object))
		kept, mark, _ := strings.Cut(object["cut"], "\n")
		assert.Equal(t, fmt.Sprintf("[… %d of 60011 characters left out; whole: sequence 3 in the log]", 60_011-len(kept)), mark, budget)
	}
}

// OpenAI's API passes arguments as a text. A caller that records this text finds the call as the model made it.
func TestArgumentsInATextAreTheObjectThatItHolds(t *testing.T) {
	c := newTalk(t, "c").user("Go.").assistant("I look.")
	want := map[string]string{
		`{"path": "<a>.go",` + "\n" + ` "n": 12345678901234567890}`: `{"path":"<a>.go","n":12345678901234567890}`,
		"":           `{}`,
		" ":          `{}`,
		`{"path": "`: `{"arguments":"{\"path\": \""}`,
		`[1]`:        `{"arguments":"[1]"}`,
		"null":       `{"arguments":"null"}`,
	}
	for text := range want {
		c.call("t"+text, "read", text)
	}
	c.call("null", "read", nil)
	got := map[string]string{}
	for _, p := range partsOf(t, c, window.Request{}) {
		if p.name != "" {
			got[p.text] = p.name
		}
	}
	for text, object := range want {
		assert.Contains(t, got, object, "%q", text)
	}
	assert.Contains(t, got, `{"arguments":null}`)
}

func TestWhoSpokeAndWhereATextComesFromIsTold(t *testing.T) {
	c := newTalk(t, "c").user("Hello.")
	c.add(&events.MessageCreated{MessageID: "a", Role: "assistant", Content: "Hi.", Speaker: "Ann\n"})
	c.add(&events.MessageCreated{MessageID: "b", Role: "user", Content: "Read this skill.", Speaker: "Bob", Origin: "meta"})
	c.say("system", "Compacted.\n# No heading")
	c.result("lost", false, "of no call")
	list := partsOf(t, c, window.Request{})
	mark := c.build(window.Request{}).Manifest.Mark
	assert.Equal(t, []part{
		{role: "user", text: "Hello."}, {role: "assistant", text: `Ann\n: Hi.`},
		{role: "user", text: "<record " + mark + ">\n[Turn 2]\n**User** (Bob) (meta): Read this skill.\n\n**System**: Compacted.\n\t# No heading\n\nResult without a call (failed): of no call\n</record " + mark + ">"},
	}, list)
}

func TestAConversationWithoutMessagesIsAnEmptyList(t *testing.T) {
	c := newTalk(t, "c").add(&events.ConversationStarted{Title: "T"}).build(window.Request{})
	c.Manifest = nil
	assert.Equal(t, `{"messages":[]}`, mustJSON(chat.OpenAI(c, chat.Inline)))
	assert.Equal(t, `{"messages":[]}`, mustJSON(chat.Anthropic(c, chat.Inline)))
}
