package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/internal/program"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/pkg/graph/readmodel"
	"mneme.dev/mneme/pkg/projection"
)

// Verification says whether the read models match a replay of the log.
type Verification struct {
	Equal       bool                 `json:"equal"`
	Projections []VerifiedProjection `json:"projections"`
}

// VerifiedProjection is one projection's part of a verification.
type VerifiedProjection struct {
	Name          string       `json:"name"`
	Hash          string       `json:"hash" doc:"hash over all conversations, from the replay of the log"`
	Equal         bool         `json:"equal"`
	Conversations int          `json:"conversations"`
	Events        uint64       `json:"events"`
	UpTo          uint64       `json:"up_to" doc:"sequence up to which the comparison goes: the last that the projection has applied"`
	Behind        uint64       `json:"behind" doc:"events of the log that the projection has not applied yet"`
	Later         uint64       `json:"later" doc:"events of the log that were not compared, because they were not applied yet or came while the comparison ran"`
	Differences   []Difference `json:"differences,omitempty"`
}

// Difference is a conversation whose rows differ from a replay of its events.
type Difference struct {
	Tenant       string `json:"tenant"`
	Conversation string `json:"conversation"`
	Stored       string `json:"stored"`
	Replayed     string `json:"replayed"`
	MissingIn    string `json:"missing_in" enum:"log,read_model," doc:"which side lacks events; empty: both have the same events, but the rows differ"`
}

func (a *api) registerOperations(h huma.API) {
	serve(a, h, operation("status", http.MethodGet, "/v1/status", "State of the log and the projections", "operations", 503), a.status)
	verify := operation("verify", http.MethodPost, "/v1/verify", "Replay the log and compare it with the read models", "operations", 503)
	verify.Description = "Takes about as long as applying the whole log did. The read models stay in use during that time."
	serve(a, h, verify, a.verify)
	watch := operation("watch-verify", http.MethodPost, "/v1/verify/stream", "Verify, with progress", "operations", 503)
	watch.Description = "As POST /v1/verify, as server-sent events: `event: progress` at most four times a second, and at the end `event: verified` with the answer, or `event: error`. It ends if the client disconnects."
	watch.Responses = declareAnswer("The stream", contentTypeStream, &huma.Schema{Type: huma.TypeString})
	serve(a, h, watch, a.watchVerify)
	show := operation("list-settings", http.MethodGet, "/v1/settings", "List the settings in effect", "operations")
	show.Description = "Those of the process that answers, each with its source. Secrets are not shown. `mneme config` shows those of other programs."
	serve(a, h, show, a.settings)
	a.registerRepairLog(h)
	a.registerDoctor(h)
}

type settingsOutput struct {
	Body struct {
		Settings []settings.Setting `json:"settings"`
	}
}

func (a *api) settings(context.Context, *struct{}) (*settingsOutput, error) {
	out := &settingsOutput{}
	out.Body.Settings = append([]settings.Setting{}, a.Settings...)
	return out, nil
}

func (a *api) verify(ctx context.Context, _ *struct{}) (*output[Verification], error) {
	if err := a.limits.admitLog(ctx); err != nil {
		return nil, err
	}
	verified, err := a.verified(ctx, func(string, uint64, uint64) {})
	if err != nil {
		return nil, err
	}
	return &output[Verification]{Body: verified}, nil
}

// VerifyProgress says how far a verification is.
type VerifyProgress struct {
	Projection string `json:"projection"`
	Done       uint64 `json:"done"` // events replayed
	Total      uint64 `json:"total"`
}

// progressEvery is the shortest time between two progress reports of a verification.
const progressEvery = 250 * time.Millisecond

func (a *api) watchVerify(ctx context.Context, _ *struct{}) (*huma.StreamResponse, error) {
	if err := a.limits.admitLog(ctx); err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(h huma.Context) {
		ctx, s := beginStream(h)
		defer s.cancel()
		_ = s.send([]byte(": \n\n"))
		var lock sync.Mutex
		var said time.Time
		verified, err := a.verified(ctx, func(projection string, done, total uint64) {
			lock.Lock()
			defer lock.Unlock()
			if time.Since(said) >= progressEvery {
				said = time.Now()
				_ = s.sendJSON("progress", 0, VerifyProgress{projection, done, total})
			}
		})
		if err != nil {
			_ = s.sendJSON("error", 0, a.problem(err))
			return
		}
		_ = s.sendJSON("verified", 0, verified)
	}}, nil
}

