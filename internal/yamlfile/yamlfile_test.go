package yamlfile

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

type price struct {
	Input *float64
	Names []string
	Any   map[string]string
	Text  string
	On    bool
}

func TestErrorsSpeakOfTheFile(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"in: 5":                "line 1: the field \"in\" is unknown",
		"input: dear\nout: 2":  "line 1: `dear` is a text; give a number; line 2: the field \"out\" is unknown",
		"names: {a: b}":        "line 1: this is a group of fields; give a list",
		"names: 5":             "line 1: `5` is a number; give a list",
		"any: [1]":             "line 1: this is a list; give a group of fields",
		"- 1":                  "line 1: this is a list; give a group of fields",
		"text: [a]":            "line 1: this is a list; give a text",
		"\n\non: 17":           "line 3: `17` is a number; give true or false",
		"text: 'never closed":  "yaml: found unexpected end of stream",
		"input: 1\n\tnames: x": "yaml: line 2: found a tab character that violates indentation",
	} {
		var p price
		require.EqualError(t, Decode([]byte(text), &p), want, text)
	}
	var unnamed struct{ Default yaml.Node }
	require.EqualError(t, Decode([]byte("defualt: 1"), &unnamed), `line 1: the field "defualt" is unknown`)
	var p price
	require.NoError(t, Decode(nil, &p))
	require.NoError(t, Decode([]byte("# nothing\n"), &p))
	require.NoError(t, Decode([]byte("input: 2.5\nnames: [a]"), &p))
	require.Equal(t, 2.5, *p.Input)
}
