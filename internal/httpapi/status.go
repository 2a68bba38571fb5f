package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/otlp"
	"mneme.dev/mneme/internal/rebuild"
	"mneme.dev/mneme/internal/version"
	"mneme.dev/mneme/internal/view"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/projection"
)

// Status is the state of the log and of the projections.
type Status struct {
	Stream struct {
		Created    time.Time `json:"created" doc:"when the log was made: another time is another log"`
		Head       uint64    `json:"head" doc:"last sequence"`
		Messages   uint64    `json:"messages"`
		Missing    uint64    `json:"missing" doc:"events missing from the log although no removal was recorded: see mneme repair log"`
		Bytes      uint64    `json:"bytes"`
		MaxBytes   int64     `json:"max_bytes" doc:"size at which the log is full and refuses events"`
		Partitions int       `json:"partitions"`
		Error      string    `json:"error,omitempty" doc:"why the log accepts no writes; of a separate NATS server only that it did not store what was last published through this process"`
		Changed    string    `json:"changed,omitempty" doc:"a setting of the stream that somebody has changed, although mneme needs it; the stream may lose events"`
	} `json:"stream"`
	Projections []ProjectionStatus `json:"projections"`
	Rebuilds    []Rebuild          `json:"rebuilds" doc:"the running rebuilds, and the last one of each projection if it failed or its record can't be read"`
	Erasure     *Erasure           `json:"erasure,omitempty" doc:"the running erasure; GET /v1/erasure has the last one"`
	Retention   []Retention        `json:"retention,omitempty" doc:"tenants whose conversations are erased by age, by the process that answers"`
	Capture     *Captured          `json:"capture,omitempty" doc:"what the process that answers read of the transcripts of coding agents since it started"`
	OTLP        *Exported          `json:"otlp,omitempty" doc:"what exporters of OpenTelemetry sent to the process that answers since it started"`
	Processes   []ProcessStatus    `json:"processes" doc:"the processes that work with this log, by name"`
	// ProcessesError says why the other processes could not be listed.
	ProcessesError string       `json:"processes_error,omitempty" doc:"why the processes other than this one are unknown"`
	ProviderError  string       `json:"provider_error,omitempty" doc:"why the process that answers can't check tokens of the identity provider, or only those with keys that it knows"`
	Version        version.Info `json:"version" doc:"version of the program that answers"`
}

// Exported says what exporters of OpenTelemetry sent.
type Exported otlp.Status

// ProjectionStatus is the state of one partition of one projection.
type ProjectionStatus struct {
	Name       string  `json:"name"`
	Store      string  `json:"store"`
	Generation int     `json:"generation"`
	Partition  int     `json:"partition"`
	State      string  `json:"state" enum:"absent,unavailable,damaged,idle,catching up,live,halted" doc:"absent: nothing has been written yet; unavailable: the read model's server does not answer; damaged: its file can't be read, a rebuild replaces it; idle: no process drives it"`
	Checkpoint uint64  `json:"checkpoint" doc:"last sequence applied"`
	Lag        uint64  `json:"lag" doc:"events of the partition that are not applied yet; an upper bound if only the log's head is known"`
	Applied    uint64  `json:"applied" doc:"events that changed the read model"`
	Duplicates uint64  `json:"duplicates" doc:"known events that were dropped"`
	Failed     int     `json:"failed" doc:"skipped events of all partitions: see mneme failed list"`
	Holder     string  `json:"holder,omitempty" doc:"process that drives the partition; absent if none is known"`
	Epoch      uint64  `json:"epoch" doc:"how often the partition was taken over"`
	Rate       float64 `json:"rate" doc:"events per second that the projection processed over the last seconds"`
	Retries    uint64  `json:"retries" doc:"how often its process has waited for a store or a server since it started"`
	Error      string  `json:"error,omitempty"`
}

// ProcessStatus is what a process announces about itself, twice a second.
type ProcessStatus struct {
	Name       string            `json:"name" doc:"host name and a suffix that changes at each start"`
	Program    string            `json:"program,omitempty" doc:"absent if the process is of an older build that does not report it"`
	Version    string            `json:"version,omitempty"`
	Started    string            `json:"started,omitempty" format:"date-time" doc:"by the clock of its machine"`
	State      string            `json:"state" enum:"unknown,serving,idle,catching up,live,halted" doc:"the worst state of its partitions; idle: on standby; unknown: it does not report one"`
	Lag        uint64            `json:"lag"`
	Rate       float64           `json:"rate" doc:"events per second"`
	Retries    uint64            `json:"retries"`
	Error      string            `json:"error,omitempty" doc:"error of one of its partitions"`
	Partitions []DrivenPartition `json:"partitions" doc:"the partitions that it drives or is halted on"`
}

// DrivenPartition is what a process announces about a partition.
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

