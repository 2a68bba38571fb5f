package natsdeploy

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// LeaseBucket is the name of the bucket in which the processes of a program agree
// on who drives which partition.
const LeaseBucket = "AGENT_LEASES"

// DefaultLeaseTTL is how long a lease outlives its last renewal, and therefore how long
// nobody drives the partitions of a killed process.
const DefaultLeaseTTL = 2 * time.Second

const (
	// leaseMarkerTTL is how long the server remembers that a key has expired, so that it
	// can tell watchers. The server requires at least one second.
	leaseMarkerTTL = time.Second

	// maxLeaseBytes is room for thousands of leases.
	maxLeaseBytes = 4 << 20
)

// leaseConfig is the definition of the bucket for leases. It is in memory: after a
// restart of the server, the processes write their leases again.
func leaseConfig(replicas int, ttl time.Duration) jetstream.KeyValueConfig {
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

// ApplyLeases makes sure that the bucket for leases exists, with as many replicas as the
// stream. It can be called at any time, by any number of programs at once. ttl is for a
// new bucket, 0 means [DefaultLeaseTTL]; ApplyLeases returns the bucket's actual TTL.
//
// It returns [ErrNoStream], and [ErrIncompatible] if the bucket exists but its keys
// don't expire, or watchers are not told when they do.
func ApplyLeases(ctx context.Context, js jetstream.JetStream, ttl time.Duration) (jetstream.KeyValue, time.Duration, error) {
	ttl = cmp.Or(ttl, DefaultLeaseTTL)
	bucket, err := applyBucket(ctx, js, LeaseBucket, func(replicas int) jetstream.KeyValueConfig { return leaseConfig(replicas, ttl) })
	if err != nil {
		return nil, 0, err
	}
	status, err := bucket.Status(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("bucket %s: %w", LeaseBucket, err)
	}
	if status.TTL() == 0 || status.LimitMarkerTTL() == 0 {
		return nil, 0, fmt.Errorf("%w: keys of bucket %s don't expire, or watchers are not told: delete it with `nats kv del %s`; mneme makes it again",
			ErrIncompatible, LeaseBucket, LeaseBucket)
	}
	return bucket, status.TTL(), nil
}
