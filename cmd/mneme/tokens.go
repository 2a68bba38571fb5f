package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/audit"
)

// TokensCmd groups what can be done with tokens.
type TokensCmd struct {
	Create TokensCreateCmd `cmd:"" help:"Make a token and print it, once."`
	List   TokensListCmd   `cmd:"" help:"List the tokens, what each grants, and its last use."`
	Revoke TokensRevokeCmd `cmd:"" help:"Revoke tokens; requests in progress with them are cut off."`
}

// tokenStore says where the tokens are.
type tokenStore struct {
	TokensFile string `name:"tokens-file" placeholder:"FILE" envconfig:"MNEME_TOKENS_FILE" desc:"keep the hashes in this file; without it they are in a bucket of the NATS server"`
}

// recorder carries out a change between its entries in the audit log.
type recorder func(act func() error, entries ...audit.Entry) error

// with opens the store of tokens and passes it to do, which makes every change through the recorder. Changes of a token
// file are not audited, because there may be no server.
func (s *tokenStore) with(ctx context.Context, g *Globals, do func(access.Store, recorder) error) error {
	if s.TokensFile != "" {
		return do(access.NewFile(s.TokensFile), func(act func() error, _ ...audit.Entry) error { return act() })
	}
	if err := g.given.check(&g.Client); err != nil {
		return err
	}
	log, err := g.openLog(ctx)
	if err != nil {
		return err
	}
	defer log.Conn().Close()
	bucket, err := access.NewBucket(log.Conn())
	if err != nil {
		return err
	}
	writer, err := audit.NewWriter(log.Conn(), 0)
	if err != nil {
		return err
	}
	return do(bucket, func(act func() error, entries ...audit.Entry) error {
		err := writer.Around(ctx, act, entries...)
		if errors.Is(err, audit.ErrAway) {
			err = fmt.Errorf("%w; if the NATS server knows roles, it needs those of this version: mneme nats-config prints them", err)
		}
		return err
	})
}

// recorded returns the entry of the audit log for a change of a token.
func recorded(action string, r *access.Record) audit.Entry {
	e := audit.ByCommand(action)
	e.Tenant, e.Target = r.Tenant, "token:"+r.Hash.ID()+" role:"+r.Role.String()
	if r.AllTenants {
		e.Target += " all-tenants"
	}
	if r.Project != "" {
		e.Target += " " + audit.Project(r.Project)
	}
	return e
}

// TokensCreateCmd makes a token.
type TokensCreateCmd struct {
	tokenStore
	Role       string `help:"What it may do: read, write, operate or admin; each includes the ones before it." enum:"read,write,operate,admin" required:"" placeholder:"ROLE"`
	Name       string `help:"Who it is for, shown in the list." placeholder:"TEXT"`
	Project    string `help:"Grant only this project of the tenant; only with the role read." placeholder:"NAME"`
	AllTenants bool   `help:"Grant every tenant: for operators."`
	Expires    string `help:"When it expires: in days, hours or minutes (90d, 12h, 30m), or never." default:"90d"`
}

func (*TokensCreateCmd) Help() string {
	return `The token is printed once; only its hash is kept. A server accepts it at once if it requires tokens (MNEME_TOKENS or MNEME_TOKENS_FILE).

Examples:

    mneme tokens create --tenant team-a --role write --name "agents of team A"
    mneme tokens create --all-tenants --role operate --expires 8h
    mneme tokens create --tenant team-a --role read --project shop --tokens-file tokens.jsonl`
}

// createdToken is what tokens create --json prints.
type createdToken struct {
	Token string `json:"token"`
	listedToken
}

func (c *TokensCreateCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	lifetime, err := lifetimeOf(c.Expires)
	if err != nil {
		return err
	}
	rights := access.Rights{AllTenants: c.AllTenants, Project: c.Project}
	switch {
	case c.AllTenants && g.given["MNEME_TENANT"]:
		return usageError("name a tenant or grant all tenants, not both")
	case !c.AllTenants:
		rights.Tenant = cmp.Or(g.Tenant, defaultTenant)
	}
	if err := rights.Role.UnmarshalText([]byte(c.Role)); err != nil {
		return usageError("--role: %w", err)
	}
	token, record, err := access.Issue(rights, c.Name, time.Now(), lifetime)
	if err != nil {
		return usageError("%w", err)
	}
	err = c.with(ctx, g, func(s access.Store, change recorder) error {
		return change(func() error { return s.Add(ctx, record) }, recorded(natsdeploy.AuditTokensCreate, &record))
	})
	if err != nil {
		return err
	}
	switch {
	case g.JSON:
		return t.json(createdToken{token, listed(access.Listed{Record: record})})
	case !t.isPerson():
		return t.text(token + "\n")
	}
	until := "It does not expire"
	if !record.Expires.IsZero() {
		until = "It expires " + record.Expires.Local().Format("2006-01-02 15:04")
	}
	return t.text(fmt.Sprintf("%s\n\nThis is the only time that it is shown. %s; mneme tokens revoke %s ends it earlier.\n", token, until, record.Hash.ID()))
}

