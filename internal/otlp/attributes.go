package otlp

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
)

// errCut means that a JSON text in an attribute does not end.
var errCut = errors.New("is not complete JSON: the exporter cuts long attributes, raise OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT")

// attributes are those of a span, an event or a log record. Values are string, bool, int64, float64, []byte, []any or
// map[string]any.
type attributes map[string]any

func attributesOf(list []*commonpb.KeyValue) attributes {
	a := make(attributes, len(list))
	for _, kv := range list {
		if v := valueOf(kv.GetValue(), 0); v != nil {
			a[kv.GetKey()] = v
		}
	}
	return a
}

// maxNesting bounds the depth of a value. Deeper parts are left out.
const maxNesting = 64

func valueOf(v *commonpb.AnyValue, depth int) any {
	if depth > maxNesting {
		return nil
	}
	switch v := v.GetValue().(type) {
	case *commonpb.AnyValue_StringValue:
		return strings.ToValidUTF8(v.StringValue, "\uFFFD")
	case *commonpb.AnyValue_BoolValue:
		return v.BoolValue
	case *commonpb.AnyValue_IntValue:
		return v.IntValue
	case *commonpb.AnyValue_DoubleValue:
		return v.DoubleValue
	case *commonpb.AnyValue_BytesValue:
		return v.BytesValue
	case *commonpb.AnyValue_ArrayValue:
		list := make([]any, 0, len(v.ArrayValue.GetValues()))
		for _, one := range v.ArrayValue.GetValues() {
			list = append(list, valueOf(one, depth+1))
		}
		return list
	case *commonpb.AnyValue_KvlistValue:
		m := make(map[string]any, len(v.KvlistValue.GetValues()))
		for _, kv := range v.KvlistValue.GetValues() {
			m[kv.GetKey()] = valueOf(kv.GetValue(), depth+1)
		}
		return m
	}
	return nil
}

// text returns the first of these attributes that exists, as a text.
func (a attributes) text(keys ...string) string {
	for _, key := range keys {
		switch v := a[key].(type) {
		case nil:
		case string:
			if v != "" {
				return v
			}
		case bool:
			return strconv.FormatBool(v)
		case int64:
			return strconv.FormatInt(v, 10)
		default:
			return string(encode(v))
		}
	}
	return ""
}

// number returns the first of these attributes that is a number, or a text of one. Infinity and NaN do not count, because
// JSON cannot express them.
func (a attributes) number(keys ...string) (float64, bool) {
	for _, key := range keys {
		n := math.NaN()
		switch v := a[key].(type) {
		case int64:
			n = float64(v)
		case float64:
			n = v
		case string:
			if f, err := strconv.ParseFloat(v, 64); err == nil {
				n = f
			}
		}
		if !math.IsNaN(n) && !math.IsInf(n, 0) {
			return n, true
		}
	}
	return 0, false
}

// truth returns an attribute that is true or false, also as a text; nil if it is neither.
func (a attributes) truth(key string) *bool {
	switch v := a[key].(type) {
	case bool:
		return &v
	case string:
		if b, err := strconv.ParseBool(v); err == nil {
			return &b
		}
	}
	return nil
}

// has reports whether one of these attributes exists.
func (a attributes) has(keys ...string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { return a[key] != nil })
}

// json decodes an attribute into v: spans carry JSON as a text, log records as a structure. It returns false if the
// attribute is not there. The error names the attribute.
func (a attributes) json(key string, v any) (bool, error) {
	switch value := a[key].(type) {
	case nil:
		return false, nil
	case string:
		if strings.TrimSpace(value) == "" {
			return false, nil
		}
		if err := json.Unmarshal([]byte(value), v); err != nil {
			return false, &fieldError{key, jsonError(err)}
		}
	default:
		if err := json.Unmarshal(encode(value), v); err != nil {
			return false, &fieldError{key, jsonError(err)}
		}
	}
	return true, nil
}

// raw returns an attribute as JSON, nil if it does not exist. A text that is itself JSON is returned as that JSON.
func (a attributes) raw(keys ...string) json.RawMessage {
	for _, key := range keys {
		switch v := a[key].(type) {
		case nil:
		case string:
			return rawOf(v)
		default:
			return encode(v)
		}
	}
	return nil
}

// rawOf returns a text that is a JSON object, list or string unchanged, and any other as a JSON string.
func rawOf(s string) json.RawMessage {
	if t := strings.TrimSpace(s); t != "" && strings.ContainsRune(`{["`, rune(t[0])) && json.Valid([]byte(t)) {
		return json.RawMessage(t)
	}
	return encode(s)
}

// encode returns a decoded value as JSON with sorted members.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil { // a number that JSON does not have
		return json.RawMessage("null")
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func jsonError(err error) error {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok && strings.Contains(syntax.Error(), "unexpected end") {
		return errCut
	}
	return err
}

// fieldError says which attribute of a span or log record is wrong.
type fieldError struct {
	field string
	err   error
}

func (e *fieldError) Error() string { return e.field + " " + e.err.Error() }
func (e *fieldError) Unwrap() error { return e.err }
