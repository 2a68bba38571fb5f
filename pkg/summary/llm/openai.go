package llm

import (
	"context"
	"encoding/json"
	"net/http"

	"mneme.dev/mneme/pkg/internal/modelapi"
)

// chat is the chat completions API of OpenAI, which many servers have.
type chat struct {
	api     modelapi.Endpoint
	profile *Profile
	without without
}

func newChat(p *Profile) *chat {
	api := modelapi.Endpoint{URL: p.URL, Header: http.Header{}, MaxBody: maxBody}
	if p.Key != "" {
		api.Header.Set("Authorization", "Bearer "+p.Key)
	}
	return &chat{api: api, profile: p}
}

type chatRequest struct {
	Model          string        `json:"model"`
	Messages       []chatMessage `json:"messages"`
	Temperature    *float64      `json:"temperature,omitempty"` // 0 is sent
	MaxTokens      int64         `json:"max_tokens,omitzero"`
	MaxCompletion  int64         `json:"max_completion_tokens,omitzero"` // for reasoning models, instead of max_tokens
	ResponseFormat *chatFormat   `json:"response_format,omitempty"`
}

type chatMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type chatFormat struct {
	Type   string     `json:"type"`
	Schema chatSchema `json:"json_schema"`
}

type chatSchema struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
	Strict      bool            `json:"strict"`
}

type chatAnswer struct {
	Choices []struct {
		Message struct {
			Content string `json:"content"`
			Refusal string `json:"refusal"`
		} `json:"message"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Usage struct {
		PromptTokens     int64 `json:"prompt_tokens"`
		CompletionTokens int64 `json:"completion_tokens"`
	} `json:"usage"`
}

func (c *chat) ask(ctx context.Context, r request) (answer, *Error) {
	body := chatRequest{
		Model:    c.profile.Model,
		Messages: []chatMessage{{Role: "system", Content: r.system}, {Role: "user", Content: r.user}},
	}
	var sent []string
	if !c.without.temperature.Load() {
		sent, body.Temperature = append(sent, paramTemperature), &c.profile.Temperature
	}
	if !c.without.maxTokens.Load() {
		sent, body.MaxTokens = append(sent, paramMaxTokens), c.profile.MaxTokens
	} else {
		body.MaxCompletion = c.profile.MaxTokens
	}
	switch {
	case r.form == nil:
	case c.without.format.Load():
		body.Messages[1].Content += "\n\nAnswer with one JSON object and nothing else. It must fit this JSON Schema:\n" + r.form.schema
	default:
		sent = append(sent, paramFormat)
		body.ResponseFormat = &chatFormat{Type: "json_schema", Schema: chatSchema{Name: r.form.name, Description: r.form.use, Schema: json.RawMessage(r.form.schema), Strict: !r.form.loose}}
	}
	var resp chatAnswer
	if err := post(ctx, c.api, "chat/completions", body, &resp); err != nil {
		return answer{}, c.without.learn(err, sent...)
	}
	got := answer{input: resp.Usage.PromptTokens, output: resp.Usage.CompletionTokens}
	if len(resp.Choices) == 0 {
		return got, invalid("the answer has no choices")
	}
	choice := resp.Choices[0]
	if got.text = withoutThoughts(choice.Message.Content); r.form != nil {
		got.text = objectIn(got.text)
	}
	switch {
	case choice.Message.Refusal != "" || choice.FinishReason == "content_filter":
		return got, refusal()
	case choice.FinishReason == "length":
		return got, cutOff()
	}
	return got, nil
}
