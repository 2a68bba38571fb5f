package project

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzALineThatSaysWhatWentWrongIsNeverPassedOver compares the quick check of a text with the expression that it saves.
func FuzzALineThatSaysWhatWentWrongIsNeverPassedOver(f *testing.F) {
	for _, line := range []string{
		"Error: x", "FAIL", "2 failures", "panic: x", "x is Undefined", "CANNOT open", "can't", "file Not Found", "no such file", "NO \u017fUCH file", "acce\u017f\u017f denied",
		"connection refuſed", "fatal", "Exception in thread", "unexpected token", "invalid", "exit code 2", "exit ſtatus 1", "İ failed", "all is well", "",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		require.False(t, troubled.MatchString(line) && !mayTrouble(line), "%q says what went wrong", line)
	})
}
