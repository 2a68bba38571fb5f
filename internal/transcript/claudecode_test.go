package transcript

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
)

const sessionID = "11111111-2222-4333-8444-555555555555"

func shown(t testing.TB, items []Item) (lines []string) {
	for i, e := range good(t, items) {
		lines = append(lines, fmt.Sprint(items[i].Line, " ", e.ID, " ", e.Time.Format("05.999"), " ", string(e.Data)))
	}
	return lines
}

func TestClaudeCodeTranscriptBecomesAConversation(t *testing.T) {
	items := readFile(t, "testdata/"+sessionID+".jsonl", Auto)
	for _, i := range items {
		assert.Equal(t, "claude_code:"+sessionID, i.Event.Subject)
		assert.Equal(t, "import/claude_code", i.Event.Source)
	}
	assert.Equal(t, []string{
		`4 claude_code:` + sessionID + ` 00 {"agent":"Claude Code","cwd":"/home/lea/shop"}`,
		`4 msg:u-1 01 {"message_id":"msg:u-1","role":"user","content":"Why is the total <0>?"}`,
		`5 msg:u-2 01.1 {"message_id":"msg:u-2","role":"user","content":"Text of a skill\n[image]","origin":"meta"}`,
		`6 msg:a-1 02 {"message_id":"msg:a-1","role":"assistant","content":"I read it.","reasoning":"Look at the cart.","model":"model-a",` +
			`"usage":{"input_tokens":3,"output_tokens":40,"cache_read_input_tokens":5,"cache_creation_input_tokens":7}}`,
		`9 toolu_1 04 {"tool_call_id":"toolu_1","message_id":"msg:a-1","tool_name":"Read","arguments":{"file_path":"cart.go"}}`,
		`11 res:toolu_1 04.25 {"tool_call_id":"toolu_1","success":true,"result":"total := 0","duration_ms":250}`,
		`12 toolu_2 05 {"tool_call_id":"toolu_2","message_id":"msg:a-1","tool_name":"Search","arguments":{}}`,
		`14 res:toolu_2 09 {"tool_call_id":"toolu_2","success":false,"result":"no\n[image]","error":"no\n[image]","duration_ms":1500}`,
		`14 msg:u-4 09 {"message_id":"msg:u-4","role":"user","content":"[Request interrupted by user]"}`,
		`16 sys:y-2 10 {"message_id":"sys:y-2","role":"system","content":"api_error: {\"status\": 529, \"message\": \"over: \\\"loaded\\\", sorry\"}"}`,
		`17 sum:u-5 11 {"message_id":"sum:u-5","role":"system","content":"The cart starts at zero.","origin":"compaction"}`,
		`18 msg:a-5 12 {"message_id":"msg:a-5","role":"assistant","content":"Done.","model":"model-a"}`,
		`19 title:1 00 {"title":"Cart"}`,
	}, shown(t, items))
}

func TestGrownTranscriptBeginsWithTheSameEvents(t *testing.T) {
	data, err := os.ReadFile("testdata/" + sessionID + ".jsonl")
	require.NoError(t, err)
	whole := shown(t, readAll(t, data, sessionID+".jsonl", Auto))
	lines := strings.SplitAfter(string(data), "\n")
	for n := 4; n < len(lines); n++ {
		part := shown(t, readAll(t, []byte(strings.Join(lines[:n], "")), sessionID+".jsonl", Auto))
		for i, e := range part {
			if strings.Contains(e, "msg:a-1 ") { // the agent is still writing it
				continue
			}
			assert.Equal(t, whole[i], e, "after %d lines", n)
		}
	}
}