func (a *api) status(ctx context.Context, _ *struct{}) (*output[Status], error) {
	out := &output[Status]{}
	out.Body.Version = version.Get()
	out.Body.Stream.Partitions = a.Log.Partitions()
	if a.Gate != nil {
		if err := a.Gate.Ready(); err != nil {
			out.Body.ProviderError = err.Error()
		}
	}
	if a.LogHealth != nil {
		if err := a.LogHealth(); err != nil {
			out.Body.Stream.Error = err.Error()
		}
	}
	cluster, err := projection.ReadCluster(ctx, a.Log.Conn())
	if err != nil {
		if !a.Log.Conn().IsConnected() { // nothing below would get an answer either
			return nil, fmt.Errorf("%w: %w", eventlog.ErrSilent, err)
		}
		out.Body.ProcessesError = err.Error()
	}
	if a.Self != nil {
		cluster.Add(a.Self())
	}
	out.Body.Capture = a.captured()
	if a.Exported != nil {
		out.Body.OTLP = new(Exported(a.Exported()))
	}
	models := a.pins(ctx).All(ctx)
	lists, errs := make([][]ProjectionStatus, len(models)), make([]error, len(models))
	var all sync.WaitGroup
	for i, m := range models {
		all.Go(func() { lists[i], errs[i] = a.projectionStatus(ctx, m, &cluster, out.Body.ProcessesError == "") })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	out.Body.Projections = slices.Concat(lists...)
	out.Body.Processes = processes(&cluster, out.Body.Projections)
	if out.Body.Rebuilds, err = a.underWay(ctx); err != nil {
		return nil, err
	}
	if err := a.erasing(ctx, &out.Body); err != nil {
		return nil, err
	}
	// Read the log's state last: events published since may already be applied, and no
	// checkpoint may exceed the head.
	state, err := a.Log.State(ctx)
	if err != nil {
		return nil, err
	}
	out.Body.Stream.Head, out.Body.Stream.Messages, out.Body.Stream.Bytes = state.Head, state.Messages, state.Bytes
	out.Body.Stream.MaxBytes = state.MaxBytes
	if state.Changed != nil {
		out.Body.Stream.Changed = state.Changed.Error()
	}
	out.Body.Stream.Missing, out.Body.Stream.Created = state.Missing, a.Log.Created().UTC()
	if !access.Everywhere(ctx) {
		out.Body.conceal()
	}
	return out, nil
}

// conceal removes what may name other tenants' conversations, and the names of machines.
func (s *Status) conceal() {
	hide := func(text *string) {
		if *text != "" {
			*text = "only a token of all tenants is told why"
		}
	}
	hide(&s.Stream.Error)
	hide(&s.Stream.Changed)
	hide(&s.ProcessesError)
	hide(&s.ProviderError)
	for i := range s.Projections {
		hide(&s.Projections[i].Error)
		s.Projections[i].Holder = ""
	}
	for i := range s.Rebuilds {
		hide(&s.Rebuilds[i].Error)
	}
	s.Processes = []ProcessStatus{}
	s.Erasure, s.Retention, s.Capture, s.OTLP = nil, nil, nil, nil
}

// underWay returns the rebuilds that are not done.
func (a *api) underWay(ctx context.Context) ([]Rebuild, error) {
	if a.Rebuilds == nil {
		return []Rebuild{}, nil
	}
	list, err := a.Rebuilds.List(ctx)
	if err != nil && !errors.Is(err, projection.ErrUnavailable) { // the projections report it
		return nil, err
	}
	return each(slices.DeleteFunc(list, func(p rebuild.Progress) bool { return p.State == rebuild.Serving }), rebuildOf), nil
}

// projectionStatus returns the status of a read model; known says whether all processes are known.
func (a *api) projectionStatus(ctx context.Context, m view.Model, cluster *projection.Cluster, known bool) ([]ProjectionStatus, error) {
	running := cluster.Statuses(a.buildOf(m))
	if a.States != nil { // they say more than the checkpoints
		for _, s := range a.States() {
			if s.Build == a.buildOf(m) {
				running = append(running, s)
			}
		}
	}
	if isUnreadable(m.Err) {
		return a.unreadable(ctx, m, running, m.Err), nil
	}
	if m.Err != nil {
		return []ProjectionStatus{{Name: m.Name, Store: a.Store, Generation: m.Generation, State: "absent", Error: m.Err.Error()}}, nil
	}
	progress, err := projection.Progress(ctx, a.buildOf(m), a.Log, m.Store, running)
	if isUnreadable(err) {
		return a.unreadable(ctx, m, running, err), nil
	}
	if err != nil {
		return nil, err
	}
	failed, err := m.Store.CountFailed(ctx)
	if isUnreadable(err) {
		return a.unreadable(ctx, m, running, err), nil
	}
	if err != nil {
		return nil, err
	}
	list := make([]ProjectionStatus, len(progress))
	for i, s := range progress {
		list[i] = ProjectionStatus{
			Name: m.Name, Store: a.Store, Generation: m.Generation, Partition: s.Partition, State: string(s.State),
			Checkpoint: s.Checkpoint.Seq, Lag: s.Lag, Applied: s.Checkpoint.Applied, Duplicates: s.Checkpoint.Duplicates, Error: s.Error,
			Holder: cluster.Holder(a.buildOf(m), s.Partition), Epoch: s.Checkpoint.Epoch, Rate: s.Rate, Retries: s.Retries,
		}
		if list[i].Holder == "" && s.State != projection.StateHalted && known {
			list[i].State = string(projection.StateIdle)
		}
		list[i].findElsewhere(running)
		for _, n := range failed {
			list[i].Failed += n
		}
	}
	return list, nil
}

// findElsewhere looks for a process that drives this partition in another file than the one that is read here. Such a
// process is ahead of this read model: it reports a position after it has written it, and was asked before the file was
// read. Only files are compared: what reads Neo4j may lag behind.
func (s *ProjectionStatus) findElsewhere(running []projection.Status) {
	for _, r := range running {
		at := r.Checkpoint.Seq
		if s.Store == "sqlite" && r.Partition == s.Partition && r.Holder != "" && at > s.Checkpoint {
			s.State, s.Holder, s.Rate, s.Retries = string(projection.StateIdle), "", 0, 0
			s.Error = fmt.Sprintf("%s writes this read model in another data directory, and is at sequence %d", r.Holder, at)
		}
	}
}

// Elsewhere reports whether the process that drives the partition writes another read model than the one that is read.
func (s *ProjectionStatus) Elsewhere() bool {
	return s.State == string(projection.StateIdle) && s.Error != ""
}

// isUnreadable reports whether the status of a read model can't be read from it.
func isUnreadable(err error) bool {
	return errors.Is(err, projection.ErrUnavailable) || errors.Is(err, projection.ErrDamaged)
}

// unreadable returns the status of a read model whose server does not answer, or whose file
// is damaged. The processes that write it remember how far they came, and the log knows what has been published since.
func (a *api) unreadable(ctx context.Context, m view.Model, running []projection.Status, err error) (list []ProjectionStatus) {
	status := ProjectionStatus{Name: m.Name, Store: a.Store, Generation: m.Generation, State: "unavailable", Error: err.Error()}
	if errors.Is(err, projection.ErrDamaged) {
		status.State = "damaged"
	}
	slices.SortFunc(running, func(a, b projection.Status) int { return a.Partition - b.Partition })
	for _, r := range running {
		if r.Projection == m.Name {
			status.Partition, status.Checkpoint, status.Lag = r.Partition, r.Checkpoint.Seq, r.Lag
			if head, err := a.Log.LastOf(ctx, r.Partition); err == nil && head > r.Checkpoint.Seq {
				status.Lag = max(status.Lag, head-r.Checkpoint.Seq)
			}
			status.Applied, status.Duplicates = r.Checkpoint.Applied, r.Checkpoint.Duplicates
			list = append(list, status)
		}
	}
	if len(list) == 0 {
		list = append(list, status)
	}
	return list
}

// processes returns the processes of a cluster with the partitions that they hold. A process counts its lag when events
// are delivered, which may be long ago while it is in trouble, so what is known of a read model counts instead.
func processes(cluster *projection.Cluster, models []ProjectionStatus) []ProcessStatus {
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
			driven := DrivenPartition{d.Store, d.Projection, d.Generation, d.Partition, string(d.State), d.Seq, d.Lag, d.Rate, d.Retries, d.Error}
			if i := slices.IndexFunc(models, driven.isOf); i >= 0 && !models[i].Elsewhere() {
				driven.Lag = models[i].Lag
			}
			p.add(driven)
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

// stateUnknown is the state of a process, or of its partition, that does not report one,
// because it runs another build.
const stateUnknown = "unknown"

// severity orders states: a process has the worst state of its partitions.
var severity = map[string]int{stateUnknown: 1, string(projection.StateLive): 2, string(projection.StateCatchingUp): 3, string(projection.StateHalted): 4}

func (d *DrivenPartition) isOf(s ProjectionStatus) bool {
	return d.Store == s.Store && d.Projection == s.Name && d.Generation == s.Generation && d.Partition == s.Partition
}

func (p *ProcessStatus) add(d DrivenPartition) {
	p.Partitions = append(p.Partitions, d)
	p.Lag, p.Rate, p.Retries = p.Lag+d.Lag, p.Rate+d.Rate, p.Retries+d.Retries
	if severity[d.State] > severity[p.State] || (d.State == p.State && p.Error == "") {
		p.State, p.Error = d.State, d.Error
	}
}