// verified replays the log and compares.
func (a *api) verified(ctx context.Context, progress func(projection string, done, total uint64)) (Verification, error) {
	all := Verification{Equal: true, Projections: []VerifiedProjection{}}
	list, err := a.Models.Verify(ctx, a.Log, progress)
	if err != nil {
		return all, err
	}
	for _, v := range list {
		p := VerifiedProjection{Name: v.Projection, Hash: v.Hash.String(), Equal: v.Equal(), Conversations: v.Conversations, Events: v.Events, UpTo: v.UpTo, Behind: v.Behind, Later: v.Later}
		for _, d := range v.Differences {
			p.Differences = append(p.Differences, Difference{
				Tenant: d.Conversation.Tenant, Conversation: d.Conversation.ID, Stored: d.Stored.String(), Replayed: d.Replayed.String(), MissingIn: string(d.MissingIn),
			})
		}
		all.Equal = all.Equal && p.Equal
		all.Projections = append(all.Projections, p)
	}
	return all, nil
}

// mayBeAbsent reports whether contexts can be served without this read model.
func mayBeAbsent(name string) bool { return readmodel.Find(name).Absent != "" }

// ready answers 200 if the read models answer, else 503. Neither lag nor a log that does not answer makes it 503, because
// reads are served without the log: both appear only in the body. It asks for no token, so where others do, it conceals
// what they conceal.
func (a *api) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), program.ReadyWithin)
	defer cancel()
	var positions []ProjectionStatus
	var unknown error
	var both sync.WaitGroup
	both.Go(func() { positions, unknown = a.positions(ctx) })
	answers := a.answers(ctx)
	both.Wait()
	status := http.StatusOK
	for _, p := range slices.Concat(answers, positions) {
		if p.State == "absent" && !mayBeAbsent(p.Name) || p.State == "unavailable" || p.State == "damaged" {
			status = http.StatusServiceUnavailable
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	if a.Gate != nil {
		if err := a.Gate.Ready(); err != nil {
			fmt.Fprintf(w, "tokens of the identity provider: %v\n", err)
		}
		concealed := Status{Projections: slices.Concat(answers, positions)}
		concealed.conceal()
		answers, positions = concealed.Projections[:len(answers)], concealed.Projections[len(answers):]
	}
	if unknown == nil {
		for _, p := range positions {
			fmt.Fprintf(w, "%s partition %d: %s, lag %d %s\n", p.Name, p.Partition, p.State, p.Lag, p.Error)
		}
		return
	}
	why := ""
	if a.Gate == nil {
		why = ": " + unknown.Error()
	}
	fmt.Fprintf(w, "lag unknown%s\n", why)
	for _, p := range answers {
		fmt.Fprintf(w, "%s: %s %s\n", p.Name, p.State, p.Error)
	}
}

// positionsWithin is how long a probe waits for what only its body says.
const positionsWithin = program.ReadyWithin / 2

// positions returns the projections as the status has them, or an error if they can't be had soon.
func (a *api) positions(ctx context.Context) ([]ProjectionStatus, error) {
	if !a.Log.Conn().IsConnected() {
		return nil, errors.New("the connection to NATS is lost")
	}
	ctx, cancel := context.WithTimeout(ctx, positionsWithin)
	defer cancel()
	x := &exchange{pins: a.views.Pin()}
	defer x.end()
	out, err := a.status(context.WithValue(ctx, exchangeKey{}, x), nil)
	if err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("no answer within %s", positionsWithin) // of the log or of a read model
	}
	if err != nil {
		return nil, a.problem(err)
	}
	return out.Body.Projections, nil
}

// answers asks the read models alone, without the log.
func (a *api) answers(ctx context.Context) []ProjectionStatus {
	pins := a.views.Pin()
	defer pins.Release()
	models := pins.All(ctx)
	list := make([]ProjectionStatus, len(models))
	var all sync.WaitGroup
	for i, m := range models {
		all.Go(func() {
			err := m.Err
			if err == nil {
				_, err = m.Store.Checkpoints(ctx)
			}
			list[i] = ProjectionStatus{Name: m.Name, State: "answers"}
			switch {
			case err == nil:
			case errors.Is(err, projection.ErrDamaged):
				list[i].State, list[i].Error = "damaged", err.Error()
			case m.Err != nil && !isUnreadable(err) && ctx.Err() == nil:
				list[i].State, list[i].Error = "absent", err.Error()
			default:
				list[i].State, list[i].Error = "unavailable", err.Error()
			}
		})
	}
	all.Wait()
	return list
}
