package natsdeploy

import (
	"context"
	"fmt"
	"maps"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"
)

// Members of the stream's metadata. They lie with the stream so that a backup of the log
// takes them along.
const (
	removedKey = "mneme.removed" // messages that left the stream with somebody's knowledge
	damagedKey = "mneme.damaged" // messages that cannot be read, and that somebody gave up
)

// Removed is how many messages are known to have left the stream: erased on purpose, or
// published again under a new sequence after a loss.
func Removed(config jetstream.StreamConfig) uint64 { return counted(config, removedKey) }

// Damaged is how many messages are known to be unreadable.
func Damaged(config jetstream.StreamConfig) uint64 { return counted(config, damagedKey) }

func counted(config jetstream.StreamConfig, key string) uint64 {
	n, err := strconv.ParseUint(config.Metadata[key], 10, 64)
	if err != nil {
		return 0 // nobody has recorded anything, or not with mneme
	}
	return n
}

// Missing is how many messages left the stream unknown to anybody. Sequences begin at 1
// and have no gap when they are given, so whatever is not stored was removed: by a purge,
// by a delete, or by a disk.
func Missing(info *jetstream.StreamInfo) uint64 {
	gone := info.State.LastSeq - info.State.Msgs
	return gone - min(gone, Removed(info.Config))
}

// RecordRemoved adds to what is known to have left the stream, at most what is missing.
// It returns how many messages are missing after that.
func RecordRemoved(ctx context.Context, js jetstream.JetStream, messages uint64) (missing uint64, err error) {
	stream, err := js.Stream(ctx, Stream)
	if err != nil {
		return 0, fmt.Errorf("stream %s: %w", Stream, err)
	}
	info, err := stream.Info(ctx)
	if err != nil {
		return 0, fmt.Errorf("stream %s: %w", Stream, err)
	}
	missing = Missing(info)
	messages = min(messages, missing)
	if messages == 0 {
		return missing, nil
	}
	if err := record(ctx, js, info.Config, removedKey, info.State.LastSeq-info.State.Msgs-missing+messages); err != nil {
		return missing, err
	}
	return missing - messages, nil
}

// RecordDamaged adds to what is known to be unreadable.
func RecordDamaged(ctx context.Context, js jetstream.JetStream, messages uint64) error {
	stream, err := js.Stream(ctx, Stream)
	if err != nil {
		return fmt.Errorf("stream %s: %w", Stream, err)
	}
	config := stream.CachedInfo().Config
	return record(ctx, js, config, damagedKey, Damaged(config)+messages)
}

func record(ctx context.Context, js jetstream.JetStream, config jetstream.StreamConfig, key string, n uint64) error {
	config.Metadata = maps.Clone(config.Metadata)
	config.Metadata[key] = strconv.FormatUint(n, 10)
	if _, err := js.UpdateStream(ctx, config); err != nil {
		return fmt.Errorf("record %s in stream %s: %w", key, Stream, err)
	}
	return nil
}
