package httpapi

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"mneme.dev/mneme/internal/rebuild"
	"mneme.dev/mneme/internal/version"
	"mneme.dev/mneme/pkg/projection"
)

// Status is the state of the log and of the projections.
type Status struct {
	Stream struct {
		Head       uint64 `json:"head" doc:"last sequence"`
		Messages   uint64 `json:"messages"`
		Missing    uint64 `json:"missing" doc:"events that left the log although nobody recorded that they were removed: see mneme repair log"`
		Bytes      uint64 `json:"bytes"`
		Partitions int    `json:"partitions"`
		Error      string `json:"error,omitempty" doc:"why the log takes no writes; known only where the log's server runs in the same process"`
	} `json:"stream"`
	Projections []ProjectionStatus `json:"projections"`
	Rebuilds    []Rebuild          `json:"rebuilds" doc:"those under way, and the last of each projection if it failed or its record can't be read"`
	Processes   []ProcessStatus    `json:"processes" doc:"those that work with this log, by name"`
	// ProcessesError is why others could not be asked for.
	ProcessesError string       `json:"processes_error,omitempty" doc:"why the processes are not known, this one apart"`
	Version        version.Info `json:"version" doc:"of the program that answers"`
}

// ProjectionStatus is the state of one partition of one projection.
type ProjectionStatus struct {
	Name       string  `json:"name"`
	Store      string  `json:"store"`
	Generation int     `json:"generation"`
	Partition  int     `json:"partition"`
	State      string  `json:"state" enum:"absent,unavailable,damaged,idle,catching up,live,halted" doc:"absent: nothing was written yet; unavailable: the server of the read model does not answer; damaged: its file can't be read, a rebuild replaces it; idle: no process drives it"`
	Checkpoint uint64  `json:"checkpoint" doc:"last sequence applied"`
	Lag        uint64  `json:"lag" doc:"events of the partition that are not applied yet; at most this many, if only the log's head is known"`
	Applied    uint64  `json:"applied" doc:"events that changed the read model"`
	Duplicates uint64  `json:"duplicates" doc:"known events that were dropped"`
	Failed     int     `json:"failed" doc:"events that were skipped, of all partitions: see mneme failed list"`
	Holder     string  `json:"holder,omitempty" doc:"process that drives the partition; absent if none is known to"`
	Epoch      uint64  `json:"epoch" doc:"how often the partition was taken over"`
	Rate       float64 `json:"rate" doc:"events a second that went through the projection, over the last seconds"`
	Retries    uint64  `json:"retries" doc:"how often its process has waited for a store or a server since it began"`
	Error      string  `json:"error,omitempty"`
}

// ProcessStatus is what a process says of itself, which it does twice a second.
type ProcessStatus struct {
	Name       string            `json:"name" doc:"host and a suffix that is another one at each start"`
	Program    string            `json:"program,omitempty" doc:"absent if the process is of a build that does not tell"`
	Version    string            `json:"version,omitempty"`
	Started    string            `json:"started,omitempty" format:"date-time" doc:"by the clock of its machine"`
	State      string            `json:"state" enum:"unknown,serving,idle,catching up,live,halted" doc:"of a process with several partitions that of the worst; idle: it stands by; unknown: it does not tell"`
	Lag        uint64            `json:"lag"`
	Rate       float64           `json:"rate" doc:"events a second"`
	Retries    uint64            `json:"retries"`
	Error      string            `json:"error,omitempty" doc:"of one of its partitions"`
	Partitions []DrivenPartition `json:"partitions" doc:"that it drives, or is halted on"`
}

// DrivenPartition is what a process says of a partition.
type DrivenPartition struct {
	Store      string  `json:"store"`
	Projection string  `json:"projection"`
	Generation int     `json:"generation"`
	Partition  int     `json:"partition"`
	State      string  `json:"state" enum:"unknown,catching up,live,halted"`
	Checkpoint uint64  `json:"checkpoint"`
	Lag        uint64  `json:"lag"`
	Rate       float64 `json:"rate"`
	Retries    uint64  `json:"retries"`
	Error      string  `json:"error,omitempty"`
}

type statusOutput struct{ Body Status }

func (a *api) status(ctx context.Context, _ *struct{}) (*statusOutput, error) {
	out := &statusOutput{}
	out.Body.Version = version.Get()
	out.Body.Stream.Partitions = a.Log.Partitions()
	if a.LogHealth != nil {
		if err := a.LogHealth(); err != nil {
			out.Body.Stream.Error = err.Error()
		}
	}
	cluster, err := projection.ReadCluster(ctx, a.Log.Conn())
	if err != nil {
		out.Body.ProcessesError = err.Error()
	}
	if a.Self != nil {
		cluster.Add(a.Self())
	}
	out.Body.Processes = processes(&cluster)
	for _, m := range a.models(ctx) {
		list, err := a.projectionStatus(ctx, m, &cluster, out.Body.ProcessesError == "")
		if err != nil {
			return nil, a.problem(err)
		}
		out.Body.Projections = append(out.Body.Projections, list...)
	}
	if out.Body.Rebuilds, err = a.underWay(ctx); err != nil {
		return nil, err
	}
	// Asked for last: what was published meanwhile may be applied already, and no checkpoint
	// may lie beyond the head.
	state, err := a.Log.State(ctx)
	if err != nil {
		return nil, a.problem(err)
	}
	out.Body.Stream.Head, out.Body.Stream.Messages, out.Body.Stream.Bytes = state.Head, state.Messages, state.Bytes
	out.Body.Stream.Missing = state.Missing
	return out, nil
}

