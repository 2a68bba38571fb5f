//lint:file-ignore SA1019 the suite also checks what the protocol has deprecated

package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"mneme.dev/mneme/internal/mcp"
)

// A picture of one pixel and a sound of one sample.
var (
	pixel = []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00:~\x9bU\x00\x00\x00\nIDATx\x9cc`\x00\x00\x00\x02\x00\x01H\xaf\xa4q\x00\x00\x00\x00IEND\xaeB`\x82")
	sound = []byte("RIFF&\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00@\x1f\x00\x00\x80>\x00\x00\x02\x00\x10\x00data\x02\x00\x00\x00\x00\x00")
)

func says(text string) *sdk.TextContent { return &sdk.TextContent{Text: text} }

func embedded(uri string) *sdk.EmbeddedResource {
	return &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: uri, MIMEType: "text/plain", Text: "This is an embedded resource."}}
}

// fixture is the server that the conformance suite expects: its names and answers are those of the suite.
type fixture struct{ *sdk.Server }

// tool adds a tool without arguments.
func (f fixture) tool(name string, do func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error)) {
	f.schemaTool(name, `{"type":"object"}`, do)
}

func (f fixture) schemaTool(name, schema string, do func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error)) {
	sdk.AddTool(f.Server, &sdk.Tool{Name: name, Description: "of the suite", InputSchema: json.RawMessage(schema)},
		func(ctx context.Context, r *sdk.CallToolRequest, _ map[string]any) (*sdk.CallToolResult, any, error) {
			result, err := do(ctx, r)
			return result, nil, err
		})
}

// shows adds a tool that always answers the same.
func (f fixture) shows(name string, content ...sdk.Content) {
	f.tool(name, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: content}, nil
	})
}

func newFixture(logger *slog.Logger) *sdk.Server {
	ok := func(context.Context, *sdk.SubscribeRequest) error { return nil }
	f := fixture{sdk.NewServer(&sdk.Implementation{Name: "fixture", Version: "1"}, &sdk.ServerOptions{
		Logger:             logger,
		SubscribeHandler:   ok,
		UnsubscribeHandler: func(context.Context, *sdk.UnsubscribeRequest) error { return nil },
		CompletionHandler: func(context.Context, *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
			return &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{Values: []string{}}}, nil
		},
	})}
	f.AddReceivingMiddleware(mcp.Guard(logger))
	f.contents()
	f.schemas()
	f.inputs()
	f.library()
	return f.Server
}

// contents are tools that show each kind of content, and what happens during a call.
func (f fixture) contents() {
	image := &sdk.ImageContent{Data: pixel, MIMEType: "image/png"}
	f.shows("test_simple_text", says("This is a simple text response for testing."))
	f.shows("test_image_content", image)
	f.shows("test_audio_content", &sdk.AudioContent{Data: sound, MIMEType: "audio/wav"})
	f.shows("test_embedded_resource", embedded("test://embedded-resource"))
	f.shows("test_multiple_content_types", says("Several contents"), image, embedded("test://mixed-content-resource"))
	f.shows("test_streaming_elicitation", says("nothing is asked during a call"))
	f.tool("test_error_handling", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return nil, errors.New("this tool always fails")
	})
	f.tool("test_tool_with_progress", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		for _, done := range []float64{0, 50, 100} {
			if err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: done, Total: 100}); err != nil {
				return nil, err
			}
		}
		return &sdk.CallToolResult{Content: []sdk.Content{says(fmt.Sprint(r.Params.GetProgressToken()))}}, nil
	})
	f.tool("test_logging_tool", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		err := r.Session.Log(ctx, &sdk.LoggingMessageParams{Level: "info", Data: "called"})
		return &sdk.CallToolResult{Content: []sdk.Content{says("logged")}}, err
	})
	f.tool("test_missing_capability", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if can := r.ClientCapabilities(); can != nil && can.Sampling != nil {
			return &sdk.CallToolResult{Content: []sdk.Content{says("the client can sample")}}, nil
		}
		data, err := json.Marshal(sdk.MissingRequiredClientCapabilityData{RequiredCapabilities: &sdk.ClientCapabilities{Sampling: &sdk.SamplingCapabilities{}}})
		if err != nil {
			return nil, err
		}
		return nil, &jsonrpc.Error{Code: sdk.CodeMissingRequiredClientCapabilities, Message: "the client cannot sample", Data: data}
	})
	f.tool("test_trigger_tool_change", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		f.shows("test_new_tool", says("new"))
		return &sdk.CallToolResult{Content: []sdk.Content{says("changed")}}, nil
	})
	f.tool("test_trigger_prompt_change", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		f.prompt("test_new_prompt", nil, says("new"))
		return &sdk.CallToolResult{Content: []sdk.Content{says("changed")}}, nil
	})
}

