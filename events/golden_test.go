package events

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A published version of a type never changes: these files may gain lines for new optional fields,
// but never lose any.
func TestGoldenEventsComeOutOfBothModesByteForByte(t *testing.T) {
	for _, eventType := range Types() {
		t.Run(eventType, func(t *testing.T) {
			full, minimal := golden(t, eventType)
			var batch []json.RawMessage
			var binary bytes.Buffer
			for _, e := range []Event{full, minimal} {
				recorded, err := Record(e)
				require.NoError(t, err)
				data, err := json.Marshal(recorded.Payload)
				require.NoError(t, err)
				require.JSONEq(t, string(e.Data), string(data), "the payload says what the data says")

				structured, err := EncodeStructured(recorded.Event)
				require.NoError(t, err)
				batch = append(batch, structured)
				header, body := EncodeMessage(recorded.Event)
				writeMessage(&binary, header, body)
				requireRoundTrips(t, e)
			}
			requireGolden(t, eventType+".json", indent(t, batch))
			requireGolden(t, eventType+".binary.txt", binary.Bytes())
		})
	}
}

func TestEveryGoldenFileBelongsToAType(t *testing.T) {
	files, err := filepath.Glob("testdata/golden/*")
	require.NoError(t, err)
	require.Len(t, files, 2*len(Types()))
}

func TestTheFullGoldenEventUsesEveryFieldOfItsPayload(t *testing.T) {
	for _, eventType := range Types() {
		full, _ := golden(t, eventType)
		recorded, err := Record(full)
		require.NoError(t, err)
		payload := reflect.ValueOf(recorded.Payload).Elem()
		for i := range payload.NumField() {
			require.False(t, payload.Field(i).IsZero(), "%s: %s", eventType, payload.Type().Field(i).Name)
		}
	}
}

func TestNewMakesWhatTheGoldenFileHolds(t *testing.T) {
	for _, eventType := range Types() {
		full, _ := golden(t, eventType)
		recorded, err := Record(full)
		require.NoError(t, err)
		made, err := New(full.Subject, full.Source, full.ID, recorded.Payload)
		require.NoError(t, err)
		require.Equal(t, full.Subject, made.Extension("partitionkey"))
		again, err := Record(made)
		require.NoError(t, err)
		require.Equal(t, normalPayload(t, recorded.Payload), normalPayload(t, again.Payload))
		require.Equal(t, full.Identity("t"), made.Identity("t"))
	}
}

func normalPayload(t *testing.T, p Payload) (normal any) {
	data, err := json.Marshal(p)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &normal))
	return normal
}

// writeMessage returns a NATS message as text: its headers, sorted, and its body.
func writeMessage(out *bytes.Buffer, header map[string][]string, body []byte) {
	for _, name := range slices.Sorted(maps.Keys(header)) {
		fmt.Fprintf(out, "%s: %s\n", name, strings.Join(header[name], ", "))
	}
	fmt.Fprintf(out, "\n%s\n\n", body)
}

func indent(t *testing.T, batch []json.RawMessage) []byte {
	joined := "[" + strings.Join(texts(batch), ",") + "]"
	var out bytes.Buffer
	require.NoError(t, json.Indent(&out, []byte(joined), "", "  "))
	out.WriteByte('\n')
	return out.Bytes()
}

func texts(parts []json.RawMessage) (all []string) {
	for _, part := range parts {
		all = append(all, string(part))
	}
	return all
}

func TestSchemaIsOfferedForEveryTypeAndNoOther(t *testing.T) {
	for _, eventType := range Types() {
		schema, ok := Schema(eventType)
		require.True(t, ok)
		onDisk, err := os.ReadFile(filepath.Join("schemas", eventType+".json"))
		require.NoError(t, err)
		require.Equal(t, onDisk, schema)
	}
	for _, other := range []string{"", "dev.mneme.message.created.v2", "../doc.go", "dev.mneme.message.created.v1.json"} {
		_, ok := Schema(other)
		require.False(t, ok, other)
	}
}