// underWay are the rebuilds that are not done.
func (a *api) underWay(ctx context.Context) ([]Rebuild, error) {
	if a.Rebuilds == nil {
		return []Rebuild{}, nil
	}
	list, err := a.Rebuilds.List(ctx)
	if err != nil && !errors.Is(err, projection.ErrUnavailable) { // which the projections say
		return nil, a.problem(err)
	}
	return each(slices.DeleteFunc(list, func(p rebuild.Progress) bool { return p.State == rebuild.Serving }), rebuildOf), nil
}

// projectionStatus is the status of a read model; known tells whether all processes are.
func (a *api) projectionStatus(ctx context.Context, m model, cluster *projection.Cluster, known bool) ([]ProjectionStatus, error) {
	running := cluster.Statuses(a.buildOf(m))
	if a.States != nil { // which say more
		for _, s := range a.States() {
			if s.Build == a.buildOf(m) {
				running = append(running, s)
			}
		}
	}
	if isUnreadable(m.err) {
		return a.unreadable(m, running, m.err), nil
	}
	if m.err != nil {
		return []ProjectionStatus{{Name: m.name, Store: a.Store, Generation: m.generation, State: "absent", Error: m.err.Error()}}, nil
	}
	progress, err := projection.Progress(ctx, a.buildOf(m), a.Log, m.store, running)
	if isUnreadable(err) {
		return a.unreadable(m, running, err), nil
	}
	if err != nil {
		return nil, err
	}
	failed, err := m.store.CountFailed(ctx)
	if isUnreadable(err) {
		return a.unreadable(m, running, err), nil
	}
	if err != nil {
		return nil, err
	}
	list := make([]ProjectionStatus, len(progress))
	for i, s := range progress {
		list[i] = ProjectionStatus{
			Name: m.name, Store: a.Store, Generation: m.generation, Partition: s.Partition, State: string(s.State),
			Checkpoint: s.Checkpoint.Seq, Lag: s.Lag, Applied: s.Checkpoint.Applied, Duplicates: s.Checkpoint.Duplicates, Error: s.Error,
			Holder: cluster.Holder(a.buildOf(m), s.Partition), Epoch: s.Checkpoint.Epoch, Rate: s.Rate, Retries: s.Retries,
		}
		if list[i].Holder == "" && s.State != projection.StateHalted && known {
			list[i].State = string(projection.StateIdle)
		}
		for _, n := range failed {
			list[i].Failed += n
		}
	}
	return list, nil
}

// isUnreadable tells whether a read model can't say how it is.
func isUnreadable(err error) bool {
	return errors.Is(err, projection.ErrUnavailable) || errors.Is(err, projection.ErrDamaged)
}

// unreadable is the status of a read model whose server does not answer, or whose file is
// damaged: what this process remembers of it, if it writes it.
func (a *api) unreadable(m model, running []projection.Status, err error) (list []ProjectionStatus) {
	status := ProjectionStatus{Name: m.name, Store: a.Store, Generation: m.generation, State: "unavailable", Error: err.Error()}
	if errors.Is(err, projection.ErrDamaged) {
		status.State = "damaged"
	}
	for _, r := range running {
		if r.Projection == m.name {
			status.Partition, status.Checkpoint, status.Lag = r.Partition, r.Checkpoint.Seq, r.Lag
			status.Applied, status.Duplicates = r.Checkpoint.Applied, r.Checkpoint.Duplicates
			list = append(list, status)
		}
	}
	if len(list) == 0 {
		list = append(list, status)
	}
	return list
}

// processes are those of a cluster, with what they hold.
func processes(cluster *projection.Cluster) []ProcessStatus {
	list := []ProcessStatus{}
	for _, m := range cluster.Members {
		p := ProcessStatus{Name: m.Process, Program: m.Program, Version: m.Version, State: string(projection.StateIdle), Partitions: []DrivenPartition{}}
		switch m.Program {
		case "":
			p.State = stateUnknown
		case "context-api":
			p.State = "serving"
		}
		if !m.Started.IsZero() {
			p.Started = m.Started.Format(time.RFC3339)
		}
		for _, d := range m.Partitions {
			p.add(DrivenPartition{d.Store, d.Projection, d.Generation, d.Partition, string(d.State), d.Seq, d.Lag, d.Rate, d.Retries, d.Error})
		}
		for _, l := range cluster.Leases {
			if l.Process == m.Process && !slices.ContainsFunc(m.Partitions, func(d projection.Driven) bool {
				return d.Build == l.Build && d.Partition == l.Partition
			}) {
				p.add(DrivenPartition{Store: l.Store, Projection: l.Projection, Generation: l.Generation, Partition: l.Partition, State: stateUnknown})
			}
		}
		slices.SortFunc(p.Partitions, func(a, b DrivenPartition) int {
			return cmp.Or(cmp.Compare(a.Store, b.Store), cmp.Compare(a.Projection, b.Projection), a.Generation-b.Generation, a.Partition-b.Partition)
		})
		list = append(list, p)
	}
	return list
}

// stateUnknown is that of what nobody tells about: the process is of another build.
const stateUnknown = "unknown"

// severity orders states: a process is in the worst of its partitions.
var severity = map[string]int{stateUnknown: 1, string(projection.StateLive): 2, string(projection.StateCatchingUp): 3, string(projection.StateHalted): 4}

func (p *ProcessStatus) add(d DrivenPartition) {
	p.Partitions = append(p.Partitions, d)
	p.Lag, p.Rate, p.Retries = p.Lag+d.Lag, p.Rate+d.Rate, p.Retries+d.Retries
	if severity[d.State] > severity[p.State] || (d.State == p.State && p.Error == "") {
		p.State, p.Error = d.State, d.Error
	}
}
