package project

import (
	"context"

	lru "github.com/hashicorp/golang-lru/v2"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/projection"
)

// Reader reads the read model "projects". asOf is a sequence; graph.Latest reads the current state.
type Reader interface {
	projection.ReadStore
	// Members reads the newest entries of some projects together, newest first. What they say may be outdated: see
	// [Member].
	Members(ctx context.Context, tenant string, q MemberQuery) ([]Member, error)
	// Names lists the names under which conversations were entered, sorted bytewise.
	Names(ctx context.Context, tenant string, q NameQuery) ([]string, error)
	// Digests reads what is known about conversations, in their order: nil for one that is unknown or
	// deleted.
	Digests(ctx context.Context, ids []events.ConversationID, asOf uint64) ([]*Digest, error)
	// Deleted returns which of a tenant's conversations are deleted, now.
	Deleted(ctx context.Context, tenant string, ids []string) (map[string]bool, error)
	// LastDeletion returns the sequence of the newest deletion of a tenant's conversation, 0 if there is none. Anything
	// that was read before, as of any sequence, may still show the conversation.
	LastDeletion(ctx context.Context, tenant string) (uint64, error)
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
		c, err := decodeChange(s.Change)
		if err != nil {
			return nil, err
		}
		d.Apply(&c, s.Seq)
	}
	d.memo = &memo{}
	return &d, nil
}

// keptDigests is how many digests a [Replayer] keeps: about 10 KB each.
const keptDigests = 2_048

// Replayer makes digests of stored steps, and keeps the last ones: contexts of a project need the same ones again and
// again, and reading and decoding their steps is the slowest part of these contexts. It is safe for concurrent use.
type Replayer struct{ kept *lru.Cache[Head, *Digest] }

// Head identifies the steps of a conversation up to a sequence: two equal heads are of the same steps.
type Head struct {
	ID      events.ConversationID
	Seq     uint64 // of the last step; 0 for a conversation without steps
	Repairs uint64 // of the read model, counted before Seq was read: a repair may write other steps at the same sequences
}

// NewReplayer makes an empty replayer.
func NewReplayer() *Replayer {
	cache, err := lru.New[Head, *Digest](keptDigests)
	if err != nil { // only for a size that is not positive
		panic(err)
	}
	return &Replayer{cache}
}

// Digests makes the digests of heads, in their order: nil for one without steps. It calls read once, for the heads
// whose digests it does not have, in their order. The steps of a head begin with the newest stored base and go up to
// its sequence, oldest first. Callers share digests, so do not change them.
func (r *Replayer) Digests(heads []Head, read func(unknown []Head) ([][]Step, error)) ([]*Digest, error) {
	list := make([]*Digest, len(heads))
	var unknown []Head
	var at []int
	for i, h := range heads {
		d, ok := r.kept.Get(h)
		if list[i] = d; !ok && h.Seq != 0 {
			unknown, at = append(unknown, h), append(at, i)
		}
	}
	if len(unknown) == 0 {
		return list, nil
	}
	steps, err := read(unknown)
	if err != nil {
		return nil, err
	}
	for n, h := range unknown {
		if len(steps[n]) == 0 { // deleted since its head was read
			continue
		}
		d, err := replay(steps[n])
		if err != nil {
			return nil, err
		}
		r.kept.Add(h, d)
		list[at[n]] = d
	}
	return list, nil
}
