package events

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Event is a CloudEvents envelope with its data. The zero Time means that the
// producer sent none. Extension values are strings, bools or int32s.
type Event struct {
	SpecVersion     string
	ID              string
	Source          string
	Type            string
	Subject         string // the conversation id, in our vocabulary
	Time            time.Time
	DataContentType string
	DataSchema      string
	Extensions      map[string]any
	Data            []byte
}

// New makes an event of the vocabulary from its payload. It sets the partitionkey extension to the
// conversation, as the CloudEvents partitioning extension requires. The caller may set Time and
// further extensions, and DataContentType if the data of a [Foreign] payload is not JSON.
//
// It returns an [*Invalid] if the payload or an id breaks a rule.
func New(conversation, source, id string, payload Payload) (Event, error) {
	var data []byte
	if foreign, ok := payload.(*Foreign); ok {
		if err := foreign.Validate(); err != nil {
			return Event{}, err
		}
		data = foreign.Data
	} else {
		var err error
		if data, err = marshal(payload); err != nil {
			return Event{}, invalid("data", "%v", err)
		}
	}
	e := Event{
		SpecVersion: "1.0", ID: id, Source: source, Type: payload.EventType(), Subject: conversation,
		DataContentType: "application/json", Data: data,
		Extensions: map[string]any{"partitionkey": conversation},
	}
	_, err := Record(e)
	return e, err
}

// Extension returns a string extension such as "traceparent", or "".
func (e *Event) Extension(name string) string {
	s, _ := e.Extensions[name].(string)
	return s
}

// Recorded is a valid event of the vocabulary with its typed payload. Tenant and Seq are known once
// the log holds the event: Tenant comes from the subject, Seq from the stream.
type Recorded struct {
	Event
	Tenant  string
	Seq     uint64
	Payload Payload

	memo *memo // nil unless the event is shared
}

// Record checks an event against the vocabulary and decodes its payload. A type of
// another project (see [IsForeign]) gets a [Foreign] payload.
//
// It returns an [*Invalid]: an attribute is missing or too long, the type is below
// dev.mneme and unknown or of a later version, or no reverse domain name, the data is not JSON, not UTF-8, over
// [MaxEventBytes], or breaks a rule of its type.
func Record(e Event) (Recorded, error) {
	if err := e.check(); err != nil {
		return Recorded{Event: e}, err
	}
	return record(e)
}

// RecordMessage is [DecodeMessage] followed by [Record]. With an error it also returns the readable
// part of the envelope, so that callers can list the refused event.
func RecordMessage(header map[string][]string, body []byte) (Recorded, error) {
	e, err := DecodeMessage(header, body)
	if err != nil {
		return Recorded{Event: e}, err
	}
	return record(e)
}

// record checks an event with a valid envelope against the vocabulary.
func record(e Event) (Recorded, error) {
	if e.SpecVersion != "1.0" {
		return Recorded{Event: e}, invalid("specversion", "%q is not accepted; send 1.0", e.SpecVersion)
	}
	if e.Subject == "" {
		return Recorded{Event: e}, invalid("subject", "is missing: it names the conversation")
	}
	prototype, known := prototypes[e.Type]
	switch {
	case IsForeign(e.Type):
		return Recorded{Event: e, Payload: &Foreign{Type: e.Type, Data: e.Data}}, nil
	case !known:
		return Recorded{Event: e}, invalid("type", "%q is not known to this version; known are %s, and reverse domain names of other projects such as com.example.build.finished", e.Type, strings.Join(Types(), ", "))
	}
	if !isJSON(e.DataContentType) {
		return Recorded{Event: e}, invalid("datacontenttype", "%q is not JSON", e.DataContentType)
	}
	if len(e.Data) == 0 {
		return Recorded{Event: e}, invalid("data", "is missing")
	}
	p := prototype()
	if err := decode(e.Data, p); err != nil {
		return Recorded{Event: e}, err
	}
	return Recorded{Event: e, Payload: p}, nil
}

// check applies the rules of CloudEvents and the limits for every event.
func (e *Event) check() error {
	switch e.SpecVersion {
	case "1.0", "0.3":
	case "":
		return invalid("specversion", "is missing")
	default:
		return invalid("specversion", "%q is not a known version of CloudEvents", e.SpecVersion)
	}
	if err := first(
		token("id", e.ID, MaxIDBytes),
		token("source", e.Source, MaxSourceBytes),
		token("type", e.Type, MaxIDBytes),
		bounded("subject", e.Subject, MaxIDBytes),
		bounded("datacontenttype", e.DataContentType, MaxSourceBytes),
		bounded("dataschema", e.DataSchema, MaxSourceBytes)); err != nil {
		return err
	}
	var broken firstOf
	for name, value := range e.Extensions {
		broken.note(name, checkExtension(name, value))
	}
	if broken.err != nil {
		return broken.err
	}
	if e.SpecVersion == "0.3" && e.Extensions["datacontentencoding"] != nil {
		return invalid("datacontentencoding", "is not accepted; send CloudEvents 1.0 with data_base64")
	}
	if y := e.Time.UTC().Year(); y < 0 || y > 9999 {
		return invalid("time", "is in the year %d UTC; RFC 3339 allows 0 to 9999", y)
	}
	if len(e.Data) > MaxEventBytes {
		return tooLarge(len(e.Data))
	}
	if isJSON(e.DataContentType) && !utf8.Valid(e.Data) {
		return invalid("data", "is not UTF-8")
	}
	return nil
}

