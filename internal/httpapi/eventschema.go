package httpapi

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/events"
)

// eventSchema returns the JSON Schema of a structured CloudEvent of the vocabulary, as a
// reference to the document's components.
func eventSchema(h huma.API) *huma.Schema {
	const name = "CloudEvent"
	schemas := h.OpenAPI().Components.Schemas.Map()
	if schemas[name] == nil {
		all := &huma.Schema{Type: huma.TypeObject, Description: "an event of one of mneme's types, or of another project's, in the CloudEvents JSON format"}
		for _, eventType := range events.Types() {
			all.OneOf = append(all.OneOf, typeSchema(eventType))
		}
		all.OneOf = append(all.OneOf, foreignSchema())
		schemas[name] = all
	}
	return &huma.Schema{Ref: "#/components/schemas/" + name}
}

// eventExamples are events that a client can start with. Without them a documentation
// page invents one of the first type, which is a deletion.
var eventExamples = []struct{ name, event string }{
	{"a message", `{"specversion":"1.0","type":"dev.mneme.message.created.v1","source":"my-agent","id":"event-1","subject":"my-conversation",` +
		`"time":"2026-01-31T15:04:05Z","data":{"message_id":"m1","role":"assistant","content":"I read the test."}}`},
	{"a tool call", `{"specversion":"1.0","type":"dev.mneme.tool.called.v1","source":"my-agent","id":"event-2","subject":"my-conversation",` +
		`"time":"2026-01-31T15:04:06Z","data":{"tool_call_id":"t1","message_id":"m1","tool_name":"read_file","arguments":{"path":"a_test.go"}}}`},
	{"its result", `{"specversion":"1.0","type":"dev.mneme.tool.returned.v1","source":"my-agent","id":"event-3","subject":"my-conversation",` +
		`"time":"2026-01-31T15:04:07Z","data":{"tool_call_id":"t1","success":true,"result":"package a"}}`},
}

// singleExamples returns the examples one by one, batchExample all in one batch.
func singleExamples() map[string]*huma.Example {
	list := map[string]*huma.Example{}
	for _, e := range eventExamples {
		list[e.name] = &huma.Example{Summary: e.name, Value: json.RawMessage(e.event)}
	}
	return list
}

func batchExample() []json.RawMessage {
	list := make([]json.RawMessage, len(eventExamples))
	for i, e := range eventExamples {
		list[i] = json.RawMessage(e.event)
	}
	return list
}

// foreignTypes matches what [events.IsForeign] accepts.
const foreignTypes = `^(?![dD][eE][vV]\.[mM][nN][eE][mM][eE]\.)[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+){2,}$`

// foreignSchema describes an event of a type that another project defined.
func foreignSchema() *huma.Schema {
	s := envelopeSchema("an event of another project", &huma.Schema{Type: huma.TypeString, Pattern: foreignTypes, Description: "a reverse domain name, such as com.example.build.finished"})
	s.Description = "The log keeps it; projections that don't know its type skip it."
	s.Properties["datacontenttype"] = &huma.Schema{Type: huma.TypeString, Nullable: true}
	s.Properties["data"] = &huma.Schema{}
	s.Properties["data_base64"] = &huma.Schema{Type: huma.TypeString, ContentEncoding: "base64"}
	s.Required = slices.DeleteFunc(s.Required, func(name string) bool { return name == "data" })
	return s
}

func typeSchema(eventType string) *huma.Schema {
	raw, _ := events.Schema(eventType)
	data := map[string]any{}
	if err := json.Unmarshal(raw, &data); err != nil {
		panic(fmt.Sprintf("the schema of %s: %v", eventType, err)) // cannot happen: the schemas are embedded and tested
	}
	delete(data, "$schema")
	delete(data, "$id")
	s := envelopeSchema(eventType, &huma.Schema{Type: huma.TypeString, Enum: []any{eventType}})
	s.Properties["data"] = &huma.Schema{Extensions: data}
	return s
}

// envelopeSchema describes a structured CloudEvent without its data.
func envelopeSchema(title string, typ *huma.Schema) *huma.Schema {
	one := 1
	text := func(most int, doc string) *huma.Schema {
		return &huma.Schema{Type: huma.TypeString, MinLength: &one, MaxLength: &most, Description: doc}
	}
	return &huma.Schema{
		Type:  huma.TypeObject,
		Title: title,
		Properties: map[string]*huma.Schema{
			"specversion":     {Type: huma.TypeString, Enum: []any{"1.0"}},
			"type":            typ,
			"id":              text(events.MaxIDBytes, "with source and subject it makes the event known: a repeat changes nothing"),
			"source":          text(events.MaxSourceBytes, "the program that publishes"),
			"subject":         text(events.MaxIDBytes, "the conversation's id"),
			"time":            {Type: huma.TypeString, Nullable: true, Format: "date-time", Description: "the producer's time: shown, never used as order"},
			"datacontenttype": {Type: huma.TypeString, Nullable: true, Enum: []any{"application/json", nil}},
		},
		Required: []string{"specversion", "type", "id", "source", "subject", "data"},
		// Extension attributes.
		AdditionalProperties: &huma.Schema{Extensions: map[string]any{"type": []string{"string", "integer", "boolean", "null"}, "format": "int32", "maxLength": events.MaxExtensionBytes}},
		Extensions:           map[string]any{"propertyNames": map[string]any{"pattern": "^[a-z0-9]+$"}},
	}
}
