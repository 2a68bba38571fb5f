package events

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// decoding holds the options for reading data: those of encoding/json/v2 (case-sensitive names, no
// duplicate members of the payload) except for two habits of version 1:
//   - half of a surrogate pair, as an agent in JavaScript writes it when it cuts a
//     text ("\ud83d"), becomes U+FFFD, but not in an identifier, see [wholeIDs]; bytes
//     that are not UTF-8 are refused before,
//   - null is the same as leaving the member out, so that a required text is
//     missing and not "".
var decoding = jsonv2.JoinOptions(jsontext.AllowInvalidUTF8(true), jsonv1.MergeWithLegacySemantics(true))

// decode reads data, which must be UTF-8, into an empty payload and validates it.
func decode(data []byte, p Payload) error {
	err := jsonv2.Unmarshal(data, p, decoding)
	if err != nil && insideTwice(err) {
		err = jsonv2.Unmarshal(data, p, decoding, jsontext.AllowDuplicateNames(true))
	}
	if err == nil {
		err = wholeIDs(data)
	}
	if bad, ok := errors.AsType[*Invalid](err); ok {
		return bad
	}
	if err != nil {
		return refused(err)
	}
	if bytes.Equal(bytes.TrimSpace(data), []byte("null")) { // which Unmarshal accepts for any struct
		return invalid("data", "is null, not an object")
	}
	return p.Validate()
}

// insideTwice reports whether a name occurs twice below the payload's own members. Arguments that a
// model wrote, and results of a tool, are facts and kept as they are.
func insideTwice(err error) bool {
	var syntax *jsontext.SyntacticError
	return errors.As(err, &syntax) && errors.Is(syntax.Err, jsontext.ErrDuplicateName) && strings.Count(string(syntax.JSONPointer), "/") > 1
}

// halved is the reason for refusing an identifier.
const halved = "contains half of a surrogate pair: the text was cut in the middle of a character"

// identifiers are the members of a payload that refer to other events or identify it.
var identifiers = []jsontext.Pointer{
	"/message_id", "/tool_call_id", "/tool_name", "/summary_id", "/supersedes", "/branched_from/conversation_id", "/branched_from/message_id",
}

// wholeIDs refuses half of a surrogate pair in an identifier. Otherwise each half would become
// U+FFFD, and two different identifiers would become the same.
func wholeIDs(data []byte) error {
	if !bytes.Contains(data, []byte(`\u`)) { // most data has no such escape, and one search costs half of two
		return nil
	}
	if !bytes.Contains(data, []byte(`\ud`)) && !bytes.Contains(data, []byte(`\uD`)) {
		return nil
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(data), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	for {
		if d.PeekKind() != jsontext.KindString {
			if _, err := d.ReadToken(); err != nil { // the end: everything was read before
				return nil
			}
			continue
		}
		text, err := d.ReadValue()
		if err != nil {
			return nil
		}
		if pointer := d.StackPointer(); slices.Contains(identifiers, pointer) && !text.IsValid() {
			return invalid(dataPath(pointer), halved)
		}
	}
}

// refused translates an error of the JSON package into terms that a producer knows.
func refused(err error) error {
	var syntax *jsontext.SyntacticError
	var typed *jsonv2.SemanticError
	switch {
	case errors.As(err, &syntax) && errors.Is(syntax.Err, jsontext.ErrDuplicateName):
		return invalid(dataPath(syntax.JSONPointer), "is given 2 times")
	case errors.As(err, &syntax):
		return invalid(dataPath(syntax.JSONPointer), "is not JSON: %v after byte %d", syntax.Err, syntax.ByteOffset)
	case errors.As(err, &typed) && typed.GoType != nil:
		return invalid(dataPath(typed.JSONPointer), "is %s, not %s", given(typed), wanted(typed.GoType))
	}
	return invalid("data", "is not JSON: %v", err)
}

// maxPathBytes is the length at which the path of a refusal is cut, because names come from the
// producer.
const maxPathBytes = 256

// dataPath turns a JSON pointer into a path into the data: "/references/0/file" becomes
// "data.references[0].file".
func dataPath(pointer jsontext.Pointer) string {
	var path strings.Builder
	path.WriteString("data")
	for token := range pointer.Tokens() {
		if token != "" && strings.Trim(token, "0123456789") == "" {
			path.WriteString("[" + token + "]")
		} else {
			path.WriteString("." + token)
		}
		if path.Len() > maxPathBytes {
			end := maxPathBytes
			for !utf8.RuneStart(path.String()[end]) {
				end--
			}
			return path.String()[:end] + "…"
		}
	}
	return path.String()
}

// given names the JSON type that was found.
func given(e *jsonv2.SemanticError) string {
	switch e.JSONKind {
	case jsontext.KindString:
		return "a JSON string"
	case jsontext.KindNumber:
		if 0 < len(e.JSONValue) && len(e.JSONValue) <= 64 {
			return "a JSON number " + string(e.JSONValue)
		}
		return "a JSON number"
	case jsontext.KindBeginObject, jsontext.KindEndObject:
		return "a JSON object"
	case jsontext.KindBeginArray, jsontext.KindEndArray:
		return "a JSON array"
	case jsontext.KindTrue, jsontext.KindFalse:
		return "a JSON boolean"
	}
	return "a JSON " + e.JSONKind.String()
}

// wanted names the JSON that can become a Go value of this type.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Slice:
		return "an array"
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a 64-bit integer"
	case reflect.Uint64:
		return "a non-negative 64-bit integer"
	case reflect.Float64:
		return "a double-precision number"
	}
	return "an object"
}
