package projection

import (
	"context"
	"errors"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
)

// Side is where the events of a [Difference] are missing.
type Side string

const (
	// MissingInModel: the log has events that the read model should have applied. A
	// rebuild helps.
	MissingInModel Side = "read_model"
	// MissingInLog: the read model has events that the log has lost. A rebuild would
	// throw them away.
	MissingInLog Side = "log"
	// MissingNowhere: both have the same events, and the rows differ. A rebuild helps.
	MissingNowhere Side = ""
)

// maxSides limits the differences for which Verify reads the conversation from the log.
// The rest get the side of the last one read, because so many differences have one cause.
const maxSides = 100

// sides sets MissingIn of each difference.
func sides(ctx context.Context, log *eventlog.Log, model, replayed ReadStore, differences []Difference, upTo func(events.ConversationID) uint64) error {
	if len(differences) == 0 {
		return nil
	}
	lost, err := hasLost(ctx, log, model)
	if err != nil {
		return err
	}
	last, read := MissingNowhere, 0
	for i := range differences {
		d := &differences[i]
		switch {
		case d.Stored.IsZero():
			d.MissingIn = MissingInModel
		case d.Replayed.IsZero():
			d.MissingIn = MissingInLog
		case read >= maxSides:
			d.MissingIn = last
		default:
			read++
			lacks, err := lacksEvents(ctx, log, model, replayed, d.Conversation, upTo(d.Conversation))
			if err != nil {
				return err
			}
			if lacks {
				d.MissingIn = MissingInModel
			} else if lost {
				d.MissingIn = MissingInLog
			}
			last = d.MissingIn
		}
	}
	return nil
}

// errLost is what [hasLost] looks for.
var errLost = errors.New("the log has lost its tail")

// hasLost reports whether the log lacks events that the read model may have: some in its middle, some that cannot be read,
// or its end, as after a restore from an older backup.
func hasLost(ctx context.Context, log *eventlog.Log, model ReadStore) (bool, error) {
	state, err := log.State(ctx)
	if err != nil || state.Missing > 0 {
		return state.Missing > 0, err
	}
	for n := range log.Partitions() {
		err := Differs(ctx, model, n, func(ctx context.Context, cp Checkpoint) error {
			switch lost, err := lostTail(ctx, log, cp); {
			case err != nil:
				return err
			case lost != "":
				return errLost
			}
			return nil
		})
		if errors.Is(err, errLost) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
	unreadable, err := log.Unreadable(ctx)
	return unreadable > 0, err
}

// lacksEvents reports whether the read model lacks an event of a conversation that the
// replay has applied.
func lacksEvents(ctx context.Context, log *eventlog.Log, model, replayed ReadStore, id events.ConversationID, upTo uint64) (lacks bool, err error) {
	var claims []Claim
	err = log.Conversation(ctx, id.Tenant, id.ID, upTo, func(m eventlog.Message) error {
		if r, _, err := m.Decode(); err == nil {
			claims = append(claims, Claim{Conversation: id, Key: r.Identity(id.Tenant)})
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	const page = 500
	for len(claims) > 0 {
		n := min(len(claims), page)
		stored, err := model.Holders(ctx, claims[:n])
		if err != nil {
			return false, err
		}
		made, err := replayed.Holders(ctx, claims[:n])
		if err != nil {
			return false, err
		}
		for i := range made {
			if _, ok := stored[i]; !ok {
				return true, nil
			}
		}
		claims = claims[n:]
	}
	return false, nil
}
