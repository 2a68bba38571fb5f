// Package yamlfile reads files of YAML that people write: unknown fields are errors, and errors speak of the file, not of
// this program's types.
package yamlfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Decode reads the first document of a text into a value. An empty text changes nothing. An error names all wrong lines.
func Decode(text []byte, into any) error {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	err := decoder.Decode(into)
	if errors.Is(err, io.EOF) {
		return nil
	}
	return Plain(err)
}

// Plain returns an error of the YAML library in words of the file.
func Plain(err error) error {
	var wrong *yaml.TypeError
	if !errors.As(err, &wrong) {
		return err
	}
	list := make([]string, len(wrong.Errors))
	for i, text := range wrong.Errors {
		text = unknown.ReplaceAllString(text, `the field "$1" is unknown`)
		list[i] = mistyped.ReplaceAllStringFunc(text, func(text string) string {
			m := mistyped.FindStringSubmatch(text)
			found := found[m[1]]
			if m[2] != "" {
				found = fmt.Sprintf("%s is %s", m[2], found)
			} else {
				found = "this is " + found
			}
			return fmt.Sprintf("%s; give %s", found, wanted(m[3]))
		})
	}
	return errors.New(strings.Join(list, "; "))
}

var (
	unknown  = regexp.MustCompile(`(?s)field (.+?) not found in type .+`)
	mistyped = regexp.MustCompile("cannot unmarshal !!(\\w+)(?: (`[^`]*`))? into (.+)")
)

// found says what stands in the file.
var found = map[string]string{
	"str": "a text", "int": "a number", "float": "a number", "bool": "true or false", "seq": "a list", "map": "a group of fields", "null": "empty", "timestamp": "a time",
}

// wanted says what should stand there, from the name of a Go type.
func wanted(kind string) string {
	switch kind = strings.TrimPrefix(kind, "*"); {
	case kind == "string":
		return "a text"
	case kind == "bool":
		return "true or false"
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"), strings.HasPrefix(kind, "float"):
		return "a number"
	case strings.HasPrefix(kind, "[]"):
		return "a list"
	default:
		return "a group of fields"
	}
}
