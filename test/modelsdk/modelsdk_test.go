// Package modelsdk reads contexts in the formats of model APIs with the types that the APIs' vendors publish for Go. It is
// a module of its own, because these types take a minute to compile.
package modelsdk

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/openai/openai-go/v3"
	"github.com/stretchr/testify/require"
)

// goldens returns the golden files of pkg/window in a format.
func goldens(t *testing.T, format string) (list []json.RawMessage) {
	t.Helper()
	paths, err := filepath.Glob("../../pkg/window/testdata/*_" + format + ".json")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		list = append(list, data)
	}
	return list
}

// reads reads a request into a published type, which must know all of its members.
func reads(t *testing.T, request map[string]any, into any) {
	t.Helper()
	sent, err := json.Marshal(request)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(sent, into))
	read, err := json.Marshal(into)
	require.NoError(t, err)
	require.JSONEq(t, string(sent), string(read))
}

func TestOpenAIsTypesReadOurMessages(t *testing.T) {
	var texts, calls, results int
	for _, golden := range goldens(t, "openai") {
		var made struct{ Messages []any }
		require.NoError(t, json.Unmarshal(golden, &made))
		var params openai.ChatCompletionNewParams
		reads(t, map[string]any{"model": "m", "messages": made.Messages}, &params)
		require.Len(t, params.Messages, len(made.Messages))
		for _, m := range params.Messages {
			if text, _ := m.GetContent().AsAny().(*string); text != nil {
				texts++
			}
			for _, call := range m.GetToolCalls() {
				calls++
				require.NotEmpty(t, call.GetFunction().Name)
				require.True(t, json.Valid([]byte(call.GetFunction().Arguments)))
			}
			if m.OfTool != nil {
				results++
				require.NotEmpty(t, m.OfTool.ToolCallID)
			}
		}
	}
	require.Positive(t, texts)
	require.Positive(t, results)
	require.Equal(t, calls, results)
}

func TestAnthropicsTypesReadOurMessages(t *testing.T) {
	var texts, calls, results, failed int
	for _, golden := range goldens(t, "anthropic") {
		var made struct {
			System   string
			Messages []any
		}
		require.NoError(t, json.Unmarshal(golden, &made))
		require.NotEmpty(t, made.System)
		var params anthropic.MessageNewParams
		reads(t, map[string]any{
			"model": "m", "max_tokens": 1, "messages": made.Messages,
			"system": []any{map[string]string{"type": "text", "text": made.System}}, // the other form of a string
		}, &params)
		require.Len(t, params.Messages, len(made.Messages))
		for _, m := range params.Messages {
			for _, block := range m.Content {
				switch {
				case block.OfText != nil:
					texts++
				case block.OfToolUse != nil:
					calls++
				case block.OfToolResult != nil:
					results++
					require.NotEmpty(t, block.OfToolResult.Content[0].OfText.Text)
					if block.OfToolResult.IsError.Value {
						failed++
					}
				default:
					require.Fail(t, "a block of an unknown type")
				}
			}
		}
	}
	require.Positive(t, texts)
	require.Positive(t, results)
	require.Positive(t, failed)
	require.Equal(t, calls, results)
}
