package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"mneme.dev/mneme/internal/console"
	"mneme.dev/mneme/internal/doctor"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/importer"
	"mneme.dev/mneme/pkg/graph/readmodel"
	"mneme.dev/mneme/pkg/projection"
)

// pollApplied is how often a command polls the projections while it waits for them.
const pollApplied = 50 * time.Millisecond

// sayWaiting is how often it says what it waits for. If after this time a disk is still full, or a process that may have
// been killed still drives another data directory, a person must act. Tests shorten it.
var sayWaiting = 10 * time.Second

// awaitApplied waits until every projection except embeddings, which no answer needs, has
// applied a sequence. Every ten seconds it says what it waits for. It fails if waiting does
// not help: a projection is halted, its read model is damaged or in another data directory, or its disk stays full.
func (c *client) awaitApplied(ctx context.Context, t *terminal, patience *importer.Patience, seq uint64) error {
	said := time.Now()
	for {
		var s httpapi.Status
		if err := patience.Ask(ctx, func() (err error) {
			s, err = c.status(ctx)
			return err
		}); err != nil {
			return err
		}
		behind := behindOf(s.Projections, seq)
		if len(behind) == 0 {
			return nil
		}
		long := time.Since(said) >= sayWaiting
		slowest := slowestOf(behind)
		for _, p := range behind {
			_, what, remedy := doctor.Judge(p, s.Rebuilds)
			if needsPerson(p, long) && !doctor.Rebuilding(p, s.Rebuilds) {
				return fmt.Errorf("the events are in the log, but %s has not applied them: %s\n%s", p.Name, console.OneLine(what), remedy)
			}
			if !long || slowest[p.Name].Partition != p.Partition {
				continue
			}
			said = time.Now()
			text := fmt.Sprintf("waiting for %s: %s, at sequence %s of %s", p.Name, p.State, number(p.Checkpoint), number(seq))
			if what != "" {
				text += ": " + console.OneLine(what)
			}
			t.say("%s", text)
		}
		select {
		case <-time.After(pollApplied):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// behindOf returns the partitions that have not applied a sequence or whose position is unknown.
func behindOf(list []httpapi.ProjectionStatus, seq uint64) (behind []httpapi.ProjectionStatus) {
	for _, p := range list {
		if readmodel.Find(p.Name).Enriches {
			continue
		}
		switch p.State {
		case "halted", "damaged", "absent", "unavailable":
			behind = append(behind, p)
		default:
			if p.Lag > 0 && p.Checkpoint < seq {
				behind = append(behind, p)
			}
		}
	}
	return behind
}

// slowestOf returns of each projection the partition that says best why it is not done: one with trouble, and otherwise
// the one whose position is lowest. A line for each partition would be many.
func slowestOf(behind []httpapi.ProjectionStatus) map[string]httpapi.ProjectionStatus {
	slowest := map[string]httpapi.ProjectionStatus{}
	for _, p := range behind {
		other, ok := slowest[p.Name]
		trouble, known := p.Error != "", other.Error != ""
		if !ok || trouble && !known || trouble == known && p.Checkpoint < other.Checkpoint {
			slowest[p.Name] = p
		}
	}
	return slowest
}

// needsPerson reports whether a partition continues only after a person has acted. long
// says whether the command has already waited for sayWaiting.
func needsPerson(p httpapi.ProjectionStatus, long bool) bool {
	return p.State == "halted" || p.State == "damaged" || long && (p.Elsewhere() || strings.Contains(p.Error, projection.ErrDisk.Error()))
}
