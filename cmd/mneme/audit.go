package main

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"mneme.dev/mneme/internal/console"
	"mneme.dev/mneme/internal/httpapi"
)

// AuditCmd shows the audit log.
type AuditCmd struct {
	Since   string `help:"Only since this day (2026-01-31, UTC), time (RFC 3339) or age (90m, 12h, 30d)." default:"7d" placeholder:"WHEN"`
	Action  string `help:"Only this action: the id of an operation, the name of a tool, tokens-create, tokens-revoke, restore or partitions." placeholder:"NAME"`
	Subject string `help:"Only of this subject, such as token:3f2a9c01b7de, oidc:SUBJECT or os:USER; without a colon it is the id of a token." placeholder:"WHO"`
	Project string `help:"Only about this project, by the name that was given." placeholder:"NAME"`
	Follow  bool   `short:"f" help:"Keep printing entries as they come."`
}

func (*AuditCmd) Help() string {
	return `Lists changes (erase, delete, tokens, aliases, retries, rebuilds and more) and reads across conversations (searches, lists, contexts of projects, exports), the oldest first. docs/access.md says for each route whether it is audited. A change has two entries: begun, before it took effect, and how it ended. TIMES is how often a read was repeated within a minute, if it was.

Entries hold no text, title, query or secret. A project is shown as a hash of its name; --project finds it.

Needs a token with the role operate. Lists entries of all tenants, unless --tenant or the token names one. With --json, each entry is a line.

Examples:

    mneme audit
    mneme audit --tenant team-a --since 30d --action erase
    mneme audit --subject 3f2a9c01b7de --follow
    mneme audit --since 2026-01-01 --json | jq -r 'select(.outcome == "refused") | .subject'`
}

// auditEvery is how often --follow asks for entries.
const auditEvery = 2 * time.Second

var auditColumns = []column{
	{Name: "TIME"}, {Name: "TENANT", Min: 8, Drop: 3}, {Name: "SUBJECT", Min: 8}, {Name: "ROLE", Drop: 4}, {Name: "VIA", Drop: 5},
	{Name: "ACTION", Min: 10}, {Name: "TARGET", Min: 8}, {Name: "OUTCOME"}, {Name: "TIMES", Right: true, Drop: 2},
}

// auditTable prints rows of entries. For a person it leaves out columns that are empty in all of them, such as the
// subject where no token is required, to give the others their room.
func auditTable(t *terminal, rows [][]any) error {
	columns := slices.Clone(auditColumns)
	for i := len(columns) - 1; i >= 0 && t.isPerson() && len(rows) > 0; i-- {
		if slices.ContainsFunc(rows, func(row []any) bool { return t.cell(row[i]) != "" }) {
			continue
		}
		columns = slices.Delete(columns, i, i+1)
		for n := range rows {
			rows[n] = slices.Delete(rows[n], i, i+1)
		}
	}
	return t.table(columns, rows)
}

func (c *AuditCmd) Run(ctx context.Context, g *Globals, t *terminal, api *client) error {
	since, err := sinceOf(c.Since, time.Now())
	if err != nil {
		return err
	}
	subject := c.Subject
	if subject != "" && !strings.Contains(subject, ":") {
		subject = "token:" + subject
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go whenNobodyReads(ctx, t.out, cancel)
	query := parameters{"tenant": g.Tenant, "since": since.UTC().Format(time.RFC3339), "action": c.Action, "subject": subject, "project": c.Project, "limit": maxPage}
	rows := [][]any{}
	for after, said := uint64(0), false; ; {
		var page struct {
			Entries   []json.RawMessage
			NextAfter uint64 `json:"next_after"`
			More      bool
		}
		err := api.get(ctx, "/v1/audit", query.with(parameters{"after": after}), &page)
		var away *awayError
		switch {
		case ctx.Err() != nil: // Ctrl-C, or the reader is gone
			return nil
		case c.Follow && errors.As(err, &away):
			if !said {
				t.say("waiting for the server: %v", err)
			}
			said = true
		case err != nil:
			return err
		default:
			said, after = false, page.NextAfter
			if err := c.show(g, t, page.Entries, &rows); err != nil {
				return err
			}
		}
		switch {
		case page.More:
			continue
		case !c.Follow && g.JSON:
			return nil
		case !c.Follow:
			return auditTable(t, rows)
		}
		select {
		case <-time.After(auditEvery):
		case <-ctx.Done():
			return nil
		}
	}
}

// show prints entries, or adds them to the rows of the table.
func (c *AuditCmd) show(g *Globals, t *terminal, entries []json.RawMessage, rows *[][]any) error {
	for _, raw := range entries {
		if g.JSON {
			if err := t.rawJSON(raw, false); err != nil {
				return err
			}
			continue
		}
		var e httpapi.AuditEntry
		if err := json.Unmarshal(raw, &e); err != nil {
			return err
		}
		if !c.Follow {
			*rows = append(*rows, auditRow(&e))
			continue
		}
		if err := t.painted(auditLine(t, &e)); err != nil {
			return err
		}
	}
	return nil
}

func auditRow(e *httpapi.AuditEntry) []any {
	times := ""
	if e.Count > 0 {
		times = strconv.Itoa(e.Count)
	}
	return []any{when(e.Time.Format(time.RFC3339Nano)), e.Tenant, e.Subject, e.Role, e.Via, e.Action, e.Target, e.Outcome, times}
}

// auditWide is the width that a terminal needs for lines that show the day and the tenant too.
const auditWide = 100

// auditLine returns an entry as a line by itself: its columns can't be aligned with those of entries still to come.
func auditLine(t *terminal, e *httpapi.AuditEntry) string {
	if !t.isPerson() {
		cells := []string{e.Time.UTC().Format(time.RFC3339Nano), e.Tenant, e.Subject, e.Role, e.Via, e.Action, e.Target, e.Outcome, strconv.Itoa(e.Count)}
		for i := range cells {
			cells[i] = console.OneLine(cells[i])
		}
		return strings.Join(cells, "\t") + "\n"
	}
	color := dim
	switch e.Outcome {
	case "refused", "failed":
		color = red
	case "begun":
		color = yellow
	}
	width := t.width()
	who := t.paint(dim, e.Time.Local().Format(time.DateTime)) + "  " + pad(e.Tenant, 10) + "  " + pad(e.Subject, 18)
	if width > 0 && width < auditWide {
		who = t.paint(dim, e.Time.Local().Format(time.TimeOnly)) + "  " + pad(e.Subject, 12)
	}
	line := who + "  " + t.paint(color, pad(e.Outcome, 8)) + pad(e.Action, 22) + "  " + console.OneLine(e.Target)
	if e.Count > 0 {
		line += " (" + strconv.Itoa(e.Count) + " times)"
	}
	if width > 0 {
		line = console.Cut(line, width)
	}
	return line + "\n"
}

// sinceOf reads a day, a time, or how long ago.
func sinceOf(text string, now time.Time) (time.Time, error) {
	if ago, err := lifetimeOf(text); err == nil && ago > 0 {
		return now.Add(-ago), nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, usageError("--since %q: give a day such as 2026-01-31, an RFC 3339 time, or how long ago, such as 90m, 12h or 30d", text)
}
