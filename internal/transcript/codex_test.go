package transcript

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/testdata"
)

const (
	oldRollout = "testdata/rollout-2026-01-05T09-00-00-0199aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee.jsonl" // Codex 0.58
	newRollout = "testdata/rollout-2026-10-05T09-00-00-01a0aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee.jsonl" // Codex 0.169
)

func TestCodexRolloutBecomesAConversation(t *testing.T) {
	for path, want := range map[string][]string{
		oldRollout: {
			`2 CONV 00 {"agent":"codex","cwd":"/home/lea/shop"}`,
			`2 CONV:2 01 {"message_id":"CONV:2","role":"user","content":"<environment_context>\n  <cwd>/home/lea/shop</cwd>\n</environment_context>","origin":"meta"}`,
			`3 CONV:3 02 {"message_id":"CONV:3","role":"user","content":"Why is the total 0?\n[input_image]"}`,
			`8 CONV:8:m 03 {"message_id":"CONV:8:m","role":"assistant","content":"","reasoning":"Look at the cart","model":"model-c"}`,
			`8 call_1 03 {"tool_call_id":"call_1","message_id":"CONV:8:m","tool_name":"shell","arguments":{"command":["bash","-lc","cat cart.go"]}}`,
			`9 res:call_1 03.1 {"tool_call_id":"call_1","success":true,"result":"total := 0\n","duration_ms":100}`,
			`10 call_2 04 {"tool_call_id":"call_2","message_id":"CONV:8:m","tool_name":"shell","arguments":{"command":["false"]}}`,
			`11 res:call_2 04.1 {"tool_call_id":"call_2","success":false,"result":"","error":"exit 1","duration_ms":0}`,
			`12 call_3 05 {"tool_call_id":"call_3","message_id":"CONV:8:m","tool_name":"update_plan","arguments":"{\"plan\":"}`,
			`13 res:call_3 05.1 {"tool_call_id":"call_3","result":"Plan updated"}`,
			`14 CONV:14 06 {"message_id":"CONV:14","role":"assistant","content":"It starts at zero.","model":"model-c"}`,
			`16 CONV:15:m 08 {"message_id":"CONV:15:m","role":"assistant","content":"","reasoning":"Interrupted here","model":"model-c"}`,
			`16 CONV:16 08 {"message_id":"CONV:16","role":"user","content":"Then fix it."}`,
		},
		newRollout: {
			`3 CONV 00 {"agent":"codex","cwd":"/home/lea/shop"}`,
			`3 CONV:o2 01 {"message_id":"CONV:o2","role":"system","content":"<permissions instructions>\nAsk first.","origin":"meta"}`,
			`5 CONV:o4 02 {"message_id":"CONV:o4","role":"user","content":"Change the cart."}`,
			`7 CONV:o6:m 03 {"message_id":"CONV:o6:m","role":"assistant","content":"","model":"model-d"}`,
			`7 call_4 03 {"tool_call_id":"call_4","message_id":"CONV:o6:m","tool_name":"apply_patch","arguments":{"input":"*** Begin Patch\n*** End Patch"}}`,
			`8 res:call_4 03.1 {"tool_call_id":"call_4","success":false,"result":"Exit code: 2\nWall time: 0.5 seconds\nOutput:\nNothing to do","error":"exit 2","duration_ms":500}`,
			`9 CONV:o8:c 04 {"tool_call_id":"CONV:o8:c","message_id":"CONV:o6:m","tool_name":"web_search","arguments":{"type":"search","query":"cart"}}`,
			`10 call_5 05 {"tool_call_id":"call_5","message_id":"CONV:o6:m","tool_name":"view_image","arguments":{"path":"a.png"}}`,
			`11 res:call_5 05.1 {"tool_call_id":"call_5","result":"Seen\n[input_image]"}`,
			`14 CONV:o13 07 {"message_id":"CONV:o13","role":"system","content":"The cart starts at zero.","origin":"compaction"}`,
			`15 call_6 08 {"tool_call_id":"call_6","message_id":"CONV:o6:m","tool_name":"local_shell","arguments":{"type":"exec","command":["ls"]}}`,
			`16 res:call_6 08.1 {"tool_call_id":"call_6","success":false,"result":"denied","error":"denied"}`,
		},
	} {
		t.Run(path, func(t *testing.T) {
			conversation := CodexPrefix + strings.TrimSuffix(path, ".jsonl")[len(path)-len(".jsonl")-36:]
			items := readFile(t, path, Auto)
			for _, i := range items {
				assert.Equal(t, conversation, i.Event.Subject)
				assert.Equal(t, "import/codex", i.Event.Source)
				assert.False(t, i.Open)
			}
			for i := range want {
				want[i] = strings.ReplaceAll(want[i], "CONV", conversation)
			}
			assert.Equal(t, want, shown(t, items))
		})
	}
}

