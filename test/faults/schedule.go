package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// Kind is a way to fail.
type Kind string

// Kinds of faults. Those of a process have a program, nats or neo4j as their target; those of a
// link name its two ends.
const (
	Kill        Kind = "kill -9"             // and restarted
	Terminate   Kind = "SIGTERM"             // and restarted; it must exit by itself
	FreezeShort Kind = "SIGSTOP, short"      // for less than a lease's lifetime
	FreezeLong  Kind = "SIGSTOP, long"       // for longer than a lease's lifetime
	Latency     Kind = "latency"             // of everything on a link
	Slow        Kind = "slow link"           // a few KB per second
	Reset       Kind = "connections reset"   // all of a link, several times
	BlackHole   Kind = "black hole"          // connections stay, but no data passes
	Full        Kind = "log full"            // it refuses events until it has room again
	Restore     Kind = "restored copy"       // a read model is replaced with an earlier copy of itself
	Duplicates  Kind = "duplicates"          // events in the log are published again
	Invalid     Kind = "events against rule" // published by a faulty client
	Rebuild     Kind = "rebuild"             // during other faults, however long it takes
	Cancel      Kind = "rebuild, canceled"   // soon after it began
	LogRemoved  Kind = "log file removed"    // in a copy: the loss must be reported
	LogCut      Kind = "log file cut"        // the same
	LogFlipped  Kind = "log bytes flipped"   // the same
)

// Targets other than the programs.
const (
	targetNATS   = "nats"
	targetNeo4j  = "neo4j"
	targetLog    = "log"
	targetSQLite = "sqlite"
)

// Fault is one fault of a schedule.
type Fault struct {
	N      int           `json:"n"` // counts from 1
	Kind   Kind          `json:"kind"`
	Target string        `json:"target"`
	At     time.Duration `json:"at"`     // since the beginning of the campaign
	Length time.Duration `json:"length"` // from the fault to its end, if it has one
	Amount int           `json:"amount"` // ms of latency, KB/s of a slow link, events
}

func (f Fault) String() string {
	return fmt.Sprintf("%d: %s of %s at %s for %s", f.N, f.Kind, f.Target, f.At.Round(time.Millisecond), f.Length.Round(time.Millisecond))
}

// domains returns the domains that a fault affects. Faults with a common domain never overlap, so
// NATS has only one fault at a time, and so has Neo4j.
func (f Fault) domains() []string {
	switch f.Kind {
	case Latency, Slow, Reset, BlackHole:
		return []string{linkServer(f.Target)}
	case Full, LogRemoved, LogCut, LogFlipped:
		return []string{targetNATS}
	case Restore:
		return sqlitePrograms()
	case Duplicates, Invalid, Rebuild, Cancel:
		return nil
	}
	return []string{f.Target}
}

// settle is how long a domain is left alone after a fault, at least for a restart.
func (f Fault) settle() time.Duration {
	switch {
	case f.Target == targetNeo4j && (f.Kind == Kill || f.Kind == Terminate):
		return 8 * time.Second
	case f.Kind == Restore:
		return 3 * time.Second
	}
	return time.Second
}

// Plan says how many faults there are, and in what time.
type Plan struct {
	Seed     uint64
	Faults   int
	Duration time.Duration
}

// maxLength bounds a fault.
const maxLength = 8 * time.Second

// Schedule makes the faults of a plan, in the order of their times. It depends on the plan alone.
// Every kind comes up before any comes up twice, and every target of a kind before one of them does
// again. Rebuilds, which last through many other faults, come up less often after that. After half
// of the faults there is time to recover; after the other half there is none.
func Schedule(p Plan) []Fault {
	rnd := rand.New(rand.NewPCG(p.Seed, 0x5c4ed01e))
	list := deal(rnd, p.Faults)
	mean := p.Duration / time.Duration(max(len(list), 1))
	free := map[string]time.Duration{} // when a domain may be hit again
	pauses := recoveries(rnd, len(list))
	at := mean / 2
	for i := range list {
		f := &list[i]
		f.N = i + 1
		f.measure(rnd, mean)
		for _, domain := range f.domains() {
			at = max(at, free[domain])
		}
		f.At = at
		for _, domain := range f.domains() {
			free[domain] = at + f.Length + f.settle()
		}
		if pauses[i] {
			at += between(rnd, mean*5/4, mean*7/4)
		} else {
			at += between(rnd, mean/4, mean*3/4)
		}
	}
	return list
}

