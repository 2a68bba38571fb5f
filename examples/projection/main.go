// Command projection keeps the read model of package costs, as a program of yours would.
//
//	projection run                  follow the log until interrupted
//	projection report [tenant]      print the totals
//	projection status|failed|verify|rebuild
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"

	"mneme.dev/mneme/examples/projection/costs"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/graph/neo4jstore"
	"mneme.dev/mneme/pkg/graph/readmodel"
	"mneme.dev/mneme/pkg/projection"
)

var prices = costs.Prices{
	"claude-opus":   {Input: 15_000, Output: 75_000},
	"claude-sonnet": {Input: 3_000, Output: 15_000},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "projection:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("projection", flag.ContinueOnError)
	nats := flags.String("nats", "nats://127.0.0.1:4222", "URL of the log's server")
	dir := flags.String("dir", "data", "directory of the SQLite files")
	neo4j := flags.String("neo4j", "", "keep the read model in this Neo4j instead, such as bolt://127.0.0.1:7687")
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "Usage: projection [flags] run | report [tenant] | status | failed | verify | rebuild")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	most := 1
	if flags.Arg(0) == "report" {
		most = 2
	}
	if last := flags.Arg(flags.NArg() - 1); flags.NArg() > most || strings.HasPrefix(last, "-") {
		return fmt.Errorf("unexpected argument %q: flags come before the command", last)
	}
	at := readmodel.Place{Dir: *dir}
	if *neo4j != "" {
		at.Neo4j = &neo4jstore.Config{URI: *neo4j, Password: os.Getenv("NEO4J_PASSWORD")}
	}
	spec := costs.Spec(prices)
	if err := readmodel.Check(at, spec); err != nil {
		return err
	}
	conn, err := eventlog.Connect(*nats, "costs", slog.Default())
	if err != nil {
		return fmt.Errorf("cannot connect to the log at %s; start mneme up, or name its server with -nats: %w", *nats, err)
	}
	defer conn.Close()
	log, err := eventlog.Open(ctx, conn)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	switch command := flags.Arg(0); command {
	case "run":
		return spec.Run(ctx, log, at, readmodel.Options{})
	case "rebuild":
		return spec.Rebuild(ctx, log, at, readmodel.Options{})
	case "verify":
		v, err := spec.Verify(ctx, log, at, readmodel.Options{})
		if err == nil && !v.Equal() {
			err = fmt.Errorf("%d conversations differ from the log; rebuild makes them again", len(v.Differences))
		}
		if err == nil {
			_, err = fmt.Fprintf(out, "%d conversations are equal, hash %s\n", v.Conversations, v.Hash)
		}
		return err
	case "status":
		list, err := spec.Status(ctx, log, at)
		for _, s := range list {
			fmt.Fprintf(table, "partition %d\t%s\tat %d\tlag %d\t%s\n", s.Partition, s.State, s.Checkpoint.Seq, s.Lag, s.Error)
		}
		return end(table, err)
	case "failed":
		list, err := spec.Failed(ctx, at, projection.FailedQuery{})
		for _, f := range list {
			fmt.Fprintf(table, "%d\t%s\t%s\t%s\n", f.Seq, f.Conversation.ID, f.Class, f.Reason)
		}
		return end(table, err)
	case "report":
		tenant := cmp.Or(flags.Arg(1), "default")
		store, _, err := spec.OpenReader(ctx, at)
		if err != nil {
			return err
		}
		defer func() { _ = store.Close() }()
		list, err := costs.Totals(ctx, store, tenant)
		for _, t := range list {
			cost := fmt.Sprintf("$%.6f", float64(t.Cost)/1e9)
			if t.Cost == 0 && t.Input+t.Output > 0 {
				cost = "no price"
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%d in\t%d out\t%s\n", t.Day, t.Model, t.Project, t.Input, t.Output, cost)
		}
		return end(table, err)
	default:
		return fmt.Errorf("unknown command %q: run, report, status, failed, verify or rebuild", command)
	}
}

func end(table *tabwriter.Writer, err error) error {
	if err != nil {
		return err
	}
	return table.Flush()
}
