package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestATimeMayBeHowLongAgoItWas(t *testing.T) {
	for text, ago := range map[string]time.Duration{"7d": 7 * 24 * time.Hour, "36h": 36 * time.Hour, "1h30m": 90 * time.Minute, "0d": 0} {
		var i instant
		require.NoError(t, i.UnmarshalText([]byte(text)))
		at, err := time.Parse(time.RFC3339, i.query)
		require.NoError(t, err)
		require.WithinDuration(t, time.Now().Add(-ago), at, time.Minute, text)
	}
	for _, text := range []string{"", "d", "7", "-7d", "-1h", "3651d", "99999999999999999999d", "1.5d", "7 d", "7w", "tomorrow"} {
		require.ErrorContains(t, new(instant).UnmarshalText([]byte(text)), "how long ago", text)
	}
}
