package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/version"
	"mneme.dev/mneme/internal/view"
)

// Values of Cache-Control. A client may keep an answer that has an ETag but must
// revalidate it each time. It belongs to one tenant, so shared caches may not keep it.
const (
	cacheNothing = "no-store"
	revalidate   = "private, no-cache"
)

// unchanged answers 304 if the client already has this answer. The ETag is made from
// positions, so the answer itself need not be read. It is weak because compression
// changes the bytes. Call unchanged before reading the answer: if the conversation moves
// on in between, the answer is newer than its ETag, which costs only one needless read.
//
// It does not use huma/conditional, which treats an answer without a date as
// older than any If-Modified-Since.
func (a *api) unchanged(ctx context.Context, positions ...string) error {
	x := exchangeOf(ctx).huma
	if x.Method() != http.MethodGet && x.Method() != http.MethodHead {
		return nil
	}
	u := x.URL()
	query := u.Query()
	query.Del("at_least")
	query.Del("wait_ms")
	parts := append([]string{a.edition, u.EscapedPath(), query.Encode()}, positions...)
	tag := `W/"` + events.DigestOf(parts...).String() + `"`
	x.SetHeader("ETag", tag)
	x.SetHeader("Cache-Control", revalidate)
	if matches(x.Header("If-None-Match"), tag) {
		return huma.Status304NotModified()
	}
	return nil
}

// matches is the weak comparison of If-None-Match. Our tags contain no comma. It ignores *, which asks whether there is an
// answer at all: the positions exist even if the answer is that there is no such message.
func matches(header, tag string) bool {
	for one := range strings.SplitSeq(header, ",") {
		one = strings.TrimSpace(one)
		if one != "" && strings.TrimPrefix(one, "W/") == strings.TrimPrefix(tag, "W/") {
			return true
		}
	}
	return false
}

// edition identifies what affects every answer besides the contents of the read models: the program, how it searches, its
// prices, the log, and the location of the read models.
func edition(c Config) string {
	prices, _ := json.Marshal(c.Prices) // names and numbers
	search := "off"
	if c.Cache != nil {
		search = "on " + c.Cache.Model()
	}
	return fmt.Sprintf("%s %q %s %s %s", programVersion(), search, c.Log.Created().UTC().Format(time.RFC3339Nano), c.Store, prices)
}

// programVersion identifies this program's code. A build without version information
// gets a new value at each start.
func programVersion() string {
	if build := version.Get(); build.Commit != "" && !build.Changed {
		return build.Commit
	}
	return "started " + time.Now().Format(time.RFC3339Nano)
}

// unchangedView is [api.unchanged] for answers about one conversation and what it inherited. more are further
// positions that the answer depends on.
func (a *api) unchangedView(ctx context.Context, v *view.View, more ...string) error {
	positions, err := v.Positions(ctx)
	if err != nil {
		return err
	}
	return a.unchanged(ctx, append(positions, more...)...)
}

// unchangedList is [api.unchanged] for answers about several conversations, which any
// event can change.
func (a *api) unchangedList(ctx context.Context, models ...view.Model) error {
	positions, err := view.ListPositions(ctx, models...)
	if err != nil {
		return err
	}
	return a.unchanged(ctx, positions...)
}
