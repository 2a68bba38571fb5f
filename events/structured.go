package events

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	ce "github.com/cloudevents/sdk-go/v2/event"
	"github.com/cloudevents/sdk-go/v2/types"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// DecodeStructured reads one event in the CloudEvents JSON format. An attribute that is null counts
// as not set.
//
// It returns an [*Invalid]: not JSON, a missing, repeated or broken attribute, an
// extension that is an object, both data and data_base64, over [MaxEventBytes].
//
// It does not use the SDK's decoder, because that one rewrites sources ("HTTP://a b"), reads the
// data of "+json" types as text, and panics on a data_base64 that is a number.
func DecodeStructured(body []byte) (Event, error) {
	if len(body) > MaxEventBytes {
		return Event{}, tooLarge(len(body))
	}
	if !utf8.Valid(body) {
		return Event{}, invalid("body", "is not UTF-8")
	}
	members, err := splitObject(body)
	if err != nil {
		return Event{}, err
	}
	for _, name := range []string{"specversion", "id", "source", "type"} {
		if _, ok := members[name]; !ok {
			return Event{}, invalid(name, "is missing")
		}
	}
	data, data64 := members["data"], members["data_base64"]
	delete(members, "data")
	delete(members, "data_base64")
	if data != nil && data64 != nil {
		return Event{}, invalid("data", "is given together with data_base64: send only one of them")
	}
	var e Event
	var broken firstOf
	for name, raw := range members {
		broken.note(name, e.setMember(name, raw))
	}
	if broken.err != nil {
		return Event{}, broken.err
	}
	e.finish()
	if data64 != nil {
		err = e.setBase64(data64)
	} else {
		err = e.setData(data)
	}
	if err != nil {
		return Event{}, err
	}
	return e, e.check()
}

// splitObject splits one JSON object into its members, which alias body. It refuses a duplicate
// name, because two readers could understand it differently. It does not look inside the data;
// Record can report a path there.
func splitObject(body []byte) (map[string]jsontext.Value, error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	switch d.PeekKind() {
	case jsontext.KindBeginObject, jsontext.KindInvalid:
	case jsontext.KindBeginArray:
		return nil, invalid("body", "is a JSON array, not an object: several events are a batch, with the content type %s", ContentTypeBatch)
	default:
		return nil, invalid("body", "is JSON but not an object")
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, brokenObject(err)
	}
	members := make(map[string]jsontext.Value, 12)
	for d.PeekKind() != jsontext.KindEndObject {
		token, err := d.ReadToken()
		if err != nil {
			return nil, brokenObject(err)
		}
		name := token.String()
		if name == "" {
			return nil, invalid("body", "has a member without a name")
		}
		if _, twice := members[name]; twice {
			return nil, invalid(name, "is given 2 times")
		}
		value, err := d.ReadValue()
		if err != nil {
			return nil, brokenObject(err)
		}
		end := int(d.InputOffset())
		members[name] = body[end-len(value) : end : end]
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, brokenObject(err)
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return nil, invalid("body", "continues after its JSON object")
	}
	return members, nil
}

func brokenObject(err error) error { return brokenJSON("object", err) }

func brokenArray(err error) error { return brokenJSON("array", err) }

func brokenJSON(kind string, err error) error {
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return invalid("body", "is not a JSON %s: %v after byte %d", kind, syntax.Err, syntax.ByteOffset)
	}
	return invalid("body", "is not a JSON %s: %v", kind, io.ErrUnexpectedEOF) // nothing at all
}

// setMember stores an attribute given as JSON.
func (e *Event) setMember(name string, raw jsontext.Value) error {
	var text string
	switch c := raw[0]; {
	case !isAttributeName(name):
		return invalid(name, "is not an attribute name: use only lower-case letters and digits")
	case c == 'n': // null
		return nil
	case c == '"':
		if err := jsonv2.Unmarshal(raw, &text); err != nil { // the body was UTF-8 and JSON
			return invalid(name, halved)
		}
		return e.set(name, text)
	case c == '{' || c == '[':
		return invalid(name, "is a JSON object or array; attributes are strings, integers and booleans")
	}
	switch name {
	case "specversion", "id", "source", "type", "subject", "time", "datacontenttype", "dataschema":
		return invalid(name, "is %s, not a string", raw)
	}
	if e.Extensions == nil {
		e.Extensions = make(map[string]any, 2)
	}
	if b := raw[0]; b == 't' || b == 'f' {
		e.Extensions[name] = b == 't'
		return nil
	}
	n, err := strconv.ParseInt(string(raw), 10, 32)
	if err != nil {
		return invalid(name, "is %s; numbers in attributes must be 32-bit integers", raw)
	}
	e.Extensions[name] = int32(n)
	return nil
}

