package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/internal/quota"
)

type quotasInput struct {
	Tenant string `query:"tenant" maxLength:"128" doc:"only this tenant; all if absent"`
	Limit  int    `query:"limit" minimum:"1" maximum:"10000" default:"100" doc:"maximum number of tenants"`
}

// TenantQuotas says what tenants use and may use.
type TenantQuotas struct {
	Configured bool          `json:"configured" doc:"the process that answers has a quotas file"`
	Counting   bool          `json:"counting" doc:"the log is being read for the first time: what tenants store is at least what this says"`
	Problem    string        `json:"problem,omitempty" doc:"why the quotas file can't be read since it was changed; the previous quotas stay in force. What is wrong in it is shown only if all tenants are listed, because it may name one"`
	Total      int           `json:"total" doc:"number of tenants, those beyond the limit included"`
	Tenants    []TenantQuota `json:"tenants" doc:"tenants that the quotas file names, that have events in the log, or that used something a moment ago; the one nearest to a limit first"`
}

// TenantQuota says what one tenant uses and may use.
type TenantQuota struct {
	Tenant string     `json:"tenant"`
	Listed bool       `json:"listed" doc:"the quotas file names this tenant; otherwise the default's limits apply"`
	Quotas []QuotaUse `json:"quotas"`
}

// QuotaUse says how much of one quota is used.
type QuotaUse struct {
	Name  string  `json:"name" doc:"the field in the quotas file"`
	Used  float64 `json:"used" doc:"for a rate, about the average of the last ten seconds; for requests and rates, only what the process that answers has counted"`
	Limit float64 `json:"limit" doc:"0 for none"`
}

func (a *api) registerQuotas(h huma.API) {
	list := operation("list-quotas", http.MethodGet, "/v1/quotas", "List what tenants use of their quotas", "operations", 404, 422)
	list.Description = "What tenants store is listed once any tenant has a quota for it. Without a quotas file the list is empty."
	serve(a, h, list, a.listQuotas)
}

func (a *api) listQuotas(_ context.Context, in *quotasInput) (*output[TenantQuotas], error) {
	out := &output[TenantQuotas]{Body: TenantQuotas{Configured: a.Quotas != nil, Tenants: []TenantQuota{}}}
	report := a.Quotas.Report()
	if out.Body.Problem = report.Problem; report.Problem != "" && in.Tenant != "" {
		out.Body.Problem = "what the server itself logged says why"
	}
	if in.Tenant != "" {
		report.Tenants = slices.DeleteFunc(report.Tenants, func(t quota.Tenant) bool { return t.Name != in.Tenant })
		if a.Quotas != nil && len(report.Tenants) == 0 {
			return nil, huma.Error404NotFound(fmt.Sprintf("tenant %q is unknown: the quotas file does not name it, and none of its events was counted", in.Tenant))
		}
	}
	out.Body.Counting, out.Body.Total = report.Counting, len(report.Tenants)
	for _, t := range report.Tenants[:min(in.Limit, len(report.Tenants))] {
		uses := []QuotaUse{}
		for _, u := range t.Uses {
			uses = append(uses, QuotaUse(u))
		}
		out.Body.Tenants = append(out.Body.Tenants, TenantQuota{t.Name, t.Listed, uses})
	}
	return out, nil
}
