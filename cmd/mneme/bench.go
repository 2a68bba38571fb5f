package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"mneme.dev/mneme/internal/bench"
	"mneme.dev/mneme/internal/program"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/worker"
	"mneme.dev/mneme/pkg/graph/neo4jstore"
)

// BenchCmd groups the measurements.
type BenchCmd struct {
	Ingest     BenchIngestCmd     `cmd:"" help:"How fast events are applied, compared with a bare loader."`
	Latency    BenchLatencyCmd    `cmd:"" help:"How soon a published event can be read, at an even rate."`
	Replay     BenchReplayCmd     `cmd:"" help:"How fast the read models are rebuilt."`
	Context    BenchContextCmd    `cmd:"" help:"How long a context takes, and how much memory a server needs."`
	Recall     BenchRecallCmd     `cmd:"" help:"The share of the evidence for questions that searches and contexts find."`
	Start      BenchStartCmd      `cmd:"" help:"The share of what a new session needs that the context of its project names."`
	Hook       BenchHookCmd       `cmd:"" help:"How often the hook of a coding agent speaks at a prompt, and how often what it shows is touched."`
	Capture    BenchCaptureCmd    `cmd:"" help:"How soon and how completely transcripts of a coding agent are recorded, and what watching them costs."`
	Need       BenchNeedCmd       `cmd:"" help:"The share of what a coding agent needs next that contexts contain."`
	Code       BenchCodeCmd       `cmd:"" help:"The share of the functions that a coding agent needs next that contexts contain, with the code indexed and without."`
	Summarize  BenchSummarizeCmd  `cmd:"" help:"What it costs to decide what to summarize."`
	Rebuild    BenchRebuildCmd    `cmd:"" help:"How fast a rebuild is, and what it does to live events."`
	Erase      BenchEraseCmd      `cmd:"" help:"How long an erasure takes, and that nothing is left."`
	Partitions BenchPartitionsCmd `cmd:"" help:"What more partitions cost publishers, and that no event is lost, doubled or reordered."`
	Scale      BenchScaleCmd      `cmd:"" help:"The speed of several ingestors that share a log."`
}

// benchStore is the location of a measurement's read models.
type benchStore struct{ settings.Models }

// neo4j returns the connection settings of the server, nil for SQLite in a temporary directory.
func (b *benchStore) neo4j(g *Globals) (*neo4jstore.Config, error) {
	program, err := b.program(g)
	return program.Neo4j, err
}

// program returns this program, to be started with that store.
func (b *benchStore) program(g *Globals) (p bench.Program, err error) {
	if err := g.given.check(&b.Models); err != nil {
		return p, err
	}
	stores := worker.NewStores("", b.Models)
	p.Neo4j = stores.Neo4j()
	p.Executable, err = os.Executable()
	return p, err
}

// BenchIngestCmd measures ingest.
type BenchIngestCmd struct {
	Paths  []string `arg:"" name:"path" complete:"file" help:"Transcripts to measure with, as import takes them, for example ~/.claude/projects."`
	Rounds int      `help:"Rounds of each, alternating; at least one." default:"5"`

	Statements bool `help:"Also print what each kind of SQL statement costs, for every projection. SQLite only."`
	benchStore
}

func (*BenchIngestCmd) Help() string {
	return `Publishes the transcripts to a separate log in a temporary directory. In each round the projection "graph" applies that log to an empty store, decoding, validating and hashing every event; then the bare loader writes the same rows, held in memory, to an empty store with the same indexes and settings in the same transactions. The ratio is the median over the rounds.

The store is a new SQLite file, unless --store or MNEME_STORE says neo4j. Then both write to the server at --neo4j-uri, after an uncounted warm-up round, and the command removes what they wrote. A mneme that uses the same server only gets slower during that time.

With --statements the log is then applied once more by each projection, and a table says how many statements of each kind ran, how many rows they wrote, and how long they took; for a query, until its first row.

Examples:

    mneme bench ingest ~/.claude/projects --rounds 9
    mneme bench ingest ~/.claude/projects --statements
    mneme bench ingest ~/.claude/projects --store neo4j --neo4j-uri bolt://127.0.0.1:7687`
}

func (c *BenchIngestCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	if err := atLeast("--rounds", c.Rounds, 1); err != nil {
		return err
	}
	on, err := c.neo4j(g)
	if err != nil {
		return err
	}
	if on != nil && c.Statements {
		return &program.UsageError{Err: errors.New("--statements times the statements of SQLite; leave it out with --store neo4j")}
	}
	r, err := bench.RunIngest(ctx, c.Paths, c.Rounds, c.Statements, on, t.status)
	if err := t.measured(ctx, err); err != nil {
		return err
	}
	return t.report(g, r, append([]figure{
		{"machine", machine(r.Machine)},
		{"store", r.Store.String()},
		{"events", fmt.Sprintf("%s (%.0f MB)", number(r.Events), r.MB)},
		{"publish", perSecond(r.PublishPS) + ", reading the transcripts included, synced to disk"},
		{"ingest", fmt.Sprintf("%s (median), %s transactions", perSecond(r.IngestPS), number(r.Batches))},
		{"bare loader", perSecond(r.LoaderPS) + " (median): " + r.ComparedTo},
		{"ratio", ratios(r.Ratio, r.Ratios)},
	}, statements(r)...))
}

