package natsdeploy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// LeaseBucket is the name of the bucket in which the processes of a program agree
// on who drives which partition.
const LeaseBucket = "AGENT_LEASES"

// DefaultLeaseTTL is how long a lease outlives its last renewal: how long the
// partitions of a killed process stand still.
const DefaultLeaseTTL = 2 * time.Second

const (
	// leaseMarkerTTL is how long the server remembers that a key has expired, which it
	// tells to whoever watches. It takes no less than a second.
	leaseMarkerTTL = time.Second

	// maxLeaseBytes is room for thousands of leases.
	maxLeaseBytes = 4 << 20
)

// LeaseConfig is the definition of the bucket for leases. It lies in memory: what a
// restart of the server takes from it, the processes put back.
func LeaseConfig(replicas int, ttl time.Duration) jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{
		Bucket:         LeaseBucket,
		Description:    "which process drives which partition",
		TTL:            ttl,
		LimitMarkerTTL: leaseMarkerTTL,
		History:        1,
		MaxBytes:       maxLeaseBytes,
		Storage:        jetstream.MemoryStorage,
		Replicas:       replicas,
	}
}

// ApplyLeases makes sure that the bucket for leases is there, with as many copies as
// the stream has. It can be called at any time, by any number of programs at once. ttl
// is for a new bucket, 0 means [DefaultLeaseTTL]; the one that counts is returned.
//
// It returns [ErrNoStream], and [ErrIncompatible] if the bucket is there but its keys
// don't expire, or whoever watches is not told.
func ApplyLeases(ctx context.Context, js jetstream.JetStream, ttl time.Duration) (jetstream.KeyValue, time.Duration, error) {
	if ttl == 0 {
		ttl = DefaultLeaseTTL
	}
	bucket, err := js.KeyValue(ctx, LeaseBucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		var info Info
		if info, err = Inspect(ctx, js); err != nil {
			return nil, 0, err
		}
		bucket, err = js.CreateKeyValue(ctx, LeaseConfig(info.Replicas, ttl))
		if errors.Is(err, jetstream.ErrBucketExists) { // another program has made it just now, with another TTL
			bucket, err = js.KeyValue(ctx, LeaseBucket)
		}
	}
	if err != nil {
		return nil, 0, fmt.Errorf("bucket %s: %w", LeaseBucket, err)
	}
	status, err := bucket.Status(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("bucket %s: %w", LeaseBucket, err)
	}
	if status.TTL() == 0 || status.LimitMarkerTTL() == 0 {
		return nil, 0, fmt.Errorf("%w: the keys of bucket %s don't expire, or nobody is told: delete it with `nats kv del %s`, it is made anew",
			ErrIncompatible, LeaseBucket, LeaseBucket)
	}
	return bucket, status.TTL(), nil
}