// firstOf keeps the error of the first attribute in the order of their names, so that an event is always refused for the
// same reason. The order in which they are checked is that of a map.
type firstOf struct {
	name string
	err  error
}

func (f *firstOf) note(name string, err error) {
	if err != nil && (f.err == nil || name < f.name) {
		f.name, f.err = name, err
	}
}

func checkExtension(name string, value any) error {
	switch name {
	case "specversion", "id", "source", "type", "subject", "time", "datacontenttype", "dataschema", "data":
		return invalid(name, "is reserved by CloudEvents; an extension needs another name")
	}
	if !isAttributeName(name) {
		return invalid(name, "is not an attribute name: use only lower-case letters and digits")
	}
	if s, ok := value.(string); ok && len(s) > MaxExtensionBytes {
		return invalid(name, "is %d bytes long, the limit is %d", len(s), MaxExtensionBytes)
	}
	return nil
}

func isAttributeName(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// isJSON reports whether data of this content type is JSON. No content type means JSON, as in the
// CloudEvents JSON format.
func isJSON(contentType string) bool {
	if contentType == "" || contentType == "application/json" {
		return true
	}
	media := mediaType(contentType)
	return media == "" || media == "application/json" || media == "text/json" || strings.HasSuffix(media, "+json")
}

// Digest is a hash cut to 16 bytes: an identity, or the fingerprint of what an event says.
type Digest [16]byte

func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// IsZero reports whether the digest was never set.
func (d Digest) IsZero() bool { return d == Digest{} }

// DigestOf hashes parts with SHA-256, each preceded by its length, so that different lists of parts
// never hash the same bytes.
func DigestOf(parts ...string) Digest {
	h := sha256.New()
	var room [512]byte // hash a long part in pieces, so that it is not copied as a whole
	for _, p := range parts {
		piece := binary.BigEndian.AppendUint64(room[:0], uint64(len(p)))
		for {
			n := min(len(p), len(room)-len(piece))
			h.Write(append(piece, p[:n]...))
			if p = p[n:]; p == "" {
				break
			}
			piece = room[:0]
		}
	}
	var sum [sha256.Size]byte
	return Digest(h.Sum(sum[:0])[:16])
}

// Identity returns the digest that identifies an event: of tenant, conversation, source and id. As
// text it is the event's Nats-Msg-Id. JetStream's message ids are global to a stream, so without
// the tenant one tenant's event could suppress another's.
func (e *Event) Identity(tenant string) Digest {
	return DigestOf(tenant, e.Subject, e.Source, e.ID)
}

// Content returns the fingerprint of an event's content: its type, and its data without
// insignificant white space and escaped letters. A repeat has the same content, whatever its mode
// or time.
func (e *Event) Content() Digest {
	data := e.Data
	if isJSON(e.DataContentType) {
		data = compact(data)
	}
	h := sha256.New()
	var room [64]byte // for a type of the vocabulary
	h.Write(append(binary.BigEndian.AppendUint64(room[:0], uint64(len(e.Type))), e.Type...))
	h.Write(data)
	var sum [sha256.Size]byte
	return Digest(h.Sum(sum[:0])[:16])
}

// Equal compares two envelopes. Times are equal if they are the same instant,
// data if it is the same bytes.
func (e *Event) Equal(o *Event) bool {
	return e.SpecVersion == o.SpecVersion && e.ID == o.ID && e.Source == o.Source && e.Type == o.Type &&
		e.Subject == o.Subject && e.Time.Equal(o.Time) && e.DataContentType == o.DataContentType &&
		e.DataSchema == o.DataSchema && maps.Equal(e.Extensions, o.Extensions) && slices.Equal(e.Data, o.Data)
}

// ConversationID names a conversation: ids are unique only within their tenant.
type ConversationID struct{ Tenant, ID string }

// Conversation returns the conversation that a recorded event belongs to.
func (r *Recorded) Conversation() ConversationID {
	return ConversationID{Tenant: r.Tenant, ID: r.Subject}
}
