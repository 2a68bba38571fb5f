package project

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
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

func TestWhatWentWrongIsNotTheDataOfAnImage(t *testing.T) {
	t.Parallel()
	image := "data:image/png;base64," + strings.Repeat("AZr3", 5_000)
	failed := func(text string) *events.ToolReturned {
		return &events.ToolReturned{ToolCallID: "k", Result: events.TextResult(text)}
	}
	require.Equal(t, "[image/png, 15 kB]", TroubleOf(failed("half\n"+image)))
	require.Equal(t, "Error: unexpected [image/png, 15 kB] at the end", TroubleOf(failed("Error: unexpected "+image+" at the end\nhalf")))
}
