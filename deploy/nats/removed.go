package natsdeploy

import (
	"context"
	"fmt"
	"maps"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"
)

// removedKey is the member of the stream's metadata that says how many messages left the
// stream with somebody's knowledge. It lies with the stream so that a backup of the log
// takes it along.
const removedKey = "mneme.removed"

// Removed is how many messages are known to have left the stream: erased on purpose, or
// published again under a new sequence after a loss.
func Removed(config jetstream.StreamConfig) uint64 {
	n, err := strconv.ParseUint(config.Metadata[removedKey], 10, 64)
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
	config := info.Config
	config.Metadata = maps.Clone(config.Metadata)
	gone := info.State.LastSeq - info.State.Msgs
	config.Metadata[removedKey] = strconv.FormatUint(gone-missing+messages, 10)
	if _, err := js.UpdateStream(ctx, config); err != nil {
		return missing, fmt.Errorf("record removed messages in stream %s: %w", Stream, err)
	}
	return missing - messages, nil
}