func TestConversationIsNamedByFileOrFirstSessionID(t *testing.T) {
	line := `{"type":"user","uuid":"u","sessionId":"s-7","message":{"content":"hi"}}`
	for name, want := range map[string]string{
		sessionID + ".jsonl":                 "claude_code:" + sessionID,
		"/p/q/" + sessionID + ".jsonl.gz":    "claude_code:" + sessionID,
		`C:\p\` + sessionID + ".jsonl":       "claude_code:" + sessionID,
		"2026-01-05-" + sessionID + ".jsonl": "claude_code:2026-01-05-" + sessionID,
		"copy of " + sessionID + ".jsonl":    "claude_code:s-7",
		"agent-17.jsonl":                     "claude_code:s-7:agent-17", // a subagent
		"":                                   "claude_code:s-7",
	} {
		items := readAll(t, []byte(line), name, Auto)
		require.Len(t, items, 2, name)
		assert.Equal(t, want, items[1].Event.Subject, name)
	}
}

func TestLateTitleIsAnUpdateAndTheUsersTitleWins(t *testing.T) {
	items := readAll(t, []byte(strings.Join([]string{
		`{"type":"user","uuid":"u","sessionId":"s","message":{"content":"hi"}}`,
		`{"type":"summary","summary":"One","leafUuid":"u"}`,
		`{"type":"summary","summary":"Two","leafUuid":"u"}`,
		`{"type":"custom-title","customTitle":"Mine","sessionId":"s"}`,
		`{"type":"custom-title","customTitle":"Mine","sessionId":"s"}`,
		`{"type":"ai-title","aiTitle":"Three","sessionId":"s"}`,
	}, "\n")), "", "claude-code")
	var titles []string
	for _, e := range good(t, items) {
		if u, ok := e.Payload.(*events.ConversationUpdated); ok {
			titles = append(titles, e.ID+" "+*u.Title)
		}
	}
	assert.Equal(t, []string{"title:1 One", "title:2 Mine"}, titles)
}

// Claude Code writes the titles of other sessions into the file of a new one: 14 of 60 recorded sessions would have one.
func TestTheTitleOfAnotherSessionIsNotTaken(t *testing.T) {
	read := func(lines ...string) (titles []string) {
		for _, e := range good(t, readAll(t, []byte(strings.Join(lines, "\n")), "", "claude-code")) {
			switch p := e.Payload.(type) {
			case *events.ConversationStarted:
				titles = append(titles, p.Title)
			case *events.ConversationUpdated:
				titles = append(titles, *p.Title)
			}
		}
		return titles
	}
	prompt := `{"type":"user","uuid":"u","sessionId":"s","message":{"content":"hi"}}`
	assert.Equal(t, []string{""}, read(`{"type":"summary","summary":"Another","leafUuid":"x"}`, prompt, `{"type":"summary","summary":"A third","leafUuid":"y"}`))
	assert.Equal(t, []string{"", "Own"}, read(`{"type":"summary","summary":"Own","leafUuid":"u"}`, prompt), "a resumed session begins with its title")
	assert.Equal(t, []string{"Old"}, read(`{"type":"summary","summary":"Old"}`, prompt), "it does not say whose it is")
}

func TestSideChainAloneIsNotAConversation(t *testing.T) {
	items := readAll(t, []byte(`{"type":"user","uuid":"u","sessionId":"s","isSidechain":true,"message":{"content":"task"}}`), "s.jsonl", Auto)
	assert.Empty(t, items)
}

func TestASubagentsFileIsAConversationOfItsOwn(t *testing.T) {
	for _, version := range []string{"2.0.14", "2.1.330"} {
		items := readAll(t, []byte(strings.Join([]string{
			`{"type":"user","uuid":"u","sessionId":"s","agentId":"a1b2","isSidechain":true,"cwd":"/home/lea/shop","version":"` + version + `","timestamp":"2026-01-05T09:00:01Z","message":{"role":"user","content":"task"}}`,
			`{"type":"assistant","uuid":"a","sessionId":"s","agentId":"a1b2","isSidechain":true,"timestamp":"2026-01-05T09:00:02Z","message":{"id":"m","content":[{"type":"text","text":"done"}]}}`,
		}, "\n")), "projects/p/s/subagents/agent-a1b2.jsonl", Auto)
		for _, i := range items {
			assert.Equal(t, "claude_code:s:agent-a1b2", i.Event.Subject)
		}
		assert.Equal(t, []string{
			`1 claude_code:s:agent-a1b2 01 {"agent":"Claude Code","cwd":"/home/lea/shop"}`,
			`1 msg:u 01 {"message_id":"msg:u","role":"user","content":"task"}`,
			`2 msg:a 02 {"message_id":"msg:a","role":"assistant","content":"done"}`,
		}, shown(t, items))
	}
}

func TestUnusableClaudeCodeLineIsRefusedInItsPlace(t *testing.T) {
	items := readAll(t, []byte(strings.Join([]string{
		`{"type":"assistant","uuid":"a","sessionId":"s","message":{"id":"m","content":[{"type":"tool_use","id":"t","name":"X","input":{}}]}}`,
		`{"type":"telepathy","uuid":"x"}`,
		`{"type":"user","uuid":"u"}`,
		`{"type":"user","message":{"content":"hi"}}`,
		`{"type":"user","uuid":"u","timestamp":"noon","message":{"content":"hi"}}`,
		`{"type":"user","uuid":"v","message":{"content":[{"type":"tool_result","content":"x"}]}}`,
		`{"uuid":"w"}`,
	}, "\n")), "", "claude-code")
	assert.Equal(t, map[int]string{
		3: "message: is missing", 4: "uuid: is missing",
		6: "data.tool_call_id: is missing", 7: "type: is missing",
	}, refused(items))
	for i := 1; i < len(items); i++ {
		assert.LessOrEqual(t, items[i-1].Line, items[i].Line)
		if items[i].Line == 5 {
			assert.Zero(t, items[i].Event.Time, "noon is no time, and the message is there nevertheless")
		}
	}
}

// Claude Code repeats a request up to ten times, and each failure is a line.
func TestARefusedRequestSaysWhatItsUserSaw(t *testing.T) {
	line := `{"type":"system","subtype":"api_error","uuid":"y","sessionId":"s","error":{"message":"Connection error.","formatted":"Connection dropped (ECONNRESET)",` +
		`"connection":{"code":"ECONNRESET","message":"ECONNRESET: The socket connection was closed unexpectedly.","isSSLError":false},"isNetworkDown":false,"rateLimits":null},"retryAttempt":1}`
	items := readAll(t, []byte(line), "", Auto)
	assert.JSONEq(t, `{"message_id":"sys:y","role":"system","content":"api_error: Connection dropped (ECONNRESET)"}`, string(good(t, items)[1].Data))
}

func TestOpenMessageIsEmittedBeforeTooMuchIsHeld(t *testing.T) {
	big, err := json.Marshal(strings.Repeat("x", 6<<20))
	require.NoError(t, err)
	piece := func(uuid, content string) string {
		return fmt.Sprintf(`{"type":"assistant","uuid":%q,"sessionId":"s","message":{"id":"m","content":[%s]}}`, uuid, content)
	}
	lines := []string{piece("a", `{"type":"text","text":"first"}`)}
	for i := range 4 {
		lines = append(lines,
			piece(fmt.Sprint("c", i), fmt.Sprintf(`{"type":"tool_use","id":"t%d","name":"X","input":{}}`, i)),
			fmt.Sprintf(`{"type":"user","uuid":"r%d","message":{"content":[{"type":"tool_result","tool_use_id":"t%d","content":%s}]}}`, i, i, big))
	}
	lines = append(lines, piece("z", `{"type":"text","text":"late"}`))
	var ids []string
	for _, e := range good(t, readAll(t, []byte(strings.Join(lines, "\n")), "", Auto)) {
		ids = append(ids, e.ID)
		if c, ok := e.Payload.(*events.ToolCalled); ok {
			assert.Equal(t, "msg:a", c.MessageID)
		}
	}
	assert.Equal(t, []string{"claude_code:s", "msg:a", "t0", "res:t0", "t1", "res:t1", "t2", "res:t2", "t3", "res:t3", "msg:z"}, ids)
}

func TestAPromptEndsTheAgentsMessage(t *testing.T) {
	answer := func(uuid, block string) string {
		return fmt.Sprintf(`{"type":"assistant","uuid":%q,"sessionId":"s","message":{"id":"m","content":[%s]}}`, uuid, block)
	}
	begin := []string{
		`{"type":"user","uuid":"u","sessionId":"s","message":{"content":"Where is it?"}}`,
		answer("a", `{"type":"text","text":"In main.go."}`),
	}
	prompt := `{"type":"user","uuid":"v","sessionId":"s","message":{"content":[{"type":"text","text":"And the tests?"}]}}`
	shown := func(lines ...string) (ids []string, open int) {
		for _, i := range readAll(t, []byte(strings.Join(append(slices.Clone(begin), lines...), "\n")), "", Auto) {
			require.Nil(t, i.Err)
			if ids = append(ids, i.Event.ID); i.Open {
				open++
			}
		}
		return ids, open
	}
	ids, open := shown(prompt)
	assert.Equal(t, []string{"claude_code:s", "msg:u", "msg:a", "msg:v"}, ids)
	assert.Zero(t, open)

	for what, line := range map[string]string{
		"a result":              `{"type":"user","uuid":"v","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"x"}]}}`,
		"a result with a text":  `{"type":"user","uuid":"v","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"x"},{"type":"text","text":"y"}]}}`,
		"a text of the program": `{"type":"user","uuid":"v","isMeta":true,"message":{"content":"reminder"}}`,
		"nothing":               `{"type":"user","uuid":"v","message":{"content":[]}}`,
	} {
		_, open := shown(line)
		assert.NotZero(t, open, "%s does not end it", what)
	}

	ids, open = shown(prompt, answer("b", `{"type":"text","text":"More."}`), answer("c", `{"type":"tool_use","id":"t","name":"X","input":{}}`))
	assert.Equal(t, []string{"claude_code:s", "msg:u", "msg:a", "msg:v", "msg:b", "t"}, ids, "what is emitted does not change")
	assert.Equal(t, 2, open)
}

func TestATranscriptThatEndsWithAnAnswerSaysSo(t *testing.T) {
	block := func(uuid, block string) string {
		return fmt.Sprintf(`{"type":"assistant","uuid":%q,"sessionId":"s","message":{"id":"m","content":[%s]}}`, uuid, block)
	}
	text, thought, call := `{"type":"text","text":"x"}`, `{"type":"thinking","thinking":"x"}`, `{"type":"tool_use","id":"t","name":"X","input":{}}`
	result := `{"type":"user","uuid":"r","sessionId":"s","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"x"}]}}`
	for what, c := range map[string]struct {
		lines    []string
		answered bool
	}{
		"text":                     {[]string{block("a", thought), block("b", text)}, true},
		"text and more":            {[]string{block("a", text), `{"type":"system","subtype":"turn_duration","uuid":"d"}`}, true},
		"thought":                  {[]string{block("a", thought)}, false},
		"text, thought":            {[]string{block("a", text), block("b", thought)}, false},
		"text, call":               {[]string{block("a", text), block("b", call)}, false},
		"text, call, result":       {[]string{block("a", text), block("b", call), result}, false},
		"call, result, text":       {[]string{block("a", call), result, block("b", text)}, false},
		"text and part of a line":  {[]string{block("a", text), `{"type":"assis`}, false},
		"text, a line of the user": {[]string{block("a", text), `{"type":"user","uuid":"v","isMeta":true,"message":{"content":"y"}}`}, true},
	} {
		items := readAll(t, []byte(strings.Join(c.lines, "\n")), "", "claude-code")
		for i, item := range items[1:] {
			assert.True(t, item.Open, "%s: item %d", what, i+1)
			assert.Equal(t, c.answered, item.Answered, "%s: item %d", what, i+1)
		}
	}
}

func TestEqualValuesHaveEqualBytesDespiteEscapes(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":"\u003cb\u003e \/ \n"}`:  `{"a":"<b> / \n"}`,
		`{"\u00e9":["x\\u003c",1.50]}`: `{"é":["x\\u003c",1.50]}`,
		`"` + "\u2028" + `"`:           `"\u2028"`,
		`{"a":"plain \" \\"}`:          `{"a":"plain \" \\"}`,
	} {
		assert.Equal(t, want, string(plain([]byte(in))))
	}
}

