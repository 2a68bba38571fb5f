package bench

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatIsLostDoubledOrOutOfOrderIsCounted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		seen []int
		want Order
	}{
		"as published":     {[]int{0, 1, 2, 3}, Order{}},
		"one is lost":      {[]int{0, 2, 3}, Order{Lost: 1}},
		"the end is lost":  {[]int{0, 1}, Order{Lost: 2}},
		"doubled":          {[]int{0, 1, 1, 2, 3, 0}, Order{Doubled: 2}},
		"late":             {[]int{0, 2, 1, 3}, Order{Reordered: 1}},
		"late and doubled": {[]int{0, 2, 3, 2, 1, 3}, Order{Doubled: 2, Reordered: 1}},
		"nothing":          {nil, Order{Lost: 4}},
	} {
		var o order
		var got Order
		for _, n := range c.seen {
			o.see(n, &got)
		}
		got.Lost = o.lost(4)
		require.Equal(t, c.want, got, name)
	}
}
