package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/version"
	"mneme.dev/mneme/pkg/graph"
)

// Values of Cache-Control. What has an ETag may be kept if it is asked about each
// time; it belongs to one tenant, so no cache that is shared may keep it.
const (
	cacheNothing = "no-store"
	revalidate   = "private, no-cache"
)

// unchanged answers 304 if the client has this answer already: an ETag is made from
// positions, so that nothing of the answer need be read for it. It is weak, since
// the bytes differ by how they are packed. It must be asked for before the answer is
// read: if the conversation moves on in between, the answer is newer than its ETag,
// and only read once too often.
//
// It is not huma/conditional, which takes an answer without a date for one that is
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

// matches is the weak comparison of If-None-Match. No tag of ours has a comma in it.
func matches(header, tag string) bool {
	for one := range strings.SplitSeq(header, ",") {
		one = strings.TrimSpace(one)
		if one == "*" || (one != "" && strings.TrimPrefix(one, "W/") == strings.TrimPrefix(tag, "W/")) {
			return true
		}
	}
	return false
}

// edition is what decides about answers beside the read models: the program with
// its settings of how things are shown, the log, and where the read models are.
func edition(c Config) string {
	return fmt.Sprintf("%s %s %s", programVersion(), c.Log.Created().UTC().Format(time.RFC3339Nano), c.Store)
}

// programVersion names the code of this program. A build that can't name its code
// is another one each time it starts.
func programVersion() string {
	if build := version.Get(); build.Commit != "" && !build.Changed {
		return build.Commit
	}
	return "started " + time.Now().Format(time.RFC3339Nano)
}

// unchangedConversation is [api.unchanged] for what these read models say about a
// conversation and what it inherited. Of the graph the conversation's own row is its
// position, as it has the sequence of its newest event. What is inherited stays as it
// is until an ancestor is deleted or repaired, and then its counts or its descent are others.
func (a *api) unchangedConversation(ctx context.Context, lineage *graph.Lineage, past AsOfParam, models []model) error {
	own, inherited := lineage.Own(), lineage.Inherited()
	shown, err := json.Marshal([]any{own, inherited})
	if err != nil {
		return err
	}
	positions := []string{string(shown), lineage.Descent()}
	ids := []events.ConversationID{own.ID}
	if inherited != nil {
		ids = append(ids, lineage.Ancestors()...)
	}
	for _, m := range models {
		positions = append(positions, strconv.Itoa(m.generation))
		files, ok := m.store.(graph.FilesReader)
		if !ok {
			continue
		}
		for i, id := range ids {
			last, repairs, err := files.LastSeq(ctx, id)
			if err != nil {
				return err
			}
			upTo := past.seq()
			if i > 0 {
				upTo = inherited.LastSeq
			}
			positions = append(positions, fmt.Sprintf("%d %d", min(last, upTo), repairs))
		}
	}
	return a.unchanged(ctx, positions...)
}

// unchangedList is [api.unchanged] for what these read models say about more than
// one conversation: any event can change that.
func (a *api) unchangedList(ctx context.Context, models ...model) error {
	var positions []string
	for _, m := range models {
		cps, err := m.store.Checkpoints(ctx)
		if err != nil {
			return err
		}
		for _, cp := range cps {
			positions = append(positions, fmt.Sprintf("%s %d %d %d %d", m.name, m.generation, cp.Partition, cp.Seq, cp.Repairs))
		}
	}
	return a.unchanged(ctx, positions...)
}