func TestAGrownRolloutBeginsWithTheSameEvents(t *testing.T) {
	for _, path := range []string{oldRollout, newRollout} {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		whole := shown(t, readAll(t, data, path, Auto))
		lines := strings.SplitAfter(string(data), "\n")
		for n := range lines {
			part := shown(t, readAll(t, []byte(strings.Join(lines[:n], "")), path, codexFormat))
			require.LessOrEqual(t, len(part), len(whole))
			assert.Equal(t, whole[:len(part)], append([]string{}, part...), "after %d lines", n)
		}
	}
}

func zstandard(t testing.TB, data []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	defer w.Close()
	return w.EncodeAll(data, nil)
}

func TestZstandardIsRecognizedByItsFirstBytes(t *testing.T) {
	data, err := os.ReadFile(oldRollout)
	require.NoError(t, err)
	want := readAll(t, data, oldRollout, Auto)
	packed := zstandard(t, data)
	assert.Equal(t, want, readAll(t, packed, oldRollout+".zst", Auto))

	items := readAll(t, packed[:len(packed)-9], oldRollout, codexFormat)
	require.NotEmpty(t, items)
	last := items[len(items)-1]
	require.NotNil(t, last.Err)
	assert.Contains(t, last.Err.Reason, "the compressed data is truncated or damaged here")
}

func TestWhatAnEditorTellsCodexBesideAPromptIsAMessageOfItsOwn(t *testing.T) {
	const ide = "# Context from my IDE setup:\n\n## Active file: a.go\n\n## Open tabs:\n- a.go: a.go\n\n"
	for text, want := range map[string][]string{
		ide + "## My request for Codex:\nFix it.\n\n## My request: all of it":           {"Fix it.\n\n## My request: all of it", "meta: " + ide + "## My request for Codex:\n"},
		"# Files mentioned by the user:\n\n## a.png: /a.png\n\n## My request:\nFix it.": {"Fix it.", "meta: # Files mentioned by the user:\n\n## a.png: /a.png\n\n## My request:\n"},
		ide + "## My request for Codex:\n":                                              {ide + "## My request for Codex:\n"},
		"Why is there # Context from my IDE setup:\n in it?":                            {"Why is there # Context from my IDE setup:\n in it?"},
		"<skill>\n<name>a</name>\n</skill>":                                             {"meta: <skill>\n<name>a</name>\n</skill>"},
	} {
		line := `{"timestamp":"2026-01-05T09:00:02.000Z","type":"response_item","payload":{"type":"message","role":"user","content":` + string(quote(text)) + "}}\n"
		var said []string
		ids := map[string]bool{}
		for _, e := range good(t, readAll(t, []byte(line), oldRollout, codexFormat))[1:] {
			m := e.Payload.(*events.MessageCreated)
			ids[m.MessageID] = true
			assert.Equal(t, strings.HasSuffix(m.MessageID, ":ide"), m.Role == "system", "what an editor told begins no turn")
			if m.Origin != "" {
				m.Content = m.Origin + ": " + m.Content
			}
			said = append(said, m.Content)
		}
		assert.Equal(t, want, said)
		assert.Len(t, ids, len(want))
	}
}