func TestItemsCutByTheEndOfTheFileAreOpen(t *testing.T) {
	lines := []string{
		`{"type":"user","uuid":"u","sessionId":"s","message":{"content":"hi"}}`,
		`{"type":"assistant","uuid":"a","sessionId":"s","message":{"id":"m","content":[{"type":"text","text":"one"}]}}`,
		`{"type":"assistant","uuid":"b","sessionId":"s","message":{"id":"n","content":[{"type":"text","text":"two"}]}}`,
		`{"type":"assistant","uuid":"c","sessionId":"s","message":{"id":"n","content":[{"type":"tool_use","id":"t","name":"X","input":{}}]}}`,
		`{"type":"user","uuid":"r","sessionId":"s","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"x"}]}}`,
		`{"type":"assistant","uu`,
	}
	open := func(text string) (lines []int) {
		for _, i := range readAll(t, []byte(text), "", Auto) {
			if i.Open {
				lines = append(lines, i.Line)
			}
		}
		return lines
	}
	assert.Equal(t, []int{3, 4, 5, 6}, open(strings.Join(lines, "\n")))
	assert.Equal(t, []int{2}, open(strings.Join(lines[:2], "\n")))
	assert.Equal(t, []int{2}, open(lines[0]+"\n"+lines[5]))
	assert.Empty(t, open(lines[0]))
	assert.Empty(t, open(message("1", "")+"\n"+message("2", "")), "the neutral form has no open messages")
	assert.Equal(t, []int{2}, open(message("1", "")+"\n"+message("2", "")[:30]), "but its last line can be cut off")
	within := message("1", "") + "\n" + message("2", "é")
	assert.Equal(t, []int{2}, open(within[:len(within)-3]), "within a character too")
}

