package main

import (
	"context"
	"math"
	"strconv"

	"mneme.dev/mneme/internal/httpapi"
)

// QuotasCmd shows what tenants use of their quotas.
type QuotasCmd struct {
	Limit int `default:"100" help:"Maximum number of tenants, up to 10000."`
}

func (*QuotasCmd) Help() string {
	return `Lists the tenants that the quotas file names (MNEME_QUOTAS_FILE of the server), that have events in the log, or that used something a moment ago. The one nearest to a limit is first. A tenant that the file does not name has the limits of the default.

max_events and max_bytes are what the tenant stores in the log. Rates are averages of about ten seconds; rates and requests are those that the answering server has counted itself.

Needs a token with the role operate. Lists all tenants, unless --tenant or the token names one.

Examples:

    mneme quotas
    mneme quotas --tenant team-a
    mneme quotas --json | jq -r '.tenants[] | select(any(.quotas[]; .limit > 0 and .used > 0.9 * .limit)) | .tenant'`
}

func (c *QuotasCmd) Run(ctx context.Context, g *Globals, t *terminal, api *client) error {
	var list httpapi.TenantQuotas
	if err := api.get(ctx, "/v1/quotas", parameters{"tenant": g.Tenant, "limit": c.Limit}, &list); err != nil {
		return err
	}
	if g.JSON {
		return t.json(list)
	}
	if !list.Configured {
		t.say("the server has no quotas: name a file with MNEME_QUOTAS_FILE; docs/operations.md says what is in it")
		return nil
	}
	rows, styles := [][]any{}, []style{}
	for _, tenant := range list.Tenants {
		for _, u := range tenant.Quotas {
			var limit any = "none"
			share, color := "", style("")
			if u.Limit > 0 {
				limit, share = amount(u.Limit), strconv.FormatFloat(100*u.Used/u.Limit, 'f', 0, 64)+" %"
				color = pressing(u.Used / u.Limit)
			}
			rows, styles = append(rows, []any{tenant.Tenant, u.Name, amount(u.Used), limit, share}), append(styles, color)
		}
	}
	if err := t.paintedTable([]column{
		{Name: "TENANT", Min: 8}, {Name: "QUOTA"}, {Name: "USED", Right: true}, {Name: "LIMIT", Right: true}, {Name: "SHARE", Right: true, Drop: 1},
	}, rows, styles); err != nil {
		return err
	}
	if list.Problem != "" {
		t.remark(yellow, "warning  the quotas file can't be read, so the previous quotas stay in force: "+list.Problem, "")
	}
	if list.Counting {
		t.remark(yellow, "warning  the log is still being read: tenants store at least this much", "")
	}
	if more := list.Total - len(list.Tenants); more > 0 {
		t.say("%d more tenants: see them with --limit", more)
	}
	return nil
}

// pressing is the color of a quota that is nearly or wholly used.
func pressing(share float64) style {
	switch {
	case share >= 1:
		return red
	case share >= 0.9:
		return yellow
	}
	return ""
}

// amount prints a number without more fraction than a person reads.
func amount(n float64) any {
	if n < 10 {
		return strconv.FormatFloat(n, 'g', 3, 64)
	}
	return int64(math.Round(n))
}
