// Package costs is a read model of its own: the tokens and the cost of each day, model and project,
// from the usage of messages.
package costs

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph/neo4jstore"
	"mneme.dev/mneme/pkg/graph/readmodel"
	"mneme.dev/mneme/pkg/graph/sqlitestore"
	"mneme.dev/mneme/pkg/projection"
)

// name begins the names of files and labels. Change it only with a rebuild.
const name = "token-costs"

// TypeInvoiced is an event of another project: something that costs money besides tokens.
const TypeInvoiced = "com.example.usage.invoiced"

// Price is what a token costs, in billionths of a dollar.
type Price struct{ Input, Output int64 }

// Prices are the prices of models. A price is for all models whose names begin with its name, such as
// claude-opus-4-5-20251101 with claude-opus; the longest such name counts.
type Prices map[string]Price

func (p Prices) of(model string) Price {
	for n := len(model); n > 0; n-- {
		if price, ok := p[model[:n]]; ok {
			return price
		}
	}
	return Price{}
}

// Spec declares the read model. Other prices make another read model, which needs a rebuild.
func Spec(prices Prices) *readmodel.Spec[*Unit] {
	settings, err := json.Marshal(prices) // sorted
	if err != nil {
		panic(err) // of integers and names
	}
	return &readmodel.Spec[*Unit]{
		Projection: projection.Projection[*Unit]{
			Name:     name,
			Version:  2,
			Settings: string(settings),
			Reducers: map[string]projection.Reducer[*Unit]{
				events.TypeConversationStarted: (*Unit).started,
				events.TypeConversationDeleted: (*Unit).deleted,
				events.TypeMessageCreated:      func(u *Unit, e *events.Recorded) error { return u.message(e, prices) },
				TypeInvoiced:                   (*Unit).invoiced,
			},
		},
		SQLite: &inSQLite,
		Neo4j:  &inNeo4j,
	}
}

// Use is one row: what one event used.
type Use struct {
	Seq            uint64
	EventID        string
	Day            string // of the event, 2026-03-01
	Model, Project string
	Input, Output  int64 // tokens
	Cost           int64 // billionths of a dollar
}

// Conversation is the state of a conversation in a unit of work.
type Conversation struct {
	projection.ConversationState
	Project string
	uses    []Use
}

// Unit is the unit of work: the conversations of a batch.
type Unit struct {
	projection.States[Conversation, *Conversation]
}

func newUnit() *Unit { return &Unit{projection.States[Conversation, *Conversation]{}} }

func (u *Unit) started(e *events.Recorded) error {
	c := u.Touch(e)
	if p := e.Payload.(*events.ConversationStarted); p.Project != "" { // a conversation may start again, without naming it again
		c.Project = p.Project
	}
	return nil
}

func (u *Unit) deleted(e *events.Recorded) error {
	u.Delete(e) // its uses too
	return nil
}

// message adds the usage of a message. A message without usage changes only the conversation. Only the names of
// Anthropic's API are known here.
func (u *Unit) message(e *events.Recorded, prices Prices) error {
	p := e.Payload.(*events.MessageCreated)
	var usage struct {
		Input  int64 `json:"input_tokens"`
		Output int64 `json:"output_tokens"`
	}
	if len(p.Usage) > 0 {
		if err := json.Unmarshal(p.Usage, &usage); err != nil {
			return fmt.Errorf("%w: usage: %w", projection.ErrInvalid, err) // before anything is changed
		}
	}
	c := u.Touch(e)
	if len(p.Usage) == 0 {
		return nil
	}
	price := prices.of(p.Model)
	c.use(e, Use{Model: p.Model, Input: usage.Input, Output: usage.Output, Cost: usage.Input*price.Input + usage.Output*price.Output})
	return nil
}

// invoiced adds what an event of another project costs: {"item": "gpu", "cost": 5000000}.
func (u *Unit) invoiced(e *events.Recorded) error {
	var invoice struct {
		Item string `json:"item"`
		Cost int64  `json:"cost"`
	}
	if err := json.Unmarshal(e.Payload.(*events.Foreign).Data, &invoice); err != nil {
		return fmt.Errorf("%w: invoice: %w", projection.ErrInvalid, err)
	}
	u.Touch(e).use(e, Use{Model: invoice.Item, Cost: invoice.Cost})
	return nil
}

func (c *Conversation) use(e *events.Recorded, use Use) {
	use.Seq, use.EventID, use.Project = e.Seq, e.ID, c.Project
	if !e.Time.IsZero() {
		use.Day = e.Time.UTC().Format(time.DateOnly)
	}
	use.Model = strings.ToValidUTF8(use.Model, "\uFFFD")
	c.uses = append(c.uses, use)
}

// hashOf hashes the rows of a conversation. Both backends must feed it the same.
func hashOf(c projection.ConversationState, uses []Use) events.Digest {
	parts := []string{c.ID.Tenant, c.ID.ID, fmt.Sprint(c.DeletedSeq != 0)}
	for _, u := range uses {
		parts = append(parts, u.EventID, u.Day, u.Model, u.Project, fmt.Sprint(u.Input, u.Output, u.Cost))
	}
	return events.DigestOf(parts...)
}

// Total is what was used on one day with one model in one project.
type Total struct {
	Day, Model, Project string
	Input, Output       int64 // tokens
	Cost                int64 // billionths of a dollar
}

// Totals reads the totals of a tenant, sorted by day, model and project.
func Totals(ctx context.Context, store projection.Store[*Unit], tenant string) ([]Total, error) {
	switch s := store.(type) {
	case *sqlitestore.Store[*Unit]:
		return totalsInSQLite(ctx, s, tenant)
	case *neo4jstore.Store[*Unit]:
		return totalsInNeo4j(ctx, s, tenant)
	default:
		return nil, fmt.Errorf("no totals in %T", s)
	}
}
