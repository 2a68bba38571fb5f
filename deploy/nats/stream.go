package natsdeploy

import (
	"cmp"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"mneme.dev/mneme/events"
)

// Stream is the name of the log.
const Stream = "AGENT_EVENTS"

const (
	// DefaultMaxBytes is the size of a stream if none is configured.
	DefaultMaxBytes int64 = 64 << 30

	// DefaultDuplicateWindow is how long the server remembers message ids. It only
	// saves work when a publish is repeated because its acknowledgement was lost; the
	// read models are idempotent anyway. Each id costs the server about 130 bytes,
	// which is 40 MB at 10,000 events/s.
	DefaultDuplicateWindow = 30 * time.Second

	// MaxPartitions bounds the number of partitions. Each filtered consumer
	// scans the whole stream, and beyond about 32 of them publishing suffers.
	MaxPartitions = 32

	// ClusterReplicas is the number of copies of a stream in a cluster if none is configured:
	// the fewest with which one server may fail.
	ClusterReplicas = 3

	// MaxHeaderBytes is JetStream's limit for the headers of one message; more
	// is refused with code 10097.
	MaxHeaderBytes = 1<<16 - 1

	// MaxMessageBytes is the limit of one message, headers and body together.
	MaxMessageBytes = events.MaxEventBytes + 1<<16
)

// schemaKey and schemaVersion mark the stream as made by mneme. The version changes
// when subjects or headers change so that older programs could misread them.
const (
	schemaKey     = "mneme.schema"
	schemaVersion = "1"
)

// Settings holds what may differ between installations. The zero value suits one
// process with one partition.
type Settings struct {
	// Partitions is the number of ordered parts that conversations are spread over in a
	// new stream, default 1. An existing stream keeps its number, see [Split].
	Partitions int
	// Replicas is the number of copies of a new stream, 0 for [ClusterReplicas] in a cluster and one
	// elsewhere. It needs at least as many servers. An existing stream keeps its number.
	Replicas int
	// MaxBytes is the size at which a new stream will refuse further events, 0
	// for [DefaultMaxBytes] (an embedded server chooses by its disk). An existing
	// stream keeps its size.
	MaxBytes int64
	// DuplicateWindow is at least 100 ms, and at most 10 minutes with our server
	// settings. 0 means [DefaultDuplicateWindow] for a new stream; an existing one
	// keeps its window.
	DuplicateWindow time.Duration
}

// withDefaults sets the defaults of a new stream, except MaxBytes.
func (s Settings) withDefaults() Settings {
	s.Partitions = cmp.Or(s.Partitions, 1)
	s.Replicas = cmp.Or(s.Replicas, 1)
	s.DuplicateWindow = cmp.Or(s.DuplicateWindow, DefaultDuplicateWindow)
	return s
}

// StreamConfig is the definition of the log. Every field is written as the
// server reads it back (-1 for "no limit"), so that the two can be compared.
//
// An event published to mneme.<tenant>.<conversation>.<kind> is stored under
// ev.<partition>.<tenant>.<conversation>.<kind>, where partition is the 32-bit
// FNV-1a hash of the concatenated tokens of tenant and conversation, modulo the
// number of partitions. The server computes it, so all events of a
// conversation are in one partition, in the order in which they were stored.
func StreamConfig(s Settings) jetstream.StreamConfig {
	s = s.withDefaults()
	s.MaxBytes = cmp.Or(s.MaxBytes, DefaultMaxBytes)
	return jetstream.StreamConfig{
		Name:             Stream,
		Subjects:         []string{events.PublishFilter},
		SubjectTransform: &jetstream.SubjectTransformConfig{Source: events.PublishFilter, Destination: events.StoredDestination(s.Partitions)},
		Metadata:         map[string]string{schemaKey: schemaVersion},

		// The log is the source of truth: nothing is removed because of age or count,
		// or to make room for newer events. A full log refuses events.
		Retention:         jetstream.LimitsPolicy,
		Discard:           jetstream.DiscardNew,
		MaxBytes:          s.MaxBytes,
		MaxMsgs:           -1,
		MaxMsgsPerSubject: -1,
		MaxConsumers:      -1,
		MaxMsgSize:        MaxMessageBytes,

		Storage:     jetstream.FileStorage,
		Compression: jetstream.NoCompression,
		Replicas:    s.Replicas,
		Duplicates:  s.DuplicateWindow,

		// Read single events by sequence, and the last event of a conversation,
		// without a consumer.
		AllowDirect: true,
		// Stores a batch of events whole or not at all; with sync_interval "always"
		// this is also the fastest way to publish.
		AllowAtomicPublish: true,

		// Erasure needs both: a purge by subject leaves the bytes on disk, and only a
		// secure delete of each sequence overwrites them. Denying them could never be
		// undone. Use the account's permissions to restrict who may do either.
		DenyPurge:  false,
		DenyDelete: false,

		// Always off. Delete markers and schedules silently switch AllowRollup on: a
		// header on one published event could then remove others.
		// PersistMode async acknowledges before it writes, whatever
		// sync_interval says.
		AllowMsgTTL:            false,
		SubjectDeleteMarkerTTL: 0,
		AllowMsgSchedules:      false,
		AllowRollup:            false,
		PersistMode:            jetstream.DefaultPersistMode,
	}
}
