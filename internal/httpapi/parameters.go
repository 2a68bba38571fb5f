package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"mneme.dev/mneme/events"
)

// strict refuses parameters that would be misread: one without a value, which would count
// as absent (an empty tenant must not become the default one); one given twice; a
// malformed query; and an integer of more than the documented 64 bits, which a store may
// not be able to compare.
func strict(h huma.API) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		u := ctx.URL()
		query, err := url.ParseQuery(u.RawQuery)
		if err != nil {
			_ = huma.WriteErr(h, ctx, http.StatusUnprocessableEntity, "the query is not well-formed: "+err.Error())
			return
		}
		if canonicalTimes(ctx.Operation().Parameters, query) {
			r, _ := humago.Unwrap(ctx)
			r.URL.RawQuery = query.Encode()
		}
		var bad []error
		for _, p := range ctx.Operation().Parameters {
			var values []string
			switch p.In {
			case "query":
				values = query[p.Name]
			case "path":
				values = []string{ctx.Param(p.Name)}
			}
			if reason := misread(p.Schema, values); reason != "" {
				bad = append(bad, &huma.ErrorDetail{Location: p.In + "." + p.Name, Message: reason})
			}
		}
		if len(bad) > 0 {
			_ = huma.WriteErr(h, ctx, http.StatusUnprocessableEntity, byTheSchema, bad...)
			return
		}
		next(ctx)
	}
}

// canonicalTimes rewrites times into the form of RFC 3339 that Go parses, see
// [events.ParseTime], and reports whether it changed any.
func canonicalTimes(parameters []*huma.Param, query url.Values) (changed bool) {
	for _, p := range parameters {
		if p.In != "query" || p.Schema.Format != "date-time" {
			continue
		}
		for i, text := range query[p.Name] {
			if t, err := events.ParseTime(text); err == nil {
				query[p.Name][i] = t.Format(time.RFC3339Nano)
				changed = changed || query[p.Name][i] != text
			}
		}
	}
	return changed
}

// misread returns why the values of a parameter would be misread, "" if they would not.
func misread(s *huma.Schema, values []string) string {
	if s.Type != huma.TypeArray && len(values) > 1 {
		return fmt.Sprintf("is given %d times", len(values))
	}
	mayBeEmpty := s.Type == huma.TypeString && s.MinLength == nil && s.Enum == nil && s.Format == ""
	if slices.Contains(values, "") && !mayBeEmpty {
		return "has no value: give it one or leave it out"
	}
	if s.Type == huma.TypeInteger && s.Format == "int64" && len(values) == 1 {
		if _, err := strconv.ParseInt(values[0], 10, 64); errors.Is(err, strconv.ErrRange) {
			return "is beyond 64 bits"
		}
	}
	return ""
}
