package events

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// refusal is what a producer sees: the field, and words of the reason.
type refusal struct {
	name   string
	change func(*message)
	field  string
	reason string
}

// message is a valid binary message, which each case then breaks.
type message struct {
	header map[string][]string
	body   string
}

func (m *message) set(name, value string) { m.header[name] = []string{value} }

func validMessage() *message {
	return &message{
		header: map[string][]string{
			"ce-specversion": {"1.0"}, "ce-id": {"1"}, "ce-source": {"s"}, "ce-type": {TypeMessageCreated}, "ce-subject": {"c"},
			"ce-datacontenttype": {"application/json"},
		},
		body: `{"message_id":"m","role":"user","content":"hi"}`,
	}
}

func header(name, value string) func(*message) { return func(m *message) { m.set(name, value) } }
func without(name string) func(*message)       { return func(m *message) { delete(m.header, name) } }
func body(s string) func(*message)             { return func(m *message) { m.body = s } }

func TestARefusalNamesTheFieldAndTheReason(t *testing.T) {
	long := strings.Repeat("i", MaxIDBytes+1)
	for _, c := range []refusal{
		{"no header at all", func(m *message) { m.header = nil }, "content-type", "is not a CloudEvent: send binary mode (ce-id, ce-source, …) or application/cloudevents+json"},
		{"a batch", header("Content-Type", ContentTypeBatch), "content-type", "a batch is not a single event"},
		{"an Avro event", header("Content-Type", "application/cloudevents+avro"), "content-type", `"application/cloudevents+avro" is not supported`},
		{"two content types", func(m *message) { m.set("Content-Type", "a/b"); m.set("content-type", "a/b") }, "content-type", "more than once"},
		{"no specversion", without("ce-specversion"), "specversion", "is missing"},
		{"no id", without("ce-id"), "id", "is missing"},
		{"no source", without("ce-source"), "source", "is missing"},
		{"no type", without("ce-type"), "type", "is missing"},
		{"no subject", without("ce-subject"), "subject", "is missing: it names the conversation"},
		{"empty id", header("ce-id", ""), "id", "is missing"},
		{"empty quoted id", header("ce-id", `""`), "id", "is missing"},
		{"CloudEvents 0.3", header("ce-specversion", "0.3"), "specversion", "send 1.0"},
		{"CloudEvents 2.0", header("ce-specversion", "2.0"), "specversion", `"2.0" is not a known version of CloudEvents`},
		{"long id", header("ce-id", long), "id", "is 513 bytes long, the limit is 512"},
		{"long subject", header("ce-subject", long), "subject", "is 513 bytes long, the limit is 512"},
		{"long type", header("ce-type", long), "type", "is 513 bytes long, the limit is 512"},
		{"long source", header("ce-source", long+long), "source", "is 1026 bytes long, the limit is 1024"},
		{"long extension", header("ce-tracestate", strings.Repeat("t", 4097)), "tracestate", "is 4097 bytes long, the limit is 4096"},
		{"header that is not UTF-8", header("ce-id", "\xff"), "id", "is not UTF-8"},
		{"escape that is not UTF-8", header("ce-subject", "%C0%A0"), "subject", "is not UTF-8"},
		{"header twice", func(m *message) { m.header["ce-id"] = []string{"1", "2"} }, "id", "is given 2 times"},
		{"header twice in other cases", header("CE-ID", "1"), "id", "is given 2 times"},
		{"extension with a dash", header("ce-my-ext", "x"), "my-ext", "is not an attribute name"},
		{"extension called data", header("ce-data", "x"), "data", "an extension needs another name"},
		{"time in words", header("ce-time", "yesterday"), "time", `"yesterday" is not RFC 3339`},
		{"time without a zone", header("ce-time", "2025-01-02T03:04:05"), "time", "is not RFC 3339"},
		{"time after the year 9999", header("ce-time", "9999-12-31T23:59:59-01:00"), "time", "is in the year 10000 UTC"},
		{"unknown type", header("ce-type", "dev.mneme.thing.done.v1"), "type", `"dev.mneme.thing.done.v1" is not known to this version; known are dev.mneme.code.indexed.v1`},
		{"type without a domain", header("ce-type", "example.t"), "type", `"example.t" is not known to this version`},
		{"type of a later version", header("ce-type", "dev.mneme.message.created.v2"), "type", `"dev.mneme.message.created.v2" is not known to this version`},
		{"text data", header("ce-datacontenttype", "text/plain"), "datacontenttype", `"text/plain" is not JSON`},
		{"no data", body(""), "data", "is missing"},
		{"over 8 MiB", body(strings.Repeat(" ", MaxEventBytes+1)), "body", "is 8388609 bytes long, the limit is 8388608"},
		{"data that is not UTF-8", body("{\"message_id\":\"\xff\"}"), "data", "is not UTF-8"},
		{"broken JSON", body(`{"message_id":`), "data.message_id", "is not JSON: unexpected EOF after byte 14"},
		{"broken escape", body(`{"message_id":"m","content":"\x"}`), "data.content", "is not JSON: invalid escape sequence `\\x` in string after byte 29"},
		{"half of an object", body(`{"message_id":"m","usage":{"a":[1,{"b":2`), "data.usage.a[1]", "is not JSON: unexpected EOF"},
		{"member twice", body(`{"message_id":"m","role":"user","content":"","role":"user"}`), "data.role", "is given 2 times"},
		{"unknown member twice", body(`{"message_id":"m","x":1,"role":"user","content":"","x":2}`), "data.x", "is given 2 times"},
		{"long member twice", body(`{"message_id":"m","` + strings.Repeat("é", 500) + `":1,"` + strings.Repeat("é", 500) + `":1}`), "data." + strings.Repeat("é", 125) + "…", "is given 2 times"},
		{"member in another case", body(`{"Message_ID":"m","role":"user","content":""}`), "data.message_id", "is missing"},
		{"null content", body(`{"message_id":"m","role":"user","content":null}`), "data.content", "is missing"},
		{"null in the place of an id", body(`{"message_id":null,"role":"user","content":""}`), "data.message_id", "is missing"},
		{"integer beyond 64 bits", body(`{"message_id":"m","role":"user","content":"","references":[{"file":"f"},{"file":"f","start_line":9223372036854775808}]}`), "data.references[1].start_line", "is a JSON number 9223372036854775808, not a 64-bit integer"},
		{"white space", body(" \n"), "data", "is not JSON: unexpected EOF"},
		{"no JSON", body(`hello`), "data", "is not JSON: invalid character 'h'"},
		{"JSON twice", body(`{} {}`), "data", "is not JSON: invalid character '{' after top-level value"},
		{"null", body(` null `), "data", "is null, not an object"},
		{"a list", body(`[]`), "data", "is a JSON array, not an object"},
		{"content in parts", body(`{"message_id":"m","role":"user","content":[]}`), "data.content", "is a JSON array, not a string"},
		{"no content", body(`{"message_id":"m","role":"user"}`), "data.content", "is missing"},
		{"no message_id", body(`{"role":"user","content":""}`), "data.message_id", "is missing"},
		{"long message_id", body(`{"message_id":"` + long + `","role":"user","content":""}`), "data.message_id", "is 513 bytes long, the limit is 512"},
		{"no role", body(`{"message_id":"m","content":""}`), "data.role", "is missing"},
		{"a role of another API", body(`{"message_id":"m","role":"tool","content":""}`), "data.role", `"tool" is none of ["user" "assistant" "system"]`},
		{"reference without a file", body(`{"message_id":"m","role":"user","content":"","references":[{"file":"f"},{}]}`), "data.references[1].file", "is missing"},
		{"negative line", body(`{"message_id":"m","role":"user","content":"","references":[{"file":"f","end_line":-1}]}`), "data.references[0]", "has a negative line"},
		{"line with a fraction", body(`{"message_id":"m","role":"user","content":"","references":[{"file":"f","end_line":1.5}]}`), "data.references[0].end_line", "is a JSON number 1.5, not a 64-bit integer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := validMessage()
			c.change(m)
			requireRefused(t, c.field, c.reason, decodeAndRecord(m))
		})
	}
	require.NoError(t, decodeAndRecord(validMessage()), "what the table breaks is valid before")
}

