package worker

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/pkg/projection"
)

// meeting is a worker that answers only when all others were asked, too.
type meeting struct{ others *sync.WaitGroup }

func (m meeting) Start()                      {}
func (m meeting) Status() []projection.Status { return nil }
func (m meeting) Stop() error                 { return m.Ready(context.Background()) }

func (m meeting) Ready(context.Context) error {
	m.others.Done()
	m.others.Wait()
	return nil
}

// One after the other, three read models on a store that hangs would outlast a probe and the time that a program is
// given to stop.
func TestWorkersOfAProgramAreAskedAndStoppedAtTheSameTime(t *testing.T) {
	t.Parallel()
	var others sync.WaitGroup
	several := Several{meeting{&others}, meeting{&others}, meeting{&others}}
	for _, call := range []func() error{several.Stop, func() error { return several.Ready(t.Context()) }} {
		others.Add(len(several))
		ended := make(chan error, 1)
		go func() { ended <- call() }()
		select {
		case err := <-ended:
			require.NoError(t, err)
		case <-time.After(mnemetest.Patience):
			t.Fatal("they wait for each other")
		}
	}
}
