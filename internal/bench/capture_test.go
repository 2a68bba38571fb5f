package bench

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDifferencesCountWhatAnImportDoesNotHave(t *testing.T) {
	want := []logEvent{{"a", "1"}, {"b", "2"}, {"c", "3"}}
	for name, c := range map[string]struct {
		got  []logEvent
		want Differences
	}{
		"the same":       {want, Differences{}},
		"nothing":        {nil, Differences{Lost: 3}},
		"one missing":    {[]logEvent{{"a", "1"}, {"c", "3"}}, Differences{Lost: 1}},
		"one twice":      {[]logEvent{{"a", "1"}, {"b", "2"}, {"a", "1"}, {"c", "3"}}, Differences{Doubled: 1}},
		"other content":  {[]logEvent{{"a", "1"}, {"b", "0"}, {"c", "3"}}, Differences{Changed: 1}},
		"one more":       {[]logEvent{{"a", "1"}, {"b", "2"}, {"c", "3"}, {"d", "4"}}, Differences{Strange: 1}},
		"another order":  {[]logEvent{{"b", "2"}, {"a", "1"}, {"c", "3"}}, Differences{Moved: true}},
		"several things": {[]logEvent{{"c", "3"}, {"d", "4"}, {"c", "3"}, {"a", "0"}}, Differences{Lost: 1, Doubled: 1, Changed: 1, Strange: 1, Moved: true}},
	} {
		require.Equal(t, c.want, differences(want, c.got), name)
		require.Equal(t, name == "the same", differences(want, c.got).None(), name)
	}
}

func TestACopyOfASessionHasOtherIDs(t *testing.T) {
	line := []byte(`{"uuid":"11111111-2222-4333-8444-555555555555","message":{"id":"msg_0123456789","content":[{"type":"tool_use","id":"toolu_abcdefgh12"}]}}`)
	one, two := string(renamed(line, 1)), string(renamed(line, 2))
	require.Equal(t, one, string(renamed(line, 1)))
	require.NotEqual(t, one, two)
	for _, id := range []string{"11111111-2222", "msg_0123456789", "toolu_abcdefgh12"} {
		require.NotContains(t, one, id)
	}
	require.Regexp(t, `^{"uuid":"[0-9a-f-]{36}","message":{"id":"msg_[0-9a-f]{24}","content":\[{"type":"tool_use","id":"toolu_[0-9a-f]{24}"}]}}$`, one)
}