// schemas are tools whose schemas must come through unchanged.
func (f fixture) schemas() {
	done := func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{says("done")}}, nil
	}
	f.schemaTool("json_schema_2020_12_tool", `{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
		"$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
		"properties": {
			"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"},
			"contactMethod": {"type": "string", "enum": ["phone", "email"]}, "phone": {"type": "string"}, "email": {"type": "string"}},
		"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
		"if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
		"then": {"required": ["phone"]}, "else": {"required": ["email"]}, "additionalProperties": false}`, done)
	f.schemaTool("test_x_mcp_header", `{"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}, "level": {"type": "integer"}}}`, done)
}

// asking is what a tool asks its caller for, by name.
type asking = sdk.InputRequestMap

func elicit(member, kind string) *sdk.ElicitParams {
	return &sdk.ElicitParams{Message: "Give " + member, RequestedSchema: &jsonschema.Schema{
		Type: "object", Properties: map[string]*jsonschema.Schema{member: {Type: kind}}, Required: []string{member},
	}}
}

func sample(text string) *sdk.CreateMessageParams {
	return &sdk.CreateMessageParams{MaxTokens: 100, Messages: []*sdk.SamplingMessage{{Role: "user", Content: says(text)}}}
}

// given returns what a caller answered to a question, nil if it did not accept it.
func given(answers sdk.InputResponseMap, name string) map[string]any {
	if a, ok := answers[name].(*sdk.ElicitResult); ok && a.Action == "accept" {
		return a.Content
	}
	return nil
}

// inputs are tools that need more from their caller. state is what the caller must bring back with its answers.
func (f fixture) inputs() {
	needs := func(name, state string, ask asking, complete func(*sdk.CallToolParamsRaw) bool) {
		f.tool("test_input_required_result_"+name, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			if back := r.Params.RequestState; back != "" && back != state {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "this state is not from here"}
			}
			if complete(r.Params) && r.Params.RequestState == state {
				return &sdk.CallToolResult{Content: []sdk.Content{says("state-ok: complete")}}, nil
			}
			return &sdk.CallToolResult{InputRequests: ask, RequestState: state}, nil
		})
	}
	has := func(names ...string) func(*sdk.CallToolParamsRaw) bool {
		return func(p *sdk.CallToolParamsRaw) bool {
			for _, name := range names {
				if _, ok := p.InputResponses[name]; !ok {
					return false
				}
			}
			return true
		}
	}
	accepted := func(name string) func(*sdk.CallToolParamsRaw) bool {
		return func(p *sdk.CallToolParamsRaw) bool { return given(p.InputResponses, name) != nil }
	}
	roots := &sdk.ListRootsParams{}
	f.tool("test_input_required_result_elicitation", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if name, _ := given(r.Params.InputResponses, "user_name")["name"].(string); name != "" {
			return &sdk.CallToolResult{Content: []sdk.Content{says("Hello, " + name + "!")}}, nil
		}
		return &sdk.CallToolResult{InputRequests: asking{"user_name": elicit("name", "string")}}, nil
	})
	needs("sampling", "", asking{"capital_question": sample("What is the capital of France?")}, has("capital_question"))
	needs("list_roots", "", asking{"client_roots": roots}, has("client_roots"))
	needs("request_state", "before", asking{"confirm": elicit("ok", "boolean")}, accepted("confirm"))
	needs("tampered_state", "untouched", asking{"confirm": elicit("ok", "boolean")}, accepted("confirm"))
	needs("multiple_inputs", "all", asking{"user_name": elicit("name", "string"), "greeting": sample("Greet"), "client_roots": roots}, has("user_name", "greeting", "client_roots"))
	f.tool("test_input_required_result_multi_round", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		switch r.Params.RequestState {
		case "":
			return &sdk.CallToolResult{InputRequests: asking{"step1": elicit("name", "string")}, RequestState: "1"}, nil
		case "1":
			return &sdk.CallToolResult{InputRequests: asking{"step2": elicit("color", "string")}, RequestState: "2"}, nil
		}
		return &sdk.CallToolResult{Content: []sdk.Content{says("both are known")}}, nil
	})
	f.tool("test_input_required_result_capabilities", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		ask := asking{}
		if can := r.ClientCapabilities(); can != nil && len(r.Params.InputResponses) == 0 {
			if can.Elicitation != nil {
				ask["user_name"] = elicit("name", "string")
			}
			if can.Sampling != nil {
				ask["greeting"] = sample("Greet")
			}
		}
		if len(ask) > 0 {
			return &sdk.CallToolResult{InputRequests: ask}, nil
		}
		return &sdk.CallToolResult{Content: []sdk.Content{says("nothing is needed")}}, nil
	})
}

