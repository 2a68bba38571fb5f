package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"mneme.dev/mneme/internal/console"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/pkg/graph/readmodel"
)

// FailedCmd groups the commands for failed events.
type FailedCmd struct {
	List  FailedListCmd  `cmd:"" help:"List skipped events with the reasons."`
	Show  FailedShowCmd  `cmd:"" help:"Show a skipped event as the log holds it."`
	Retry FailedRetryCmd `cmd:"" help:"Retry skipped events."`
}

// projections returns the projection that a flag names, or all.
func projections(name string) []string {
	if name != "" {
		return []string{name}
	}
	return readmodel.Names()
}

// FailedListCmd lists failed events.
type FailedListCmd struct {
	Projection   string `help:"Only events of this projection." enum:",${projections}" default:"" placeholder:"NAME"`
	Conversation string `help:"Only events of this conversation." default:"" placeholder:"ID"`
	Class        string `help:"Only events of this class: invalid (the event breaks a rule) or error (it could not be applied)." enum:",invalid,error" default:"" placeholder:"CLASS"`
	After        uint64 `help:"Only events above this sequence." placeholder:"SEQ"`
	Limit        int    `help:"Maximum number of events of each projection; 0 means all." default:"0"`
}

func (*FailedListCmd) Help() string {
	return `Lists events of all tenants, unless --tenant or MNEME_TENANT names one. The log still has them: mneme failed show SEQ shows one.

Examples:

    mneme failed list
    mneme failed list --projection graph --tenant team-a --class error
    mneme failed list --limit 100 --after 4711                     the next page`
}

func (c *FailedListCmd) Run(ctx context.Context, g *Globals, t *terminal, api *client) error {
	tenant := g.Tenant // none means all
	if c.Conversation != "" {
		tenant = g.ownTenant()
	}
	list := []httpapi.FailedEvent{}
	for _, projection := range projections(c.Projection) {
		some, err := c.of(ctx, api, projection, tenant)
		if err != nil {
			return err
		}
		list = append(list, some...)
	}
	if g.JSON {
		return t.json(list)
	}
	if *c == (FailedListCmd{}) && tenant == "" && len(list) == 0 {
		t.say("No event was skipped.")
		return nil
	}
	rows := make([][]any, len(list))
	for i, f := range list {
		rows[i] = []any{f.Projection, f.Seq, f.Class, f.Tenant, f.Conversation, f.Type, f.EventID, f.Reason}
	}
	return t.table([]column{
		{Name: "PROJECTION", Drop: 2}, {Name: "SEQ", Right: true}, {Name: "CLASS", Drop: 3}, {Name: "TENANT", Min: 8, Drop: 4}, {Name: "CONVERSATION", Min: 12, End: true, Drop: 1},
		{Name: "TYPE", Min: 12, Drop: 6}, {Name: "EVENT", Min: 10, Drop: 5}, {Name: "REASON", Min: 46},
	}, rows)
}

// of lists the failed events of one projection, page by page.
func (c *FailedListCmd) of(ctx context.Context, api *client, projection, tenant string) (list []httpapi.FailedEvent, err error) {
	for after := c.After; ; {
		size := maxPage
		if c.Limit > 0 {
			size = min(size, c.Limit-len(list))
		}
		var page struct{ Failed []httpapi.FailedEvent }
		query := parameters{"projection": projection, "tenant": tenant, "conversation": c.Conversation, "class": c.Class, "after": after, "limit": size}
		if err := api.get(ctx, "/v1/failed", query, &page); err != nil {
			return nil, err
		}
		list = append(list, page.Failed...)
		if len(page.Failed) < size || len(list) == c.Limit {
			return list, nil
		}
		after = list[len(list)-1].Seq
	}
}

// FailedShowCmd shows a failed event.
type FailedShowCmd struct {
	Seq uint64 `arg:"" help:"Its sequence, as mneme failed list shows it."`
}

func (*FailedShowCmd) Help() string {
	return `Shows why the event was skipped, then exactly what was published, whether or not it can be read as an event.

Example:

    mneme failed show 4711`
}

// Run prints the event and why it was skipped.
func (c *FailedShowCmd) Run(ctx context.Context, g *Globals, t *terminal, api *client) error {
	var d httpapi.FailedDetail
	if err := api.get(ctx, fmt.Sprint("/v1/failed/", c.Seq), nil, &d); err != nil {
		return err
	}
	if g.JSON {
		return t.json(d)
	}
	for _, f := range d.Failed {
		if err := t.card("projection", f.Projection, "class", f.Class, "reason", f.Reason, "tenant", f.Tenant, "conversation", f.Conversation, "type", f.Type, "event", f.EventID); err != nil {
			return err
		}
		if err := t.text("\n"); err != nil {
			return err
		}
	}
	if d.Absent != "" {
		t.say("The event itself is not shown: %s.", d.Absent)
		return nil
	}
	pairs := []any{"sequence", d.Seq, "subject", d.Subject}
	for _, name := range slices.Sorted(maps.Keys(d.Headers)) {
		pairs = append(pairs, console.OneLine(name), strings.Join(d.Headers[name], ", "))
	}
	if err := t.card(pairs...); err != nil {
		return err
	}
	switch {
	case len(d.Binary) > 0:
		return t.text(fmt.Sprintf("\n%s that are not text; --json has them in base64\n", counted(len(d.Binary), "byte")))
	case d.Data == "":
		return nil
	}
	return t.text("\n" + strings.TrimRight(d.Data, "\n") + "\n")
}