// Outputs as Codex 0.171 writes them: only of a command does the output itself say how it ended.
func TestACallOfCodexHasAnOutcome(t *testing.T) {
	for name, c := range map[string]struct {
		status, output string
		want           string
	}{
		"a server's tool":      {"completed", `[{"type":"input_text","text":"Wall time: 0.5000 seconds\nOutput:"},{"type":"input_text","text":"two"}]`, "true "},
		"a server's error":     {"failed", `[{"type":"input_text","text":"Wall time: 0.5000 seconds\nOutput:"},{"type":"input_text","text":"no such page"}]`, "false Wall time: 0.5000 seconds\nOutput:\nno such page"},
		"a change declined":    {"declined", `"rejected"`, "false rejected"},
		"still running":        {"in_progress", `"Chunk ID: 1\nWall time: 0.2 seconds\nProcess running with session ID 7\nOutput:\n"`, "unknown "},
		"the output knows":     {"failed", `"Exit code: 0\nWall time: 1 seconds\nOutput:\n"`, "true "},
		"stopped command":      {"", `"Wall time: 3.8 seconds\naborted by user"`, "false Wall time: 3.8 seconds\naborted by user"},
		"stopped call":         {"", `"aborted by user after 2.5s"`, "false aborted by user after 2.5s"},
		"unknown tool":         {"", `"unsupported call: mcp__docsread"`, "false unsupported call: mcp__docsread"},
		"arguments":            {"", `"failed to parse function arguments: missing field cmd"`, "false failed to parse function arguments: missing field cmd"},
		"neither says":         {"", `"Plan updated"`, "unknown "},
		"a command's own text": {"", `"Chunk ID: 1\nWall time: 1.0 seconds\nProcess exited with code 0\nOutput:\naborted by user after 2.5s"`, "true "},
	} {
		t.Run(name, func(t *testing.T) {
			rollout := `{"timestamp":"2026-11-05T09:00:01Z","type":"event_msg","payload":{"type":"item_completed","item":{"type":"McpToolCall","id":"c","status":"` + c.status + `"}}}
{"timestamp":"2026-11-05T09:00:02Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c","output":` + c.output + "}}\n"
			result := good(t, readAll(t, []byte(rollout), newRollout, codexFormat))[1].Payload.(*events.ToolReturned)
			outcome := "unknown"
			if result.Success != nil {
				outcome = strconv.FormatBool(*result.Success)
			}
			assert.Equal(t, c.want, outcome+" "+string(result.Error))
			if strings.HasPrefix(name, "stopped") {
				require.NotNil(t, result.DurationMS)
				assert.Positive(t, *result.DurationMS)
			}
		})
	}
}

func TestARolloutWithoutASessionTakesItsThreadFromTheFileName(t *testing.T) {
	line := []byte(`{"timestamp":"2026-01-05T09:00:02.000Z","type":"response_item","payload":{"type":"message","role":"user","content":"Hello"}}` + "\n")
	items := readAll(t, line, newRollout, Auto)
	assert.Equal(t, []string{"codex:01a0aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee", "codex:01a0aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee:1"}, ids(items))
	assert.Equal(t, map[int]string{1: "there is no session_meta before this line, and the file's name has no thread id"}, refused(readAll(t, line, "x.jsonl", Auto)))
}

func TestTwoMessagesOnOneLineHaveDifferentIDs(t *testing.T) {
	line := `{"timestamp":"2026-01-05T09:00:02.000Z","type":"response_item","payload":{"type":"message","role":"user","content":"Hello"}}`
	items := readAll(t, []byte(line+line+"\n"), newRollout, Auto)
	const thread = "codex:01a0aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee"
	assert.Equal(t, []string{thread, thread + ":1", thread + ":1.2"}, ids(items))
}

func TestUnknownTypesAreSkippedAndNamedWithTheVersion(t *testing.T) {
	claude := `{"type":"user","uuid":"u","sessionId":"s","version":"2.1.330","message":{"content":"Hello"}}` + "\n" +
		`{"type":"horoscope","uuid":"h","sessionId":"s","version":"2.1.330"}` + "\n"
	rollout, err := os.ReadFile(newRollout)
	require.NoError(t, err)
	for text, want := range map[string][]string{
		claude:          {"claude-code 2.1.330: horoscope"},
		string(rollout): {"codex 0.169.0: dream", "codex 0.169.0: horoscope"},
		`{"sessionId":"s","history":[{"message":{"role":"oracle"}},{"message":{}}]}`: {"continue: message of oracle", "continue: message without a role"},
	} {
		var skips []string
		err := Read(context.Background(), strings.NewReader(text), "x", Auto, func(i Item) error {
			assert.Nil(t, i.Err)
			return nil
		}, OnSkip(func(s Skip) { skips = append(skips, s.String()) }))
		require.NoError(t, err)
		assert.Equal(t, want, skips)
	}
}

