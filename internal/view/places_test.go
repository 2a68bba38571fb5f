package view

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func testPlaces(all, busy int) *places {
	return &places{all: all, busy: busy, tenants: map[string]*reading{}}
}

// line is a number of reads of one tenant that want a place.
type line struct {
	t      testing.TB
	p      *places
	tenant string
	has    chan func() // to leave
}

func (p *places) line(t testing.TB, tenant string, reads int) *line {
	l := &line{t, p, tenant, make(chan func(), 1000)}
	for range reads {
		go func() {
			if leave, err := p.take(t.Context(), tenant); err == nil {
				l.has <- leave
			}
		}()
		synctest.Wait() // one after the other
	}
	return l
}

// got returns how many reads have a place.
func (l *line) got() int {
	synctest.Wait()
	return len(l.has)
}

// leave has one read give its place back.
func (l *line) leave() {
	(<-l.has)()
	synctest.Wait()
}

func TestATenantThatReadsAloneHasAllPlaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := testPlaces(16, 2).line(t, "alone", 20)
		require.Equal(t, 16, l.got())
		l.leave()
		require.Equal(t, 16, l.got(), "15 and the next one")
	})
}

func TestAFloodOfReadsLeavesAPlaceToAnotherTenant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := testPlaces(4, 2)
		loud := p.line(t, "loud", 100)
		require.Equal(t, 4, loud.got(), "nobody else reads")
		quiet := p.line(t, "quiet", 1)
		require.Zero(t, quiet.got())
		loud.leave()
		require.Equal(t, 1, quiet.got(), "it is next, though 96 waited before it")

		quiet.leave()
		for range 3 {
			loud.leave()
		}
		for range 50 {
			require.Equal(t, 1, loud.got(), "half of the two processors")
			quiet := p.line(t, "quiet", 1)
			require.Equal(t, 1, quiet.got(), "at once")
			loud.leave()
			quiet.leave()
		}
		time.Sleep(recently + time.Second)
	})
}

func TestTenantsThatPauseKeepNoMoreThanHalfOfTheProcessorsFree(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := testPlaces(16, 8)
		for n := range 20 {
			p.line(t, fmt.Sprint("pauses", n), 1).leave()
		}
		one := p.line(t, "one", 10)
		require.Equal(t, 4, one.got())
		other := p.line(t, "other", 10)
		require.Equal(t, 4, other.got())
		third := p.line(t, "third", 10)
		require.Equal(t, 2, third.got())
	})
}

func TestTheTenantThatHoldsTheFewestPlacesIsNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := testPlaces(3, 9)
		a, b := p.line(t, "a", 2), p.line(t, "b", 2)
		c := p.line(t, "c", 1)
		require.Equal(t, []int{2, 1, 0}, []int{a.got(), b.got(), c.got()})
		a.leave()
		require.Equal(t, []int{1, 1, 1}, []int{a.got(), b.got(), c.got()}, "b waited longer, but holds one")
	})
}

func TestAPlaceThatBecomesFreeForAReadThatGaveUpGoesToTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := testPlaces(1, 1)
		first := p.line(t, "a", 1)
		r, place := p.ask("b")
		next := p.line(t, "c", 1)
		first.leave()
		<-place
		p.withdraw(r, place)
		require.Equal(t, 1, next.got())
	})
}

func TestATenantHasAllPlacesAgainWhenTheOthersNoLongerRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := testPlaces(4, 2)
		p.line(t, "quiet", 1).leave()
		loud := p.line(t, "loud", 8)
		require.Equal(t, 1, loud.got())
		time.Sleep(recently + time.Second) // during that time the waiting reads are refused
		require.Equal(t, 1, loud.got())
		loud.leave()
		require.Equal(t, 4, p.line(t, "loud", 8).got())
		require.Len(t, p.tenants, 1, "the other one is forgotten")
	})
}

func TestAReadThatGetsNoPlaceInTimeIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := testPlaces(1, 1)
		leave, err := p.take(t.Context(), "a")
		require.NoError(t, err)
		began := time.Now()
		_, err = p.take(t.Context(), "b")
		require.ErrorIs(t, err, ErrBusy)
		require.Equal(t, maxQueued, time.Since(began))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = p.take(ctx, "b")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		leave()
		leave, err = p.take(t.Context(), "b")
		require.NoError(t, err)
		leave()
		require.Zero(t, p.held)
	})
}

// In whatever order reads ask, give up or leave: no place is lost or given twice, none stays free while a tenant below
// its share waits, and all who wait are served in the end.
func TestPlacesAreNeitherLostNorGivenTwice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		all, busy := rapid.IntRange(1, 6).Draw(r, "all"), rapid.IntRange(1, 6).Draw(r, "busy")
		type step struct{ what, tenant, pause int }
		steps := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) step {
			return step{rapid.IntRange(0, 3).Draw(r, "what"), rapid.IntRange(0, 3).Draw(r, "tenant"), rapid.IntRange(0, 7).Draw(r, "pause")}
		}), 1, 60).Draw(r, "steps")
		synctest.Test(t, func(t *testing.T) {
			p := testPlaces(all, busy)
			var lock sync.Mutex // of held and waiting
			held := map[string][]func(){}
			waiting := map[string][]func(){} // to give up
			check := func() {
				synctest.Wait()
				lock.Lock()
				defer lock.Unlock()
				sum := 0
				share := p.share()
				for tenant, r := range p.tenants {
					require.Len(t, held[tenant], r.held)
					require.Len(t, waiting[tenant], len(r.waiting))
					sum += r.held
					require.True(t, len(r.waiting) == 0 || r.held >= share || p.held == all, "%s waits, holds %d of %d, and %d of %d are held", tenant, r.held, share, p.held, all)
				}
				require.Equal(t, sum, p.held)
				require.LessOrEqual(t, p.held, all)
			}
			for _, s := range steps {
				tenant := fmt.Sprint(s.tenant)
				lock.Lock()
				switch s.what {
				case 0, 1:
					ctx, cancel := context.WithCancel(t.Context())
					waiting[tenant] = append(waiting[tenant], cancel)
					go func() {
						leave, err := p.take(ctx, tenant)
						lock.Lock()
						defer lock.Unlock()
						if err == nil {
							held[tenant] = append(held[tenant], leave)
							waiting[tenant] = slices.Delete(waiting[tenant], 0, 1) // first come, first served
						}
					}()
				case 2:
					if len(held[tenant]) > 0 {
						leave := held[tenant][0]
						held[tenant] = held[tenant][1:]
						leave()
					}
				case 3:
					if n := len(waiting[tenant]); n > 0 {
						give := waiting[tenant][n-1]
						waiting[tenant] = waiting[tenant][:n-1]
						give()
					}
				}
				lock.Unlock()
				check()
				time.Sleep(time.Duration(s.pause) * 10 * time.Millisecond)
			}
			for p.held > 0 {
				lock.Lock()
				for tenant, list := range held {
					held[tenant] = nil
					for _, leave := range list {
						leave()
					}
				}
				lock.Unlock()
				check()
			}
			for tenant := range waiting {
				require.Empty(t, waiting[tenant])
			}
		})
	})
}
