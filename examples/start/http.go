package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
)

const system = `{"role": "system", "content": "Answer briefly. Look at files with the tools; do not guess."}`

const tools = `[{"type": "function", "function": {
	"name": "list_files",
	"description": "Lists the files of a folder below the current one.",
	"parameters": {"type": "object", "properties": {"folder": {"type": "string"}}, "required": ["folder"]}
}}]`

type message struct {
	Content   string
	ToolCalls []struct {
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

// readContext returns what the model should see, up to this sequence of the log.
func readContext(ctx context.Context, conversation string, seq uint64) ([]json.RawMessage, error) {
	var context struct{ Messages []json.RawMessage }
	mneme := cmp.Or(os.Getenv("MNEME_URL"), "http://127.0.0.1:8420")
	err := send(ctx, http.MethodGet, fmt.Sprintf("%s/v1/conversations/%s/context?format=openai&max_chars=20000&at_least=%d", mneme, url.PathEscape(conversation), seq), nil, &context)
	return context.Messages, err
}

func callModel(ctx context.Context, messages []json.RawMessage) (message, error) {
	body, err := json.Marshal(map[string]any{
		"model": cmp.Or(os.Getenv("OPENAI_MODEL"), "gpt-4.1-mini"), "max_tokens": 400,
		"messages": append([]json.RawMessage{json.RawMessage(system)}, messages...), "tools": json.RawMessage(tools),
	})
	if err != nil {
		return message{}, err
	}
	var answer struct{ Choices []struct{ Message message } }
	err = send(ctx, http.MethodPost, cmp.Or(os.Getenv("OPENAI_BASE_URL"), "https://api.openai.com/v1")+"/chat/completions", body, &answer)
	if err == nil && len(answer.Choices) == 0 {
		err = errors.New("the model does not answer")
	}
	if err != nil {
		return message{}, err
	}
	return answer.Choices[0].Message, nil
}

func send(ctx context.Context, method, url string, body []byte, answer any) error {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if method == http.MethodPost { // the key is the model's alone
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Authorization", "Bearer "+os.Getenv("OPENAI_API_KEY"))
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s: %s", request.URL.Host, response.Status, text)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(text, answer)
}
