package events

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestForeignTypesAreReverseDomainNamesOfOthers(t *testing.T) {
	for _, eventType := range []string{"com.example.t", "com.github.pull_request.opened", "org.example-2.Build.v1", "dev.mnemeother.x.v1", "dev.other.mneme"} {
		require.True(t, IsForeign(eventType), eventType)
	}
	for _, eventType := range append(Types(), "", "t", "com.example", "com..example", ".com.example", "com.example.", "com.example.a b", "com.example.ä",
		"dev.mneme.message.created.v2", "dev.mneme.anything", "Dev.Mneme.message.created.v1") {
		require.False(t, IsForeign(eventType), eventType)
	}
}

func TestAForeignEventIsValidWhateverItsData(t *testing.T) {
	for name, e := range map[string]Event{
		"JSON":    {DataContentType: "application/json", Data: []byte(`{"x":1}`)},
		"bytes":   {DataContentType: "application/octet-stream", Data: []byte{0, 0xff}},
		"no data": {},
		"largest": {DataContentType: "text/plain", Data: []byte(strings.Repeat("x", MaxEventBytes))},
	} {
		e.SpecVersion, e.ID, e.Source, e.Type, e.Subject = "1.0", "1", "s", "com.example.build.finished", "c"
		r, err := Record(e)
		require.NoError(t, err, name)
		require.Equal(t, &Foreign{Type: e.Type, Data: e.Data}, r.Payload, name)
		require.Equal(t, "other", Kind(e.Type))

		header, body := EncodeMessage(e)
		again, err := RecordMessage(header, body)
		require.NoError(t, err, name)
		require.Equal(t, e.Content(), again.Content(), name)
	}
	fields := Event{SpecVersion: "1.0", ID: "1", Source: "s", Type: "com.example.build.finished"}
	_, err := Record(fields)
	require.ErrorContains(t, err, "subject")
	fields.Subject, fields.Data = "c", make([]byte, MaxEventBytes+1)
	_, err = Record(fields)
	require.ErrorContains(t, err, "the limit is")

	published, err := New("c", "s", "1", &Foreign{Type: "com.example.build.finished", Data: []byte(`{"ok":true}`)})
	require.NoError(t, err)
	require.JSONEq(t, `{"ok":true}`, string(published.Data))
	_, err = New("c", "s", "1", &Foreign{Type: "build.finished"})
	require.ErrorIs(t, err, ErrInvalid)
}
