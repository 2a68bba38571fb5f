package worker

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// together is a worker that stops once all others are stopping, too.
type together struct {
	Worker
	all *sync.WaitGroup
	err error
}

func (w together) Stop() error {
	w.all.Done()
	w.all.Wait()
	return w.err
}

func TestAllWorkersStopAtTheSameTime(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	all.Add(3)
	broken := errors.New("broken")
	require.ErrorIs(t, Several{together{all: &all}, together{all: &all, err: broken}, together{all: &all}}.Stop(), broken)
}
