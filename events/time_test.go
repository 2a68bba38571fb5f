package events_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
)

func TestTimesAreReadAsRFC3339AllowsThem(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"2025-01-02T03:04:05Z":            "2025-01-02T03:04:05Z",
		"2025-01-02t03:04:05z":            "2025-01-02T03:04:05Z",
		"2025-01-02t03:04:05.123456z":     "2025-01-02T03:04:05.123456Z",
		"2025-01-02t03:04:05+01:30":       "2025-01-02T03:04:05+01:30",
		"2016-12-31T23:59:60Z":            "2016-12-31T23:59:59.999999999Z",
		"2016-12-31T23:59:60.5Z":          "2016-12-31T23:59:59.999999999Z",
		"1990-12-31T15:59:60-08:00":       "1990-12-31T15:59:59.999999999-08:00",
		"2017-01-01t00:59:60.25+01:00":    "2017-01-01T00:59:59.999999999+01:00",
		"2015-06-30t23:59:60z":            "2015-06-30T23:59:59.999999999Z",
		"2015-06-30T23:59:59.9999999999Z": "2015-06-30T23:59:59.999999999Z",
	} {
		got, err := events.ParseTime(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got.Format(time.RFC3339Nano), text)
		again, err := events.ParseTime(got.Format(time.RFC3339Nano))
		require.NoError(t, err)
		require.True(t, got.Equal(again), "what is stored is read as the same time")
	}
	for _, text := range []string{
		"", "60", "yesterday", "2025-01-02", "2025-01-02 03:04:05Z", "2025-01-02T03:04:05", "2025-01-02T03:04:60Z", "2016-12-30T23:59:60Z",
		"2016-12-31T23:59:60+01:00", "2016-12-31T23:59:61Z", "2016-12-31T22:59:60Z", "2025-13-02t03:04:05z", "2016-12-31T23:59:60", "2016-12-31T23:59:60é",
	} {
		_, err := events.ParseTime(text)
		require.Error(t, err, text)
	}
}

func TestALeapSecondAlwaysBecomesTheSameTime(t *testing.T) {
	t.Parallel()
	e, err := events.DecodeStructured([]byte(`{"specversion":"1.0","id":"1","source":"s","type":"t","time":"2016-12-31t23:59:60.25z"}`))
	require.NoError(t, err)
	first, err := events.EncodeStructured(e)
	require.NoError(t, err)
	require.Contains(t, string(first), `"time":"2016-12-31T23:59:59.999999999Z"`)
	e, err = events.DecodeStructured(first)
	require.NoError(t, err)
	second, err := events.EncodeStructured(e)
	require.NoError(t, err)
	require.Equal(t, string(first), string(second))
}

func TestAnIdentifierHoldsNoHalfOfASurrogatePair(t *testing.T) {
	t.Parallel()
	attributes := map[string]string{"id": `"1"`, "source": `"s"`, "subject": `"c"`, "type": `"dev.mneme.message.created.v1"`, "ext": `"x"`}
	event := func(changed, value, data string) []byte {
		body := `{"specversion":"1.0"`
		for name, own := range attributes {
			if name == changed {
				own = value
			}
			body += `,"` + name + `":` + own
		}
		return []byte(body + `,"data":` + data + `}`)
	}
	const good = `{"message_id":"m","role":"user","content":"x"}`
	for name := range attributes {
		_, err := events.DecodeStructured(event(name, `"a\ud83d"`, good))
		var invalid *events.Invalid
		require.ErrorAs(t, err, &invalid, name)
		require.Equal(t, name, invalid.Field)
		require.Contains(t, invalid.Reason, "half of a surrogate pair")
	}
	for kind, c := range map[string]struct{ data, field string }{
		"message.created":      {`{"message_id":"\ud83d","role":"user","content":"x"}`, "data.message_id"},
		"tool.called":          {`{"tool_call_id":"k\udc00","tool_name":"n","arguments":{}}`, "data.tool_call_id"},
		"tool.returned":        {`{"result":"\ud83d","tool_call_id":"k\ud83d\ud83d"}`, "data.tool_call_id"},
		"conversation.started": {`{"branched_from":{"conversation_id":"\ud83dx","message_id":"m"}}`, "data.branched_from.conversation_id"},
	} {
		e, err := events.DecodeStructured(event("type", `"dev.mneme.`+kind+`.v1"`, c.data))
		require.NoError(t, err)
		_, err = events.Record(e)
		var invalid *events.Invalid
		require.ErrorAs(t, err, &invalid, kind)
		require.Equal(t, c.field, invalid.Field)
		require.Contains(t, invalid.Reason, "half of a surrogate pair")
	}

	// Other text is kept as it was written, even if cut.
	e, err := events.DecodeStructured(event("", "", `{"message_id":"m😀","role":"user","content":"cut \ud83d","usage":{"id":"\ud83d","id":1}}`))
	require.NoError(t, err)
	r, err := events.Record(e)
	require.NoError(t, err)
	require.Equal(t, "cut \ufffd", r.Payload.(*events.MessageCreated).Content)
}