// prompt adds a prompt that always says the same.
func (f fixture) prompt(name string, arguments []*sdk.PromptArgument, content ...sdk.Content) {
	f.AddPrompt(&sdk.Prompt{Name: name, Description: "of the suite", Arguments: arguments}, func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		result := &sdk.GetPromptResult{}
		for _, c := range content {
			if t, ok := c.(*sdk.TextContent); ok {
				text := t.Text
				for name, value := range r.Params.Arguments {
					text = strings.ReplaceAll(text, "{"+name+"}", value)
				}
				c = says(text)
			}
			if _, ok := c.(*sdk.EmbeddedResource); ok {
				c = embedded(r.Params.Arguments["resourceUri"])
			}
			result.Messages = append(result.Messages, &sdk.PromptMessage{Role: "user", Content: c})
		}
		return result, nil
	})
}

// library are resources and prompts.
func (f fixture) library() {
	read := func(contents sdk.ResourceContents) sdk.ResourceHandler {
		return func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			c := contents
			id := strings.TrimSuffix(strings.TrimPrefix(r.Params.URI, "test://template/"), "/data")
			c.Text = strings.ReplaceAll(c.Text, "{id}", id)
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{&c}}, nil
		}
	}
	f.AddResource(&sdk.Resource{Name: "static-text", URI: "test://static-text", MIMEType: "text/plain"}, read(sdk.ResourceContents{Text: "A text"}))
	f.AddResource(&sdk.Resource{Name: "static-binary", URI: "test://static-binary", MIMEType: "image/png"}, read(sdk.ResourceContents{Blob: pixel}))
	f.AddResource(&sdk.Resource{Name: "watched-resource", URI: "test://watched-resource", MIMEType: "text/plain"}, read(sdk.ResourceContents{Text: "A text"}))
	f.AddResourceTemplate(&sdk.ResourceTemplate{Name: "template", URITemplate: "test://template/{id}/data", MIMEType: "application/json"}, read(sdk.ResourceContents{Text: `{"id":"{id}"}`}))

	f.prompt("test_simple_prompt", nil, says("This is a simple prompt for testing."))
	f.prompt("test_prompt_with_arguments", []*sdk.PromptArgument{{Name: "arg1", Required: true}, {Name: "arg2", Required: true}}, says("arg1='{arg1}', arg2='{arg2}'"))
	f.prompt("test_prompt_with_embedded_resource", []*sdk.PromptArgument{{Name: "resourceUri", Required: true}}, embedded(""), says("See above"))
	f.prompt("test_prompt_with_image", nil, &sdk.ImageContent{Data: pixel, MIMEType: "image/png"}, says("See above"))
	f.AddPrompt(&sdk.Prompt{Name: "test_input_required_result_prompt", Description: "of the suite"}, func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		if about := given(r.Params.InputResponses, "user_context"); about != nil {
			return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{Role: "user", Content: says(fmt.Sprint("Context: ", about["context"]))}}}, nil
		}
		return &sdk.GetPromptResult{InputRequests: sdk.InputRequestMap{"user_context": elicit("context", "string")}}, nil
	})
}
