package transcript

import (
	"bytes"
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
)

func readAll(t testing.TB, data []byte, name, format string) []Item {
	t.Helper()
	var items []Item
	err := Read(context.Background(), bytes.NewReader(data), name, format, func(i Item) error {
		items = append(items, i)
		return nil
	})
	require.NoError(t, err)
	return items
}

func readFile(t testing.TB, path, format string) []Item {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return readAll(t, data, path, format)
}

// good returns the events of items and fails if any item was refused.
func good(t testing.TB, items []Item) []events.Recorded {
	t.Helper()
	recorded := make([]events.Recorded, 0, len(items))
	for _, i := range items {
		require.Nil(t, i.Err, "%v", i.Err)
		r, err := events.Record(i.Event)
		require.NoError(t, err)
		recorded = append(recorded, r)
	}
	return recorded
}

// refused returns the reasons of the refused lines, by line.
func refused(items []Item) map[int]string {
	reasons := map[int]string{}
	for _, i := range items {
		if i.Err != nil {
			reasons[i.Line] = i.Err.Reason
		}
	}
	return reasons
}
