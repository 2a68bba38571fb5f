package httpapi

import (
	"context"
	"errors"
	"fmt"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/graph/readmodel"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/window/projects"
)

type retryInput struct{ Body RetryRequest }

// RetryRequest says what to retry. Exactly one of seq, conversation and all is required.
type RetryRequest struct {
	Seq          uint64         `json:"seq,omitempty" doc:"the conversation of the event at this sequence"`
	Conversation string         `json:"conversation,omitempty" doc:"this conversation of the tenant, by its id or short form"`
	All          bool           `json:"all,omitempty" doc:"all conversations with such events, page by page"`
	Tenant       string         `json:"tenant,omitempty" maxLength:"128" doc:"only events of this tenant; all tenants if absent"`
	Projection   ProjectionName `json:"projection,omitempty" doc:"only in this projection"`
	Class        string         `json:"class,omitempty" enum:"invalid,error" doc:"only conversations with events of this class"`
	After        uint64         `json:"after,omitempty" doc:"with all: next_after of the previous page"`
	Limit        int            `json:"limit,omitempty" minimum:"1" maximum:"1000" default:"100" doc:"with all: maximum number of events of each projection"`
}

// Retry is the result of a retry.
type Retry struct {
	Conversations []RetriedConversation `json:"conversations"`
	Applied       int                   `json:"applied" doc:"skipped events that have now been applied"`
	Failed        int                   `json:"failed" doc:"events that failed again, or could not be tried"`
	NextAfter     uint64                `json:"next_after,omitempty" doc:"pass it as after to get the next page; absent if this was the last"`
}

// RetriedConversation is the result for one conversation in one projection.
type RetriedConversation struct {
	Projection   string `json:"projection"`
	Tenant       string `json:"tenant"`
	Conversation string `json:"conversation" doc:"empty if the event names none"`
	Retried      int    `json:"retried" doc:"its events that were skipped before"`
	Applied      int    `json:"applied" doc:"how many of these have now been applied"`
	Failed       int    `json:"failed" doc:"its events that failed again, or could not be tried"`
	Error        string `json:"error,omitempty" doc:"why it could not be tried"`
	Rebuilding   bool   `json:"rebuilding,omitempty" doc:"it is too large for one transaction of the store, so its projection is being rebuilt instead: GET /v1/rebuilds shows the progress, and reads see the old rows until then"`
}

// target is a conversation to repair in one read model.
type target struct {
	view.Model
	id  events.ConversationID // empty if the event names none
	seq uint64                // sequence of the failed event
}

func (a *api) retry(ctx context.Context, in *retryInput) (*output[Retry], error) {
	r := &in.Body
	chosen := 0
	for _, is := range []bool{r.Seq > 0, r.Conversation != "", r.All} {
		if is {
			chosen++
		}
	}
	if chosen != 1 {
		return nil, huma.Error422UnprocessableEntity("give one of seq, conversation and all", &huma.ErrorDetail{Location: "body", Message: "one of seq, conversation and all is needed"})
	}
	if err := bindTenant(ctx, &r.Tenant, "body.tenant"); err != nil {
		return nil, err
	}
	if r.Conversation != "" && r.Tenant == "" {
		return nil, tenantMissing("body.tenant")
	}
	if projects.IsShort(r.Conversation) {
		id, err := a.named(ctx, access.Of(ctx), r.Tenant, r.Conversation, false)
		var several *view.AmbiguousError
		switch {
		case errors.As(err, &several):
			return nil, ambiguous(several, "body.conversation")
		case err != nil:
			return nil, err
		}
		r.Conversation = id
	}
	models, err := a.failedModels(ctx, string(r.Projection))
	if err != nil {
		return nil, err
	}
	out := &output[Retry]{Body: Retry{Conversations: []RetriedConversation{}}}
	targets, err := a.targets(ctx, r, models, &out.Body)
	if err != nil {
		return nil, err
	}
	return out, a.retryAll(ctx, targets, &out.Body)
}

// targets returns the conversations to repair.
func (a *api) targets(ctx context.Context, r *RetryRequest, models []view.Model, out *Retry) ([]target, error) {
	var list []target
	for _, m := range models {
		var rows []projection.Failed
		var err error
		q := projection.FailedQuery{Tenant: r.Tenant, Class: projection.Class(r.Class)}
		switch {
		case r.Seq > 0:
			rows, err = failedAt(ctx, m, q, r.Seq)
		case r.Conversation != "":
			q.Conversation, q.Limit = r.Conversation, 1
			rows, err = m.Store.Failed(ctx, q)
		default:
			q.After, q.Limit = r.After, r.Limit
			rows, err = m.Store.Failed(ctx, q)
			if last := len(rows) - 1; len(rows) == r.Limit && (out.NextAfter == 0 || rows[last].Seq < out.NextAfter) {
				out.NextAfter = rows[last].Seq
			}
		}
		if err != nil {
			return nil, err
		}
		for _, f := range rows {
			if access.MayRead(ctx, f.Conversation.Tenant) {
				list = append(list, target{m, f.Conversation, f.Seq})
			}
		}
	}
	switch {
	case r.All:
		return a.unique(ctx, r, list, out.NextAfter)
	case len(list) == 0 && r.Seq > 0:
		return nil, notListed(r.Seq)
	case len(list) == 0:
		return nil, huma.Error404NotFound("no projection has such a failed event of this conversation: mneme failed list shows them")
	}
	return list, nil
}

