package importer_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/importer"
	"mneme.dev/mneme/pkg/eventlog"
)

var errBusy = errors.New("busy")

// scripted is a log with prepared answers: how many events of each list it takes, and the error.
type scripted struct {
	answers []answer
	seq     uint64
}

type answer struct {
	takes int
	err   error
}

func (s *scripted) PublishAll(_ context.Context, _ string, list []events.Event) (acks []eventlog.Ack, err error) {
	next := s.answers[0]
	if s.answers = s.answers[1:]; next.err == nil {
		next.takes = len(list)
	}
	for range next.takes {
		s.seq++
		acks = append(acks, eventlog.Ack{Seq: s.seq})
	}
	return acks, next.err
}

func (s *scripted) Publish(ctx context.Context, tenant string, e events.Event) (eventlog.Ack, error) {
	acks, err := s.PublishAll(ctx, tenant, []events.Event{e})
	if err != nil {
		return eventlog.Ack{}, err
	}
	return acks[0], nil
}

// patient returns a log that retries publishing to s, and the waits so far. after is when s says that it will be able
// to.
func patient(s *scripted, after time.Duration) (importer.PatientLog, *[]time.Duration) {
	waits := &[]time.Duration{}
	return importer.PatientLog{Log: s, Patience: &importer.Patience{
		Busy:    func(err error) (time.Duration, bool) { return after, errors.Is(err, errBusy) },
		Waiting: func(_ error, wait time.Duration) { *waits = append(*waits, wait) },
	}}, waits
}

func TestABusyLogIsAskedForTheRestWhenItSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, waits := patient(&scripted{answers: []answer{{0, errBusy}, {2, errBusy}, {0, nil}}}, 7*time.Second)
		acks, err := log.PublishAll(t.Context(), "t", make([]events.Event, 5))
		require.NoError(t, err)
		require.Equal(t, []eventlog.Ack{{Seq: 1}, {Seq: 2}, {Seq: 3}, {Seq: 4}, {Seq: 5}}, acks)
		require.Equal(t, []time.Duration{7 * time.Second, 7 * time.Second}, *waits)
		require.True(t, log.Waited(), "so the log may hold more than it confirmed")
	})
}

func TestALogThatAnsweredBeforeIsAskedAgainForAQuarterOfAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := &scripted{answers: []answer{{0, nil}}}
		for range 100 {
			script.answers = append(script.answers, answer{0, errBusy})
		}
		log, waits := patient(script, 0)
		_, err := log.Publish(t.Context(), "t", events.Event{})
		require.NoError(t, err)
		began := time.Now()
		_, err = log.Publish(t.Context(), "t", events.Event{})
		require.Equal(t, errBusy, err, "the log's own error")
		require.InDelta(t, 15*time.Minute, time.Since(began), float64(40*time.Second))
		require.Greater(t, len(*waits), 5)
	})
}

func TestALogThatNeverAnsweredIsNotAskedAgain(t *testing.T) {
	log, waits := patient(&scripted{answers: []answer{{0, errBusy}}}, 0)
	_, err := log.PublishAll(t.Context(), "t", make([]events.Event, 1))
	require.Equal(t, errBusy, err)
	require.Empty(t, *waits)
	require.False(t, log.Waited())
}

func TestALogThatIsBusyForTooLongIsNotAskedAgain(t *testing.T) {
	log, waits := patient(&scripted{answers: []answer{{0, errBusy}}}, time.Hour)
	_, err := log.PublishAll(t.Context(), "t", make([]events.Event, 1))
	require.Equal(t, errBusy, err)
	require.Empty(t, *waits)
}

func TestWhatALogRefusesIsNotPublishedAgain(t *testing.T) {
	other := &eventlog.OtherContentError{ID: "x", Seq: 3}
	log, _ := patient(&scripted{answers: []answer{{2, other}}}, time.Second)
	acks, err := log.PublishAll(t.Context(), "t", make([]events.Event, 5))
	require.Equal(t, error(other), err)
	require.Len(t, acks, 2, "the error is about the event after these")
}

func TestAnInterruptEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		log, _ := patient(&scripted{answers: []answer{{0, errBusy}}}, time.Minute)
		_, err := log.PublishAll(ctx, "t", make([]events.Event, 1))
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}
