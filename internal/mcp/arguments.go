package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"mneme.dev/mneme/pkg/plain"
)

// checked refuses calls with wrong arguments. The SDK would refuse them too, but with the text of its library, which
// quotes schemas; a model needs to know which argument is wrong, and what is allowed.
func checked(tools []*sdk.Tool) sdk.Middleware {
	schemas := map[string]*jsonschema.Schema{}
	for _, t := range tools {
		schemas[t.Name] = t.InputSchema.(*jsonschema.Schema)
	}
	return func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
			p, ok := r.GetParams().(*sdk.CallToolParamsRaw)
			if !ok || p == nil || schemas[p.Name] == nil {
				return next(ctx, method, r)
			}
			if wrong := mistakes(p.Name, schemas[p.Name], p.Arguments); len(wrong) > 0 {
				result := &sdk.CallToolResult{}
				result.SetError(refusal(plain.Clip(strings.Join(wrong, "; "), maxError)))
				return result, nil
			}
			return next(ctx, method, r)
		}
	}
}

// mistakes says what is wrong with the arguments of a tool: first those that are missing or not known, then the others in
// the order of the schema.
func mistakes(tool string, s *jsonschema.Schema, raw json.RawMessage) (wrong []string) {
	var given map[string]json.RawMessage
	if len(bytes.TrimSpace(raw)) > 0 && json.Unmarshal(raw, &given) != nil {
		return []string{"the arguments of " + tool + " must be an object, such as {" + quote(s.PropertyOrder[0]) + ": …}"}
	}
	for _, name := range s.Required {
		if _, ok := given[name]; !ok {
			wrong = append(wrong, name+" is missing"+about(s.Properties[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if s.Properties[name] == nil {
			wrong = append(wrong, fmt.Sprintf("%s has no argument %s, only %s", tool, shown([]byte(quote(name))), strings.Join(s.PropertyOrder, ", ")))
		}
	}
	for _, name := range s.PropertyOrder {
		if value, ok := given[name]; ok {
			if must := broken(s.Properties[name], value); must != "" {
				wrong = append(wrong, name+" "+must)
			}
		}
	}
	return wrong
}

// broken says what a value must be, "" if it is that.
func broken(s *jsonschema.Schema, raw json.RawMessage) string {
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return "is no JSON"
	}
	not := ", not " + shown(raw)
	switch s.Type {
	case "string":
		text, ok := value.(string)
		size := utf8.RuneCountInString(text)
		switch {
		case s.Enum != nil && !slices.Contains(s.Enum, value):
			return "must be one of " + strings.ReplaceAll(strings.Trim(fmt.Sprint(s.Enum), "[]"), " ", ", ") + not
		case !ok:
			return "must be a text" + not + about(s)
		case s.MaxLength != nil && size > *s.MaxLength:
			return fmt.Sprintf("has %d characters; at most %d are allowed", size, *s.MaxLength)
		case s.MinLength != nil && size < *s.MinLength:
			return "is empty"
		}
	case "integer":
		n, ok := value.(float64)
		if !ok || n != math.Trunc(n) || math.Abs(n) > 1<<53 || s.Minimum != nil && n < *s.Minimum || s.Maximum != nil && n > *s.Maximum {
			return "must be a whole number" + span(s) + not + about(s)
		}
	case "array":
		list, ok := value.([]any)
		if !ok {
			return "must be a list of texts" + not
		}
		if s.MaxItems != nil && len(list) > *s.MaxItems {
			return fmt.Sprintf("has %d entries; at most %d are allowed", len(list), *s.MaxItems)
		}
		var items []json.RawMessage
		_ = json.Unmarshal(raw, &items) // it is a list
		for i, item := range items {
			if must := broken(s.Items, item); must != "" {
				return fmt.Sprintf("entry %d %s", i+1, must)
			}
		}
	}
	return ""
}

// span says which numbers are allowed.
func span(s *jsonschema.Schema) string {
	switch {
	case s.Minimum != nil && s.Maximum != nil:
		return fmt.Sprintf(" from %.0f to %.0f", *s.Minimum, *s.Maximum)
	case s.Minimum != nil:
		return fmt.Sprintf(" from %.0f on", *s.Minimum)
	}
	return ""
}

func about(s *jsonschema.Schema) string {
	if s.Description == "" {
		return ""
	}
	return " (" + s.Description + ")"
}

// shown returns the beginning of a value.
func shown(raw json.RawMessage) string {
	var compact bytes.Buffer
	if json.Compact(&compact, raw) != nil {
		return plain.Clip(string(raw), maxShown)
	}
	return plain.Clip(compact.String(), maxShown)
}

// maxShown is how much of a wrong value is quoted.
const maxShown = 60

func quote(text string) string {
	raw, _ := encode(text) // cannot fail for a text
	return string(raw)
}
