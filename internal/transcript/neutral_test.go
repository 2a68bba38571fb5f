package transcript

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
)

func TestNeutralLinesBecomeEvents(t *testing.T) {
	recorded := good(t, readFile(t, "testdata/neutral.jsonl", Auto))
	var ids, data []string
	for i, e := range recorded {
		assert.Equal(t, "demo_agent:s1", e.Subject)
		assert.Equal(t, "import/demo_agent", e.Source)
		ids = append(ids, e.ID)
		data = append(data, string(e.Data))
		if i == 1 {
			assert.Equal(t, "2026-03-01T09:00:01.25Z", e.Time.Format("2006-01-02T15:04:05.999Z07:00"))
		}
	}
	assert.Equal(t, []string{"demo_agent:s1", "msg:1", "msg:2", "call-1", "res:call-1", "call-2", "res:call-2", "res:call-9", "sum:1", "msg:3"}, ids)
	assert.Equal(t, []string{
		`{"title":"Fix the cart","agent":"demo_agent","model":"m-1","cwd":"/home/lea/shop"}`,
		`{"message_id":"msg:1","role":"user","content":"Why is the total <0>?","speaker":"Lea","session":"3"}`,
		`{"message_id":"msg:2","role":"assistant","content":"","reasoning":"Look at the cart.","model":"m-1","usage":{"input_tokens":12,"output_tokens":5}}`,
		`{"tool_call_id":"call-1","message_id":"msg:2","tool_name":"Read","arguments":{"path":"cart.go","n":1.50}}`,
		`{"tool_call_id":"call-1","success":true,"result":"total := 0","duration_ms":12.5}`,
		`{"tool_call_id":"call-2","message_id":"msg:2","tool_name":"List","arguments":{}}`,
		`{"tool_call_id":"call-2","result":{"files":["a","b"]}}`,
		`{"tool_call_id":"call-9","success":false,"result":"no such file","error":"no such file"}`,
		`{"message_id":"sum:1","role":"system","content":"The cart starts at zero.","origin":"compaction"}`,
		`{"message_id":"msg:3","role":"user","content":"Text of a skill","origin":"meta"}`,
	}, data)
}

func TestTimeWithoutZoneIsUTCAndMissingTimeIsZero(t *testing.T) {
	recorded := good(t, readFile(t, "testdata/neutral.jsonl", "neutral"))
	assert.Equal(t, "2026-03-01T09:00:04Z", recorded[6].Time.Format("2006-01-02T15:04:05Z07:00"))
	assert.True(t, recorded[5].Time.IsZero())
}

func TestAgentIsTheWordBeforeTheFirstColon(t *testing.T) {
	for id, source := range map[string]string{
		"codex:1": "import/codex", "gemini_cli:a:b": "import/gemini_cli", "r0-pi:x": "import/r0-pi",
		"": "import/neutral", "plain": "import/neutral", ":x": "import/neutral", "9a:x": "import/neutral", "two words:x": "import/neutral",
	} {
		assert.Equal(t, source, sourceOf(id), id)
	}
}

func TestInvalidNeutralLineIsRefusedWithTheReason(t *testing.T) {
	for line, reason := range map[string]string{
		`{"kind":"dream","conversation_id":"a:1","id":"x"}`:                                         `kind: "dream" is not one of conversation, message, tool_call, tool_result, summary`,
		`{"conversation_id":"a:1","id":"x"}`:                                                        "kind: is missing",
		`{"kind":"message","conversation_id":"a:1","id":"x","role":"user"}`:                         "content: is missing",
		`{"kind":"message","conversation_id":"a:1","role":"user","content":""}`:                     "id: is missing",
		`{"kind":"message","id":"x","role":"user","content":""}`:                                    "subject: is missing: it names the conversation",
		`{"kind":"message","conversation_id":"a:1","id":7}`:                                         "id: a JSON number does not fit here",
		`{"kind":"message","conversation_id":"a:1","id":"x","role":"user","content":"","time":"?"}`: `time: "?" is not RFC 3339`,
		`[1]`:  "is a JSON array, not an object",
		`null`: "kind: is missing",
	} {
		items := readAll(t, []byte(line+"\n"), "x", "neutral")
		require.Len(t, items, 1, line)
		require.NotNil(t, items[0].Err, line)
		assert.Equal(t, reason, items[0].Err.Reason, line)
		assert.Equal(t, "line 1: "+reason, items[0].Err.Error())
	}
	bad := readAll(t, []byte(`{"kind":"message","conversation_id":"a:1","id":"x","role":"poet","content":""}`), "x", "neutral")
	assert.ErrorIs(t, bad[0].Err, events.ErrInvalid)
}
