package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"mneme/internal/version"
	"mneme/pkg/projection"
)

// Status is the state of the log and of the projections.
type Status struct {
	Stream struct {
		Head       uint64 `json:"head" doc:"last sequence"`
		Messages   uint64 `json:"messages"`
		Bytes      uint64 `json:"bytes"`
		Partitions int    `json:"partitions"`
	} `json:"stream"`
	Projections []ProjectionStatus `json:"projections"`
	Version     version.Info       `json:"version" doc:"of the program that answers"`
}

// ProjectionStatus is the state of one partition of one projection.
type ProjectionStatus struct {
	Name       string `json:"name"`
	Store      string `json:"store"`
	Generation int    `json:"generation"`
	Partition  int    `json:"partition"`
	State      string `json:"state" enum:"absent,unavailable,idle,catching up,live,halted" doc:"absent: nothing was written yet; unavailable: the server of the read model does not answer"`
	Checkpoint uint64 `json:"checkpoint" doc:"last sequence applied"`
	Lag        uint64 `json:"lag" doc:"events of the partition that are not applied yet; at most this many, if only the log's head is known"`
	Applied    uint64 `json:"applied" doc:"events that changed the read model"`
	Duplicates uint64 `json:"duplicates" doc:"known events that were dropped"`
	Failed     int    `json:"failed" doc:"events that were skipped, of all partitions: see mneme failed list"`
	Error      string `json:"error,omitempty"`
}

type statusOutput struct{ Body Status }

type failedInput struct {
	Projection string `query:"projection" enum:"graph,files" doc:"only this projection"`
	Tenant     string `query:"tenant" maxLength:"128" doc:"only of this tenant; all tenants if absent"`
	After      uint64 `query:"after" doc:"only sequences above this one"`
	Limit      int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

type failedOutput struct {
	Body struct {
		Failed []FailedEvent `json:"failed" doc:"by projection, then by sequence"`
	}
}

// FailedEvent is an event that a projection skipped.
type FailedEvent struct {
	Projection   string `json:"projection"`
	Seq          uint64 `json:"seq"`
	Tenant       string `json:"tenant"`
	Conversation string `json:"conversation"`
	EventID      string `json:"event_id"`
	Type         string `json:"type"`
	Class        string `json:"class" enum:"invalid,error"`
	Reason       string `json:"reason"`
}

type verifyOutput struct{ Body Verification }

// Verification tells whether the read models are what the log makes.
type Verification struct {
	Equal       bool                 `json:"equal"`
	Projections []VerifiedProjection `json:"projections"`
}

// VerifiedProjection is one projection's part of a verification.
type VerifiedProjection struct {
	Name          string       `json:"name"`
	Hash          string       `json:"hash" doc:"over all conversations, from the log"`
	Equal         bool         `json:"equal"`
	Conversations int          `json:"conversations"`
	Events        uint64       `json:"events"`
	UpTo          uint64       `json:"up_to" doc:"sequence up to which was compared: what the projection has applied"`
	Behind        uint64       `json:"behind" doc:"events of the log that the projection has not applied yet"`
	Differences   []Difference `json:"differences,omitempty"`
}

// Difference is a conversation that is not what its events make.
type Difference struct {
	Tenant       string `json:"tenant"`
	Conversation string `json:"conversation"`
	Stored       string `json:"stored"`
	Replayed     string `json:"replayed"`
}

func (a *api) registerOperations(h huma.API) {
	huma.Register(h, operation("status", http.MethodGet, "/v1/status", "State of the log and the projections", "operations", 503), a.status)
	huma.Register(h, operation("list-failed", http.MethodGet, "/v1/failed", "Events that a projection skipped", "operations", 422, 503), a.failed)
	verify := operation("verify", http.MethodPost, "/v1/verify", "Replay the log and compare it with the read models", "operations", 503)
	verify.Description = "Takes about as long as applying the whole log did. The read models go on meanwhile."
	huma.Register(h, verify, a.verify)
}

func (a *api) status(ctx context.Context, _ *struct{}) (*statusOutput, error) {
	state, err := a.Log.State(ctx)
	if err != nil {
		return nil, a.problem(err)
	}
	out := &statusOutput{}
	out.Body.Version = version.Get()
	out.Body.Stream.Head, out.Body.Stream.Messages, out.Body.Stream.Bytes = state.Head, state.Messages, state.Bytes
	out.Body.Stream.Partitions = a.Log.Partitions()
	var running []projection.Status
	if a.States != nil {
		running = a.States()
	}
	for _, m := range a.models() {
		list, err := a.projectionStatus(ctx, m, running)
		if err != nil {
			return nil, a.problem(err)
		}
		out.Body.Projections = append(out.Body.Projections, list...)
	}
	return out, nil
}

// model is a read model by the name of its projection.
type model struct {
	name  string
	store projection.ReadStore
	err   error // why the store is not there
}

func graphModel(s projection.ReadStore) model { return model{name: "graph", store: s} }
func filesModel(s projection.ReadStore) model { return model{name: "files", store: s} }

func (a *api) models() []model {
	g, errGraph := a.Models.Graph()
	f, errFiles := a.Models.Files()
	return []model{{"graph", g, errGraph}, {"files", f, errFiles}}
}

func (a *api) projectionStatus(ctx context.Context, m model, running []projection.Status) ([]ProjectionStatus, error) {
	if errors.Is(m.err, projection.ErrUnavailable) {
		return a.unavailable(m, running, m.err), nil
	}
	if m.err != nil {
		return []ProjectionStatus{{Name: m.name, Store: a.Store, Generation: a.Generation, State: "absent", Error: m.err.Error()}}, nil
	}
	progress, err := projection.Progress(ctx, m.name, a.Log, m.store, running)
	if errors.Is(err, projection.ErrUnavailable) {
		return a.unavailable(m, running, err), nil
	}
	if err != nil {
		return nil, err
	}
	failed, err := m.store.CountFailed(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]ProjectionStatus, len(progress))
	for i, s := range progress {
		list[i] = ProjectionStatus{
			Name: m.name, Store: a.Store, Generation: a.Generation, Partition: s.Partition, State: string(s.State),
			Checkpoint: s.Checkpoint.Seq, Lag: s.Lag, Applied: s.Checkpoint.Applied, Duplicates: s.Checkpoint.Duplicates, Error: s.Error,
		}
		for _, n := range failed {
			list[i].Failed += n
		}
	}
	return list, nil
}