// lifetimeOf reads a lifetime such as 90d; 0 means that the token never expires.
func lifetimeOf(text string) (time.Duration, error) {
	if text == "never" {
		return 0, nil
	}
	d, err := span(text)
	if err != nil || d < time.Second {
		return 0, usageError("--expires %q: give days, hours or minutes, such as 90d, 12h or 30m, at most %dd; or never", text, maxDays)
	}
	return d, nil
}

// TokensListCmd lists tokens.
type TokensListCmd struct {
	tokenStore
}

func (*TokensListCmd) Help() string {
	return `With --tenant, only those that reach this tenant. The last use is written at most once a minute; tokens in a file have none.

Examples:

    mneme tokens list
    mneme tokens list --json | jq -r '.[] | select(.last_used == null) | .id'     never used`
}

// listedToken is a token as tokens list --json prints it.
type listedToken struct {
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	Tenant     string     `json:"tenant"`
	AllTenants bool       `json:"all_tenants"`
	Role       string     `json:"role"`
	Project    string     `json:"project"`
	Created    time.Time  `json:"created_at"`
	Expires    *time.Time `json:"expires_at"`
	Expired    bool       `json:"expired"`
	LastUsed   *time.Time `json:"last_used"`
}

func listed(l access.Listed) listedToken {
	optional := func(t time.Time) *time.Time {
		if t.IsZero() {
			return nil
		}
		return &t
	}
	return listedToken{
		ID: l.Hash.ID(), Name: l.Name, Tenant: l.Tenant, AllTenants: l.AllTenants, Role: l.Role.String(), Project: l.Project, Created: l.Created,
		Expires: optional(l.Expires), Expired: !l.Expires.IsZero() && !time.Now().Before(l.Expires), LastUsed: optional(l.LastUsed),
	}
}

func (c *TokensListCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	list := []listedToken{}
	err := c.with(ctx, g, func(s access.Store, _ recorder) error {
		all, err := s.List(ctx)
		for _, l := range all {
			if g.Tenant == "" || l.Covers(g.Tenant) {
				list = append(list, listed(l))
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	if g.JSON {
		return t.json(list)
	}
	rows := make([][]any, len(list))
	for i, l := range list {
		tenant := l.Tenant
		var expires, used any = "never", "-"
		if l.AllTenants {
			tenant = "(all)"
		}
		if l.Expires != nil {
			expires = when(l.Expires.Format(time.RFC3339))
		}
		if l.Expired {
			expires = "expired"
		}
		if l.LastUsed != nil {
			used = when(l.LastUsed.Format(time.RFC3339))
		}
		rows[i] = []any{l.ID, l.Name, tenant, l.Role, l.Project, when(l.Created.Format(time.RFC3339)), expires, used}
	}
	return t.table([]column{
		{Name: "ID"}, {Name: "NAME", Min: 10}, {Name: "TENANT"}, {Name: "ROLE"}, {Name: "PROJECT", Drop: 2},
		{Name: "CREATED", Drop: 1}, {Name: "EXPIRES"}, {Name: "LAST USED"},
	}, rows)
}

// TokensRevokeCmd revokes tokens.
type TokensRevokeCmd struct {
	tokenStore
	ID      []string `arg:"" optional:"" help:"Their ids, from the list; or leaked tokens themselves."`
	All     bool     `help:"Revoke all tokens of the tenant that --tenant names, but not those of all tenants."`
	Expired bool     `help:"Remove all that have expired."`
}

func (*TokensRevokeCmd) Help() string {
	return `Every server refuses them at once or, if they are in a file, within a second.

Examples:

    mneme tokens revoke 3f2a9c01b7de
    mneme tokens revoke --tenant team-a --all
    mneme tokens revoke --expired`
}

func (c *TokensRevokeCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	chosen := 0
	for _, is := range []bool{len(c.ID) > 0, c.All, c.Expired} {
		if is {
			chosen++
		}
	}
	switch {
	case chosen != 1:
		return usageError("give one of ID, --all and --expired")
	case c.All && g.Tenant == "":
		return usageError("--all: name the tenant with --tenant")
	}
	revoked := []string{}
	err := c.with(ctx, g, func(s access.Store, change recorder) error {
		list, err := s.List(ctx)
		if err != nil {
			return err
		}
		var hashes []access.Hash
		var entries []audit.Entry
		choose := func(l *access.Listed) {
			hashes, revoked = append(hashes, l.Hash), append(revoked, l.Hash.ID())
			entries = append(entries, recorded(natsdeploy.AuditTokensRevoke, &l.Record))
		}
		for _, l := range list {
			if c.All && l.Tenant == g.Tenant || c.Expired && listed(l).Expired {
				choose(&l)
			}
		}
		for _, id := range c.ID {
			l, err := access.Find(list, id)
			if errors.Is(err, access.ErrUnknown) && !access.IsToken(id) {
				return fmt.Errorf("%s: %w", id, err)
			}
			if err != nil {
				return err // without the token
			}
			choose(&l)
		}
		if len(hashes) == 0 {
			return nil
		}
		return change(func() error { return s.Remove(ctx, hashes...) }, entries...)
	})
	if err != nil {
		return err
	}
	if g.JSON {
		return t.json(map[string]any{"revoked": revoked})
	}
	return t.text(counted(len(revoked), "token") + " revoked\n")
}
