package events

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestARefusalOfStructuredModeNamesTheFieldAndTheReason(t *testing.T) {
	with := func(member string) string {
		return `{"specversion":"1.0","id":"1","source":"s","type":"t",` + member + `}`
	}
	for _, c := range []struct{ name, body, field, reason string }{
		{"empty", ``, "body", "is not a JSON object: unexpected EOF"},
		{"cut", `{"id":"1"`, "body", "unexpected EOF"},
		{"no JSON", `id: 1`, "body", "is not a JSON object: invalid character 'i'"},
		{"a list", `[]`, "body", "is a JSON array, not an object: several events are a batch, with the content type application/cloudevents-batch+json"},
		{"null", `null`, "body", "is JSON but not an object"},
		{"two objects", with(`"data":1`) + `{}`, "body", "continues after its JSON object"},
		{"not UTF-8", with("\"data\":\"\xff\""), "body", "is not UTF-8"},
		{"over 8 MiB", with(`"data":"` + strings.Repeat("x", MaxEventBytes) + `"`), "body", "the limit is 8388608"},
		{"attribute twice", with(`"id":"2"`), "id", "is given 2 times"},
		{"null id", `{"specversion":"1.0","id":null,"source":"s","type":"t"}`, "id", "is missing"},
		{"no source", `{"specversion":"1.0","id":"1","type":"t"}`, "source", "is missing"},
		{"specversion as a number", `{"specversion":1.0,"id":"1","source":"s","type":"t"}`, "specversion", "is 1.0, not a string"},
		{"subject as a number", with(`"subject":7`), "subject", "is 7, not a string"},
		{"time as a number", with(`"time":1700000000`), "time", "is 1700000000, not a string"},
		{"empty time", with(`"time":""`), "time", `"" is not RFC 3339`},
		{"empty name", with(`"":"x"`), "body", "has a member without a name"},
		{"number with a fraction", with(`"ext":1.5`), "ext", "is 1.5; numbers in attributes must be 32-bit integers"},
		{"number over 32 bits", with(`"ext":2147483648`), "ext", "32-bit integers"},
		{"list", with(`"ext":[]`), "ext", "is a JSON object or array"},
		{"base64 as a number", with(`"data_base64":5`), "data_base64", "is not a JSON string"},
		{"broken base64", with(`"data_base64":"a"`), "data_base64", "is not base64"},
		{"text as an object", with(`"datacontenttype":"text/plain","data":{}`), "data", `is not a JSON string, as data of type "text/plain" must be`},
		{"base64 of data that is not UTF-8", with(`"data_base64":"/w=="`), "data", "is not UTF-8"},
		{"0.3 with base64", `{"specversion":"0.3","id":"1","source":"s","type":"t","datacontentencoding":"base64","data":"AA=="}`, "datacontentencoding", "send CloudEvents 1.0"},
		{"0.3 with data_base64", `{"specversion":"0.3","id":"1","source":"s","type":"t","data_base64":"AA=="}`, "data_base64", "does not exist in CloudEvents 0.3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := DecodeStructured([]byte(c.body))
			requireRefused(t, c.field, c.reason, err)
		})
	}
}

func TestStructuredModeIgnoresAttributesInHeaders(t *testing.T) {
	header := map[string][]string{
		"content-type": {ContentTypeEvent + "; charset=utf-8"}, "ce-id": {"1", "2"}, "CE-Time": {"yesterday"}, "ce-source": {"%ff"},
	}
	body := []byte(`{"specversion":"1.0","id":"3","source":"s","type":"t","data": {"a":1} }`)
	e, err := DecodeMessage(header, body)
	require.NoError(t, err)
	require.True(t, e.Equal(&Event{SpecVersion: "1.0", ID: "3", Source: "s", Type: "t", Data: []byte(`{"a":1}`)}))
	clear(body)
	require.Equal(t, `{"a":1}`, string(e.Data), "it does not alias the body")
}