func decodeAndRecord(m *message) error {
	e, err := DecodeMessage(m.header, []byte(m.body))
	if err == nil {
		_, err = Record(e)
	}
	return err
}

func requireRefused(t *testing.T, field, reason string, err error) {
	t.Helper()
	got := requireInvalid(t, err)
	require.Equal(t, field, got.Field, got.Reason)
	require.Contains(t, got.Reason, reason)
	require.Equal(t, got.Field+": "+got.Reason, err.Error())
}

func TestARefusalOfDataNamesTheFieldOfEachType(t *testing.T) {
	summary := `{"summary_id":"s","level":%d,"first_seq":%d,"last_seq":%d,"first_turn":%d,"last_turn":%d,"method":"%s","conversation":""}`
	condensed := `{"tool_call_id":"t","content":"","model":"m","chars_in":%d,"chars_out":%d}`
	for _, c := range []struct{ name, eventType, data, field, reason string }{
		{"context size below 0", TypeConversationStarted, `{"max_context_chars":-1}`, "data.max_context_chars", "is negative"},
		{"branch of nothing", TypeConversationStarted, `{"branched_from":{}}`, "data.branched_from.conversation_id", "is missing"},
		{"branch at nothing", TypeConversationStarted, `{"branched_from":{"conversation_id":"c"}}`, "data.branched_from.message_id", "is missing"},
		{"tags as text", TypeConversationStarted, `{"tags":"a,b"}`, "data.tags", "is a JSON string, not an array"},
		{"status", TypeConversationUpdated, `{"status":"closed"}`, "data.status", `"closed" is none of ["active" "archived"]`},
		{"reason as a number", TypeConversationDeleted, `{"reason":1}`, "data.reason", "is a JSON number, not a string"},
		{"call without its id", TypeToolCalled, `{"tool_name":"n","arguments":{}}`, "data.tool_call_id", "is missing"},
		{"call without a name", TypeToolCalled, `{"tool_call_id":"t","arguments":{}}`, "data.tool_name", "is missing"},
		{"call without arguments", TypeToolCalled, `{"tool_call_id":"t","tool_name":"n"}`, "data.arguments", "is missing"},
		{"result without its id", TypeToolReturned, `{"result":""}`, "data.tool_call_id", "is missing"},
		{"return without a result", TypeToolReturned, `{"tool_call_id":"t"}`, "data.result", "is missing"},
		{"success as text", TypeToolReturned, `{"tool_call_id":"t","result":"","success":"yes"}`, "data.success", "is a JSON string, not true or false"},
		{"file without a path", TypeToolReturned, `{"tool_call_id":"t","result":"","files":[{"op":"read"}]}`, "data.files[0].path", "is missing"},
		{"file operation", TypeToolReturned, `{"tool_call_id":"t","result":"","files":[{"path":"p","op":"read"},{"path":"p","op":"rm"}]}`, "data.files[1].op", `"rm" is none of ["read" "write" "edit" "search" "list"]`},
		{"level 0", TypeSummaryWritten, fmt.Sprintf(summary, 0, 1, 1, 1, 1, "llm"), "data.level", "is 0, the lowest is 1"},
		{"sequence 0", TypeSummaryWritten, fmt.Sprintf(summary, 1, 0, 1, 1, 1, "llm"), "data.first_seq", "0 to 1 is not a range of sequences"},
		{"negative sequence", TypeSummaryWritten, fmt.Sprintf(summary, 1, -1, 1, 1, 1, "llm"), "data.first_seq", "is a JSON number -1, not a non-negative 64-bit integer"},
		{"sequences the wrong way", TypeSummaryWritten, fmt.Sprintf(summary, 1, 5, 4, 1, 1, "llm"), "data.first_seq", "5 to 4 is not a range of sequences"},
		{"sequences over 63 bits", TypeSummaryWritten, `{"summary_id":"s","level":1,"first_seq":1,"last_seq":9223372036854775808,"method":"llm","conversation":""}`, "data.first_seq", "1 to 9223372036854775808 is not a range of sequences"},
		{"turns the wrong way", TypeSummaryWritten, fmt.Sprintf(summary, 1, 1, 1, 3, 2, "llm"), "data.first_turn", "3 to 2 is not a range of turns"},
		{"method", TypeSummaryWritten, fmt.Sprintf(summary, 1, 1, 1, 1, 1, "human"), "data.method", `"human" is none of ["llm" "extractive"]`},
		{"no conversation", TypeSummaryWritten, `{"summary_id":"s","level":1,"first_seq":1,"last_seq":1,"method":"llm"}`, "data.conversation", "is missing"},
		{"null conversation", TypeSummaryWritten, `{"summary_id":"s","level":1,"first_seq":1,"last_seq":1,"method":"llm","conversation":null}`, "data.conversation", "is missing"},
		{"negative turn count", TypeSummaryWritten, `{"summary_id":"s","level":1,"first_seq":1,"last_seq":1,"method":"llm","conversation":"","turn_count":-1}`, "data.turn_count", "is negative"},
		{"negative input of a summary", TypeSummaryWritten, `{"summary_id":"s","level":1,"first_seq":1,"last_seq":1,"method":"llm","conversation":"","chars_in":-1}`, "data.chars_in", "is negative"},
		{"negative output of a summary", TypeSummaryWritten, `{"summary_id":"s","level":1,"first_seq":1,"last_seq":1,"method":"llm","conversation":"","chars_out":-1}`, "data.chars_out", "is negative"},
		{"negative iteration", TypeToolCalled, `{"tool_call_id":"t","tool_name":"n","arguments":{},"iteration":-1}`, "data.iteration", "is negative"},
		{"negative duration", TypeToolReturned, `{"tool_call_id":"t","result":"","duration_ms":-0.5}`, "data.duration_ms", "is negative"},
		{"duration beyond a double", TypeToolReturned, `{"tool_call_id":"t","result":"","duration_ms":1e999}`, "data.duration_ms", "is a JSON number 1e999, not a double-precision number"},
		{"broken result", TypeToolReturned, `{"tool_call_id":"t","result":{"a":[1,tru]}}`, "data.result.a[1]", "is not JSON: invalid character ']' in literal true"},
		{"condensed by nobody", TypeToolCondensed, `{"tool_call_id":"t","content":""}`, "data.model", "is missing"},
		{"negative input of a condensation", TypeToolCondensed, fmt.Sprintf(condensed, -1, 0), "data.chars_in", "is negative"},
		{"negative output of a condensation", TypeToolCondensed, fmt.Sprintf(condensed, 0, -1), "data.chars_out", "is negative"},
		{"condensed nothing", TypeToolCondensed, `{"content":""}`, "data.tool_call_id", "is missing"},
		{"served as of nothing", TypeContextServed, `{"hash":"x","max_chars":500,"strategy":"recent"}`, "data.as_of", "0 is not a sequence"},
		{"a memory file above its folder", TypeMemoryChanged, `{"path":"notes/../../x","content":""}`, "data.path", "is no path"},
		{"an absolute memory file", TypeMemoryChanged, `{"path":"/etc/passwd","content":""}`, "data.path", "is no path"},
		{"a memory file with an encoded path", TypeMemoryChanged, `{"path":"%2e%2e/x"}`, "data.path", "is no path"},
		{"a memory file that moves out of its folder", TypeMemoryChanged, `{"path":"a","moved_to":"../a"}`, "data.moved_to", "is no path"},
		{"a memory file without a path", TypeMemoryChanged, `{"content":"x"}`, "data.path", "is no path"},
		{"a memory file over the limit", TypeMemoryChanged, `{"path":"a","content":"` + strings.Repeat("x", MaxMemoryFileBytes+1) + `"}`, "data.content", "the limit is 65536"},
		{"a memory path over the limit", TypeMemoryChanged, `{"path":"` + strings.Repeat("x", MaxMemoryPathBytes+1) + `"}`, "data.path", "the limit is 256"},
		{"an insight that is no object", TypeInsightWritten, `{"task":"session","answer":["x"],"model":"m"}`, "data.answer", "is a JSON array, not an object"},
		{"an insight without an answer", TypeInsightWritten, `{"task":"session","model":"m"}`, "data.answer", "is missing"},
		{"a withdrawal of an event without a source", TypeLessonWithdrawn, `{"event_id":"x"}`, "data.event_source", "is missing"},
		{"a withdrawal of an event without an id", TypeLessonWithdrawn, `{"event_source":"s"}`, "data.event_id", "is missing"},
		{"a withdrawal of an event with a long source", TypeLessonWithdrawn, `{"event_source":"` + strings.Repeat("x", MaxSourceBytes+1) + `","event_id":"x"}`, "data.event_source", "the limit is 1024"},
		{"a file of no project", TypeCodeIndexed, `{"project":"","path":"a.go","hash":"` + strings.Repeat("a", 64) + `"}`, "data.project", "is missing"},
		{"a file outside of its folder", TypeCodeIndexed, `{"project":"p","path":"../a.go","hash":"` + strings.Repeat("a", 64) + `"}`, "data.path", "is no path of a file below a folder"},
		{"a file with a long path", TypeCodeIndexed, `{"project":"p","path":"` + strings.Repeat("a", 1025) + `","hash":"` + strings.Repeat("a", 64) + `"}`, "data.path", "the limit is 1024"},
		{"a file with a wrong hash", TypeCodeIndexed, `{"project":"p","path":"a.go","hash":"12"}`, "data.hash", "is not a SHA-256 in hex"},
		{"a scope of no kind", TypeCodeIndexed, `{"project":"p","path":"a.go","hash":"` + strings.Repeat("a", 64) + `","scopes":[{"kind":"x","start_line":1,"end_line":1,"text":"x"}]}`, "data.scopes[0].kind", "is none of"},
		{"a scope of no lines", TypeCodeIndexed, `{"project":"p","path":"a.go","hash":"` + strings.Repeat("a", 64) + `","scopes":[{"kind":"type","start_line":2,"end_line":1,"text":"x"}]}`, "data.scopes[0].end_line", "is not a range of lines"},
		{"too many scopes", TypeCodeIndexed, `{"project":"p","path":"a.go","hash":"` + strings.Repeat("a", 64) + `","scopes":[` + strings.Repeat(`{"kind":"type","start_line":1,"end_line":1,"text":"x"},`, MaxCodeScopes) + `{"kind":"type","start_line":1,"end_line":1,"text":"x"}]}`, "data.scopes", "the limit is 1000"},
		{"a scan of no folder", TypeCodeScanned, `{"project":"p"}`, "data.root", "is missing"},
		{"a chapter of nothing", TypeStoryWritten, `{"project":"p","names":["p"],"level":1,"told":[],"conversation":"","method":"llm"}`, "data.told", "is empty"},
		{"a chapter of nobody", TypeStoryWritten, `{"project":"p","names":["p"],"level":1,"told":[{"id":""}],"conversation":"","method":"llm"}`, "data.told[0].id", "is missing"},
		{"a chapter of too much", TypeStoryWritten, `{"project":"p","names":["p"],"level":1,"told":[` + strings.Repeat(`{"id":"c"},`, MaxTold) + `{"id":"c"}],"conversation":"","method":"llm"}`, "data.told", "the limit is 1024"},
		{"a chapter of level 0", TypeStoryWritten, `{"project":"p","names":["p"],"level":0,"told":[{"id":"c"}],"conversation":"","method":"llm"}`, "data.level", "the lowest is 1"},
		{"a chapter of no project", TypeStoryWritten, `{"project":"","names":["p"],"level":1,"told":[{"id":"c"}],"conversation":"","method":"llm"}`, "data.project", "is missing"},
		{"served without a hash", TypeContextServed, `{"as_of":1,"max_chars":500,"strategy":"recent"}`, "data.hash", "is not a SHA-256 in hex"},
		{"condensed to nothing", TypeToolCondensed, `{"tool_call_id":"t"}`, "data.content", "is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := validMessage()
			m.set("ce-type", c.eventType)
			m.body = c.data
			requireRefused(t, c.field, c.reason, decodeAndRecord(m))
		})
	}
}

