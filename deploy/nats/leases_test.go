package natsdeploy_test

import (
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
)

func TestTheBucketForLeasesIsMadeByWhoeverMissesIt(t *testing.T) {
	t.Parallel()
	e := start(t, embedded.Config{})
	js := connect(t, e)
	_, _, err := natsdeploy.ApplyLeases(t.Context(), js, 0)
	require.ErrorIs(t, err, natsdeploy.ErrNoStream, "which says how many copies there are to be")
	_, err = natsdeploy.Apply(t.Context(), js, natsdeploy.Settings{MaxBytes: 1 << 20})
	require.NoError(t, err)
	for range 2 {
		const programs = 8
		var wg sync.WaitGroup
		ttls, errs := make([]time.Duration, programs), make([]error, programs)
		for i := range programs {
			js := connect(t, e)
			wg.Go(func() { _, ttls[i], errs[i] = natsdeploy.ApplyLeases(t.Context(), js, time.Duration(i%2)*time.Second) })
		}
		wg.Wait()
		for i := range programs {
			require.NoError(t, errs[i])
			require.Equal(t, ttls[0], ttls[i], "the bucket's TTL")
		}
		require.NoError(t, js.DeleteKeyValue(t.Context(), natsdeploy.LeaseBucket))
	}
}

func TestWhoeverWatchesIsToldThatALeaseHasExpired(t *testing.T) {
	t.Parallel()
	js := connect(t, start(t, embedded.Config{}))
	_, err := natsdeploy.Apply(t.Context(), js, natsdeploy.Settings{MaxBytes: 1 << 20})
	require.NoError(t, err)
	bucket, ttl, err := natsdeploy.ApplyLeases(t.Context(), js, 5*time.Second) // enough for a busy machine to do the following
	require.NoError(t, err)
	watch, err := bucket.WatchAll(t.Context())
	require.NoError(t, err)
	require.Nil(t, <-watch.Updates())
	began := time.Now()
	_, err = bucket.Create(t.Context(), "lease", nil)
	require.NoError(t, err)
	_, err = bucket.Create(t.Context(), "lease", nil)
	require.ErrorIs(t, err, jetstream.ErrKeyExists)
	require.Equal(t, jetstream.KeyValuePut, (<-watch.Updates()).Operation())
	require.Equal(t, jetstream.KeyValuePurge, (<-watch.Updates()).Operation())
	require.GreaterOrEqual(t, time.Since(began), ttl)
	_, err = bucket.Create(t.Context(), "lease", nil)
	require.NoError(t, err)
}

func TestABucketWhoseKeysDoNotExpireIsRefused(t *testing.T) {
	t.Parallel()
	js := connect(t, start(t, embedded.Config{}))
	_, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: natsdeploy.LeaseBucket})
	require.NoError(t, err)
	_, _, err = natsdeploy.ApplyLeases(t.Context(), js, 0)
	require.ErrorIs(t, err, natsdeploy.ErrIncompatible)
}

func TestTheBucketForWishesOutlivesTheServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := start(t, embedded.Config{Dir: dir})
	js := connect(t, e)
	_, err := natsdeploy.ApplyControl(t.Context(), js)
	require.ErrorIs(t, err, natsdeploy.ErrNoStream, "which says how many copies there are to be")
	_, err = natsdeploy.Apply(t.Context(), js, natsdeploy.Settings{MaxBytes: 1 << 20})
	require.NoError(t, err)
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		js := connect(t, e)
		wg.Go(func() { _, errs[i] = natsdeploy.ApplyControl(t.Context(), js) })
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	bucket, err := natsdeploy.ApplyControl(t.Context(), js)
	require.NoError(t, err)
	_, err = bucket.Put(t.Context(), "wish", []byte("yes"))
	require.NoError(t, err)
	e.Stop()

	bucket, err = natsdeploy.ApplyControl(t.Context(), connect(t, start(t, embedded.Config{Dir: dir})))
	require.NoError(t, err)
	entry, err := bucket.Get(t.Context(), "wish")
	require.NoError(t, err)
	require.Equal(t, "yes", string(entry.Value()))
}