// unique leaves out events of the next page, and conversations that this page or an
// earlier one has already named.
func (a *api) unique(ctx context.Context, r *RetryRequest, list []target, end uint64) (once []target, err error) {
	type name struct {
		projection string
		id         events.ConversationID
	}
	seen := map[name]bool{}
	for _, t := range list {
		if end > 0 && t.seq > end || seen[name{t.Name, t.id}] {
			continue
		}
		if t.id.ID != "" {
			seen[name{t.Name, t.id}] = true
			first, err := t.Store.Failed(ctx, projection.FailedQuery{Tenant: t.id.Tenant, Conversation: t.id.ID, Class: projection.Class(r.Class), Limit: 1})
			if err != nil {
				return nil, err
			}
			if r.After > 0 && len(first) > 0 && first[0].Seq <= r.After {
				continue
			}
		}
		once = append(once, t)
	}
	return once, nil
}

// retryAll repairs conversations. It returns a problem if none could be tried because
// no process drives their partitions.
func (a *api) retryAll(ctx context.Context, targets []target, out *Retry) error {
	type owner struct {
		projection string
		partition  int
	}
	away := map[owner]error{}       // a process that did not answer once is not asked again
	rebuilding := map[string]bool{} // by projection
	tried := false
	var first error
	for _, t := range targets {
		c := RetriedConversation{Projection: t.Name, Tenant: t.id.Tenant, Conversation: t.id.ID, Retried: 1}
		if t.id.ID == "" {
			c.Failed, c.Error = 1, fmt.Sprintf("the event at sequence %d names no conversation, so there is nothing to repair: publish a corrected event", t.seq)
			tried = true
		} else {
			at := owner{t.Name, a.Log.PartitionOf(t.id.Tenant, t.id.ID)}
			err := away[at]
			if err == nil {
				err = a.retryOne(ctx, t, at.partition, &c)
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			tooLarge := errors.Is(err, projection.ErrTooLarge)
			if tooLarge {
				err = a.rebuildInstead(ctx, rebuilding, &c, err)
			}
			if tried = tried || err == nil || tooLarge; err != nil {
				if !tooLarge {
					away[at] = err
				}
				c.Failed, c.Error = c.Retried, notTried(err, t.Name)
				if first == nil {
					first = huma.Error503ServiceUnavailable(c.Error)
				}
			}
		}
		out.Conversations = append(out.Conversations, c)
		out.Applied, out.Failed = out.Applied+c.Applied, out.Failed+c.Failed
	}
	if !tried {
		return first
	}
	return nil
}

func (a *api) retryOne(ctx context.Context, t target, partition int, c *RetriedConversation) error {
	const page = 1000
	c.Retried = 0
	for after := uint64(0); ; {
		rows, err := t.Store.Failed(ctx, projection.FailedQuery{Tenant: t.id.Tenant, Conversation: t.id.ID, After: after, Limit: page})
		if err != nil {
			return err
		}
		if c.Retried += len(rows); len(rows) < page {
			break
		}
		after = rows[page-1].Seq
	}
	applied, failed, err := projection.RequestRepair(ctx, a.Log.Conn(), a.buildOf(t.Model), partition, t.id)
	if err != nil {
		return err
	}
	// Events that the log has lost since count as neither.
	c.Failed, c.Applied = failed, min(max(c.Retried-failed, 0), applied)
	return nil
}

// rebuildInstead starts a rebuild of the projection of a conversation that is too large to be
// repaired by itself. A rebuild writes in small transactions, and readers see the old rows until it
// is done. A rebuild that runs already may have passed the conversation, so it does not count.
func (a *api) rebuildInstead(ctx context.Context, rebuilding map[string]bool, c *RetriedConversation, cause error) error {
	name := c.Projection
	if a.Rebuilds == nil || !access.Everywhere(ctx) { // a rebuild is of all tenants
		return cause
	}
	if !rebuilding[name] {
		if _, err := a.Rebuilds.Ask(ctx, name, false); err != nil {
			return fmt.Errorf("%w; a rebuild could not be started: %w", cause, err)
		}
		rebuilding[name] = true
	}
	c.Failed, c.Rebuilding = c.Retried, true
	c.Error = fmt.Sprintf("too large for one transaction of the store, so %[1]s is being rebuilt, which takes as long as replaying the log: mneme status shows the progress, mneme rebuild %[1]s --cancel stops it", name)
	return nil
}

// notTried explains why a conversation could not be repaired, and what to do.
func notTried(err error, name string) string {
	switch {
	case errors.Is(err, projection.ErrUnheld):
		program := readmodel.Find(name).Program
		return err.Error() + ": start " + program + ", or mneme up; mneme status shows which process drives each partition"
	case errors.Is(err, projection.ErrElsewhere):
		return err.Error() + ": the partition is moving to another process, try again"
	case errors.Is(err, projection.ErrNotRunning):
		return err.Error() + ": see mneme status"
	case errors.Is(err, projection.ErrTooLarge):
		return err.Error() // it says what to do; trying again would not help
	}
	return err.Error() + ": try again; mneme status shows whether the projection makes progress"
}
