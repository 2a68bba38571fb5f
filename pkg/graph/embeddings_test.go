package graph

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/recall"
)

func TestAModelEmbedsTheNameOfAnImage(t *testing.T) {
	t.Parallel()
	image := "data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\x01", 90_000)))
	text := "Here it is. " + image + " It is blue." + strings.Repeat(" And so on.", 100)
	got := passagesOf(&events.MessageCreated{Content: text})
	require.Len(t, got, len(recall.NewBag(recall.Message{Content: kept(text)}).Passages), "each passage of the bag has a vector")
	require.Contains(t, got[0], "Here it is. [image/png, 90 kB] It is blue.")
	require.NotContains(t, strings.Join(got, "\n"), "AQEBAQEB")
}
