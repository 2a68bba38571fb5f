package llmtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// Reply answers one request.
type Reply = http.HandlerFunc

// Token counts that each answer of a model reports.
const (
	InputTokens  = 1_000
	OutputTokens = 50
)

// Chat is a chat completion of OpenAI with this content.
func Chat(content string) Reply {
	return completion(map[string]any{"role": "assistant", "content": content}, "stop")
}

// CutOff is a chat completion that ends at its limit of tokens.
func CutOff(content string) Reply {
	return completion(map[string]any{"role": "assistant", "content": content}, "length")
}

// Refusal is a chat completion in which the model refuses.
func Refusal() Reply {
	return completion(map[string]any{"role": "assistant", "content": nil, "refusal": "I can't help with that."}, "stop")
}

// Filtered is a chat completion that a content filter removed.
func Filtered() Reply {
	return completion(map[string]any{"role": "assistant", "content": ""}, "content_filter")
}

func completion(message map[string]any, finish string) Reply {
	return reply(http.StatusOK, map[string]any{
		"id": "chatcmpl-1", "object": "chat.completion", "created": 1_700_000_000, "model": "canned",
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": finish, "logprobs": nil}},
		"usage":   map[string]any{"prompt_tokens": InputTokens, "completion_tokens": OutputTokens, "total_tokens": InputTokens + OutputTokens},
	})
}

// Message is a message of Anthropic with a reason to stop and blocks of content.
func Message(stop string, blocks ...map[string]any) Reply {
	return reply(http.StatusOK, map[string]any{
		"id": "msg_1", "type": "message", "role": "assistant", "model": "canned",
		"content": append([]map[string]any{}, blocks...), "stop_reason": stop, "stop_sequence": nil,
		"usage": map[string]any{"input_tokens": InputTokens, "output_tokens": OutputTokens},
	})
}

// ToolUse is a block of a [Message]: a tool with its input, JSON.
func ToolUse(name, input string) map[string]any {
	return map[string]any{"type": "tool_use", "id": "toolu_1", "name": name, "input": json.RawMessage(input)}
}

// Text is a block of a [Message].
func Text(text string) map[string]any {
	return map[string]any{"type": "text", "text": text}
}

// Failure is a status with the description of an error, of the shape of both APIs.
func Failure(status int, kind, message string) Reply {
	return reply(status, map[string]any{
		"type":  "error",
		"error": map[string]any{"type": kind, "message": message, "code": nil, "param": nil},
	})
}

// Busy is a status with a header Retry-After.
func Busy(status int, retryAfter string) Reply {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", retryAfter)
		Failure(status, "rate_limit_error", "slow down")(w, r)
	}
}

// HTML is a page with status 200, as proxies and login pages give it.
func HTML(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html")
	_, _ = io.WriteString(w, "<!doctype html><title>Welcome</title><p>Please log in.")
}

// Raw is a body sent as JSON, whatever it is.
func Raw(body string) Reply {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}
}

// Refused is a status with a body as some server words it.
func Refused(status int, body string) Reply {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// Hang never answers while the client waits.
func Hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// Break begins an answer and ends the connection in the middle.
func Break(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", "1000")
	_, _ = io.WriteString(w, `{"id":"chatcmpl-1","choices":[`)
	panic(http.ErrAbortHandler)
}

func reply(status int, body any) Reply {
	text, err := json.Marshal(body)
	if err != nil {
		panic(fmt.Sprintf("a reply that is not JSON: %v", err)) // a mistake of the test
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write(text)
	}
}
