package natsdeploy

import (
	"context"
	"fmt"
	"maps"

	"github.com/nats-io/nats.go/jetstream"
)

// restoringKey marks a stream that a restore has not finished. It is a member of the stream's
// metadata, because the server activates a stream also when its restore is cut off.
const restoringKey = "mneme.restoring"

// Restoring returns the metadata of a stream while it is restored. Every program refuses the
// stream with [ErrRestoring] until [Restored].
func Restoring(metadata map[string]string) map[string]string {
	marked := map[string]string{restoringKey: "1"}
	maps.Copy(marked, metadata)
	return marked
}

// IsRestoring reports whether a restore of the stream has begun and not finished.
func IsRestoring(config jetstream.StreamConfig) bool { return config.Metadata[restoringKey] != "" }

// Restored ends a restore: programs may use the stream.
func Restored(ctx context.Context, js jetstream.JetStream) error {
	stream, err := js.Stream(ctx, Stream)
	if err != nil {
		return fmt.Errorf("stream %s: %w", Stream, err)
	}
	config := stream.CachedInfo().Config
	config.Metadata = maps.Clone(config.Metadata)
	delete(config.Metadata, restoringKey)
	if _, err := js.UpdateStream(ctx, config); err != nil {
		return fmt.Errorf("end the restore of stream %s: %w", Stream, err)
	}
	return nil
}
