package transcript

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// text is a JSON scalar as text, because recordings write a session as "3" or as 3. null,
// objects and arrays become "".
type text string

func (t *text) UnmarshalJSON(raw []byte) error {
	*t = ""
	switch raw[0] {
	case '"':
		return json.Unmarshal(raw, (*string)(t))
	case '{', '[', 'n':
	default:
		*t = text(raw)
	}
	return nil
}

// texts is a list of texts, or a single one.
type texts []text

func (t *texts) UnmarshalJSON(raw []byte) error {
	*t = nil
	if raw[0] == '[' {
		return json.Unmarshal(raw, (*[]text)(t))
	}
	var one text
	if err := one.UnmarshalJSON(raw); err != nil || one == "" {
		return err
	}
	*t = texts{one}
	return nil
}

func (t texts) join() string {
	var all strings.Builder
	for _, one := range t {
		all.WriteString(string(one))
	}
	return all.String()
}

// given returns raw, or nil if it is null.
func given(raw json.RawMessage) json.RawMessage { return or(raw, "") }

// or returns raw, or other if raw is absent or null.
func or(raw json.RawMessage, other string) json.RawMessage {
	if len(raw) > 0 && string(raw) != "null" {
		return raw
	}
	if other == "" {
		return nil
	}
	return json.RawMessage(other)
}

// spellings are the byte sequences that have an equivalent spelling. All other JSON escapes
// have only one form.
var spellings = [][]byte{[]byte(`\u`), []byte(`\/`), []byte("\u2028"), []byte("\u2029")}

// plain rewrites the strings of valid JSON in this package's own spelling. Recordings
// escape the same value differently, but equal values must have equal bytes.
func plain(raw json.RawMessage) json.RawMessage {
	if !slices.ContainsFunc(spellings, func(s []byte) bool { return bytes.Contains(raw, s) }) {
		return raw
	}
	whole, out := raw, make([]byte, 0, len(raw))
	for {
		open := bytes.IndexByte(raw, '"')
		if open < 0 {
			break
		}
		end := open + 1
		for raw[end] != '"' {
			if raw[end] == '\\' {
				end++
			}
			end++
		}
		var s string
		if json.Unmarshal(raw[open:end+1], &s) != nil {
			return whole
		}
		out = append(append(out, raw[:open]...), quote(s)...)
		raw = raw[end+1:]
	}
	return append(out, raw...)
}

// quote returns a string as JSON, without escaping "<", ">" and "&".
func quote(s string) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(s) != nil { // never fails for a string
		return nil
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// spaced adds a space after each comma and colon of compact JSON, as in the neutral form.
func spaced(raw json.RawMessage) string {
	var s strings.Builder
	quoted := false
	for i := 0; i < len(raw); i++ {
		switch b := raw[i]; {
		case quoted && b == '\\' && i+1 < len(raw):
			s.WriteByte(b)
			i++
			s.WriteByte(raw[i])
			continue
		case b == '"':
			quoted = !quoted
			s.WriteByte(b)
		case quoted:
			s.WriteByte(b)
		case b == ' ' || b == '\t':
		case b == ',' || b == ':':
			s.WriteByte(b)
			s.WriteByte(' ')
		default:
			s.WriteByte(b)
		}
	}
	return s.String()
}

// exit is the status with which a command ended, 0 also if none is known.
type exit float64

func (e *exit) UnmarshalJSON(raw []byte) error {
	var status float64
	if json.Unmarshal(raw, &status) == nil { // it may be null
		*e = exit(status)
	}
	return nil
}

// exitOf is the exit status in an object about a command, 0 also if none is known.
type exitOf exit

func (e *exitOf) UnmarshalJSON(raw []byte) error {
	var about struct {
		Exit exit `json:"exit"`
		Code exit `json:"exitCode"`
	}
	if json.Unmarshal(raw, &about) == nil { // it may be no object
		*e = exitOf(cmp.Or(about.Exit, about.Code))
	}
	return nil
}
