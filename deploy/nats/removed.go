package natsdeploy

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"sync"

	"github.com/nats-io/nats.go/jetstream"
)

// Members of the stream's metadata. They are stored with the stream so that a backup of the
// log includes them.
const (
	removedKey = "mneme.removed" // messages whose removal was recorded
	damagedKey = "mneme.damaged" // unreadable messages that an operator gave up
	erasedKey  = "mneme.erased"  // number of the last batch of erased messages that was counted
)

// Removed returns how many messages are recorded as removed: erased on purpose, or
// published again under a new sequence after a loss.
func Removed(config jetstream.StreamConfig) uint64 { return counted(config, removedKey) }

// Damaged returns how many messages are recorded as unreadable.
func Damaged(config jetstream.StreamConfig) uint64 { return counted(config, damagedKey) }

// ErasedBatch returns the number of the last batch that [RecordErased] counted, 0 for none.
func ErasedBatch(config jetstream.StreamConfig) uint64 { return counted(config, erasedKey) }

func counted(config jetstream.StreamConfig, key string) uint64 {
	n, err := strconv.ParseUint(config.Metadata[key], 10, 64)
	if err != nil {
		return 0 // nothing was recorded, or not by mneme
	}
	return n
}

// Missing returns how many messages were lost without a record. The server assigns sequences
// from 1 without gaps, so a message that is not stored was removed: by a purge, by a delete,
// or by a disk failure.
func Missing(info *jetstream.StreamInfo) uint64 {
	gone := info.State.LastSeq - info.State.Msgs
	return gone - min(gone, Removed(info.Config))
}

// RecordRemoved adds to the number of removed messages, at most as many as are missing. It
// returns how many are still missing.
func RecordRemoved(ctx context.Context, js jetstream.JetStream, messages uint64) (missing uint64, err error) {
	err = record(ctx, js, func(info *jetstream.StreamInfo, set func(key string, n uint64)) {
		missing = Missing(info)
		if messages = min(messages, missing); messages > 0 {
			set(removedKey, info.State.LastSeq-info.State.Msgs-missing+messages)
		}
	})
	if err != nil {
		return missing, err
	}
	return missing - messages, nil
}

// RecordErased counts messages that are about to be erased as removed, so that nobody takes them for lost, not even for
// a moment. A batch whose number is not above [ErasedBatch] was counted before, and nothing changes. Count and number
// are stored in one update, so an interrupted erasure can count its last batch again.
func RecordErased(ctx context.Context, js jetstream.JetStream, batch, messages uint64) error {
	return record(ctx, js, func(info *jetstream.StreamInfo, set func(key string, n uint64)) {
		if batch > ErasedBatch(info.Config) {
			set(erasedKey, batch)
			set(removedKey, Removed(info.Config)+messages)
		}
	})
}

// RecordDamaged adds to the number of unreadable messages.
func RecordDamaged(ctx context.Context, js jetstream.JetStream, messages uint64) error {
	return record(ctx, js, func(info *jetstream.StreamInfo, set func(key string, n uint64)) {
		set(damagedKey, Damaged(info.Config)+messages)
	})
}

// recording keeps the erasures and the repairs of the log that run in this process from overwriting each other's numbers.
var recording sync.Mutex

// record stores the numbers that change sets in the stream's metadata. NATS has no update that fails if another program has
// made one since: if two processes record in the same moment, the numbers of one are lost.
func record(ctx context.Context, js jetstream.JetStream, change func(info *jetstream.StreamInfo, set func(key string, n uint64))) error {
	recording.Lock()
	defer recording.Unlock()
	stream, err := js.Stream(ctx, Stream)
	if err != nil {
		return fmt.Errorf("stream %s: %w", Stream, err)
	}
	info := stream.CachedInfo() // js.Stream has just asked for it
	config := info.Config
	config.Metadata = maps.Clone(config.Metadata)
	change(info, func(key string, n uint64) { config.Metadata[key] = strconv.FormatUint(n, 10) })
	if maps.Equal(config.Metadata, info.Config.Metadata) {
		return nil
	}
	if _, err := js.UpdateStream(ctx, config); err != nil {
		return fmt.Errorf("record what was removed in stream %s: %w", Stream, err)
	}
	return nil
}