// FailedRetryCmd tries failed events again.
type FailedRetryCmd struct {
	Seq          uint64 `arg:"" optional:"" help:"Retry the conversation of the event at this sequence."`
	Conversation string `help:"Retry this conversation." default:"" placeholder:"ID"`
	All          bool   `help:"Retry all events that mneme failed list shows."`
	Class        string `help:"Only conversations with events of this class." enum:",invalid,error" default:"" placeholder:"CLASS"`
	Projection   string `help:"Only in this projection." enum:",${projections}" default:"" placeholder:"NAME"`
}

func (*FailedRetryCmd) Help() string {
	return `Repairs the conversation of each event from the log, in one step; until then reads see it as it was. This fixes events of class error whose cause has been removed, and events of class invalid that this build can read.

With --all it retries events of all tenants, unless --tenant or MNEME_TENANT names one. The exit code is 1 if an event fails again or could not be tried.

Examples:

    mneme failed retry 4711
    mneme failed retry --conversation ID
    mneme failed retry --all --class error`
}

// errFailedAgain means that a retry did not fix everything.
var errFailedAgain = errors.New("not everything could be fixed: mneme failed list says why")

// Run retries the events and prints the results.
func (c *FailedRetryCmd) Run(ctx context.Context, g *Globals, t *terminal, api *client) error {
	chosen := 0
	for _, is := range []bool{c.Seq > 0, c.Conversation != "", c.All} {
		if is {
			chosen++
		}
	}
	if chosen != 1 {
		return usageError("give one of SEQ, --conversation and --all")
	}
	request := httpapi.RetryRequest{Seq: c.Seq, Conversation: c.Conversation, All: c.All, Class: c.Class, Projection: httpapi.ProjectionName(c.Projection)}
	switch {
	case c.Conversation != "":
		request.Tenant = g.ownTenant()
	case c.All:
		request.Tenant = g.Tenant
	}
	total, err := retryFailed(ctx, api, request)
	if err != nil {
		return err
	}
	if g.JSON {
		err = t.json(total)
	} else {
		err = c.print(t, total)
	}
	if err == nil && total.Failed > 0 {
		err = errFailedAgain
	}
	return err
}

// retryFailed sends the request, once for each page.
func retryFailed(ctx context.Context, api *client, request httpapi.RetryRequest) (httpapi.Retry, error) {
	total := httpapi.Retry{Conversations: []httpapi.RetriedConversation{}}
	for {
		var page httpapi.Retry
		if err := api.ask(ctx, "/v1/retries", request, &page); err != nil {
			return total, err
		}
		total.Conversations = append(total.Conversations, page.Conversations...)
		total.Applied, total.Failed = total.Applied+page.Applied, total.Failed+page.Failed
		if request.After = page.NextAfter; request.After == 0 {
			return total, nil
		}
	}
}

func (c *FailedRetryCmd) print(t *terminal, total httpapi.Retry) error {
	rows, styles := make([][]any, len(total.Conversations)), make([]style, len(total.Conversations))
	for i, r := range total.Conversations {
		rows[i] = []any{r.Projection, r.Tenant, r.Conversation, r.Applied, r.Failed, r.Error}
		if r.Failed > 0 {
			styles[i] = red
		}
	}
	if err := t.paintedTable([]column{
		{Name: "PROJECTION"}, {Name: "TENANT", Min: 8, Drop: 1}, {Name: "CONVERSATION", Min: 12, End: true}, {Name: "APPLIED", Right: true}, {Name: "FAILED", Right: true}, {Name: "ERROR", Min: 30},
	}, rows, styles); err != nil {
		return err
	}
	conversations, models := map[[2]string]bool{}, map[string]bool{}
	for _, r := range total.Conversations {
		conversations[[2]string{r.Tenant, r.Conversation}], models[r.Projection] = true, true
	}
	note := ""
	if len(models) > 1 {
		note = " (an event counts once for each projection that skipped it)"
	}
	t.say("\n%s in %s%s: %s applied now, %s failed again or could not be tried.", counted(total.Applied+total.Failed, "skipped event"), counted(len(conversations), "conversation"), note, number(total.Applied), number(total.Failed))
	return nil
}
