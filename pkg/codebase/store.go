package codebase

import (
	"context"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/projection"
)

// Reader reads the read model "code". asOf is a sequence; graph.Latest reads the current state. An index that is
// unknown or deleted reads like an empty one.
type Reader interface {
	projection.ReadStore
	// Indexes lists the newest scan of each index of a tenant, sorted by project and sequence. If there are more than [MaxIndexes],
	// it lists those with the newest scans.
	Indexes(ctx context.Context, tenant string, asOf uint64) ([]Scan, error)
	// Scanned returns the newest scan of an index, nil if there is none.
	Scanned(ctx context.Context, id events.ConversationID, asOf uint64) (*Scan, error)
	// Versions reads versions without their bags and texts, in order of sequence. It returns fewer than requested only at
	// the end.
	Versions(ctx context.Context, id events.ConversationID, q VersionQuery) ([]Version, error)
	// Bags reads the bags of versions, by their sequences. Unknown sequences are left out.
	Bags(ctx context.Context, id events.ConversationID, seqs []uint64) (map[uint64][]byte, error)
	// Texts reads the texts of the scopes of versions, by their sequences. Unknown sequences are left out.
	Texts(ctx context.Context, id events.ConversationID, seqs []uint64) (map[uint64][]string, error)
}

// MaxIndexes is how many indexes of a tenant are found.
const MaxIndexes = 1_000

// VersionQuery selects versions.
type VersionQuery struct {
	From  uint64 // only sequences from this one on
	AsOf  uint64 // only sequences up to this one
	Limit int
}

// Store is the backend of the projection "code".
type Store interface {
	projection.Store[*Unit]
	Reader
}
