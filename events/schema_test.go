package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	judge "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func compiledSchema(t testing.TB, eventType string) *judge.Schema {
	t.Helper()
	text, ok := Schema(eventType)
	require.True(t, ok)
	doc, err := judge.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	c := judge.NewCompiler()
	require.NoError(t, c.AddResource("schema.json", doc))
	schema, err := c.Compile("schema.json")
	require.NoError(t, err)
	return schema
}

func TestGoldenDataFitsItsSchema(t *testing.T) {
	for _, eventType := range Types() {
		schema := compiledSchema(t, eventType)
		full, minimal := golden(t, eventType)
		for _, e := range []Event{full, minimal} {
			require.NoError(t, schema.Validate(instance(t, e.Data)))
		}
	}
}

// edges are values to try in the place of any field.
var edges = []any{
	nil, true, 0, 1, -1, 1.5, "", "x", "active", "llm", "read", "user", "User", "robot",
	strings.Repeat("i", MaxIDBytes), strings.Repeat("i", MaxIDBytes+1),
	[]any{}, []any{"x"}, []any{1}, []any{map[string]any{}}, map[string]any{}, map[string]any{"new": 1},
}

// removed, used as a value, means that the member is left out.
type removed struct{}

func TestValidateAndTheSchemaAgreeOnEachChangeOfOneField(t *testing.T) {
	for _, eventType := range Types() {
		t.Run(eventType, func(t *testing.T) {
			schema := compiledSchema(t, eventType)
			full, minimal := golden(t, eventType)
			checked := 0
			for _, e := range []Event{full, minimal} {
				for _, path := range paths(instance(t, e.Data), nil) {
					for _, value := range append(edges, removed{}) {
						requireAgreement(t, schema, e, change(instance(t, e.Data), path, value))
						checked++
					}
				}
			}
			t.Logf("%d changes", checked)
		})
	}
}

func TestValidateAndTheSchemaAgreeOnChangesOfSeveralFields(t *testing.T) {
	for _, eventType := range Types() {
		t.Run(eventType, func(t *testing.T) {
			schema := compiledSchema(t, eventType)
			full, minimal := golden(t, eventType)
			rapid.Check(t, func(r *rapid.T) {
				e := rapid.SampledFrom([]Event{full, minimal}).Draw(r, "base")
				data := instance(t, e.Data)
				for range rapid.IntRange(1, 4).Draw(r, "changes") {
					all := paths(data, nil)
					if len(all) == 0 {
						break
					}
					path := rapid.SampledFrom(all).Draw(r, "path")
					data = change(data, path, rapid.SampledFrom(append(edges, removed{})).Draw(r, "value"))
				}
				requireAgreement(r, schema, e, data)
			})
		})
	}
}

func TestUnknownFieldsAreAccepted(t *testing.T) {
	for _, eventType := range Types() {
		full, _ := golden(t, eventType)
		data := instance(t, full.Data).(map[string]any)
		data["added_later"] = map[string]any{"a": 1}
		require.NoError(t, compiledSchema(t, eventType).Validate(data))
		full.Data, _ = json.Marshal(data)
		_, err := Record(full)
		require.NoError(t, err)
	}
}

