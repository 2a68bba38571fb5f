package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/httpapi"
)

// A Type is an object with named members.
type Type struct {
	Name, Doc string
	Fields    []Field
	Taken     bool // callers make it, and may say None for what they leave out
}

// A Field is a member of a type.
type Field struct {
	Name     string
	Required bool
	Schema   *Schema
}

// A Schema is the part of a JSON Schema that the generated types need.
type Schema struct {
	Ref         string             `json:"$ref"`
	Type        types              `json:"type"`
	Description string             `json:"description"`
	Enum        []string           `json:"enum"`
	Items       *Schema            `json:"items"`
	Properties  map[string]*Schema `json:"properties"`
	Required    []string           `json:"required"`
}

// types is one type's name or a list of them.
type types []string

func (t *types) UnmarshalJSON(data []byte) error {
	var one string
	if err := json.Unmarshal(data, &one); err == nil {
		*t = types{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(t))
}

type parameter struct {
	Name     string  `json:"name"`
	In       string  `json:"in"`
	Required bool    `json:"required"`
	Schema   *Schema `json:"schema"`
}

type operation struct {
	ID         string      `json:"operationId"`
	Parameters []parameter `json:"parameters"`
}

type document struct {
	Paths      map[string]map[string]operation `json:"paths"`
	Components struct {
		Schemas map[string]*Schema `json:"schemas"`
	} `json:"components"`
}

// answers are the schemas that clients return, by the name that they have there.
var answers = []struct{ schema, name, doc string }{
	{"Conversation", "ConversationInfo", "What is known of a conversation."},
	{"BranchedAt", "BranchedAt", "Where a branch begins."},
	{"Message", "Message", "A message."},
	{"Reference", "Reference", "A piece of code that a message refers to. Lines count from 1; 0 means unknown."},
	{"File", "File", "A file that tools touched."},
	{"Summary", "Summary", "A summary of turns, or of other summaries."},
	{"ToolCall", "ToolCall", "A tool call, with its result if there is one."},
	{"ToolResult", "ToolResult", "The result of a tool call."},
	{"Turn", "Turn", "A message of the user and everything up to the next one."},
	{"Found", "Found", "A message that a search found."},
	{"FoundResult", "FoundResult", "A tool result that a search found."},
	{"Highlight", "Highlight", "A word of the query in a text."},
	{"FoundConversation", "FoundConversation", "A conversation that a search found."},
	{"ImportOutputBody", "ImportReport", "What became of an import."},
	{"LineProblem", "LineProblem", "A line of an import that was refused."},
	{"Context", "Context", "A context as data."},
	{"Section", "Section", "A part of a context."},
	{"Item", "Item", "A message, a call, a file or a summary in a context."},
	{"OpenAIChat", "OpenAIChat", "A context as arguments of a call of OpenAI's Chat Completions."},
	{"AnthropicChat", "AnthropicChat", "A context as arguments of a call of Anthropic's Messages."},
}

// parameters are the operations whose query parameters clients take. What a client sets
// itself or takes as an argument is left out.
var parameters = []struct{ operation, name, doc string }{
	{"read-context", "ContextOptions", "Which context of a conversation to return."},
	{"read-project-context", "ProjectContextOptions", "Which context of a project to return."},
	{"search-conversation", "SearchOptions", "How to search a conversation."},
	{"search", "SearchAllOptions", "How to search all conversations."},
	{"list-conversations", "ConversationsOptions", "Which conversations to list, in which order; limit is the size of a page."},
	{"list-messages", "MessagesOptions", "Which messages to list, in which order; limit is the size of a page."},
	{"list-turns", "TurnsOptions", "Which turns to list, in which order; limit is the size of a page."},
	{"list-files", "FilesOptions", "Which files to list, and how many."},
	{"list-summaries", "SummariesOptions", "Which summaries to list, in which order; limit is the size of a page."},
	{"similar-conversations", "SimilarOptions", "How many conversations to list, and how much of each."},
	{"list-tool-calls", "ToolCallsOptions", "Which calls to list, in which order; limit is the size of a page."},
}

var setByTheClient = map[string][]string{
	"":                    {"tenant", "cursor", "format"},
	"list-files":          {"group_by"},
	"search-conversation": {"query"},
	"search":              {"query"},
}

// recorded are the events that clients publish. What they take as an argument is left out.
var recorded = []struct {
	event, name, doc string
	without          []string
}{
	{events.TypeConversationStarted, "ConversationFields", "What to say about a conversation when it starts.", nil},
	{events.TypeConversationStarted, "BranchFields", "What to say about a branch; what is left out is as in its parent, but for title and tags.", []string{"branched_from", "repository"}},
	{events.TypeMessageCreated, "MessageFields", "What a message can have besides its text.", []string{"message_id", "role", "content"}},
	{events.TypeToolCalled, "CallFields", "What a tool call can have besides its tool and arguments.", []string{"tool_call_id", "tool_name", "arguments"}},
	{events.TypeToolReturned, "ResultFields", "What a tool's result can have besides itself.", []string{"tool_call_id", "result"}},
}

// load returns the types in the order of the tables above.
func load() ([]Type, error) {
	text, err := httpapi.Document()
	if err != nil {
		return nil, err
	}
	var doc document
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	var all []Type
	for _, r := range recorded {
		text, known := events.Schema(r.event)
		if !known {
			return nil, fmt.Errorf("there is no event %s", r.event)
		}
		var s Schema
		if err := json.Unmarshal(text, &s); err != nil {
			return nil, err
		}
		all = append(all, Type{r.name, r.doc, fields(&s, r.without), true})
	}
	for _, p := range parameters {
		o, err := doc.operation(p.operation)
		if err != nil {
			return nil, err
		}
		t := Type{Name: p.name, Doc: p.doc, Taken: true}
		without := append(setByTheClient[""], setByTheClient[p.operation]...)
		for _, q := range o.Parameters {
			if q.In == "query" && !slices.Contains(without, q.Name) {
				t.Fields = append(t.Fields, Field{q.Name, q.Required, q.Schema})
			}
		}
		all = append(all, t)
	}
	for _, a := range answers {
		s := doc.Components.Schemas[a.schema]
		if s == nil {
			return nil, fmt.Errorf("the API has no schema %s", a.schema)
		}
		all = append(all, Type{a.name, a.doc, fields(s, nil), false})
	}
	return all, nil
}

func (d *document) operation(id string) (operation, error) {
	for _, methods := range d.Paths {
		for _, o := range methods {
			if o.ID == id {
				return o, nil
			}
		}
	}
	return operation{}, fmt.Errorf("the API has no operation %s", id)
}

// fields returns the members of an object, first those that it always has.
func fields(s *Schema, without []string) []Field {
	var list []Field
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if !slices.Contains(without, name) {
			list = append(list, Field{name, slices.Contains(s.Required, name), s.Properties[name]})
		}
	}
	slices.SortStableFunc(list, func(a, b Field) int { return cmp.Compare(order(a), order(b)) })
	return list
}

func order(f Field) int {
	if f.Required {
		return 0
	}
	return 1
}

// named returns the name that clients have for a referenced schema, "" if they show it as any object.
func (s *Schema) named() string {
	for _, a := range answers {
		if strings.HasSuffix(s.Ref, "/"+a.schema) {
			return a.name
		}
	}
	return ""
}

// forModels reports whether a schema is a message in the form of a model's API, which the
// client of that API has types for.
func (s *Schema) forModels() bool {
	return strings.HasSuffix(s.Ref, "/OpenAIMessage") || strings.HasSuffix(s.Ref, "/AnthropicMessage")
}
