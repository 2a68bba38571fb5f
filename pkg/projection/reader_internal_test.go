package projection

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnlyMembersThatHaveEventsLeftAreLeftBehind(t *testing.T) {
	for name, c := range map[string]struct{ taken, stay []int }{
		"a slow one beside one that waits":     {taken: []int{0, 2}, stay: []int{2}},
		"two that are busy":                    {taken: []int{0, 1}, stay: []int{0, 1}},
		"one that has taken everything, alone": {taken: []int{2}, stay: []int{2}},
		"two that have taken everything":       {taken: []int{2, 2}, stay: []int{2, 2}},
	} {
		r := newReader(nil, nil, 0, func() int { return 2 })
		r.window = []*decoded{{seq: 1}, {seq: 2}}
		for _, n := range c.taken {
			in := &intake{ready: make(chan struct{}, 1)}
			r.admit(in)
			in.next = n
		}
		r.leaveBehind()
		stay := []int{}
		for in := range r.members {
			stay = append(stay, in.next)
		}
		require.ElementsMatch(t, c.stay, stay, name)
	}
}
