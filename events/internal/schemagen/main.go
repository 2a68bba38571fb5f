// Schemagen writes the JSON Schemas of package events from its payload structs:
// their comments are the descriptions, their tags the rules. Run it by go
// generate in the package's directory.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"

	"mneme.dev/mneme/events"
)

var payloads = []events.Payload{
	new(events.ConversationStarted), new(events.ConversationUpdated), new(events.ConversationDeleted),
	new(events.MessageCreated), new(events.ToolCalled), new(events.ToolReturned),
	new(events.SummaryWritten), new(events.ToolCondensed), new(events.ProjectAliased),
	new(events.ContextServed), new(events.MemoryChanged), new(events.InsightWritten), new(events.StoryWritten),
	new(events.StoryWithdrawn), new(events.LessonWithdrawn), new(events.CodeIndexed), new(events.CodeScanned),
}

func main() {
	files, err := generate()
	for name, content := range files {
		if err == nil {
			err = os.WriteFile(filepath.Join("schemas", name), content, 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "schemagen:", err)
		os.Exit(1)
	}
}

// generate makes the files of the folder schemas. It reads the comments from the
// package's source and must run in the package's directory.
func generate() (map[string][]byte, error) {
	reflector := &jsonschema.Reflector{
		Anonymous: true, ExpandedStruct: true, DoNotReference: true,
		AllowAdditionalProperties:  true, // the vocabulary is open
		RequiredFromJSONSchemaTags: true,
		Mapper: func(t reflect.Type) *jsonschema.Schema {
			switch t.Kind() {
			case reflect.Int, reflect.Uint64:
				return &jsonschema.Schema{Type: "integer", Format: "int64"} // what does not fit is refused
			}
			if t == reflect.TypeFor[events.Result]() {
				return new(jsonschema.Schema) // any JSON
			}
			return nil
		},
	}
	if err := reflector.AddGoComments("mneme.dev/mneme/events", ".", jsonschema.WithFullComment()); err != nil {
		return nil, err
	}
	for key, comment := range reflector.CommentMap {
		reflector.CommentMap[key] = strings.ReplaceAll(comment, "\n", " ")
	}
	files := make(map[string][]byte, len(payloads))
	for _, p := range payloads {
		schema := reflector.Reflect(p)
		schema.ID = jsonschema.ID("urn:mneme:event:" + p.EventType())
		schema.Title = p.EventType()
		openOptional(schema)
		var out bytes.Buffer
		encoder := json.NewEncoder(&out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(schema); err != nil {
			return nil, err
		}
		files[p.EventType()+".json"] = out.Bytes()
	}
	return files, nil
}

// openOptional lets every property that is not required be null, which means the
// same as leaving it out; an optional enum may also be "".
func openOptional(schema *jsonschema.Schema) {
	if schema.Items != nil {
		openOptional(schema.Items)
	}
	if schema.Properties == nil {
		return
	}
	for p := schema.Properties.Oldest(); p != nil; p = p.Next() {
		property := p.Value
		openOptional(property)
		if property.Type == "" || slices.Contains(schema.Required, p.Key) {
			continue
		}
		property.Extras = map[string]any{"type": []string{property.Type, "null"}}
		property.Type = ""
		if property.Enum != nil {
			property.Enum = append(property.Enum, "", nil)
		}
	}
}