func TestRecordedRolloutGivesTheEventsOfItsNeutralForm(t *testing.T) {
	dir := testdata.Dir(t)
	neutral := good(t, readFile(t, filepath.Join(dir, "events", "codex.jsonl.gz"), "neutral"))
	native := good(t, readFile(t, filepath.Join(dir, "native", "codex", "rollout-2025-11-17T15-30-28-019a93b9.jsonl.gz"), Auto))
	var neutralIDs, nativeIDs []string
	for _, e := range neutral {
		neutralIDs = append(neutralIDs, e.ID)
	}
	for _, e := range native {
		nativeIDs = append(nativeIDs, e.ID)
	}
	require.Empty(t, cmp.Diff(neutralIDs, nativeIDs))
	different := 0
	for i := range neutral {
		// The neutral form has no model, and does not say that the program wrote the first message.
		if m, ok := native[i].Payload.(*events.MessageCreated); ok && (m.Model != "" || m.Origin != "") {
			assert.Equal(t, "assistant gpt-5.1-codex ", strings.Replace(m.Role+" "+m.Model+" "+m.Origin, "user  meta", "assistant gpt-5.1-codex ", 1))
			plain := *m
			plain.Model, plain.Origin = "", ""
			e, err := events.New(native[i].Subject, native[i].Source, native[i].ID, &plain)
			require.NoError(t, err)
			native[i].Data = e.Data
			different++
		}
		assert.Empty(t, compare(neutral[i], native[i]))
	}
	t.Logf("%d events, %d of them with a model or an origin that the neutral form lacks", len(native), different)
}

