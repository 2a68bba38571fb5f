package project

import (
	"context"
	"slices"

	lru "github.com/hashicorp/golang-lru/v2"

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

// replay makes a digest of its newest stored base and the steps after it, oldest first.
func replay(steps []Step) (*Digest, error) {
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
	d.memo = &memo{}
	return &d, nil
}

// keptDigests is how many digests a [Replayer] keeps: about 10 KB each.
const keptDigests = 1_024

// Replayer makes digests of stored steps, and keeps the last ones: contexts of a project read the same ones again and
// again, and decoding them takes longer than reading them. It is safe for concurrent use.
type Replayer struct{ kept *lru.Cache[replayed, kept] }

type (
	replayed struct {
		id  events.ConversationID
		seq uint64 // of the last step
	}
	kept struct {
		steps  []Step
		digest *Digest
	}
)

// NewReplayer makes an empty replayer.
func NewReplayer() *Replayer {
	cache, err := lru.New[replayed, kept](keptDigests)
	if err != nil { // only for a size that is not positive
		panic(err)
	}
	return &Replayer{cache}
}

// Replay makes the digest of a conversation: of its newest stored base and the steps after it, oldest first. It is nil
// without steps. Others may have the same one, so it must not be changed.
func (r *Replayer) Replay(id events.ConversationID, steps []Step) (*Digest, error) {
	if len(steps) == 0 {
		return nil, nil
	}
	key := replayed{id, steps[len(steps)-1].Seq}
	if k, ok := r.kept.Get(key); ok && slices.Equal(k.steps, steps) { // a repair writes other steps
		return k.digest, nil
	}
	d, err := replay(steps)
	if err == nil {
		r.kept.Add(key, kept{steps, d})
	}
	return d, err
}
