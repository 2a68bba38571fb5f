package transcript

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
)

func TestCloudEventIsTakenUnchanged(t *testing.T) {
	e, err := events.New("c", "//agent/1", "id 1", &events.MessageCreated{MessageID: "m", Role: "user", Content: "é\n\u2028"})
	require.NoError(t, err)
	e.Time = time.Date(2026, 3, 1, 9, 0, 0, 123456789, time.FixedZone("", 3600))
	e.Extensions["traceparent"] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	e.Extensions["uuid"], e.Extensions["kind"] = "x", int32(7) // names that identify other formats
	e.DataSchema = "https://example.org/schema"
	line, err := events.EncodeStructured(e)
	require.NoError(t, err)
	for _, format := range []string{Auto, "cloudevents"} {
		items := readAll(t, append(line, '\n'), "x", format)
		require.Len(t, items, 1)
		require.Nil(t, items[0].Err)
		assert.True(t, e.Equal(&items[0].Event), "%+v", items[0].Event)
	}
}

func TestInvalidCloudEventIsRefusedWithTheReason(t *testing.T) {
	good := `{"specversion":"1.0","type":"dev.mneme.message.created.v1","source":"s","id":"1","subject":"c","data":{"message_id":"m","role":"user","content":"x"}}`
	items := readAll(t, bytes.Join([][]byte{
		[]byte(good),
		[]byte(`{"specversion":"1.0","type":"dev.mneme.message.created.v1","source":"s","subject":"c","data":{}}`),
		[]byte(`{"kind":"message","conversation_id":"a:1","id":"x","role":"user","content":""}`),
		[]byte(`[`),
		[]byte(`{"specversion":"1.0","type":"dev.mneme.message.created.v9","source":"s","id":"2","subject":"c","data":{}}`),
		[]byte(good + good),
	}, []byte("\n")), "x", Auto)
	reasons := refused(items)
	require.Len(t, reasons, 5)
	assert.Equal(t, "id: is missing", reasons[2])
	assert.Equal(t, "specversion: is missing", reasons[3])
	assert.Contains(t, reasons[4], "body: is")
	assert.Contains(t, reasons[5], "message.created.v9")
	assert.Contains(t, reasons[6], "body: ")
}
