package project

import (
	"context"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/projection"
)

// Reader reads the read model "projects". asOf is a sequence; graph.Latest reads what is now.
type Reader interface {
	projection.ReadStore
	// Members reads the newest entries of some projects together, newest first. What they say may be outdated: see
	// [Member].
	Members(ctx context.Context, tenant string, q MemberQuery) ([]Member, error)
	// Names lists the names under which conversations were entered, sorted bytewise.
	Names(ctx context.Context, tenant string, q NameQuery) ([]string, error)
	// Digests reads what is known of conversations, in their order: nil for one that is unknown or deleted.
	Digests(ctx context.Context, ids []events.ConversationID, asOf uint64) ([]*Digest, error)
	// Deleted returns which of a tenant's conversations are deleted, now.
	Deleted(ctx context.Context, tenant string, ids []string) (map[string]bool, error)
}

// MemberQuery selects entries.
type MemberQuery struct {
	Kind  string
	Names []string // few
	AsOf  uint64
	Limit int // of all names together
	Each  int // of each name; 0 means Limit
}

// NameQuery selects names.
type NameQuery struct {
	Kind  string
	After string   // only names sorted after this one
	Below string   // only names that begin with this text
	Only  []string // only these names, if not nil; they need not be sorted
	AsOf  uint64
	Limit int
}

// Store is the backend of the projection "projects".
type Store interface {
	projection.Store[*Unit]
	Reader
}

// Replay makes a digest of its newest stored base and the steps after it, oldest first.
func Replay(steps []Step) (*Digest, error) {
	if len(steps) == 0 {
		return nil, nil
	}
	d, err := DecodeDigest(steps[0].Base)
	if err != nil {
		return nil, err
	}
	for _, s := range steps[1:] {
		c, err := DecodeChange(s.Change)
		if err != nil {
			return nil, err
		}
		d.Apply(&c, s.Seq)
	}
	return &d, nil
}
