package quota

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOneTenantLeavesPlacesToTheOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := NewPlaces(4, 3)
		var leaves []func()
		enter := func(tenant string) error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			leave, err := p.Enter(ctx, tenant)
			if err == nil {
				leaves = append(leaves, leave)
			}
			return err
		}
		for range 3 {
			require.NoError(t, enter("busy"))
		}
		require.ErrorIs(t, enter("busy"), context.DeadlineExceeded)
		require.NoError(t, enter("other"))
		require.ErrorIs(t, enter("third"), context.DeadlineExceeded, "there are four")
		leaves[0]()
		require.NoError(t, enter("third"))
		for _, leave := range leaves[1:] {
			leave()
		}
		require.Empty(t, p.tenants, "nothing is kept of tenants that use nothing")
	})
}

func TestPlacesAreGivenToThoseWhoWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := NewPlaces(4, 3)
		var lock sync.Mutex
		inside, most := map[string]int{}, map[string]int{}
		change := func(by int, keys ...string) {
			lock.Lock()
			defer lock.Unlock()
			for _, key := range keys {
				inside[key] += by
				most[key] = max(most[key], inside[key])
			}
		}
		began := time.Now()
		for n := range 60 {
			tenant := fmt.Sprint("t", n%2)
			go func() {
				leave, err := p.Enter(t.Context(), tenant)
				if err != nil {
					t.Error(err)
					return
				}
				change(1, tenant, "all")
				time.Sleep(time.Second)
				change(-1, tenant, "all")
				leave()
			}()
		}
		time.Sleep(time.Minute)
		synctest.Wait() // all have left
		require.Equal(t, map[string]int{"t0": 0, "t1": 0, "all": 0}, inside)
		require.Equal(t, 4, most["all"])
		require.LessOrEqual(t, most["t0"], 3)
		require.LessOrEqual(t, most["t1"], 3)
		require.Empty(t, p.tenants)
		require.Less(t, time.Since(began), 2*time.Minute)
	})
}

func TestAPlaceThatIsNotFreeIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	p := NewPlaces(3, 2)
	leave, ok := p.TryEnter("busy")
	require.True(t, ok)
	_, ok = p.TryEnter("busy")
	require.True(t, ok)
	_, ok = p.TryEnter("busy")
	require.False(t, ok, "a tenant has two")
	_, ok = p.TryEnter("other")
	require.True(t, ok)
	_, ok = p.TryEnter("third")
	require.False(t, ok, "there are three")
	require.Len(t, p.tenants, 2, "nothing is kept of a tenant that got none")
	leave()
	_, ok = p.TryEnter("third")
	require.True(t, ok)
}
