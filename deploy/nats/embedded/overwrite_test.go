package embedded

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
)

// The server removes a message before it overwrites it, so a kill in between leaves it as one that is only deleted.
func TestAMessageWhoseServerWasKilledWhileItWasErasedIsOverwrittenAtTheStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const messages = 160 // 12 MB: more than one block
	text := func(seq uint64) string { return strings.Repeat(fmt.Sprintf("canary%d ", seq), 8000) }
	begin := func() (*Server, jetstream.Stream) {
		t.Helper()
		e := start(t, Config{Dir: dir, MaxBytes: minStream})
		_, err := e.Apply(t.Context(), natsdeploy.Settings{Partitions: 2})
		require.NoError(t, err)
		stream, err := connect(t, e).Stream(t.Context(), natsdeploy.Stream)
		require.NoError(t, err)
		return e, stream
	}
	e, _ := begin()
	js := connect(t, e)
	for seq := uint64(1); seq <= messages; seq++ {
		m := &nats.Msg{Subject: subject(t, "t", "c"), Data: []byte(text(seq))}
		if seq%2 == 0 {
			m.Header = nats.Header{"Ce-Id": {"with headers"}}
		}
		_, err := js.PublishMsg(t.Context(), m)
		require.NoError(t, err)
	}
	blocks := func() (all string) {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(e.streamDir(), "msgs", "*.blk"))
		require.NoError(t, err)
		require.Greater(t, len(files), 1)
		for _, f := range files {
			b, err := os.ReadFile(f)
			require.NoError(t, err)
			all += string(b)
		}
		return all
	}
	gone := map[uint64]bool{}
	for _, seq := range []uint64{2, 81, 1, messages - 1, messages} {
		stream, err := js.Stream(t.Context(), natsdeploy.Stream)
		require.NoError(t, err)
		require.NoError(t, stream.DeleteMsg(t.Context(), seq))
		gone[seq] = true
		e.Stop()
		require.Contains(t, blocks(), text(seq))
		if seq%2 == 1 { // after a kill the server may have to read all blocks
			require.NoError(t, os.Remove(filepath.Join(e.streamDir(), "msgs", "index.db")))
		}

		e, stream = begin()
		js = connect(t, e)
		all := blocks()
		for seq := uint64(1); seq <= messages; seq++ {
			m, err := stream.GetMsg(t.Context(), seq)
			if gone[seq] {
				require.ErrorIs(t, err, jetstream.ErrMsgNotFound)
				require.NotContains(t, all, fmt.Sprintf("canary%d ", seq))
				continue
			}
			require.NoError(t, err)
			require.Equal(t, text(seq), string(m.Data))
		}
		info, err := stream.Info(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, messages-len(gone), info.State.Msgs)
		require.EqualValues(t, messages, info.State.LastSeq)
	}
}

// The server drops a note that is damaged, and the message that it names may be another one.
func TestADamagedNoteOverwritesNothing(t *testing.T) {
	t.Parallel()
	e := start(t, Config{Dir: t.TempDir(), MaxBytes: minStream})
	_, err := e.Apply(t.Context(), natsdeploy.Settings{Partitions: 1})
	require.NoError(t, err)
	js := connect(t, e)
	for seq := uint64(1); seq <= 3; seq++ {
		_, err := js.Publish(t.Context(), subject(t, "t", "c"), fmt.Appendf(nil, "canary%d", seq))
		require.NoError(t, err)
	}
	stream, err := js.Stream(t.Context(), natsdeploy.Stream)
	require.NoError(t, err)
	require.NoError(t, stream.DeleteMsg(t.Context(), 1))
	e.Stop()
	blocks, err := blocksOf(e.streamDir())
	require.NoError(t, err)
	require.Len(t, blocks, 1)
	text, err := os.ReadFile(blocks[0].path)
	require.NoError(t, err)
	n := 0
	for r := range records(text) {
		if r.seq()&removedBit != 0 {
			binary.LittleEndian.PutUint64(r[4:], 2|removedBit)
			n++
		}
	}
	require.Equal(t, 1, n)
	require.NoError(t, os.WriteFile(blocks[0].path, text, 0o600))

	require.NoError(t, overwriteRemoved(e.streamDir()))
	after, err := os.ReadFile(blocks[0].path)
	require.NoError(t, err)
	require.Equal(t, text, after)
}