// statements returns the table of what statements cost: a line for each kind that took a hundredth of
// its projection's statements.
func statements(r bench.Ingest) (list []figure) {
	for _, name := range slices.Sorted(maps.Keys(r.Statements)) {
		s := r.Statements[name]
		var total time.Duration
		for _, kind := range s.Kinds {
			total += kind.Took
		}
		each := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 / float64(r.Events) }
		list = append(list, figure{name, fmt.Sprintf("%.1f µs an event, %.1f of them in statements", each(s.Took), each(total))})
		list = append(list, figure{"", fmt.Sprintf("%-22s %9s %9s %13s %12s", "statement", "count", "rows", "µs/statement", "µs an event")})
		for _, kind := range s.Kinds {
			if kind.Took < total/100 {
				break
			}
			list = append(list, figure{"", fmt.Sprintf("%-22s %9s %9s %13.1f %12.2f", kind.Kind, number(kind.Count), number(kind.Rows),
				float64(kind.Took.Nanoseconds())/1e3/float64(kind.Count), each(kind.Took))})
		}
	}
	return list
}

// BenchReplayCmd measures rebuilds.
type BenchReplayCmd struct {
	Paths  []string `arg:"" name:"path" complete:"file" help:"Transcripts to measure with, as import takes them."`
	Rounds int      `help:"Rounds of each, alternating; at least one." default:"5"`
	benchStore
}

func (*BenchReplayCmd) Help() string {
	return `Publishes the transcripts to a separate log in a temporary directory. In each round a bare ordered consumer reads the whole stream and discards it; then the engine rebuilds "files", then "graph", from the same stream over the same connection, each into an empty store. The consumer runs once in advance as a warm-up. The ratios are the medians over the rounds.

The stores are new SQLite files, unless --store or MNEME_STORE says neo4j. Then the engine writes to the server at --neo4j-uri, after an uncounted warm-up round, and the command removes what it wrote.

Example:

    mneme bench replay ~/.claude/projects`
}

func (c *BenchReplayCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	if err := atLeast("--rounds", c.Rounds, 1); err != nil {
		return err
	}
	on, err := c.neo4j(g)
	if err != nil {
		return err
	}
	r, err := bench.RunReplay(ctx, c.Paths, c.Rounds, on, t.status)
	if err := t.measured(ctx, err); err != nil {
		return err
	}
	return t.report(g, r, []figure{
		{"machine", machine(r.Machine)},
		{"store", r.Store.String()},
		{"events", fmt.Sprintf("%s (%.0f MB)", number(r.Events), r.MB)},
		{"bare consumer", perSecond(r.BarePS) + " (median): " + r.ComparedTo},
		{"files", fmt.Sprintf("%s (median), ratio %s", perSecond(r.FilesPS), ratios(r.FilesRatio, r.FilesRatios))},
		{"graph", fmt.Sprintf("%s (median), ratio %s", perSecond(r.GraphPS), ratios(r.GraphRatio, r.GraphRatios))},
	})
}

// BenchLatencyCmd measures from publish to read.
type BenchLatencyCmd struct {
	Paths  []string      `arg:"" name:"path" complete:"file" help:"Transcripts to publish, as import takes them; as many events as the rate and the time need."`
	Rate   int           `help:"Events published per second." default:"500"`
	Reads  int           `help:"How many of them are read back per second." default:"50"`
	WarmUp time.Duration `help:"How long to run before the measurement." default:"5s"`
	For    time.Duration `help:"How long to measure." default:"30s"`
	benchStore
}

func (*BenchLatencyCmd) Help() string {
	return `Starts "mneme up" as a separate process on an empty temporary directory. Sixteen publishers write conversations in parallel over NATS, one event at a time, each waiting for its acknowledgement. The schedule is even and open: events are due at fixed times, however slow the server is, and all times count from there, so that a stall counts for every event that it delays. For some events the conversation is read over HTTP with at_least, for as many others the context with the default budget. "late" is how far the publisher itself fell behind its schedule: a large value means that the machine is too busy to measure.

With --store neo4j, or MNEME_STORE, its read models are in the server at --neo4j-uri, which must have none yet, and are removed afterwards. A server that has just started is slow: let it warm up.

Examples:

    mneme bench latency ~/.claude/projects --rate 500 --for 30s --json
    mneme bench latency ~/.claude/projects --rate 200 --warm-up 30s --store neo4j`
}

func (c *BenchLatencyCmd) Run(ctx context.Context, g *Globals, t *terminal) error {
	if err := errors.Join(atLeast("--rate", c.Rate, 1), atLeast("--reads", c.Reads, 1), atLeast("--for", c.For, time.Second), atLeast("--warm-up", c.WarmUp, 0)); err != nil {
		return &program.UsageError{Err: err}
	}
	program, err := c.program(g)
	if err != nil {
		return err
	}
	r, err := bench.RunLatency(ctx, c.Paths, bench.LatencyOptions{Program: program, Rate: c.Rate, Reads: c.Reads, WarmUp: c.WarmUp, For: c.For}, t.status)
	if err := t.measured(ctx, err); err != nil {
		return err
	}
	return t.report(g, r, []figure{
		{"machine", machine(r.Machine)},
		{"store", r.Store.String()},
		{"events", fmt.Sprintf("%s of %s conversations", number(r.Events), number(r.Conversations))},
		{"pace", fmt.Sprintf("%.0f events/s, %d asked for", r.Pace, r.Rate)},
		{"late", quantiles(r.Late)},
		{"acknowledged", quantiles(r.Acknowledged)},
		{"readable", quantiles(r.Readable) + ": GET /v1/conversations/ID?at_least=SEQ"},
		{"context", quantiles(r.Context) + ": GET /v1/conversations/ID/context?at_least=SEQ"},
		{"resident", mb(r.ResidentMB) + " at the end"},
	})
}