func TestLinesOfOtherTypesMayHaveAnyForm(t *testing.T) {
	items := readAll(t, []byte(strings.Join([]string{
		`{"type":"user","uuid":"u","sessionId":"s","message":{"content":"hi"}}`,
		`{"type":"progress","sessionId":"s","message":"half"}`,
		`{"type":"of a later version","sessionId":"s","message":["half"]}`,
		`{"type":"user","uuid":"v","sessionId":"s","message":"half"}`,
		`{"message":"half"}`,
	}, "\n")), "", "claude-code")
	assert.Equal(t, map[int]string{4: "message: a JSON string does not fit here", 5: "message: a JSON string does not fit here"}, refused(items))
	items = readAll(t, []byte(`{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":"t"}}
{"timestamp":"2026-01-01T00:00:00Z","type":"event_msg","payload":"half"}
{"timestamp":"2026-01-01T00:00:00Z","type":"of a later version","payload":[1]}
{"timestamp":"2026-01-01T00:00:00Z","type":"response_item","payload":[1]}`), "", "codex")
	assert.Equal(t, map[int]string{4: "is a JSON array, not an object"}, refused(items))
}

func TestAnImpossibleDurationCostsNoResult(t *testing.T) {
	for _, own := range []string{`{"durationMs":-3}`, `{"totalDurationMs":-0.5}`, `{"durationSeconds":1e308}`, `{"durationSeconds":-1}`, `[]`, `"x"`} {
		items := readAll(t, []byte(`{"type":"user","uuid":"r","sessionId":"s","toolUseResult":`+own+`,"message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"x"}]}}`), "", "claude-code")
		recorded := good(t, items)
		require.Len(t, recorded, 2)
		assert.Nil(t, recorded[1].Payload.(*events.ToolReturned).DurationMS, own)
	}
}

