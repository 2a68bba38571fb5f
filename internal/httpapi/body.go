package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"mneme.dev/mneme/internal/jsonmarks"
)

// jsonBodies is huma's JSON format, but strict; see [strictJSON] and [decode].
var jsonBodies = map[string]huma.Format{
	"application/json": {Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: decode},
	"json":             {Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: decode},
}

// decode reads a body twice: into an any, which huma checks against the schema, and then
// into the input. For the check it marks values that the input would misread, so that
// the schema refuses them where they are: null, which huma treats as a missing member,
// and integers that have a fraction, an exponent or more than 64 bits.
func decode(data []byte, into any) error {
	if jsonmarks.Exceed(data, ",{[", maxMarks) { // also before the input is read, which huma does even after a check that failed
		return fmt.Errorf("there are more than %d objects, lists and commas", maxMarks)
	}
	checked, ok := into.(*any)
	if !ok {
		return json.Unmarshal(data, into)
	}
	if err := strictJSON(data); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(checked); err != nil {
		return err
	}
	*checked = marked(*checked)
	return nil
}

// maxMarks bounds the values in a body: in memory, and among the errors of the check, each takes hundreds of times the 2
// bytes that it may take in the body. The largest request, which asks about 10,000 events, has about 40,000 marks.
const maxMarks = 100_000

// strictJSON refuses JSON that two readers could understand differently: duplicate
// members, text that is not UTF-8, and half a surrogate pair. encoding/json takes the
// last member, and replaces such text with U+FFFD, which would change an id.
func strictJSON(data []byte) error {
	d := jsontext.NewDecoder(bytes.NewBuffer(data))
	if _, err := d.ReadValue(); err != nil {
		if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
			return fmt.Errorf("%w at %q after byte %d", syntax.Err, syntax.JSONPointer, syntax.ByteOffset)
		}
		return err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("there is more than one JSON value")
	}
	return nil
}

// null is a value whose type no schema allows.
type null struct{}

// MarshalJSON implements json.Marshaler.
func (null) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// marked marks values for [decode]; it changes lists and objects in place. A json.Number
// that it leaves is refused like null: in request bodies every number is an integer.
func marked(value any) any {
	switch v := value.(type) {
	case nil:
		return null{}
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
	case []any:
		for i := range v {
			v[i] = marked(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = marked(v[name])
		}
	}
	return value
}
