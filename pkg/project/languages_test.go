package project

import (
	"regexp/syntax"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/pkg/recall"
)

// Where a text has no such character, these expressions are not tried.
func TestWhatMatchesInAnUnspacedLanguageHasACharacterOfIt(t *testing.T) {
	for _, l := range unspaced {
		for _, expression := range []string{l.standing, l.correcting, l.passing} {
			re, err := syntax.Parse(expression, syntax.Perl)
			require.NoError(t, err)
			require.True(t, needsUnspaced(re), expression)
		}
	}
	require.True(t, instructs("请记住 this"))
	require.True(t, corrects("不要 do this"))
	require.True(t, passes("do this 暂时"))
}

// needsUnspaced reports whether all that matches has a character that isUnspaced looks for.
func needsUnspaced(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral:
		return slices.ContainsFunc(re.Rune, recall.Unspaced)
	case syntax.OpCharClass:
		for i := 0; i < len(re.Rune); i += 2 {
			for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
				if !recall.Unspaced(r) {
					return false
				}
			}
		}
		return true
	case syntax.OpCapture, syntax.OpPlus:
		return needsUnspaced(re.Sub[0])
	case syntax.OpRepeat:
		return re.Min > 0 && needsUnspaced(re.Sub[0])
	case syntax.OpConcat:
		return slices.ContainsFunc(re.Sub, needsUnspaced)
	case syntax.OpAlternate:
		return !slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return !needsUnspaced(sub) })
	}
	return false
}
