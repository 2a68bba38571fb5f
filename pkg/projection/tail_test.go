package projection_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/pkg/graph"
)

// A log that somebody deleted and made again halts every partition. Their positions differ, but the status and doctor
// tell of partitions together only if they say the same.
func TestPartitionsThatHaltForOneReasonSayTheSame(t *testing.T) {
	t.Parallel()
	b := setup(t, 2)
	for n := range 10 { // in both partitions
		b.message(fmt.Sprint("c", n))
	}
	b.applied()
	b.anotherStream()
	pr := b.start(graph.Projection())
	await(t, pr, "is halted", isHalted)
	list := pr.Status()
	require.Equal(t, list[0].Error, list[1].Error)
}
