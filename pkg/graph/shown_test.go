package graph

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/recall"
)

// imageOf returns a data URL with a picture of a size in bytes.
func imageOf(size int) string {
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\x01", size)))
}

func TestAPlaceInATextIsFoundInWhatIsShown(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		recorded, shown := "", ""
		var places, want []int
		for _, word := range rapid.SliceOfN(rapid.SampledFrom([]string{"here ", "é日本 ", "image"}), 0, 6).Draw(t, "words") {
			places, want = append(places, len(recorded)), append(want, len(shown))
			if word == "image" {
				recorded += imageOf(3_000) + " "
				shown += "[image/png, 3 kB] "
				continue
			}
			recorded += word
			shown += word
		}
		places, want = append(places, len(recorded)), append(want, len(shown))
		i := rapid.IntRange(0, len(places)-1).Draw(t, "start")
		j := rapid.IntRange(i, len(places)-1).Draw(t, "end")
		got, from, to := NewBody(recorded).ShownAt(places[i], places[j])
		require.Equal(t, NewBody(shown), got)
		require.Equal(t, []int{want[i], want[j]}, []int{from, to})
	})
}

func TestAPlaceInAnImageIsItsName(t *testing.T) {
	t.Parallel()
	body := NewBody("é " + imageOf(3_000) + " end")
	_, from, to := body.ShownAt(len("é ")+500, len("é ")+600)
	require.Equal(t, []int{len("é "), len("é ")}, []int{from, to})
}

func TestTheEndOfAnImageIsNotMissed(t *testing.T) {
	t.Parallel()
	got := NewBody("日本 " + imageOf(150_000) + " end").Shown()
	require.Equal(t, "日本 [image/png, at most 150 kB; the end is in the log]", got.Text)
	require.True(t, got.Whole())
	require.Equal(t, len([]rune(got.Text)), got.Chars)

	got = NewBody("日本 " + imageOf(9_000) + strings.Repeat(" end", MaxBodyBytes)).Shown()
	require.False(t, got.Whole(), "something else is missing")
	require.Equal(t, len("日本 [image/png, 9 kB]")+4*MaxBodyBytes, got.Bytes)
	require.Equal(t, got.Bytes-4, got.Chars)
}

func TestARowKeepsWhatWasRecorded(t *testing.T) {
	t.Parallel()
	body := NewBody(imageOf(3_000))
	for _, e := range []Entry{{Message: &Message{Content: body}}, {Call: &ToolCall{Arguments: body}}, {Result: &ToolResult{Result: body}}} {
		shown := e.Shown()
		require.Less(t, shown.Bytes(), 50)
		require.Equal(t, len(body.Text), e.Bytes())
	}
	use := ToolUse{Result: &ToolResult{Result: body}}
	require.Equal(t, "[image/png, 3 kB]", use.Shown().Result.Result.Text)
	require.Equal(t, body, use.Result.Result)
	failed := Entry{Result: &ToolResult{Result: body, Error: body.Text}}
	require.Equal(t, "[image/png, 3 kB]", failed.Shown().Result.Error)
	require.Equal(t, body.Text, failed.Result.Error)
	small := Entry{Message: &Message{Content: NewBody("hello")}}
	require.Same(t, small.Message, small.Shown().Message, "nothing is copied")
}

func TestAModelEmbedsTheNameOfAnImage(t *testing.T) {
	t.Parallel()
	text := "Here it is. " + imageOf(3_000) + " It is blue. Please repeat it: " + imageOf(900) + strings.Repeat(" And so on.", 100)
	got := passagesOf(&events.MessageCreated{Content: text})
	require.Len(t, got, len(recall.Passages(text)), "each passage has a vector")
	require.Equal(t, "Here it is. [image/png, 3 kB]", got[0])
	require.Equal(t, "[image/png, 3 kB]", got[2])
	require.Contains(t, strings.Join(got, "\n"), "[image/png, 3 kB] It is blue.\nPlease repeat it: [image/png, 1 kB]")
	require.NotContains(t, strings.Join(got, "\n"), "AQEBAQEB")
}
