package natsdeploy

import (
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"mneme/events"
)

// Stream is the name of the log.
const Stream = "AGENT_EVENTS"

const (
	// DefaultMaxBytes is the size of a stream for which none was asked.
	DefaultMaxBytes int64 = 64 << 30

	// DefaultDuplicateWindow is how long the server remembers message ids. It
	// only saves work, idempotence is the read models': it is for the repeat of a
	// publish whose acknowledgement was lost. Each id costs the server about 130
	// bytes, so that at 10,000 events/s these are 40 MB.
	DefaultDuplicateWindow = 30 * time.Second

	// MaxPartitions bounds the number of partitions. Each filtered consumer
	// scans the whole stream, and beyond about 32 of them publishing suffers.
	MaxPartitions = 32

	// MaxHeaderBytes is what JetStream accepts as headers of one message; more
	// is refused with code 10097.
	MaxHeaderBytes = 1<<16 - 1

	// MaxMessageBytes is the limit of one message, headers and body together.
	MaxMessageBytes = events.MaxEventBytes + 1<<16
)

// schemaKey and schemaVersion mark the stream as mneme's. The version changes
// when subjects or headers change so that older programs could misread them.
const (
	schemaKey     = "mneme.schema"
	schemaVersion = "1"
)

// Settings are what may differ between installations. The zero value is one
// process with one partition.
type Settings struct {
	// Partitions, default 1: into how many ordered parts conversations are
	// spread. Fixed for the life of the stream.
	Partitions int
	// Replicas, default 1. More needs a cluster of at least as many servers.
	Replicas int
	// MaxBytes is the size at which a new stream will refuse further events, 0
	// for [DefaultMaxBytes] (an [Embedded] server chooses by its disk). One that
	// exists keeps the size that it has.
	MaxBytes int64
	// DuplicateWindow is at least 100 ms, and at most 10 minutes with our server
	// settings. 0 means [DefaultDuplicateWindow] for a new stream and whatever it
	// has for an existing one.
	DuplicateWindow time.Duration
}

// withDefaults are those of a new stream. It leaves MaxBytes alone.
func (s Settings) withDefaults() Settings {
	if s.Partitions == 0 {
		s.Partitions = 1
	}
	if s.Replicas == 0 {
		s.Replicas = 1
	}
	if s.DuplicateWindow == 0 {
		s.DuplicateWindow = DefaultDuplicateWindow
	}
	return s
}

// StreamConfig is the definition of the log. Every field is written as the
// server reads it back (-1 for "no limit"), so that the two can be compared.
//
// An event published to mneme.<tenant>.<conversation>.<kind> is stored under
// ev.<partition>.<tenant>.<conversation>.<kind>, where partition is the 32-bit
// FNV-1a hash of the tokens of tenant and conversation, one after the other,
// modulo the number of partitions. The server computes it, so all events of a
// conversation are in one partition, in the order in which they were stored.
func StreamConfig(s Settings) jetstream.StreamConfig {
	s = s.withDefaults()
	if s.MaxBytes == 0 {
		s.MaxBytes = DefaultMaxBytes
	}
	return jetstream.StreamConfig{
		Name:             Stream,
		Subjects:         []string{events.PublishFilter},
		SubjectTransform: &jetstream.SubjectTransformConfig{Source: events.PublishFilter, Destination: events.StoredDestination(s.Partitions)},
		Metadata:         map[string]string{schemaKey: schemaVersion},

		// The log is the truth: nothing leaves it by age, by count, or because
		// newer events come in. When it is full it says so.
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

		// Single events by sequence, and the last one of a conversation, without
		// a consumer.
		AllowDirect: true,
		// A batch of events that is stored whole or not at all; with
		// sync_interval "always" also the fastest way in.
		AllowAtomicPublish: true,

		// Erasure needs both: a purge by subject leaves the bytes on the disk,
		// only a secure delete of each sequence overwrites them. A denial could
		// never be taken back. Who may do either is for the account's
		// permissions to say.
		DenyPurge:  false,
		DenyDelete: false,

		// Off for good. Delete markers and schedules switch AllowRollup on behind
		// one's back: a header on one published event could then remove others.
		// PersistMode async acknowledges before it writes, whatever
		// sync_interval says.
		AllowMsgTTL:            false,
		SubjectDeleteMarkerTTL: 0,
		AllowMsgSchedules:      false,
		AllowRollup:            false,
		PersistMode:            jetstream.DefaultPersistMode,
	}
}
