package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSomeEventsPrecedeTheFirstFault(t *testing.T) {
	t.Parallel()
	p := &pace{total: 1000, share: func() float64 { return -1 }, start: time.Now().Add(-time.Hour)}
	require.Equal(t, 200, p.take(t.Context(), 200))
	require.False(t, p.idle())
	for range 200 {
		p.acknowledged()
	}
	require.True(t, p.idle())
	p.share = func() float64 { return 0.5 }
	require.Equal(t, 400, p.take(t.Context(), 400), "half of what is left")
}

func TestEventsKeepPaceWithTheCampaign(t *testing.T) {
	t.Parallel()
	share := 0.0
	p := &pace{total: 100, share: func() float64 { return share }}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, 1, p.take(t.Context(), 1), "the first one")
	require.Zero(t, p.take(over, 1), "no further one is due")
	share = 0.5
	require.Equal(t, 40, p.take(t.Context(), 40))
	require.Zero(t, p.take(over, 20), "fewer are due")
	require.Equal(t, 10, p.take(t.Context(), 10))
	share = 7
	require.Equal(t, 49, p.take(t.Context(), 60), "what is left")
	require.Zero(t, p.take(t.Context(), 1))
}

func TestPublishingPausesWhileAStoreIsFarBehind(t *testing.T) {
	t.Parallel()
	behind := uint64(maxBehind + 1)
	p := &pace{total: 100, share: func() float64 { return 1 }, behind: func() uint64 { return behind }}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, due := p.try(1)
	require.False(t, due)
	require.Zero(t, p.take(over, 1))
	behind = maxBehind
	require.Equal(t, 100, p.take(t.Context(), 200))
}
