package llm

import (
	"context"
	"encoding/json"
	"net/http"

	"mneme.dev/mneme/pkg/internal/modelapi"
)

// anthropicVersion is the version of the Messages API that this client speaks.
const anthropicVersion = "2023-06-01"

// messages is the Messages API of Anthropic. It gets the form of a summary by requiring the model
// to use a tool, which all models can.
type messages struct {
	api     modelapi.Endpoint
	profile *Profile
	without without
}

func newMessages(p *Profile) *messages {
	api := modelapi.Endpoint{URL: p.URL, Header: http.Header{}, MaxBody: maxBody}
	api.Header.Set("Anthropic-Version", anthropicVersion)
	if p.Key != "" {
		api.Header.Set("X-Api-Key", p.Key)
	}
	return &messages{api: api, profile: p}
}

type messagesRequest struct {
	Model       string            `json:"model"`
	MaxTokens   int64             `json:"max_tokens"`
	System      []messagesText    `json:"system"`
	Messages    []messagesMessage `json:"messages"`
	Temperature *float64          `json:"temperature,omitempty"` // 0 is sent
	Tools       []messagesTool    `json:"tools,omitempty"`
	ToolChoice  *messagesChoice   `json:"tool_choice,omitempty"`
}

type messagesText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type messagesMessage struct {
	Role    string         `json:"role"`
	Content []messagesText `json:"content"`
}

type messagesTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
}

type messagesChoice struct {
	Type string `json:"type"`
	Name string `json:"name"`
}

type messagesAnswer struct {
	Content []struct {
		Type  string          `json:"type"`
		Text  string          `json:"text"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	} `json:"content"`
	StopReason string `json:"stop_reason"`
	Usage      struct {
		InputTokens         int64 `json:"input_tokens"`
		CacheCreationTokens int64 `json:"cache_creation_input_tokens"`
		CacheReadTokens     int64 `json:"cache_read_input_tokens"`
		OutputTokens        int64 `json:"output_tokens"`
	} `json:"usage"`
}

func (m *messages) ask(ctx context.Context, r request) (answer, *Error) {
	body := messagesRequest{
		Model:     m.profile.Model,
		MaxTokens: m.profile.MaxTokens,
		System:    []messagesText{{Type: "text", Text: r.system}},
		Messages:  []messagesMessage{{Role: "user", Content: []messagesText{{Type: "text", Text: r.user}}}},
	}
	var sent []string
	if !m.without.temperature.Load() {
		sent, body.Temperature = append(sent, paramTemperature), &m.profile.Temperature
	}
	if r.form != nil {
		body.Tools = []messagesTool{{Name: r.form.name, Description: r.form.use, InputSchema: json.RawMessage(r.form.schema)}}
		body.ToolChoice = &messagesChoice{Type: "tool", Name: r.form.name}
	}
	var resp messagesAnswer
	if err := post(ctx, m.api, "v1/messages", body, &resp); err != nil {
		return answer{}, m.without.learn(err, sent...)
	}
	usage := resp.Usage
	got := answer{input: usage.InputTokens + usage.CacheCreationTokens + usage.CacheReadTokens, output: usage.OutputTokens}
	used := false
	for _, block := range resp.Content {
		switch {
		case r.form != nil && block.Type == "tool_use" && block.Name == r.form.name:
			got.text, used = string(block.Input), true
		case r.form == nil && block.Type == "text":
			got.text += block.Text
		}
	}
	switch {
	case resp.StopReason == "refusal":
		return got, refusal()
	case resp.StopReason == "max_tokens" || resp.StopReason == "model_context_window_exceeded":
		return got, cutOff()
	case r.form != nil && !used:
		return got, invalid("the answer does not use the requested form")
	}
	return got, nil
}
