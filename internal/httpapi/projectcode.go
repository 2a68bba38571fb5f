package httpapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/codebase"
	"mneme.dev/mneme/pkg/project"
	"mneme.dev/mneme/pkg/projection"
	"mneme.dev/mneme/pkg/window/code"
)

// projectCode is the search in the code of a conversation's project. It implements window.ProjectCode.
type projectCode struct {
	cache      *view.Cache
	reader     codebase.Reader
	generation int
	tenant     string
	cwd        string
	scans      []codebase.Scan // the indexes that count

	mu    sync.Mutex
	query string // of found
	asOf  uint64
	found *code.Indexed
}

// projectCode begins to look for the indexes that count for a conversation: none for most conversations, and while the read
// model is not there.
//
// An index counts if it belongs to the conversation's project, and its folder contains the working directory or is
// inside it. It is read as of the conversation's newest event, as everything in a context.
func (a *api) projectCode(ctx context.Context, v *view.View) *indexesNear {
	n := &indexesNear{api: a, id: v.ID, done: make(chan struct{})}
	own := v.Lineage().Own()
	if own.Cwd == "" || a.Cache == nil {
		close(n.done)
		return n
	}
	r, m, err := a.pins(ctx).Code(ctx)
	if err != nil {
		if !errors.Is(err, a.NotReady) {
			n.err = err
		}
		close(n.done)
		return n
	}
	n.reader, n.generation, n.cwd = r, m.Generation, own.Cwd
	if n.asOf = own.LastSeq; v.At.AsOf != 0 {
		n.asOf = min(n.asOf, v.At.AsOf)
	}
	go func() {
		defer close(n.done)
		n.read(ctx)
		if len(n.scans) > 0 && n.err == nil && (v.At.AsOf != 0 || v.At.AtLeast != 0) { // the read model may have more of the index later
			if n.err = a.views.AwaitAllAsOf(ctx, v.At, m); n.err == nil {
				n.read(ctx)
			}
		}
	}()
	return n
}

// indexesNear are the indexes whose folders contain a working directory or are inside it, once they are
// read.
type indexesNear struct {
	api        *api
	id         events.ConversationID
	reader     codebase.Reader
	generation int
	asOf       uint64
	cwd        string
	scans      []codebase.Scan

	checkpoints []projection.Checkpoint // of the read model, if there are scans

	err  error
	done chan struct{} // closed when the fields above are final
}

// read reads the indexes.
func (n *indexesNear) read(ctx context.Context) {
	if n.scans, n.err = n.reader.Indexes(ctx, n.id.Tenant, n.asOf); n.err != nil {
		return
	}
	n.scans = slices.DeleteFunc(n.scans, func(s codebase.Scan) bool { return s.Base(n.cwd) == "" })
	if len(n.scans) > 0 {
		n.checkpoints, n.err = n.reader.Checkpoints(ctx)
	}
}

// wait waits for the read. The caller that began the read must call wait before it releases the read model.
func (n *indexesNear) wait() { <-n.done }

// counting returns the search in the indexes that count, and the positions that its answers depend on: the read models may
// have more of the indexes later. It returns nil if none count.
func (n *indexesNear) counting(ctx context.Context) (*projectCode, []string, error) {
	n.wait()
	if n.err != nil || len(n.scans) == 0 {
		return nil, nil, n.err
	}
	scans, err := n.api.ofItsProject(ctx, n.id, n.scans, n.asOf)
	if err != nil || len(scans) == 0 {
		return nil, nil, err
	}
	var positions []string
	for _, s := range scans {
		positions = append(positions, fmt.Sprintf("code of %s %d", s.Project, s.Seq))
	}
	for _, cp := range n.checkpoints {
		positions = append(positions, fmt.Sprintf("code %d %d %d %d", n.generation, cp.Partition, min(cp.Seq, n.asOf), cp.Repairs))
	}
	return &projectCode{cache: n.api.Cache, reader: n.reader, generation: n.generation, tenant: n.id.Tenant, cwd: n.cwd, scans: scans}, positions, nil
}

// ofItsProject keeps the indexes of a conversation's project, and of a folder that holds the one that it works in: the
// conversation itself may not show that this is a repository. A caller that may read only one project sees only that
// one.
func (a *api) ofItsProject(ctx context.Context, id events.ConversationID, scans []codebase.Scan, asOf uint64) ([]codebase.Scan, error) {
	r, _, err := a.pins(ctx).Projects(ctx)
	if err != nil {
		if errors.Is(err, a.NotReady) {
			err = nil
		}
		return nil, err
	}
	digests, err := r.Digests(ctx, []events.ConversationID{id}, asOf)
	if err != nil || digests[0] == nil || digests[0].Place.Name == "" {
		return nil, err
	}
	p, err := project.Find(ctx, r, id.Tenant, digests[0].Place.Name, asOf)
	if err != nil {
		return nil, err
	}
	place := &digests[0].Place
	grant := access.Of(ctx)
	wider := !place.Fixed && (grant == nil || grant.Project == "")
	return slices.DeleteFunc(scans, func(s codebase.Scan) bool {
		return !slices.Contains(p.Names, project.Name(s.Project)) && !(wider && project.Below(place.Name, project.Indexed(s.Project)))
	}), nil
}

// A context shows a scope only if its score is at least leastCode, and at least leastOfBest of the best score.
const (
	leastCode   = 0.3
	leastOfBest = 0.6
)

// Search implements window.ProjectCode.
func (c *projectCode) Search(ctx context.Context, query string, asOf uint64) (*code.Indexed, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.found != nil && c.query == query && c.asOf == asOf {
		return c.found, nil
	}
	newest := slices.MaxFunc(c.scans, func(a, b codebase.Scan) int { return int(int64(a.Seq) - int64(b.Seq)) })
	x := &code.Indexed{Project: newest.Project, Root: newest.Root, Seq: newest.Seq, Done: true}
	ids := make([]events.ConversationID, len(c.scans))
	for i, s := range c.scans {
		x.Done = x.Done && s.Done
		ids[i] = events.ConversationID{Tenant: c.tenant, ID: project.Conversation(events.CodePrefix, s.Project)}
	}
	found, err := c.cache.SearchCode(ctx, c.reader, c.generation, ids, codebase.Query{Text: query, WordsOnly: !x.Done, AsOf: asOf, Limit: code.InitialScopes, Min: leastCode}, code.MaxScopes)
	if err != nil {
		return nil, err
	}
	for i, h := range found.Hits {
		if h.Score < leastOfBest*found.Hits[0].Score {
			break
		}
		if x.Found++; i >= code.MaxScopes {
			continue
		}
		of := found.Indexes[found.Of[i]]
		x.Scopes = append(x.Scopes, code.Scope{Path: of.Base(c.cwd) + "/" + h.Path, EventID: h.EventID, Seq: h.Seq, N: h.N, Start: h.Start, Text: h.Text})
	}
	x.ByMeaning = found.ByMeaning
	c.query, c.asOf, c.found = query, asOf, x
	return x, nil
}
