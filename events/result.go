package events

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Result is what a tool returned: a text, or any other JSON. The zero Result means none, which
// [ToolReturned] refuses.
type Result struct {
	form resultForm
	text string // as the agent read it
}

type resultForm byte

const (
	noResult resultForm = iota
	textResult
	jsonResult
)

// TextResult returns a result that is a text.
func TextResult(text string) Result { return Result{textResult, text} }

// JSONResult returns a result of any JSON; a JSON string gives the same as [TextResult]. Without
// bytes there is no result; [New] refuses bytes that are not JSON.
func JSONResult(raw []byte) Result {
	var r Result
	if len(raw) > 0 && r.UnmarshalJSON(raw) != nil {
		return Result{jsonResult, string(raw)}
	}
	return r
}

// Text returns the result as the agent read it: a JSON string without its quotes, any other JSON
// without its white space and escaped letters. It costs nothing.
func (r Result) Text() string { return r.text }

// IsText reports whether the result is a text, not other JSON.
func (r Result) IsText() bool { return r.form == textResult }

// IsZero reports whether there is no result. An empty text is a result.
func (r Result) IsZero() bool { return r.form == noResult }

// UnmarshalJSONFrom lets Record read a result.
func (r *Result) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	value, err := d.ReadValue()
	if err != nil {
		return err
	}
	switch {
	case value[0] != '"':
		*r = Result{jsonResult, string(compact(value))}
	case bytes.IndexByte(value, '\\') < 0 && utf8.Valid(value):
		*r = TextResult(string(value[1 : len(value)-1]))
	default:
		// The value was checked when it was read. Only half of a surrogate pair can still be an
		// error, and it has become U+FFFD.
		text, _ := jsontext.AppendUnquote(nil, value)
		*r = TextResult(string(text))
	}
	return nil
}

// UnmarshalJSON is for encoding/json.
func (r *Result) UnmarshalJSON(raw []byte) error { return jsonv2.Unmarshal(raw, r, decoding) }

// MarshalJSON writes a text as [New] writes all others: without escapes for HTML.
func (r Result) MarshalJSON() ([]byte, error) {
	switch r.form {
	case textResult:
		return marshal(r.text)
	case jsonResult:
		return []byte(r.text), nil
	}
	return []byte("null"), nil
}

// marshal writes JSON without a line break at its end, and leaves "<" as it is, because it is
// common in code and would take six bytes.
func marshal(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// compact returns JSON without insignificant white space, and with letters instead of the escapes
// that some encoders write for them (é and /, not \u00e9 and \/). It returns the same bytes if
// there is nothing to change, or if they are not JSON.
func compact(text []byte) []byte {
	if !hasSpace(text) && !bytes.Contains(text, []byte(`\u`)) && !bytes.Contains(text, []byte(`\/`)) {
		return text
	}
	shorter := jsontext.Value(bytes.Clone(text))
	if shorter.Compact(jsontext.PreserveRawStrings(false)) != nil {
		return text
	}
	return shorter
}

// hasSpace reports whether JSON text has white space outside of its strings. Most data has none,
// and then needs no compact copy.
func hasSpace(text []byte) bool {
	for len(text) > 0 {
		outside, rest, quoted := bytes.Cut(text, []byte{'"'})
		for _, c := range outside {
			if c <= ' ' {
				return true
			}
		}
		if !quoted {
			return false
		}
		text = afterString(rest)
	}
	return false
}

// afterString returns what follows the quote that ends a JSON string, nil if no quote does.
func afterString(text []byte) []byte {
	for {
		quote := bytes.IndexByte(text, '"')
		if quote < 0 {
			return nil
		}
		slashes := quote - len(bytes.TrimRight(text[:quote], `\`))
		text = text[quote+1:]
		if slashes%2 == 0 {
			return text
		}
	}
}