func FuzzCodexResult(f *testing.F) {
	for _, seed := range []string{`"x"`, `{"content":"x","success":true}`, `[{"type":"input_text","text":"x"}]`, `"Exit code: 1\nWall time: 2 seconds\nOutput:\n"`, `null`, `7`, `{}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, output []byte) {
		line := append([]byte(`{"timestamp":"2026-01-05T09:00:02Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c","output":`), output...)
		line = bytes.ReplaceAll(append(line, "}}"...), []byte("\n"), nil)
		for _, i := range readAll(t, line, newRollout, codexFormat) {
			if i.Err == nil {
				_, err := events.Record(i.Event)
				require.NoError(t, err)
			}
		}
	})
}

// rolloutLine returns a line as Codex 0.171 writes it. The ordinal has one digit; metadata is a member, or "".
func rolloutLine(ordinal, kind, payload, metadata string) string {
	return `{"timestamp":"2026-11-30T01:05:0` + ordinal + `.000Z","ordinal":` + ordinal + `,"type":"` + kind + `","payload":` + payload + metadata + "}\n"
}

// A subagent begins with a copy of what its parent had seen. Codex calls the agent that a user talks to /root.
func TestASubagentOfCodexHasItsTaskAndNotTheCopyOfItsParent(t *testing.T) {
	const copied = `,"metadata":{"inherited_user_message":true}`
	rollout := func(source string) string {
		return rolloutLine("0", "session_meta", `{"id":"01a0aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee","cwd":"/home/lea/shop","cli_version":"0.171.0","thread_source":"`+source+`"}`, "") +
			rolloutLine("1", "response_item", `{"type":"message","role":"user","content":"Ask a subagent."}`, copied) +
			rolloutLine("2", "response_item", `{"type":"function_call","namespace":"collaboration","name":"spawn_agent","arguments":"{}","call_id":"call_1"}`, copied) +
			rolloutLine("3", "inter_agent_communication_metadata", `{"trigger_turn":true}`, "") +
			rolloutLine("4", "response_item", `{"type":"agent_message","author":"/root","recipient":"/root/look","content":[{"type":"input_text","text":"Message Type: NEW_TASK\nPayload:\n"},{"type":"encrypted_content","encrypted_content":"x"}]}`, "") +
			rolloutLine("5", "response_item", `{"type":"message","role":"assistant","content":"Done."}`, "") +
			rolloutLine("6", "response_item", `{"type":"agent_message","author":"/root/look","content":[{"type":"input_text","text":"Message Type: FINAL_ANSWER\nPayload:\nAll is well."}]}`, "")
	}
	const conversation = "codex:01a0aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee"
	whole := shown(t, readAll(t, []byte(rollout("user")), newRollout, Auto))
	assert.Len(t, whole, 7, "the copy in a fork stays")
	assert.Equal(t, []string{
		`5 ` + conversation + ` 00 {"agent":"codex","cwd":"/home/lea/shop"}`,
		`5 ` + conversation + `:o4 04 {"message_id":"` + conversation + `:o4","role":"user","content":"Message Type: NEW_TASK\nPayload:\n\n[encrypted_content]","speaker":"/root"}`,
		`6 ` + conversation + `:o5 05 {"message_id":"` + conversation + `:o5","role":"assistant","content":"Done."}`,
		`7 ` + conversation + `:o6 06 {"message_id":"` + conversation + `:o6","role":"user","content":"Message Type: FINAL_ANSWER\nPayload:\nAll is well.","speaker":"/root/look","origin":"meta"}`,
	}, shown(t, readAll(t, []byte(rollout("subagent")), newRollout, Auto)))
}

func TestACallOfCodexNamesTheServerOfItsTool(t *testing.T) {
	rollout := rolloutLine("1", "response_item", `{"type":"message","role":"assistant","content":"I search."}`, "") +
		rolloutLine("2", "response_item", `{"type":"tool_search_call","call_id":"call_1","execution":"client","arguments":{"query":"memory"}}`, "") +
		rolloutLine("3", "response_item", `{"type":"tool_search_output","call_id":"call_1","tools":[{"type":"namespace","name":"mcp__mneme","tools":[{"name":"memory_read"},{"name":"memory_search"}]},{"name":"other"}]}`, "") +
		rolloutLine("4", "response_item", `{"type":"function_call","namespace":"mcp__mneme","name":"memory_search","arguments":"{\"query\":\"cart\"}","call_id":"call_2"}`, "") +
		rolloutLine("5", "response_item", `{"type":"message","role":"assistant","content":"A summary"}`, `,"metadata":{"compaction_output":true}`) +
		rolloutLine("6", "compacted", `{"message":"A summary"}`, "")
	const conversation = "codex:01a0aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee"
	assert.Equal(t, []string{
		`2 call_1 02 {"tool_call_id":"call_1","message_id":"` + conversation + `:o1","tool_name":"tool_search","arguments":{"query":"memory"}}`,
		`3 res:call_1 03 {"tool_call_id":"call_1","result":"mcp__mneme__memory_read\nmcp__mneme__memory_search\nother"}`,
		`4 call_2 04 {"tool_call_id":"call_2","message_id":"` + conversation + `:o1","tool_name":"mcp__mneme__memory_search","arguments":{"query":"cart"}}`,
		`6 ` + conversation + `:o6 06 {"message_id":"` + conversation + `:o6","role":"system","content":"A summary","origin":"compaction"}`,
	}, shown(t, readAll(t, []byte(rollout), newRollout, Auto))[2:])
}

func TestAMessageOfCodexHasTheTokensOfItsResponseAndOfThoseBeforeItWithoutAMessage(t *testing.T) {
	used := func(ordinal string) string {
		return rolloutLine(ordinal, "token_usage_record", `{"usage":{"input_tokens":100,"cached_input_tokens":40,"output_tokens":20,"reasoning_output_tokens":5},"thread_token_usage":{"input_tokens":900}}`, "")
	}
	said := func(ordinal, text string) string {
		return rolloutLine(ordinal, "response_item", `{"type":"message","role":"assistant","content":"`+text+`"}`, "")
	}
	called := func(ordinal, call string) string {
		return rolloutLine(ordinal, "response_item", `{"type":"function_call","name":"exec_command","arguments":"{}","call_id":"`+call+`"}`, "") +
			rolloutLine(ordinal, "response_item", `{"type":"function_call_output","call_id":"`+call+`","output":"ok"}`, "")
	}
	usageOf := func(i Item) string {
		return string(good(t, []Item{i})[0].Payload.(*events.MessageCreated).Usage)
	}
	calls := strings.SplitAfter(called("2", "call_1"), "\n")
	rollout := said("1", "I look.") + calls[0] + used("2") + calls[1] + called("3", "call_2") + used("3") + said("4", "Done.")
	items := readAll(t, []byte(rollout), newRollout, Auto)
	require.Len(t, items, 7)
	assert.Equal(t, `{"input_tokens":100,"cached_input_tokens":40,"output_tokens":20}`, usageOf(items[1]))
	last := items[len(items)-1]
	assert.True(t, last.Open && last.Answered, "its counts are not there yet")
	assert.False(t, items[len(items)-2].Open)

	items = readAll(t, []byte(rollout+used("5")), newRollout, Auto)
	last = items[len(items)-1]
	assert.False(t, last.Open)
	assert.Equal(t, `{"input_tokens":200,"cached_input_tokens":80,"output_tokens":40}`, usageOf(last))

	items = readAll(t, []byte(rollout+rolloutLine("5", "event_msg", `{"type":"task_complete"}`, "")), newRollout, Auto)
	assert.False(t, items[len(items)-1].Open, "an older version writes no counts")
}
