package importer

import (
	"context"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/projection"
)

// Lookup returns an [Options.Lookup] that asks the read model "graph". It opens the model for each batch, because an
// import can take hours and must not keep a superseded generation alive.
func Lookup(tenant string, open func(context.Context) (view.Pinned[graph.Reader], error)) func(context.Context, []events.Event) ([]Known, error) {
	return func(ctx context.Context, list []events.Event) ([]Known, error) {
		g, err := open(ctx)
		if err != nil {
			return nil, err
		}
		defer g.Release()
		claims := make([]projection.Claim, len(list))
		for i, e := range list {
			claims[i] = projection.Claim{Conversation: events.ConversationID{Tenant: tenant, ID: e.Subject}, Key: e.Identity(tenant)}
		}
		held, err := g.Model.Holders(ctx, claims)
		if err != nil {
			return nil, err
		}
		known := make([]Known, len(list))
		for i, h := range held {
			known[i].Seq = h.Seq
			if !h.Content.IsZero() {
				known[i].Content = h.Content.String()
			}
		}
		return known, nil
	}
}

// readOtherwise reports whether the log has the same line of a recording as an earlier version of mneme read it, which is no
// loss: what a conversation is called, whether its agent wrote a message in the user's name, and how many tokens a message
// took is read from hints that each version knows more of.
func readOtherwise(e *events.Event, known string) bool {
	switch e.Type {
	case events.TypeConversationStarted, events.TypeConversationUpdated:
		return true
	case events.TypeMessageCreated:
	default:
		return false
	}
	r, err := events.Record(*e)
	if err != nil {
		return false
	}
	for _, forget := range []func(*events.MessageCreated){
		func(m *events.MessageCreated) { m.Origin = "" },
		func(m *events.MessageCreated) { m.Usage = nil },
	} {
		m := *r.Payload.(*events.MessageCreated)
		forget(&m)
		plain, err := events.New(e.Subject, e.Source, e.ID, &m)
		if err == nil && plain.Content().String() == known {
			return true
		}
	}
	return false
}
