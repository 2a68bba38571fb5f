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

func TestAProjectorThatWasLeftBehindKnowsItsLag(t *testing.T) {
	r := newReader(nil, nil, 0, func() int { return 2 })
	read := func(seq, pending uint64) {
		r.makeRoom()
		r.window, r.last = append(r.window, &decoded{seq: seq, pending: pending}), seq
	}
	slow, fast := &intake{ready: make(chan struct{}, 1)}, &intake{ready: make(chan struct{}, 1)}
	r.admit(slow)
	r.admit(fast)
	read(1, 4)
	read(2, 3)
	take := func(n int) {
		t.Helper()
		_, err := r.take(fast, n)
		require.NoError(t, err)
	}
	take(2)
	require.EqualValues(t, 5, r.lag(slow))
	r.leaveBehind()
	require.EqualValues(t, 5, r.lag(slow))
	require.EqualValues(t, 3, r.lag(fast))

	read(3, 2)
	require.EqualValues(t, 5, r.lag(slow), "one of its events has left the window")
	take(2)
	read(4, 1)
	take(2)
	require.EqualValues(t, 5, r.lag(slow))

	r.forget()
	require.EqualValues(t, 4, r.lag(slow), "what was read since, at least")
}
