package natsdeploy

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// ControlBucket is the name of the bucket in which operators leave requests for the
// running processes.
const ControlBucket = "AGENT_CONTROL"

// maxControlBytes is room for thousands of requests.
const maxControlBytes = 1 << 20

// controlConfig is the definition of the bucket for requests. It is stored on disk,
// because a request must survive the processes that carry it out.
func controlConfig(replicas int) jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{
		Bucket:      ControlBucket,
		Description: "what operators want of the running processes",
		History:     1,
		MaxBytes:    maxControlBytes,
		Storage:     jetstream.FileStorage,
		Replicas:    replicas,
	}
}

// ApplyControl makes sure that the bucket for requests exists, with as many replicas as
// the stream. It can be called at any time, by any number of programs at once.
//
// It returns [ErrNoStream].
func ApplyControl(ctx context.Context, js jetstream.JetStream) (jetstream.KeyValue, error) {
	return applyBucket(ctx, js, ControlBucket, controlConfig)
}

// applyBucket makes sure that a bucket exists, with as many replicas as the stream.
func applyBucket(ctx context.Context, js jetstream.JetStream, name string, config func(replicas int) jetstream.KeyValueConfig) (jetstream.KeyValue, error) {
	bucket, err := js.KeyValue(ctx, name)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		var info Info
		if info, err = Inspect(ctx, js); err != nil {
			return nil, err
		}
		bucket, err = js.CreateKeyValue(ctx, config(info.Replicas))
		if errors.Is(err, jetstream.ErrBucketExists) { // another program has just made it, perhaps with another TTL
			bucket, err = js.KeyValue(ctx, name)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", name, err)
	}
	return bucket, nil
}
