package llm

import (
	"context"
	"encoding/json"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
)

// messages is the Messages API of Anthropic. The form of a summary is a tool that the
// model must use: that all models can.
type messages struct {
	service anthropic.MessageService
	profile *Profile
	without without
}

// newMessages takes nothing from the environment, so that no key of Anthropic goes
// elsewhere.
func newMessages(p *Profile) *messages {
	options := []option.RequestOption{
		option.WithBaseURL(p.URL), option.WithHTTPClient(client), option.WithMaxRetries(0), option.WithMiddleware(exchange),
		option.WithRequestTimeout(p.Timeout), // otherwise the SDK has an opinion of its own
	}
	if p.Key != "" {
		options = append(options, option.WithAPIKey(p.Key))
	}
	return &messages{service: anthropic.NewMessageService(options...), profile: p}
}

func (m *messages) ask(ctx context.Context, r request) (answer, *Error) {
	params := anthropic.MessageNewParams{
		Model:     m.profile.Model,
		MaxTokens: m.profile.MaxTokens,
		System:    []anthropic.TextBlockParam{{Text: r.system}},
		Messages:  []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(r.user))},
	}
	temperature := !m.without.temperature.Load()
	if temperature {
		params.Temperature = anthropic.Float(m.profile.Temperature)
	}
	if r.form {
		params.Tools = []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{
			Name: formName, Description: anthropic.String(formUse),
			InputSchema: param.Override[anthropic.ToolInputSchemaParam](json.RawMessage(schema)),
		}}}
		params.ToolChoice = anthropic.ToolChoiceParamOfTool(formName)
	}
	resp, err := m.service.New(ctx, params)
	if err != nil {
		return answer{}, m.without.learn(failure(ctx, err), temperature, false)
	}
	usage := resp.Usage
	got := answer{input: usage.InputTokens + usage.CacheCreationInputTokens + usage.CacheReadInputTokens, output: usage.OutputTokens}
	used := false
	for _, block := range resp.Content {
		switch {
		case r.form && block.Type == "tool_use" && block.Name == formName:
			got.text, used = string(block.Input), true
		case !r.form && block.Type == "text":
			got.text += block.Text
		}
	}
	switch {
	case resp.StopReason == anthropic.StopReasonRefusal:
		return got, refusal()
	case resp.StopReason == anthropic.StopReasonMaxTokens || resp.StopReason == anthropic.StopReasonModelContextWindowExceeded:
		return got, cutOff()
	case r.form && !used:
		return got, invalid("the answer does not use the form of a summary")
	}
	return got, nil
}
