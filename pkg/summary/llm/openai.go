package llm

import (
	"context"
	"encoding/json"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"
)

// chat is the chat completions of OpenAI, which many servers have.
type chat struct {
	service openai.ChatCompletionService
	profile *Profile
	without without
}

// newChat takes nothing from the environment, so that no key of OpenAI goes elsewhere.
func newChat(p *Profile) *chat {
	options := []option.RequestOption{
		option.WithBaseURL(p.URL), option.WithHTTPClient(client), option.WithMaxRetries(0), option.WithMiddleware(exchange),
	}
	if p.Key != "" {
		options = append(options, option.WithAPIKey(p.Key))
	}
	return &chat{service: openai.NewChatCompletionService(options...), profile: p}
}

func (c *chat) ask(ctx context.Context, r request) (answer, *Error) {
	params := openai.ChatCompletionNewParams{
		Model:    c.profile.Model,
		Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage(r.system), openai.UserMessage(r.user)},
	}
	temperature, maxTokens := !c.without.temperature.Load(), !c.without.maxTokens.Load()
	if temperature {
		params.Temperature = openai.Float(c.profile.Temperature)
	}
	if maxTokens {
		params.MaxTokens = openai.Int(c.profile.MaxTokens)
	} else { // models that think first have another name for it
		params.MaxCompletionTokens = openai.Int(c.profile.MaxTokens)
	}
	if r.form {
		params.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{
			JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{
				Name: formName, Description: openai.String(formUse), Schema: json.RawMessage(schema), Strict: openai.Bool(true),
			},
		}
	}
	resp, err := c.service.New(ctx, params)
	if err != nil {
		return answer{}, c.without.learn(failure(ctx, err), temperature, maxTokens)
	}
	got := answer{input: resp.Usage.PromptTokens, output: resp.Usage.CompletionTokens}
	if len(resp.Choices) == 0 {
		return got, invalid("the answer has no choices")
	}
	choice := resp.Choices[0]
	got.text = choice.Message.Content
	switch {
	case choice.Message.Refusal != "" || choice.FinishReason == "content_filter":
		return got, refusal()
	case choice.FinishReason == "length":
		return got, cutOff()
	}
	return got, nil
}
