package instance

import (
	"cmp"
	"context"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/capture"
	"mneme.dev/mneme/internal/connect"
	"mneme.dev/mneme/internal/hook"
	"mneme.dev/mneme/internal/importer"
	"mneme.dev/mneme/internal/service"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/graph"
	"mneme.dev/mneme/pkg/graph/readmodel"
	"mneme.dev/mneme/pkg/projection"
)

// capturedTenant is the tenant of the transcripts of this machine. Hooks of other tenants come from
// elsewhere, and what they name is not on this machine.
const capturedTenant = "default"

// capture starts the receiver that reads the transcripts of agents on this machine: a transcript whose hook
// calls, and every transcript of an agent that is connected to this server.
func (i *Instance) capture(c *Config, models *service.Models) *capture.Receiver {
	var roots []string
	var folders []capture.Folder
	for _, agent := range c.Capture {
		list, err := capture.Roots(agent)
		if err != nil {
			c.Logger.Warn("no transcripts are read", "agent", agent, "error", err)
			continue
		}
		roots = append(roots, list...)
		for _, root := range list {
			folders = append(folders, capture.Folder{Agent: agent, Path: root})
		}
	}
	return capture.New(capture.Config{
		Log: i.Log, Tenant: capturedTenant, Roots: roots, Lookup: i.caughtUp(models.Graph), Redact: c.Redact, Logger: c.Logger.With("part", "capture"),
		Follow: func() []capture.Folder { return ofConnected(folders, i.HTTPURL()) },
		Marks:  filepath.Join(c.Data, "transcripts.json"),
	})
}

// lookupPoll is how often a waiting lookup checks whether the graph has caught up, and haltedFor how long the graph must have
// stood still: a rebuild that mneme itself asks for begins within a moment.
const (
	lookupPoll = 100 * time.Millisecond
	haltedFor  = time.Second
)

// caughtUp returns a lookup in the graph that first waits until the graph has applied what the log held at the first
// lookup. A graph that is new or restored would not know these events yet, so they would be published again. One that has
// halted, and is not being rebuilt, is not waited for: it may stand still until an operator has the time.
func (i *Instance) caughtUp(open func(context.Context) (view.Pinned[graph.Reader], error)) func(context.Context, []events.Event) ([]importer.Known, error) {
	lookup := importer.Lookup(capturedTenant, open)
	var waited atomic.Bool
	return func(ctx context.Context, list []events.Event) ([]importer.Known, error) {
		for number := 0; number < i.Log.Partitions() && !waited.Load(); number++ {
			last, err := i.Log.LastOf(ctx, number)
			if err != nil {
				return nil, err
			}
			if err := i.awaitGraph(ctx, open, number, last); err != nil {
				return nil, err
			}
		}
		waited.Store(true)
		return lookup(ctx, list)
	}
}

// awaitGraph waits until the graph has applied a partition up to a sequence, or stands still.
func (i *Instance) awaitGraph(ctx context.Context, open func(context.Context) (view.Pinned[graph.Reader], error), number int, last uint64) error {
	for moved := time.Now(); time.Since(moved) < haltedFor; {
		var at projection.Checkpoint
		err := view.Lend(ctx, open, func(g graph.Reader) (err error) {
			at, err = projection.CheckpointOf(ctx, g, number)
			return err
		})
		if err != nil || at.Seq >= last {
			return err
		}
		if !i.stands(readmodel.Graph().Name()) {
			moved = time.Now()
		}
		select {
		case <-time.After(lookupPoll):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// stands reports whether a read model has halted and is not being rebuilt.
func (i *Instance) stands(name string) bool {
	halted, generations := false, map[int]bool{}
	for _, s := range i.Status() {
		if s.Projection == name {
			halted, generations[s.Generation] = halted || s.State == projection.StateHalted, true
		}
	}
	return halted && len(generations) == 1
}

// ofConnected returns the folders of the agents that their user connected to this server for all
// projects. A user who connected no agent, a single project or another server has not asked for the
// sessions of all projects to be read here.
func ofConnected(folders []capture.Folder, self string) []capture.Folder {
	if len(folders) == 0 {
		return nil
	}
	agents := connect.Inspect("")
	return slices.DeleteFunc(slices.Clone(folders), func(f capture.Folder) bool {
		return !slices.ContainsFunc(agents, func(s connect.State) bool {
			return s.Agent == f.Agent && s.Connected && cmp.Or(s.Tenant, capturedTenant) == capturedTenant && reaches(s.Server, self)
		})
	})
}

// reaches reports whether a hook that calls a URL reaches the server at self.
func reaches(called, self string) bool {
	a, err := url.Parse(called)
	b, err2 := url.Parse(self)
	if err != nil || err2 != nil || a.Port() != b.Port() {
		return false
	}
	return a.Hostname() == b.Hostname() || onLoopback(a.Hostname()) && onLoopback(b.Hostname())
}

// onLoopback reports whether a host can be reached on this machine's loopback; one that listens on all addresses can.
func onLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && (ip.IsLoopback() || ip.IsUnspecified())
}

// doorbell passes on what hooks report, for the agents whose transcripts are to be read.
type doorbell struct {
	to     *capture.Receiver
	agents []string
}

// Ring implements [hook.Doorbell].
func (d doorbell) Ring(tenant, agent, session, path string, turn hook.Turn) {
	if tenant != capturedTenant || !slices.Contains(d.agents, agent) {
		return
	}
	if path == "" {
		d.to.Heard(agent)
		return
	}
	ring := d.to.Ring
	switch turn {
	case hook.Began:
		ring = d.to.Began
	case hook.Ended:
		ring = d.to.Ended
	}
	_ = ring(agent, session, path) // the receiver counts and logs what it refuses
}