func TestAnEventWithSeveralFaultsIsAlwaysRefusedForTheSame(t *testing.T) {
	long := strings.Repeat("x", MaxExtensionBytes+1)
	for name, c := range map[string]struct {
		decode func() (Event, error)
		field  string
	}{
		"headers that are broken": {func() (Event, error) {
			m := validMessage()
			m.header["ce-id"], m.header["ce-source"], m.header["ce-time"], m.header["ce-subject"] = []string{"%FF"}, []string{"a", "b"}, []string{"noon"}, []string{"%FE"}
			return DecodeMessage(m.header, []byte(m.body))
		}, "id: is not UTF-8"},
		"a header given twice, once broken": {func() (Event, error) {
			m := validMessage()
			m.set("CE-Time", "noon")
			m.set("ce-time", "2025-03-14T09:26:53Z")
			return DecodeMessage(m.header, []byte(m.body))
		}, `time: "noon"`},
		"extensions in headers": {func() (Event, error) {
			m := validMessage()
			m.set("ce-b", long)
			m.set("ce-a_", "1")
			m.set("ce-c-", "1")
			m.set("ce-d", long)
			return DecodeMessage(m.header, []byte(m.body))
		}, "a_: is not an attribute name"},
		"members": {func() (Event, error) {
			return DecodeStructured([]byte(`{"specversion":"1.0","id":1,"source":2,"type":true,"subject":{},"time":"noon","b":[],"a":1.5,"c":{}}`))
		}, "a: is 1.5"},
	} {
		for range 50 {
			_, err := c.decode()
			require.ErrorContains(t, err, c.field, name)
		}
	}
}
