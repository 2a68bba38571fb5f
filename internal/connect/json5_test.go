package connect

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatJSON5WritesOtherwiseBecomesJSON(t *testing.T) {
	for raw, want := range map[string]string{
		`{"a": [1e5, -2.5, true, null], "b:": "c: d"}`:            `{"a": [1e5, -2.5, true, null], "b:": "c: d"}`,
		"{a: 1, $b_2 : {true: 'x'}, // it's c: 1\n}":              "{\"a\": 1, \"$b_2\" : {\"true\": \"x\"}, // it's c: 1\n}",
		`{a: 'say "hi" and don\'t', /* 'no' b: 2 */ "c": '\x41'}`: `{"a": "say \"hi\" and don't", /* 'no' b: 2 */ "c": "\u0041"}`,
		"{a: 'one \\\ntwo'}":                                      `{"a": "one two"}`,
		`{größe: '\v\0\q\\'}`:                                     `{"größe": "\u000b\u0000q\\"}`,
		`{a: 'torn`:                                               `{"a": "torn`,
		`{a: Infinity}`:                                           `{"a": Infinity}`,
		`{/* torn`:                                                `{/* torn`,
		`'\`:                                                      `"\`,
	} {
		got := string(fromJSON5([]byte(raw)))
		require.Equal(t, want, got)
		require.Equal(t, got, string(fromJSON5([]byte(got))), "JSON stays as it is")
	}
}

func FuzzFromJSON5(f *testing.F) {
	f.Add(`{"a": ["b", 1.5, {"c": null}], "d\u0041": "\\\"/"}`)
	f.Fuzz(func(t *testing.T, raw string) {
		got := fromJSON5([]byte(raw))
		if json.Valid([]byte(raw)) {
			require.Equal(t, raw, string(got), "JSON stays as it is")
		}
	})
}
