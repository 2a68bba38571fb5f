package storetest

import (
	"context"
	"os"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/projection"
)

// tester is a *testing.T or a *rapid.T.
type tester interface {
	require.TestingT
	Helper()
	Cleanup(func())
}

// bench is an open store with the checkpoint that its only owner holds.
type bench[U projection.Unit, S projection.Store[U]] struct {
	workshop[U, S]
	t     tester
	ctx   context.Context
	dir   string
	store S
	cp    projection.Checkpoint
}

// bench opens an empty store.
func (w workshop[U, S]) bench(t tester) *bench[U, S] {
	t.Helper()
	dir, err := os.MkdirTemp("", "storetest")
	require.NoError(t, err)
	b := &bench[U, S]{workshop: w, t: t, ctx: context.Background(), dir: dir}
	b.open()
	t.Cleanup(func() {
		_ = b.store.Close()
		_ = os.RemoveAll(dir)
	})
	return b
}

func (b *bench[U, S]) open() {
	b.t.Helper()
	var err error
	b.store, err = b.backend.Open(b.ctx, b.dir)
	require.NoError(b.t, err)
	b.acquire()
}

func (b *bench[U, S]) acquire() {
	b.t.Helper()
	var err error
	b.cp, err = b.store.Acquire(b.ctx, 0, b.projection.Fingerprint())
	require.NoError(b.t, err)
}

// reopen is a restart of the program.
func (b *bench[U, S]) reopen() {
	b.t.Helper()
	require.NoError(b.t, b.store.Close())
	b.open()
}

// apply applies messages as one batch.
func (b *bench[U, S]) apply(messages []eventlog.Message) {
	b.t.Helper()
	cp, err := b.projection.Apply(b.ctx, b.store, b.cp, messages)
	require.NoError(b.t, err)
	b.cp = cp
}

func (b *bench[U, S]) hash(id events.ConversationID) projection.ConversationHash {
	b.t.Helper()
	h, err := b.store.Hash(b.ctx, id)
	require.NoError(b.t, err)
	return h
}

func (b *bench[U, S]) failed() []projection.Failed {
	b.t.Helper()
	list, err := b.store.Failed(b.ctx, projection.FailedQuery{Limit: 1000})
	require.NoError(b.t, err)
	count, err := b.store.CountFailed(b.ctx)
	require.NoError(b.t, err)
	listed := map[projection.Class]int{}
	for _, f := range list {
		listed[f.Class]++
	}
	require.Equal(b.t, listed, count)
	return list
}

// contents is everything that a store reports through the engine's interface, except the
// epoch, which counts its owners.
type contents struct {
	Hashes     []projection.ConversationHash
	Failed     []projection.Failed
	Checkpoint projection.Checkpoint
}

func (b *bench[U, S]) contents() (c contents) {
	b.t.Helper()
	require.NoError(b.t, b.store.Hashes(b.ctx, func(h projection.ConversationHash) error {
		c.Hashes = append(c.Hashes, h)
		return nil
	}))
	c.Failed = b.failed()
	list, err := b.store.Checkpoints(b.ctx)
	require.NoError(b.t, err)
	require.Len(b.t, list, 1)
	c.Checkpoint = list[0]
	c.Checkpoint.Epoch = 0
	return c
}
