package window

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestMarksInAQueryAreFilters(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]Asked{
		`the parser fails`:                     {Text: "the parser fails"},
		`why does "go test" fail`:              {Text: "why does go test fail", Contains: []string{"go test"}},
		`parser -lexer`:                        {Text: "parser", Without: []string{"lexer"}},
		`parser -"go vet" -_test`:              {Text: "parser", Without: []string{"go vet", "_test"}},
		`-flak*`:                               {Without: []string{"flak*"}},
		`conf* of the parser`:                  {Text: "of the parser", Contains: []string{"conf*"}, Prefixes: []string{"conf"}},
		`"go te*"`:                             {Text: "go", Contains: []string{"go te*"}, Prefixes: []string{"te"}},
		`a "phrase", and more`:                 {Text: "a phrase , and more", Contains: []string{"phrase"}},
		`a lone " quote`:                       {Text: `a lone " quote`},
		`a - dash and an * asterisk`:           {Text: "a - dash and an * asterisk"},
		`"" and " "`:                           {Text: `"" and " "`},
		`go test --race -5 *.go a*b x**`:       {Text: "go test --race -5 *.go a*b x**"},
		`5" disk and 3" disk`:                  {Text: `5" disk and 3" disk`},
		`say "unfinished`:                      {Text: `say "unfinished`},
		``:                                     {},
		" \n ":                                 {},
		strings.Repeat(`"a" -b `, 100):         {Text: strings.Repeat(`"a" -b `, 100)},
		`日本* -語`:                               {Contains: []string{"日本*"}, Prefixes: []string{"日本"}, Without: []string{"語"}},
		strings.Repeat("-x ", maxMarks) + "-y": {Text: "-y", Without: strings.Fields(strings.Repeat("x ", maxMarks))},
	} {
		require.Equal(t, want, Ask(query), query)
	}
}

// No word of a query is lost: each is ranked by, or is in a filter.
func TestNoWordOfAQueryIsLost(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		query := rapid.OneOf(rapid.String(), rapid.StringMatching(`([a-c" *-]|日){0,30}`)).Draw(r, "query")
		a := Ask(query)
		all := strings.Join(append(append(append([]string{a.Text}, a.Contains...), a.Without...), a.Prefixes...), " ")
		for _, word := range strings.FieldsFunc(query, func(c rune) bool { return !inWord(c) }) {
			if !strings.Contains(all, word) {
				r.Fatalf("%q lost %q: %+v", query, word, a)
			}
		}
		if len(a.Contains) > maxMarks || len(a.Without) > maxMarks {
			r.Fatalf("%d and %d phrases", len(a.Contains), len(a.Without))
		}
		if plain := Ask(a.Text); len(a.Contains)+len(a.Without) == 0 && plain.Text != a.Text {
			r.Fatalf("%q is not stable", a.Text)
		}
	})
}