// setData stores the data member: JSON as it is, any other type as the text of a JSON string.
func (e *Event) setData(raw jsontext.Value) error {
	if raw == nil || isJSON(e.DataContentType) {
		e.Data = bytes.Clone(raw)
		return nil
	}
	var text *string
	if err := json.Unmarshal(raw, &text); err != nil {
		return invalid("data", "is not a JSON string, as data of type %q must be", e.DataContentType)
	}
	if text != nil {
		e.Data = []byte(*text)
	}
	return nil
}

func (e *Event) setBase64(raw jsontext.Value) error {
	if e.SpecVersion == "0.3" {
		return invalid("data_base64", "does not exist in CloudEvents 0.3; send 1.0")
	}
	var text *string
	if err := json.Unmarshal(raw, &text); err != nil {
		return invalid("data_base64", "is not a JSON string")
	}
	if text == nil {
		return nil
	}
	data, err := base64.StdEncoding.DecodeString(*text)
	if err != nil {
		return invalid("data_base64", "is not base64: %v", err)
	}
	e.Data = data
	return nil
}

// EncodeStructured writes an event in the CloudEvents JSON format. JSON data is embedded, text
// becomes a string, and anything else becomes data_base64. So does the data of "+json" types, which
// the SDK would otherwise read as text.
//
// It returns an [*Invalid] if the event breaks a rule of CloudEvents.
func EncodeStructured(e Event) ([]byte, error) {
	if err := e.check(); err != nil {
		return nil, err
	}
	out := ce.Event{DataBase64: needsBase64(&e)}
	if len(e.Data) > 0 {
		out.DataEncoded = e.Data
	}
	if e.SpecVersion == "0.3" {
		if out.DataBase64 {
			return nil, invalid("data", "of type %q can't be written in CloudEvents 0.3", e.DataContentType)
		}
		out.Context = &ce.EventContextV03{
			ID: e.ID, Source: types.URIRef{URL: exactly(e.Source)}, Type: e.Type, Subject: optional(e.Subject),
			Time: timestamp(e.Time), DataContentType: optional(e.DataContentType), Extensions: e.Extensions,
		}
		if e.DataSchema != "" {
			out.Context.(*ce.EventContextV03).SchemaURL = &types.URIRef{URL: exactly(e.DataSchema)}
		}
	} else {
		out.Context = &ce.EventContextV1{
			ID: e.ID, Source: types.URIRef{URL: exactly(e.Source)}, Type: e.Type, Subject: optional(e.Subject),
			Time: timestamp(e.Time), DataContentType: optional(e.DataContentType), Extensions: e.Extensions,
		}
		if e.DataSchema != "" {
			out.Context.(*ce.EventContextV1).DataSchema = &types.URI{URL: exactly(e.DataSchema)}
		}
	}
	var body bytes.Buffer
	body.Grow(len(e.Data) + 512)
	if err := ce.WriteJson(&out, &body); err != nil {
		return nil, invalid("body", "%v", err)
	}
	return body.Bytes(), nil
}

// exactly returns a URL that prints as this text, byte for byte.
func exactly(s string) url.URL { return url.URL{Opaque: s} }

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func timestamp(t time.Time) *types.Timestamp {
	if t.IsZero() {
		return nil
	}
	return &types.Timestamp{Time: t}
}

// needsBase64 reports whether the SDK's encoder could not write the data as a value.
func needsBase64(e *Event) bool {
	if len(e.Data) == 0 {
		return false
	}
	switch media := mediaType(e.DataContentType); {
	case media == "" || media == "application/json" || media == "text/json":
		return !json.Valid(e.Data)
	case strings.HasSuffix(media, "+json"):
		return true
	default:
		text := strings.HasPrefix(media, "text/") || strings.HasSuffix(media, "xml")
		return !text || !utf8.Valid(e.Data)
	}
}

// SplitBatch splits a batch in the CloudEvents JSON batch format into its events, each for
// [DecodeStructured]. They alias body. It splits no more than limit events, because each takes 24 bytes here, and may
// take 2 in the body: a batch with more is refused as too large.
func SplitBatch(body []byte, limit int) ([]json.RawMessage, error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	switch d.PeekKind() {
	case jsontext.KindBeginArray, jsontext.KindInvalid:
	default:
		return nil, invalid("body", "is JSON but not an array: one event alone has the content type %s", ContentTypeEvent)
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, brokenArray(err)
	}
	batch := []json.RawMessage{}
	for d.PeekKind() != jsontext.KindEndArray {
		value, err := d.ReadValue()
		if err != nil {
			return nil, brokenArray(err)
		}
		if len(batch) == limit {
			return nil, &Invalid{Field: "body", Reason: fmt.Sprintf("has more than %d events", limit), TooLarge: true}
		}
		end := int(d.InputOffset())
		batch = append(batch, json.RawMessage(body[end-len(value):end:end]))
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, brokenArray(err)
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return nil, invalid("body", "continues after its JSON array")
	}
	return batch, nil
}

// extensionText returns an extension's value as a header carries it.
func extensionText(value any) string {
	if s, ok := value.(string); ok {
		return s
	}
	if s, err := types.Format(value); err == nil {
		return s
	}
	return fmt.Sprint(value)
}
