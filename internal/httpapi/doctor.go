package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// Level is the result of a check.
type Level string

// Levels, the most severe last. A warning is about something that works now but may fail later.
const (
	LevelOK      Level = "ok"
	LevelWarning Level = "warning"
	LevelFailed  Level = "failed"
)

// Check is the outcome of one check of an installation.
type Check struct {
	Check  string `json:"check" doc:"what was checked"`
	Level  Level  `json:"level" enum:"ok,warning,failed" doc:"a warning is about something that works now but may fail later"`
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty" doc:"what to do; missing for nothing"`
}

// Diagnosis is what mneme doctor finds out.
type Diagnosis struct {
	OK     bool    `json:"ok" doc:"no check failed; warnings do not count"`
	Checks []Check `json:"checks"`
}

// NewDiagnosis sums up checks.
func NewDiagnosis(checks []Check) Diagnosis {
	d := Diagnosis{OK: true, Checks: append([]Check{}, checks...)}
	for _, c := range checks {
		d.OK = d.OK && c.Level != LevelFailed
	}
	return d
}

// diagnosisWithin is how long the checks may take together.
const diagnosisWithin = 10 * time.Second

func (a *api) registerDoctor(h huma.API) {
	o := operation("doctor", http.MethodGet, "/v1/doctor", "Check what this server needs", "operations", 503)
	o.Description = "As `mneme doctor` does: settings, limits, certificates, NATS, the log, clocks of producers, projections, disk, each with what to do about a problem. It changes nothing, and takes at most 10 s. The command also checks what only a client's machine can tell, such as its agents, and damage inside files."
	serve(a, h, o, a.doctor)
}

func (a *api) doctor(ctx context.Context, _ *struct{}) (*output[Diagnosis], error) {
	if a.Doctor == nil {
		return nil, huma.Error503ServiceUnavailable("this process cannot check itself; run mneme doctor")
	}
	ctx, cancel := context.WithTimeout(ctx, diagnosisWithin)
	defer cancel()
	within, stop := context.WithTimeout(ctx, diagnosisWithin/2) // else NATS is blamed for a store that does not answer
	status, err := a.status(within, nil)
	stop()
	if err != nil { // the checks say more about what does not answer
		unknown := Check{Check: "status", Level: LevelFailed, Detail: "it is unknown how far the projections are: " + a.problem(err).Error(), Remedy: "see the other checks, and the log of this process"}
		return &output[Diagnosis]{Body: NewDiagnosis(append(a.Doctor(ctx, Status{}), unknown))}, nil
	}
	return &output[Diagnosis]{Body: NewDiagnosis(a.Doctor(ctx, status.Body))}, nil
}
