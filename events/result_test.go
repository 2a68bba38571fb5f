package events

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestAResultIsWhatTheAgentRead(t *testing.T) {
	for _, c := range []struct{ json, text, again string }{
		{`""`, "", `""`},
		{`"plain"`, "plain", `"plain"`},
		{`"a\tb\n\"c\" \\ \/ \u003c\u00e9\ud83d\ude00"`, "a\tb\n\"c\" \\ / <é😀", `"a\tb\n\"c\" \\ / <é😀"`},
		{`"cut \ud83d"`, "cut \ufffd", "\"cut \ufffd\""},
		{`"line\u2028separator"`, "line\u2028separator", `"line\u2028separator"`},
		{`null`, "null", `null`},
		{`false`, "false", `false`},
		{`1.50e+3`, "1.50e+3", `1.50e+3`},
		{`{"a":"\u003c\u00e9 \/","b":"\u0001\n"}`, `{"a":"<é /","b":"\u0001\n"}`, `{"a":"<é /","b":"\u0001\n"}`},
		{"{ \"a\" : [ 1,\n2 ] }", `{"a":[1,2]}`, `{"a":[1,2]}`},
	} {
		e, _ := golden(t, TypeToolReturned)
		e.Data = []byte(`{"tool_call_id":"t","result":` + c.json + `}`)
		recorded, err := Record(e)
		require.NoError(t, err, c.json)
		p := recorded.Payload.(*ToolReturned)
		require.Equal(t, c.text, p.Text())
		require.False(t, p.Result.IsZero())
		require.Equal(t, p.Result, JSONResult([]byte(c.json)))

		made, err := New("c", "s", "1", &ToolReturned{ToolCallID: "t", Result: p.Result})
		require.NoError(t, err)
		require.Equal(t, `{"tool_call_id":"t","result":`+c.again+`}`, string(made.Data))

		var v1 ToolReturned
		require.NoError(t, json.Unmarshal(e.Data, &v1), "encoding/json reads it too")
		require.Equal(t, p, &v1)
	}
}

func TestAMissingOrMalformedResultIsRefused(t *testing.T) {
	for _, none := range []Result{{}, JSONResult(nil)} {
		require.True(t, none.IsZero())
		_, err := New("c", "s", "1", &ToolReturned{ToolCallID: "t", Result: none})
		requireRefused(t, "data.result", "is missing", err)
	}
	for _, broken := range []string{"{", `"a`, "a", `{}{}`, " "} {
		_, err := New("c", "s", "1", &ToolReturned{ToolCallID: "t", Result: JSONResult([]byte(broken))})
		require.Equal(t, "data", requireInvalid(t, err).Field, broken)
	}
}

func TestEveryTextComesBackAsAResult(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		text := genText(0, 200).Draw(r, "text")
		made, err := New("c", "s", "1", &ToolReturned{ToolCallID: "t", Result: TextResult(text)})
		require.NoError(r, err)
		recorded, err := Record(made)
		require.NoError(r, err)
		require.Equal(r, text, recorded.Payload.(*ToolReturned).Text())
		require.Equal(r, TextResult(text), recorded.Payload.(*ToolReturned).Result)
	})
}

func TestEveryJSONComesBackAsAResultWithoutItsWhiteSpace(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		raw := genJSON(rapid.SampledFrom([]string{"", " ", "\n\t"}).Draw(r, "space")).Draw(r, "json")
		var result Result
		if err := result.UnmarshalJSON(raw); err != nil {
			require.ErrorContains(r, err, "duplicate object member name")
			r.Skip("a name was drawn twice")
		}
		require.Equal(r, string(compact(raw)), result.Text())
		require.Equal(r, result, JSONResult(raw))
		again, err := json.Marshal(ToolReturned{ToolCallID: "t", Result: result})
		require.NoError(r, err)
		var back ToolReturned
		require.NoError(r, json.Unmarshal(again, &back))
		require.JSONEq(r, result.Text(), back.Text())
	})
}

// Models do write a name twice, and what they wrote is a fact.
func TestANameGivenTwiceInsideArgumentsIsKeptAsItIs(t *testing.T) {
	for _, c := range []struct{ eventType, data string }{
		{TypeToolCalled, `{"tool_call_id":"t","tool_name":"x","arguments":{"path":"a","path":"b"}}`},
		{TypeToolReturned, `{"tool_call_id":"t","result":{"a":1,"a":2}}`},
	} {
		e := Event{SpecVersion: "1.0", ID: "1", Source: "s", Type: c.eventType, Subject: "c", Data: []byte(c.data)}
		recorded, err := Record(e)
		require.NoError(t, err)
		switch p := recorded.Payload.(type) {
		case *ToolCalled:
			require.Equal(t, `{"path":"a","path":"b"}`, string(p.Arguments))
		case *ToolReturned:
			require.Equal(t, `{"a":1,"a":2}`, p.Text())
		}
	}
}

func TestTheEncoderDoesNotChangeTheTextOfArguments(t *testing.T) {
	python := &ToolCalled{Arguments: json.RawMessage(`{"pattern": "caf\u00e9", "path": "a\/b"}`)}
	require.Equal(t, `{"pattern":"café","path":"a/b"}`, python.Text())
}