// A prompt that the user sends while the agent works is no line of the user if the agent was shown it within its turn.
func TestAPromptThatTheAgentWasShownWithinItsTurnIsTheUsers(t *testing.T) {
	operation := func(what, content, more string) string {
		return `{"type":"queue-operation","operation":"` + what + `","timestamp":"2026-03-02T10:00:0` + strconv.Itoa(len(content)%10) + `Z","sessionId":"s"` + content + more + `}`
	}
	text := func(s string) string { return `,"content":"` + s + `"` }
	attachment := func(prompt, more string) string {
		return `{"type":"attachment","uuid":"x","sessionId":"s","attachment":{"type":"queued_command","prompt":` + prompt + more + `}}`
	}
	answer := func(id string) string {
		return `{"type":"assistant","uuid":"` + id + `","sessionId":"s","message":{"id":"` + id + `","content":[]}}`
	}
	const absorbed = `,"reason":"absorbed_mid_turn"`
	for name, c := range map[string]struct{ lines, said []string }{
		"the first one without a text": {[]string{operation("enqueue", text("a"), ""), operation("enqueue", text("b"), ""), operation("remove", "", "")}, []string{"a"}},
		"with its text and a reason":   {[]string{operation("enqueue", text("a"), ""), operation("enqueue", text("b"), ""), operation("remove", text("b"), absorbed)}, []string{"b"}},
		"told of twice":                {[]string{operation("enqueue", text("a"), ""), operation("remove", text("a"), absorbed), attachment(`"a"`, "")}, []string{"a"}},
		"told of twice the other way":  {[]string{operation("enqueue", text("a"), ""), attachment(`"a"`, ""), operation("remove", text("a"), absorbed)}, []string{"a"}},
		"by an attachment alone":       {[]string{operation("enqueue", text("a"), ""), operation("dequeue", text("a"), ""), attachment(`"a"`, "")}, []string{"a"}},
		"with an image":                {[]string{operation("enqueue", "", ""), operation("remove", "", absorbed), attachment(`[{"type":"text","text":"a"},{"type":"image"}]`, "")}, []string{"a\n[image]"}},
		"an image alone":               {[]string{operation("enqueue", "", ""), operation("remove", "", absorbed), attachment(`[{"type":"image"}]`, "")}, []string{"[image]"}},
		"the same words twice":         {[]string{operation("enqueue", text("go on"), ""), operation("remove", "", ""), operation("enqueue", text("go on"), ""), operation("remove", "", "")}, []string{"go on", "go on"}},
		"the same words later":         {[]string{operation("enqueue", text("go on"), ""), operation("remove", "", ""), answer("1"), answer("2"), answer("3"), operation("enqueue", text("go on"), ""), operation("dequeue", "", ""), attachment(`"go on"`, "")}, []string{"go on", "go on"}},
		"taken back":                   {[]string{operation("enqueue", text("a"), ""), operation("popAll", text("a"), ""), operation("remove", "", "")}, nil},
		"taken back with a reason":     {[]string{operation("enqueue", text("a"), ""), operation("remove", text("a"), `,"reason":"cancelled"`)}, nil},
		"it begins a turn":             {[]string{operation("enqueue", text("a"), ""), operation("dequeue", "", ""), `{"type":"user","uuid":"v","sessionId":"s","message":{"content":"a"}}`}, []string{"a"}},
		"of the program":               {[]string{attachment(`"<task-notification> done"`, ""), attachment(`"done"`, `,"commandMode":"task-notification"`)}, []string{"meta: <task-notification> done", "meta: done"}},
		"of another session": {
			[]string{`{"type":"user","uuid":"v","sessionId":"s","origin":{"kind":"peer","from":"x"},"message":{"content":"a"}}`, attachment(`"b"`, `,"origin":{"kind":"peer"}`)}, []string{"meta: a", "meta: b"},
		},
		"of the lead of a team": {
			[]string{`{"type":"user","uuid":"v","sessionId":"s","origin":{"kind":"peer"},"message":{"content":"<teammate-message teammate_id=\"team-lead\">Look.</teammate-message>"}}`},
			[]string{`<teammate-message teammate_id="team-lead">Look.</teammate-message>`},
		},
		"of a person who is named": {
			[]string{`{"type":"user","uuid":"v","sessionId":"s","origin":{"kind":"human"},"message":{"content":"a"}}`, attachment(`"b"`, `,"origin":{"kind":"human"}`),
				`{"type":"user","uuid":"w","sessionId":"s","origin":"later","message":{"content":"c"}}`, `{"type":"user","uuid":"x","sessionId":"s","origin":{"kind":"channel"},"message":{"content":"d"}}`},
			[]string{"a", "b", "c", "d"},
		},
		"of the program, as a turn": {[]string{`{"type":"user","uuid":"v","sessionId":"s","message":{"content":"<task-notification>\n<task-id>1</task-id>"}}`}, []string{"meta: <task-notification>\n<task-id>1</task-id>"}},
		"beside an open file": {
			[]string{attachment(`"<ide_opened_file>a.go</ide_opened_file>\nb"`, ""), `{"type":"user","uuid":"v","sessionId":"s","message":{"content":[{"type":"text","text":"<ide_selection>x\ny</ide_selection>"},{"type":"text","text":"<ide_opened_file>a.go</ide_opened_file>"},{"type":"text","text":"why <ide_selection>?"}]}}`},
			[]string{"b", "meta: <ide_opened_file>a.go</ide_opened_file>", "why <ide_selection>?", "meta: <ide_selection>x\ny</ide_selection>\n<ide_opened_file>a.go</ide_opened_file>"},
		},
		"an open file alone":            {[]string{`{"type":"user","uuid":"v","sessionId":"s","message":{"content":"<ide_opened_file>a.go</ide_opened_file>"}}`}, []string{"meta: <ide_opened_file>a.go</ide_opened_file>"}},
		"other attachments":             {[]string{`{"type":"attachment","sessionId":"s","attachment":{"type":"todo_reminder","content":"a"}}`, `{"type":"attachment","sessionId":"s","attachment":"a"}`, attachment(`"  "`, "")}, nil},
		"operations of another version": {[]string{operation("later", text("a"), ""), operation("enqueue", `,"content":7`, ""), operation("remove", "", "")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			lines := append([]string{`{"type":"user","uuid":"u","sessionId":"s","message":{"content":"hi"}}`}, c.lines...)
			var said []string
			ids := map[string]bool{}
			for _, e := range good(t, readAll(t, []byte(strings.Join(lines, "\n")), "", "claude-code"))[2:] {
				m := e.Payload.(*events.MessageCreated)
				if m.Role == "assistant" {
					continue
				}
				ids[e.ID] = true
				if strings.HasPrefix(e.ID, "ide:") { // it begins no turn
					assert.Equal(t, "system", m.Role)
				} else {
					assert.Equal(t, "user", m.Role)
				}
				if m.Origin != "" {
					m.Content = m.Origin + ": " + m.Content
				}
				said = append(said, m.Content)
			}
			assert.Equal(t, c.said, said)
			assert.Len(t, ids, len(said))
		})
	}
}
