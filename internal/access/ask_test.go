package access_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/mnemetest"
)

// late returns a bucket, and tokens that follow it, whose watch brings nothing any more until resume is called.
func late(t *testing.T) (store *access.Bucket, tokens *access.Tokens, resume func()) {
	t.Helper()
	store, js := newBucket(t)
	_, err := store.List(mnemetest.Context(t)) // makes the bucket
	require.NoError(t, err)
	tokens = following(t, store)
	stream, err := js.Stream(mnemetest.Context(t), "KV_"+natsdeploy.TokenBucket)
	require.NoError(t, err)
	var names []string
	require.Eventually(t, func() bool { // the watch of the list ends in the background
		names = nil
		for name := range stream.ConsumerNames(t.Context()).Name() {
			names = append(names, name)
		}
		return len(names) == 1
	}, 10*time.Second, 10*time.Millisecond)
	paused, err := stream.PauseConsumer(t.Context(), names[0], time.Now().Add(time.Hour))
	require.NoError(t, err)
	require.True(t, paused.Paused)
	return store, tokens, func() {
		_, err := stream.ResumeConsumer(t.Context(), names[0])
		require.NoError(t, err)
	}
}

// The watch of an overloaded server is late.
func TestATokenIsAcceptedBeforeTheWatchBringsIt(t *testing.T) {
	t.Parallel()
	store, tokens, resume := late(t)
	token, record := issue(t, teamA)
	require.NoError(t, store.Add(mnemetest.Context(t), record))
	grant, err := tokens.Check(t.Context(), token)
	require.NoError(t, err)
	require.Equal(t, teamA, grant.Rights)
	_, err = tokens.Check(t.Context(), access.NewToken())
	require.ErrorIs(t, err, access.ErrInvalid)

	require.NoError(t, store.Remove(mnemetest.Context(t), record.Hash))
	resume()
	<-grant.Ended[0].Done()
	_, err = tokens.Check(t.Context(), token)
	require.ErrorIs(t, err, access.ErrInvalid)
}

func TestWrongTokensDoNotKeepTheServerBusy(t *testing.T) {
	t.Parallel()
	store, js := newBucket(t)
	_, err := store.List(mnemetest.Context(t))
	require.NoError(t, err)
	tokens := following(t, store)
	asked, err := js.Conn().SubscribeSync("$JS.API.DIRECT.GET.KV_" + natsdeploy.TokenBucket + ".>")
	require.NoError(t, err)
	began, beyond := time.Now(), 0
	for range 2000 {
		_, err := tokens.Check(t.Context(), access.NewToken())
		if errors.Is(err, access.ErrTooMany) { // the owner of a new token would take ErrInvalid for an answer
			beyond++
			continue
		}
		require.ErrorIs(t, err, access.ErrInvalid)
	}
	require.NotZero(t, beyond)
	require.NoError(t, js.Conn().Flush())
	count, _, err := asked.Pending()
	require.NoError(t, err)
	require.NotZero(t, count)
	require.Less(t, float64(count), 21+10*time.Since(began).Seconds())
}

func TestATokenThatNobodyCanLookUpMayBeTriedAgain(t *testing.T) {
	t.Parallel()
	store, js := newBucket(t)
	known, record := issue(t, teamA)
	require.NoError(t, store.Add(mnemetest.Context(t), record))
	tokens := following(t, store)
	accepted(t, tokens, known, true)
	stream, err := js.Stream(mnemetest.Context(t), "KV_"+natsdeploy.TokenBucket)
	require.NoError(t, err)
	config := stream.CachedInfo().Config
	config.AllowDirect = false
	_, err = js.UpdateStream(mnemetest.Context(t), config)
	require.NoError(t, err)
	_, err = js.Conn().SubscribeSync("$JS.API.DIRECT.GET.KV_" + natsdeploy.TokenBucket + ".>") // it never answers
	require.NoError(t, err)
	require.NoError(t, js.Conn().Flush())
	_, err = tokens.Check(t.Context(), access.NewToken())
	require.ErrorIs(t, err, access.ErrUnavailable)
	_, err = tokens.Check(t.Context(), "mneme_"+access.NewToken())
	require.ErrorIs(t, err, access.ErrInvalid, "nobody is asked about what is no token")
	_, err = tokens.Check(t.Context(), known)
	require.NoError(t, err)
}