// unavailable is the status of a read model whose server does not answer: what this
// process remembers of it, if it writes it.
func (a *api) unavailable(m model, running []projection.Status, err error) (list []ProjectionStatus) {
	status := ProjectionStatus{Name: m.name, Store: a.Store, Generation: a.Generation, State: "unavailable", Error: err.Error()}
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

func (a *api) failed(ctx context.Context, in *failedInput) (*failedOutput, error) {
	out := &failedOutput{}
	out.Body.Failed = []FailedEvent{}
	for _, m := range a.models() {
		if in.Projection != "" && in.Projection != m.name {
			continue
		}
		if m.err != nil {
			return nil, a.problem(m.err)
		}
		list, err := m.store.Failed(ctx, projection.FailedQuery{Tenant: in.Tenant, After: in.After, Limit: in.Limit})
		if err != nil {
			return nil, a.problem(err)
		}
		for _, f := range list {
			out.Body.Failed = append(out.Body.Failed, FailedEvent{
				Projection: f.Projection, Seq: f.Seq, Tenant: f.Conversation.Tenant, Conversation: f.Conversation.ID,
				EventID: f.EventID, Type: f.Type, Class: string(f.Class), Reason: f.Reason,
			})
		}
	}
	return out, nil
}

func (a *api) verify(ctx context.Context, _ *struct{}) (*verifyOutput, error) {
	if err := admit(ctx, a.limits.verifying, 1); err != nil {
		return nil, a.problem(err)
	}
	list, err := a.Models.Verify(ctx, a.Log, func(string, uint64, uint64) {})
	if err != nil {
		return nil, a.problem(err)
	}
	out := &verifyOutput{Body: Verification{Equal: true, Projections: []VerifiedProjection{}}}
	for _, v := range list {
		p := VerifiedProjection{Name: v.Projection, Hash: v.Hash.String(), Equal: v.Equal(), Conversations: v.Conversations, Events: v.Events, UpTo: v.UpTo, Behind: v.Behind}
		for _, d := range v.Differences {
			p.Differences = append(p.Differences, Difference{
				Tenant: d.Conversation.Tenant, Conversation: d.Conversation.ID, Stored: d.Stored.String(), Replayed: d.Replayed.String(),
			})
		}
		out.Body.Equal = out.Body.Equal && p.Equal
		out.Body.Projections = append(out.Body.Projections, p)
	}
	return out, nil
}

// ready tells whether the log and both read models answer. Lag is in the body: it
// does not take a reader out.
func (a *api) ready(w http.ResponseWriter, r *http.Request) {
	out, err := a.status(r.Context(), nil)
	if err != nil {
		http.Error(w, "not ready: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	status := http.StatusOK
	for _, p := range out.Body.Projections {
		if p.State == "absent" || p.State == "unavailable" {
			status = http.StatusServiceUnavailable
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	for _, p := range out.Body.Projections {
		fmt.Fprintf(w, "%s: %s, lag %d %s\n", p.Name, p.State, p.Lag, p.Error)
	}
}