func TestSplitBatchRefusesAnythingButAnArray(t *testing.T) {
	for body, reason := range map[string]string{
		``: "is not a JSON array", `{}`: "is JSON but not an array: one event alone has the content type application/cloudevents+json", `null`: "is JSON but not an array", `[1`: "is not a JSON array", `[1 2]`: "is not a JSON array", `[1] 2`: "continues after",
	} {
		_, err := SplitBatch([]byte(body), 10)
		requireRefused(t, "body", reason, err)
	}
	parts, err := SplitBatch([]byte(` [ {"a" : 1, "a":"\ud800"},5 , []] `), 3)
	require.NoError(t, err)
	require.Equal(t, []json.RawMessage{json.RawMessage(`{"a" : 1, "a":"\ud800"}`), json.RawMessage(`5`), json.RawMessage(`[]`)}, parts)
}

// Each of many tiny events would take far more memory in a list than in the body.
func TestABatchOfTooManyEventsIsRefusedBeforeItIsSplit(t *testing.T) {
	body := []byte("[0" + strings.Repeat(",0", 1<<20) + "]")
	result := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			_, err := SplitBatch(body, 1_000)
			requireRefused(t, "body", "has more than 1000 events", err)
		}
	})
	require.Less(t, result.AllocedBytesPerOp(), int64(len(body)))
}

func TestEncodeStructuredRefusesUnreadableEvents(t *testing.T) {
	valid := Event{SpecVersion: "1.0", ID: "1", Source: "s", Type: "t"}
	for field, change := range map[string]func(*Event){
		"id":    func(e *Event) { e.ID = "" },
		"type":  func(e *Event) { e.Type = "\xff" },
		"my-x":  func(e *Event) { e.Extensions = map[string]any{"my-x": "1"} },
		"body":  func(e *Event) { e.Data = make([]byte, MaxEventBytes+1) },
		"time":  func(e *Event) { e.Time = e.Time.AddDate(20000, 0, 0) },
		"data":  func(e *Event) { e.SpecVersion, e.DataContentType, e.Data = "0.3", "a/b", []byte{0} },
		"xdata": func(e *Event) { e.Extensions = map[string]any{"xdata": strings.Repeat("x", MaxExtensionBytes+1)} },
	} {
		e := valid
		change(&e)
		_, err := EncodeStructured(e)
		require.Equal(t, field, requireInvalid(t, err).Field)
	}
}

func TestASubjectIsRefusedWithTheFieldOfItsPart(t *testing.T) {
	for _, c := range []struct {
		address       Address
		field, reason string
	}{
		{Address{Conversation: "c", Kind: "k"}, "tenant", "is missing"},
		{Address{Tenant: "t", Kind: "k"}, "subject", "is missing"},
		{Address{Tenant: "t", Conversation: "c"}, "type", "is missing"},
		{Address{Tenant: strings.Repeat("t", 129), Conversation: "c", Kind: "k"}, "tenant", "the limit is 128"},
		{Address{Tenant: "t", Conversation: strings.Repeat("c", 513), Kind: "k"}, "subject", "the limit is 512"},
		{Address{Tenant: "t", Conversation: "\xff", Kind: "k"}, "subject", "is not UTF-8"},
	} {
		_, err := c.address.Subject()
		requireRefused(t, c.field, c.reason, err)
	}
	for subject, reason := range map[string]string{
		"":                              "begins with neither",
		"other.t.c.k":                   "begins with neither",
		"mneme.t.c":                     "has 2 tokens",
		"mneme.t.c.d.k":                 "has 4 tokens",
		"mneme..c.k":                    "is empty",
		"mneme.t.*.k":                   "must be escaped",
		"mneme.t.\xe9.k":                `holds the byte "\xe9"`,
		"mneme.t.%2e.k":                 "two upper-case hex digits",
		"mneme.t.%41.k":                 "only where needed",
		"mneme.t.%2.k":                  "ends inside an escape",
		"mneme.t.%FF.k":                 "is not UTF-8",
		"ev.01.t.c.k":                   "is not a partition number",
		"ev.-1.t.c.k":                   "is not a partition number",
		"ev.99999999999999999999.t.c.k": "is not a partition number",
		"mneme.t." + strings.Repeat("c", 513) + ".k": "is 513 bytes long, the limit is 512",
	} {
		_, err := ParseSubject(subject)
		requireRefused(t, "subject token", reason, err)
	}
}
