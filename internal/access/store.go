package access

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
)

// ErrUnknown: no token has this id.
var ErrUnknown = errors.New("no token has this id: mneme tokens list shows them")

// Store keeps the records of tokens: a [*Bucket] or a [*File].
type Store interface {
	// Add stores the record of a new token. Every server accepts it at once.
	Add(ctx context.Context, r Record) error
	// List returns all tokens, the oldest first.
	List(ctx context.Context) ([]Listed, error)
	// Remove revokes tokens. It returns [ErrUnknown] if none of them exists.
	Remove(ctx context.Context, hashes ...Hash) error
	// Follow loads all records into a set, calls loaded once, and keeps the set up to date
	// until ctx ends. While the store does not answer the set stays as it is.
	Follow(ctx context.Context, t *Tokens, logger *slog.Logger, loaded func())
}

// Listed is a token with its last use.
type Listed struct {
	Record
	LastUsed time.Time // zero: never, or not known
}

// Find returns the token with this id, or with the hash of this token: a leaked token can be looked up.
func Find(list []Listed, id string) (Listed, error) {
	if hash, ok := HashOf(id); ok {
		id = hash.String()
	}
	var found []Listed
	for _, l := range list {
		if len(id) >= idChars && strings.HasPrefix(l.Hash.String(), id) {
			found = append(found, l)
		}
	}
	switch len(found) {
	case 0:
		return Listed{}, ErrUnknown
	case 1:
		return found[0], nil
	}
	return Listed{}, fmt.Errorf("%s is the beginning of the hashes of %d tokens: give more characters", id, len(found))
}

func sortListed(list []Listed) {
	slices.SortFunc(list, func(a, b Listed) int {
		return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.Hash.String(), b.Hash.String()))
	})
}
