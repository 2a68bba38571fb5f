package summary

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
)

func TestAnImageCountsAsItsName(t *testing.T) {
	t.Parallel()
	image := "data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\x01", 60_000)))
	const named = len("See [image/png, 60 kB]")
	require.Equal(t, named, Count(&events.MessageCreated{Content: "See " + image}))
	require.Equal(t, named+2, Count(&events.ToolCalled{Arguments: []byte(`"See ` + image + `"`)}))
	require.Equal(t, named, Count(&events.ToolReturned{Result: events.TextResult("See " + image)}))
}
