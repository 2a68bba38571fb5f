package httpapi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/pkg/plain"
	"mneme.dev/mneme/pkg/summary/llm"
	"mneme.dev/mneme/pkg/window"
)

// RewriteParam asks for other words for a query.
type RewriteParam struct {
	Rewrite bool `query:"rewrite" doc:"have the model that writes summaries add other words to the query. The answer or the manifest says what was added, or why nothing was. Calls count against the tenant's quota"`
}

// How many queries a model rewrites at the same time: fewer than the calls that an endpoint takes, so that summaries continue.
const (
	maxRewrites    = 2
	tenantRewrites = 1
)

// rewriteTime is how long a read waits for other words.
const rewriteTime = 5 * time.Second

// rewritable refuses rewrite=true if no model can add to the query. Call it before anything is read.
func (a *api) rewritable(in RewriteParam, query string) error {
	refuse := func(text string) error {
		return huma.Error422UnprocessableEntity("rewrite=true "+text, &huma.ErrorDetail{Location: "query.rewrite", Message: text, Value: true})
	}
	switch {
	case !in.Rewrite:
	case strings.TrimSpace(query) == "":
		return refuse("needs a query with whole words: a model cannot add to marks alone")
	case a.Model == nil:
		return refuse("needs a model: whoever runs the server sets MNEME_SUMMARY_WRITER and MNEME_LLM_MODEL")
	}
	return nil
}

// rewrite adds other words to a query that is [api.rewritable], and says what was added; nil if that was not asked for.
// Without an answer in time, the query stays as it is. A model call costs money, so call rewrite only after checking
// that the conversation or project exists, and before the read takes a place.
func (a *api) rewrite(ctx context.Context, tenant string, in RewriteParam, query string) (string, *window.Rewritten, error) {
	if !in.Rewrite {
		return query, nil, nil
	}
	out := &window.Rewritten{Query: query}
	if plain.Length(query) > llm.MaxRewritten {
		out.Missing = fmt.Sprintf("the query has over %d characters", llm.MaxRewritten)
		return query, out, nil
	}
	leave, ok := a.limits.rewrites.TryEnter(tenant)
	if !ok {
		out.Missing = "too many queries are being rewritten"
		return query, out, nil
	}
	defer leave()
	waiting, cancel := context.WithTimeout(a.Quotas.Spend(ctx, tenant), rewriteTime)
	defer cancel()
	added, _, err := a.Model.Rewrite(waiting, query)
	switch {
	case ctx.Err() != nil:
		return "", nil, ctx.Err()
	case err == nil:
		out.Model, out.Added = a.Model.Model(), added
		return query + "\n" + added, out, nil
	case errors.Is(waiting.Err(), context.DeadlineExceeded):
		out.Missing = fmt.Sprintf("the model gave no answer within %s", rewriteTime)
	default:
		out.Missing = err.Error()
	}
	return query, out, nil
}
