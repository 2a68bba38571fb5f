package events

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Content types of the two structured forms.
const (
	ContentTypeEvent = "application/cloudevents+json"
	ContentTypeBatch = "application/cloudevents-batch+json"
)

// Headers that are not attributes.
const (
	headerPrefix      = "ce-"
	headerContentType = "content-type"

	// HeaderMsgID carries the event's identity; JetStream drops a repeat within its duplicate
	// window.
	HeaderMsgID = "Nats-Msg-Id"
)

// DecodeMessage reads one event from a NATS message or an HTTP request: binary
// mode if there are ce- headers, structured mode if the content type says so.
// Header names count without case. The event's Data aliases body in binary mode.
//
// It returns an [*Invalid]: neither mode, a batch, a missing, repeated or broken
// attribute, a body over [MaxEventBytes].
func DecodeMessage(header map[string][]string, body []byte) (Event, error) {
	var e Event
	var contentType string
	broken := false // in binary mode: structured mode ignores attributes in headers
	seen := make([]string, 0, 16)
	for name, values := range header {
		switch attribute, ours := attributeName(name); {
		case len(values) == 0:
		case ours && !broken:
			broken = e.setHeader(attribute, values, seen) != nil
			seen = append(seen, attribute)
		case strings.EqualFold(name, headerContentType):
			if len(values) > 1 || contentType != "" {
				return Event{}, invalid(headerContentType, "is given more than once")
			}
			contentType = values[0]
		}
	}
	switch media := mediaType(contentType); {
	case media == ContentTypeEvent:
		return DecodeStructured(body)
	case media == ContentTypeBatch:
		return Event{}, invalid("content-type", "a batch is not a single event")
	case strings.HasPrefix(media, "application/cloudevents"):
		return Event{}, invalid("content-type", "the format %q is not supported; send %s", media, ContentTypeEvent)
	case broken:
		return Event{}, firstBroken(header)
	}
	if e.SpecVersion == "" && e.ID == "" && e.Type == "" {
		return Event{}, invalid("content-type", "%q with no ce- headers is not a CloudEvent: send binary mode (ce-id, ce-source, …) or %s", contentType, ContentTypeEvent)
	}
	e.finish()
	e.DataContentType = cmp.Or(e.DataContentType, contentType)
	e.Data = body
	return e, e.check()
}

// firstBroken returns what is wrong with the first broken attribute in the order of the names. A map has another order
// each time, but the reason of a failed event must be the same in each read model. Whole messages need no order, which
// takes longer than the rest of decoding.
func firstBroken(header map[string][]string) error {
	var e Event
	var seen []string
	for _, name := range slices.Sorted(maps.Keys(header)) {
		attribute, ours := attributeName(name)
		if values := header[name]; ours && len(values) > 0 {
			if err := e.setHeader(attribute, values, seen); err != nil {
				return err
			}
			seen = append(seen, attribute)
		}
	}
	return nil
}

// attributeName returns the attribute that a ce- header carries; false if it carries none.
func attributeName(header string) (string, bool) {
	if len(header) <= len(headerPrefix) || !strings.EqualFold(header[:len(headerPrefix)], headerPrefix) {
		return "", false
	}
	return strings.ToLower(header[len(headerPrefix):]), true
}

// setHeader stores an attribute from a header, unless it was seen before ("ce-id" and "CE-ID").
func (e *Event) setHeader(attribute string, values, seen []string) error {
	if len(values) > 1 {
		return invalid(attribute, "is given %d times", len(values))
	}
	if slices.Contains(seen, attribute) {
		return invalid(attribute, "is given 2 times")
	}
	value, err := decodeHeader(attribute, values[0])
	if err != nil {
		return err
	}
	return e.set(attribute, value)
}

