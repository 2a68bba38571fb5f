package events

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzDecodeMessage reads header lines ("name: value") and a body. Accepted input must survive both
// modes; refused input must have a reason.
func FuzzDecodeMessage(f *testing.F) {
	for _, eventType := range Types() {
		full, minimal := golden(f, eventType)
		for _, e := range []Event{full, minimal} {
			header, body := EncodeMessage(e)
			f.Add(headerLines(header), body)
		}
	}
	f.Add("Content-Type: application/cloudevents+json", []byte(`{"specversion":"1.0","id":"1","source":"s","type":"t"}`))
	f.Add("CE-ID: \"a b\"\nce-source: %e2%82%ac\nce-type: t\nce-specversion: 0.3\nce-schemaurl: u\nContent-Type: text/plain", []byte("x"))
	f.Add("ce-specversion: 1.0\nce-id: 1\nce-source: s\nce-subject: c\nce-type: com.example.build.finished", []byte("\xff"))
	f.Add("ce-id: 1\nce-id: 2\nce-time: 9999-12-31T23:59:59-01:00\nce-: x\nce-data: y", []byte(" "))
	f.Fuzz(func(t *testing.T, lines string, body []byte) {
		header := map[string][]string{}
		for line := range strings.Lines(lines) {
			name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
			header[name] = append(header[name], value)
		}
		e, err := DecodeMessage(header, body)
		requireSoundDecode(t, e, err)
	})
}

func FuzzDecodeStructured(f *testing.F) {
	for _, eventType := range Types() {
		batch, err := os.ReadFile(filepath.Join("testdata", "golden", eventType+".json"))
		require.NoError(f, err)
		parts, err := SplitBatch(batch, 1_000)
		require.NoError(f, err)
		for _, part := range parts {
			f.Add([]byte(part))
		}
	}
	f.Add([]byte(`{"specversion":"1.0","id":"1","source":"HTTP://a b","type":"t","data_base64":"AP8=","datacontenttype":"a/b","n":-5,"b":true,"z":null}`))
	f.Add([]byte(`{"specversion":"0.3","id":"1","source":"s","type":"t","schemaurl":"u","data":"<a/>","datacontenttype":"text/xml"}`))
	f.Add([]byte(`{"data_base64":5,"specversion":"1.0","id":"\ud800","source":"s","type":"t","data":1}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		e, err := DecodeStructured(body)
		requireSoundDecode(t, e, err)
	})
}

func requireSoundDecode(t *testing.T, e Event, err error) {
	if err != nil {
		requireInvalid(t, err)
		return
	}
	if _, err := EncodeStructured(e); err != nil && e.SpecVersion == "0.3" {
		require.Equal(t, "data", requireInvalid(t, err).Field, "0.3 can't hold bytes")
	} else {
		requireRoundTrips(t, e)
	}
	if _, err := Record(e); err != nil {
		requireInvalid(t, err)
	}
	var compacted bytes.Buffer
	if json.Compact(&compacted, e.Data) == nil {
		require.Equal(t, compacted.String(), string(compact(e.Data)))
	}
	require.Equal(t, e.Content(), e.Content())
}

func FuzzParseSubject(f *testing.F) {
	for _, s := range []string{
		"mneme.t.c.message_created", "ev.7.t.c.tool_called", "ev.07.t.c.k", "ev.-1.t.c.k", "ev..t.c.k", "mneme.t.c",
		"mneme.t.%2E%20%2A%3E.k", "mneme.t.%2e.k", "mneme.t.%41.k", "mneme.t.%F0%9F%98%80.k", "mneme.t.%FF.k", "mneme.t.%.k", "", ".",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, subject string) {
		a, err := ParseSubject(subject)
		if err != nil {
			require.Equal(t, "subject token", requireInvalid(t, err).Field)
			return
		}
		again, err := a.Subject()
		require.NoError(t, err)
		requirePublishable(t, again)
		if strings.HasPrefix(subject, storedPrefix) {
			again = storedPrefix + strconv.Itoa(a.Partition) + "." + strings.TrimPrefix(again, publishPrefix)
		}
		require.Equal(t, subject, again)
	})
}

func headerLines(header map[string][]string) string {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(header)) {
		out.WriteString(name + ": " + header[name][0] + "\n")
	}
	return out.String()
}