// The differences listed in the comment of Schema; a new one must be added there.
func TestWhatASchemaCannotSay(t *testing.T) {
	for _, c := range []struct {
		name, eventType, data string
		valid                 bool // for Record; the schema has the opposite result
	}{
		{"last below first", TypeSummaryWritten, `{"summary_id":"s","level":1,"first_seq":2,"last_seq":1,"method":"llm","conversation":""}`, false},
		{"last turn below first", TypeSummaryWritten, `{"summary_id":"s","level":1,"first_seq":1,"last_seq":1,"first_turn":2,"last_turn":1,"method":"llm","conversation":""}`, false},
		{"integer with a fraction of zero", TypeSummaryWritten, `{"summary_id":"s","level":1.0,"first_seq":1,"last_seq":1,"method":"llm","conversation":""}`, false},
		{"integer beyond 64 bits", TypeToolCalled, `{"tool_call_id":"t","tool_name":"n","arguments":1,"iteration":9223372036854775808}`, false},
		{"number beyond a double", TypeToolReturned, `{"tool_call_id":"t","result":1,"duration_ms":1e999}`, false},
		{"300 characters of 2 bytes", TypeToolReturned, `{"tool_call_id":"` + strings.Repeat("é", 300) + `","result":1}`, false},
		{"null in a list of strings", TypeConversationStarted, `{"tags":["a",null]}`, true},
		{"member twice", TypeMessageCreated, `{"message_id":"m","role":"user","content":"","x":1,"x":1}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, _ := golden(t, c.eventType)
			e.Data = []byte(c.data)
			_, err := Record(e)
			require.Equal(t, c.valid, err == nil, "%v", err)
			require.Equal(t, !c.valid, compiledSchema(t, c.eventType).Validate(instance(t, e.Data)) == nil)
		})
	}
}

// requireAgreement fails unless Record and the schema both accept or both refuse, except for rules
// that a schema can't express and values that Record forgives.
func requireAgreement(t require.TestingT, schema *judge.Schema, e Event, data any) {
	raw, err := json.Marshal(data)
	require.NoError(t, err)
	e.Data = raw
	_, refused := Record(e)
	violated := schema.Validate(data)
	switch {
	case refused == nil && violated != nil:
		require.True(t, hasNullInList(data), "only the schema refuses %.2000s: %v", raw, violated)
	case refused != nil && violated == nil:
		require.True(t, beyondSchema(refused), "only Validate refuses %.2000s: %v", raw, refused)
	}
}

// beyondSchema reports whether a refusal comes from one of the rules that compare two fields.
// (Three other differences can't occur here: ids over the limit in bytes but not in characters,
// integers written as 1.0 or beyond 64 bits, and members that occur twice.)
func beyondSchema(err error) bool {
	var refusal *Invalid
	return errors.As(err, &refusal) && strings.Contains(refusal.Reason, "is not a range of")
}

// hasNullInList finds nulls that Record reads as "" and the schema refuses.
func hasNullInList(data any) bool {
	switch v := data.(type) {
	case []any:
		for _, item := range v {
			if item == nil || hasNullInList(item) {
				return true
			}
		}
	case map[string]any:
		for _, item := range v {
			if hasNullInList(item) {
				return true
			}
		}
	}
	return false
}

func instance(t testing.TB, data []byte) any {
	v, err := judge.UnmarshalJSON(bytes.NewReader(data))
	require.NoError(t, err)
	return v
}

// paths lists the paths to every value inside JSON data.
func paths(data any, from []string) (all [][]string) {
	step := func(name string, value any) {
		path := append(append([]string(nil), from...), name)
		all = append(append(all, path), paths(value, path)...)
	}
	switch v := data.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			step(name, v[name])
		}
	case []any:
		for i, value := range v {
			step(fmt.Sprint(i), value)
		}
	}
	return all
}

// change returns a copy of the data with another value at the path.
func change(data any, path []string, value any) any {
	switch v := data.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, old := range v {
			switch {
			case name != path[0]:
				out[name] = old
			case len(path) > 1:
				out[name] = change(old, path[1:], value)
			case !isRemoved(value):
				out[name] = value
			}
		}
		return out
	case []any:
		out := []any{}
		for i, old := range v {
			switch {
			case fmt.Sprint(i) != path[0]:
				out = append(out, old)
			case len(path) > 1:
				out = append(out, change(old, path[1:], value))
			case !isRemoved(value):
				out = append(out, value)
			}
		}
		return out
	}
	return data
}

func isRemoved(value any) bool {
	_, yes := value.(removed)
	return yes
}
