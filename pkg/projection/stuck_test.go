package projection

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A projector whose store takes nothing keeps the lag of its last delivery, while the log grows.
func TestTheLagOfAProjectorInTroubleGrowsWithTheLog(t *testing.T) {
	for _, of := range []struct {
		trouble string
		want    uint64
	}{
		{"", 120},
		{"the disk is full or fails", 3000},
	} {
		s := Status{State: StateCatchingUp, Checkpoint: Checkpoint{Seq: 2000}, Head: 5000, Lag: 3000}
		s.say(Status{State: StateCatchingUp, Checkpoint: Checkpoint{Seq: 2000}, Lag: 120, Error: of.trouble})
		require.Equal(t, of.want, s.Lag, of.trouble)
	}
}