// EncodeMessage writes an event in binary mode, following the NATS protocol binding. The event must
// be valid, as [New], [Record] and the decoders return it. An extension that is a bool or an
// integer becomes text, because header values have no type.
func EncodeMessage(e Event) (header map[string][]string, body []byte) {
	header = make(map[string][]string, 8+len(e.Extensions))
	put := func(name, value string) {
		if value != "" {
			header[headerPrefix+name] = []string{encodeHeader(value)}
		}
	}
	put("specversion", e.SpecVersion)
	put("id", e.ID)
	put("source", e.Source)
	put("type", e.Type)
	put("subject", e.Subject)
	put("datacontenttype", e.DataContentType)
	if e.SpecVersion == "0.3" {
		put("schemaurl", e.DataSchema)
	} else {
		put("dataschema", e.DataSchema)
	}
	if !e.Time.IsZero() {
		put("time", e.Time.Format(time.RFC3339Nano))
	}
	for name, value := range e.Extensions {
		header[headerPrefix+name] = []string{encodeHeader(extensionText(value))}
	}
	return header, e.Data
}

// set stores an attribute given as text.
func (e *Event) set(attribute, value string) error {
	switch attribute {
	case "specversion":
		e.SpecVersion = value
	case "id":
		e.ID = value
	case "source":
		e.Source = value
	case "type":
		e.Type = value
	case "subject":
		e.Subject = value
	case "datacontenttype":
		e.DataContentType = value
	case "dataschema":
		e.DataSchema = value
	case "time":
		t, err := ParseTime(value)
		if err != nil {
			return invalid("time", "%q %v", value, err)
		}
		e.Time = t
	default:
		if e.Extensions == nil {
			e.Extensions = make(map[string]any, 2)
		}
		e.Extensions[attribute] = value
	}
	return nil
}

// finish renames the attribute that CloudEvents 0.3 called schemaurl to its name in 1.0. In 1.0 an
// extension may have the old name.
func (e *Event) finish() {
	if url := e.Extension("schemaurl"); e.SpecVersion == "0.3" && url != "" {
		e.DataSchema = url
		delete(e.Extensions, "schemaurl")
	}
}

func mediaType(contentType string) string {
	media, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(media))
}

// encodeHeader percent-encodes what a header value can't hold: space, double quote, percent, and
// everything outside of printable ASCII.
func encodeHeader(s string) string {
	clean := true
	for i := 0; i < len(s) && clean; i++ {
		clean = isHeaderByte(s[i])
	}
	if clean {
		return s
	}
	const hex = "0123456789ABCDEF"
	out := make([]byte, 0, len(s)+16)
	for i := 0; i < len(s); i++ {
		if c := s[i]; isHeaderByte(c) {
			out = append(out, c)
		} else {
			out = append(out, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(out)
}

func isHeaderByte(c byte) bool { return 0x21 <= c && c <= 0x7E && c != '"' && c != '%' }

// decodeHeader undoes encodeHeader. As the binding requires, it also takes quoted values,
// lower-case hex and unnecessary escapes.
func decodeHeader(attribute, s string) (string, error) {
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		s = unquote(s[1 : len(s)-1])
	}
	if strings.IndexByte(s, '%') >= 0 {
		out := make([]byte, 0, len(s))
		for i := 0; i < len(s); i++ {
			if s[i] == '%' && i+2 < len(s) {
				hi, ok1 := anyHex(s[i+1])
				lo, ok2 := anyHex(s[i+2])
				if ok1 && ok2 {
					out = append(out, hi<<4|lo)
					i += 2
					continue
				}
			}
			out = append(out, s[i])
		}
		s = string(out)
	}
	if !utf8.ValidString(s) {
		return "", invalid(attribute, "is not UTF-8")
	}
	return s, nil
}

func unquote(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		out = append(out, s[i])
	}
	return string(out)
}

func anyHex(c byte) (byte, bool) {
	if 'a' <= c && c <= 'f' {
		c -= 'a' - 'A'
	}
	return upperHex(c)
}
