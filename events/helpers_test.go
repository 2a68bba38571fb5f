package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// requireSame compares the parts of two events that every mode keeps: an extension's value as text
// (headers have no types) and JSON data without its white space.
func requireSame(t require.TestingT, want, got Event) {
	if h, ok := t.(interface{ Helper() }); ok {
		h.Helper()
	}
	normal := func(e Event) Event {
		extensions := make(map[string]any, len(e.Extensions))
		for name, value := range e.Extensions {
			extensions[name] = extensionText(value)
		}
		e.Extensions = extensions
		var compact bytes.Buffer
		if isJSON(e.DataContentType) && json.Compact(&compact, e.Data) == nil {
			e.Data = compact.Bytes()
		}
		return e
	}
	want, got = normal(want), normal(got)
	require.True(t, want.Equal(&got), "want %+v\ngot  %+v\ndata %s\nand  %s", want, got, want.Data, got.Data)
}

// requireRoundTrips sends an event through both modes and back.
func requireRoundTrips(t require.TestingT, e Event) {
	structured, err := EncodeStructured(e)
	require.NoError(t, err)
	back, err := DecodeStructured(structured)
	require.NoError(t, err, "structured: %s", structured)
	requireSame(t, e, back)

	header, body := EncodeMessage(e)
	back, err = DecodeMessage(header, body)
	require.NoError(t, err, "header: %v", header)
	requireSame(t, e, back)
	require.Equal(t, e.Identity("t"), back.Identity("t"))
}

// requireInvalid returns the *Invalid of an error, which must be one.
func requireInvalid(t require.TestingT, err error) *Invalid {
	require.ErrorIs(t, err, ErrInvalid)
	var refusal *Invalid
	require.True(t, errors.As(err, &refusal))
	require.NotEmpty(t, refusal.Field)
	require.NotEmpty(t, refusal.Reason)
	return refusal
}

// golden holds two examples of one event type: one with all fields, one with only the required
// ones.
func golden(t testing.TB, eventType string) (full, minimal Event) {
	t.Helper()
	batch, err := os.ReadFile(filepath.Join("testdata", "golden", eventType+".json"))
	require.NoError(t, err)
	parts, err := SplitBatch(batch, 1_000)
	require.NoError(t, err)
	require.Len(t, parts, 2)
	var both [2]Event
	for i, part := range parts {
		both[i], err = DecodeStructured(part)
		require.NoError(t, err)
		var compact bytes.Buffer
		require.NoError(t, json.Compact(&compact, both[i].Data))
		both[i].Data = compact.Bytes()
	}
	return both[0], both[1]
}

// requireGolden compares with a file of testdata/golden, or writes it.
func requireGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", "golden", name)
	if *update {
		require.NoError(t, os.WriteFile(file, got, 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs, look at it and run go test -update (-want +got):\n%s", name, diff)
	}
}