// End returns when the last fault of a schedule is over.
func End(list []Fault) (end time.Duration) {
	for _, f := range list {
		end = max(end, f.At+f.Length+f.settle())
	}
	return end
}

// recoveries returns after which faults there is time to recover: half of them.
func recoveries(rnd *rand.Rand, n int) []bool {
	list := make([]bool, n)
	for i := range list {
		list[i] = i%2 == 0
	}
	rnd.Shuffle(n, func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// measure draws a fault's duration and intensity.
func (f *Fault) measure(rnd *rand.Rand, mean time.Duration) {
	low, high := time.Duration(0), 3*time.Second
	switch f.Kind {
	case FreezeShort:
		low, high = 200*time.Millisecond, 1500*time.Millisecond
	case FreezeLong:
		low, high = 3*time.Second, maxLength
	case Latency, Slow, Reset, BlackHole, Full:
		low, high = time.Second, max(2*time.Second, min(maxLength, mean))
	}
	f.Length = between(rnd, low, high).Round(time.Millisecond)
	switch f.Kind {
	case Latency:
		f.Amount = 20 + rnd.IntN(400)
	case Slow:
		f.Amount = 32 + rnd.IntN(480)
	case Duplicates:
		f.Amount = 100 + rnd.IntN(900)
	case Invalid:
		f.Amount = 1 + rnd.IntN(10)
	}
}

func between(rnd *rand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(rnd.Int64N(int64(high-low)+1))
}

// seldom says for some kinds in which rounds they come up: in every fourth, or much more seldom. Rebuilds
// last while many other faults come and go, and a damaged copy of the log teaches the same each time.
var seldom = map[Kind]int{Rebuild: 4, Cancel: 4, LogRemoved: 24, LogCut: 24, LogFlipped: 24}

// deal returns n faults, taking all kinds in rounds, and for each kind all of its targets in
// rounds.
func deal(rnd *rand.Rand, n int) []Fault {
	all := targets()
	kinds := slices.Sorted(maps.Keys(all))
	decks := map[Kind][]string{}
	var list []Fault
	for turn := 0; len(list) < n; turn++ {
		rnd.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
		for _, kind := range kinds {
			if every, ok := seldom[kind]; ok && turn%every != 0 {
				continue
			}
			if len(decks[kind]) == 0 {
				decks[kind] = slices.Clone(all[kind])
				rnd.Shuffle(len(all[kind]), func(i, j int) { decks[kind][i], decks[kind][j] = decks[kind][j], decks[kind][i] })
			}
			list = append(list, Fault{Kind: kind, Target: decks[kind][0]})
			decks[kind] = decks[kind][1:]
		}
	}
	return list[:n]
}

// targets returns what each kind of fault can hit.
func targets() map[Kind][]string {
	var processes, links, models []string
	for _, projection := range projections {
		models = append(models, projection+" in "+targetNeo4j, projection+" in "+targetSQLite)
	}
	for _, p := range programs {
		processes = append(processes, p.name)
		links = append(links, link(targetNATS, p.name))
		if p.neo4j {
			links = append(links, link(targetNeo4j, p.name))
		}
	}
	// The servers are hit as often as all programs of a kind together.
	for range 2 {
		processes = append(processes, targetNATS, targetNeo4j)
	}
	for range 3 {
		links = append(links, link(targetNATS, everybody), link(targetNeo4j, everybody))
	}
	return map[Kind][]string{
		Kill: processes, Terminate: processes, FreezeShort: processes, FreezeLong: processes,
		Latency: links, Slow: links, Reset: links, BlackHole: links,
		Full: {targetLog}, Restore: {targetSQLite}, Duplicates: {targetLog}, Invalid: {targetLog},
		Rebuild: models, Cancel: models,
		LogRemoved: {targetLog}, LogCut: {targetLog}, LogFlipped: {targetLog},
	}
}
