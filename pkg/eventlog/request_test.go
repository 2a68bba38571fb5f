package eventlog

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/internal/mnemetest"
)

func TestARequestIsAnsweredAndErrorsStayWhatTheyAre(t *testing.T) {
	t.Parallel()
	conn := setup(t, natsdeploy.Settings{}).log.Conn()
	busy, gone := errors.New("busy"), errors.New("gone")
	classes := []Class{{Name: "busy", Err: busy}, {Name: "gone", Err: gone}}
	ask := func(q string) (int, error) {
		ctx, cancel := context.WithTimeout(t.Context(), mnemetest.Patience)
		defer cancel()
		return Ask[string, int](ctx, conn, "asked", classes, q)
	}
	_, err := ask("five")
	require.ErrorIs(t, err, ErrNoAnswer)

	stop, err := Serve(conn, "asked", classes, func(q string, respond func(int, error)) {
		switch q {
		case "five":
			go respond(5, nil)
		case "busy":
			respond(2, errors.Join(busy, errors.New("with something")))
		case "broken":
			respond(0, errors.New("broken"))
		}
	})
	require.NoError(t, err)
	n, err := ask("five")
	require.NoError(t, err)
	require.Equal(t, 5, n)
	n, err = ask("busy")
	require.ErrorIs(t, err, busy)
	require.ErrorContains(t, err, "with something")
	require.Equal(t, 2, n, "what was done before")
	_, err = ask("broken")
	require.EqualError(t, err, "broken")
	require.NotErrorIs(t, err, busy)
	require.NotErrorIs(t, err, gone)

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = Ask[string, int](ctx, conn, "asked", classes, "nothing")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, ErrLate)
	stop()
	require.Eventually(t, func() bool {
		_, err = ask("five")
		return errors.Is(err, ErrNoAnswer)
	}, mnemetest.Patience, time.Millisecond)
}
