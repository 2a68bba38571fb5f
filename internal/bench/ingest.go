// Package bench measures mneme against something that does the same work without
// it, in the same run on the same machine, and reports medians and ratios.
package bench

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	natsdeploy "mneme/deploy/nats"
	"mneme/internal/importer"
	"mneme/internal/transcript"
	"mneme/pkg/eventlog"
	"mneme/pkg/graph"
	"mneme/pkg/graph/sqlitestore"
	"mneme/pkg/projection"
)

// Ingest is the result of [RunIngest].
type Ingest struct {
	Machine    Machine   `json:"machine"`
	Events     uint64    `json:"events"`
	MB         float64   `json:"mb"`
	PublishPS  float64   `json:"publish_events_per_s"`
	IngestPS   float64   `json:"ingest_events_per_s"` // median
	LoaderPS   float64   `json:"loader_events_per_s"` // median
	Ratio      float64   `json:"ratio"`               // median of the pairs' ratios
	Ratios     []float64 `json:"ratios"`
	BatchRows  int       `json:"loader_batch_events"`
	ComparedTo string    `json:"compared_to"`
}

// loaderBatch is how many events the bare loader writes in a transaction: what the
// engine's batches grow to when it has a backlog.
const loaderBatch = 1000

// RunIngest publishes transcripts to a log of its own and measures how fast the
// projection "graph" applies them, against a bare loader: it writes the very rows
// that the projection wrote, read into memory before, into the same tables with the
// same indexes and settings and as many events a transaction, but reads no log,
// decodes nothing and knows no engine. Both run rounds times, in turns.
func RunIngest(ctx context.Context, paths []string, rounds int, say func(string)) (out Ingest, err error) {
	dir, err := os.MkdirTemp("", "mneme-bench-")
	if err != nil {
		return out, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	quiet := slog.New(slog.DiscardHandler)
	server, err := natsdeploy.StartEmbedded(ctx, natsdeploy.EmbeddedConfig{Dir: filepath.Join(dir, "nats")})
	if err != nil {
		return out, err
	}
	defer server.Stop()
	if _, err := server.Apply(ctx, natsdeploy.Settings{}); err != nil {
		return out, err
	}
	conn, err := eventlog.Connect("", "bench", quiet, server.InProcess())
	if err != nil {
		return out, err
	}
	defer conn.Close()
	log, err := eventlog.Open(ctx, conn)
	if err != nil {
		return out, err
	}

	files, err := transcript.Find(paths)
	if err != nil {
		return out, err
	}
	say("publishing")
	began := time.Now()
	report, err := importer.Import(ctx, log, files, importer.Options{Tenant: "bench", Format: transcript.Auto})
	if err != nil {
		return out, err
	}
	state, err := log.State(ctx)
	if err != nil {
		return out, err
	}
	out = Ingest{
		Machine: ThisMachine(), Events: state.Messages, MB: float64(state.Bytes) / 1e6, BatchRows: loaderBatch,
		PublishPS:  float64(report.Published) / time.Since(began).Seconds(),
		ComparedTo: "a bare loader that writes the same decoded rows into the same SQLite tables and indexes, without log, engine and checkpoint",
	}
	var ingest, loader []float64
	var rows *table
	for round := range rounds {
		path := filepath.Join(dir, fmt.Sprintf("graph-%d.db", round))
		took, err := ingestOnce(ctx, log, path, state.Head, quiet)
		if err != nil {
			return out, err
		}
		if rows == nil {
			if rows, err = readRows(ctx, path); err != nil {
				return out, err
			}
		}
		loaded, err := rows.load(ctx, filepath.Join(dir, fmt.Sprintf("bare-%d.db", round)))
		if err != nil {
			return out, err
		}
		n := float64(out.Events)
		ingest, loader = append(ingest, n/took.Seconds()), append(loader, n/loaded.Seconds())
		out.Ratios = append(out.Ratios, loaded.Seconds()/took.Seconds())
		say(fmt.Sprintf("round %d of %d: %.0f events/s, bare loader %.0f events/s", round+1, rounds, ingest[round], loader[round]))
	}
	out.IngestPS, out.LoaderPS, out.Ratio = median(ingest), median(loader), median(out.Ratios)
	return out, nil
}

// ingestOnce applies the whole log to a new store and returns how long it took.
func ingestOnce(ctx context.Context, log *eventlog.Log, path string, head uint64, logger *slog.Logger) (time.Duration, error) {
	store, err := sqlitestore.OpenGraph(ctx, path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = store.Close() }()
	projector, err := projection.NewProjector(graph.Projection(), log, store, logger)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	projector.Start()
	defer projector.Stop()
	for projector.Status()[0].Checkpoint.Seq < head {
		if s := projector.Status()[0]; s.Error != "" {
			return 0, fmt.Errorf("the projector stopped: %s", s.Error)
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return time.Since(began), nil
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	if n := len(sorted); n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[len(sorted)/2]
}

// table is the content of a read model: for each table its rows, by sequence.
type table struct {
	names   []string
	inserts map[string]string // table → INSERT without VALUES
	width   map[string]int
	rows    map[string][]row
}

type row struct {
	seq    uint64
	values []any
}

// seqOf is the column that tells with which event a row was written.
var seqOf = map[string]string{"conversation": "first_seq"}

func readRows(ctx context.Context, path string) (*table, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	if err != nil {
		return nil, err
	}
	defer func() { _ = db.Close() }()
	t := &table{inserts: map[string]string{}, width: map[string]int{}, rows: map[string][]row{}}
	for _, name := range []string{"conversation", "version", "identity", "message", "reference", "tool_call", "tool_result"} {
		by := seqOf[name]
		if by == "" {
			by = "seq"
		}
		if err := t.read(ctx, db, name, by); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (t *table) read(ctx context.Context, db *sql.DB, name, by string) error {
	found, err := db.QueryContext(ctx, "SELECT "+by+", * FROM "+name+" ORDER BY "+by)
	if err != nil {
		return err
	}
	defer func() { _ = found.Close() }()
	columns, err := found.Columns()
	if err != nil {
		return err
	}
	t.names = append(t.names, name)
	t.width[name] = len(columns) - 1
	t.inserts[name] = "INSERT INTO " + name + " (" + strings.Join(columns[1:], ", ") + ") VALUES "
	for found.Next() {
		r := row{values: make([]any, len(columns)-1)}
		dst := []any{&r.seq}
		for i := range r.values {
			dst = append(dst, &r.values[i])
		}
		if err := found.Scan(dst...); err != nil {
			return err
		}
		t.rows[name] = append(t.rows[name], r)
	}
	return found.Err()
}

// load writes all rows into a new file and returns how long it took.
func (t *table) load(ctx context.Context, path string) (time.Duration, error) {
	empty, err := sqlitestore.OpenGraph(ctx, path) // makes the tables
	if err != nil {
		return 0, err
	}
	if err := empty.Close(); err != nil {
		return 0, err
	}
	db, err := sql.Open("sqlite", sqlitestore.WriterDSN(path))
	if err != nil {
		return 0, err
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	conn, err := db.Conn(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	l := &bareLoader{conn: conn, ctx: context.WithoutCancel(ctx), stmts: map[string]*sql.Stmt{}}

	began := time.Now()
	next := map[string]int{}
	for last := uint64(loaderBatch); ; last += loaderBatch {
		left := false
		if _, err := l.exec("BEGIN IMMEDIATE"); err != nil {
			return 0, err
		}
		for _, name := range t.names {
			rows := t.rows[name][next[name]:]
			n, _ := slices.BinarySearchFunc(rows, last+1, func(r row, seq uint64) int {
				if r.seq < seq {
					return -1
				}
				return 1
			})
			if err := l.insert(t.inserts[name], t.width[name], rows[:n]); err != nil {
				return 0, err
			}
			next[name] += n
			left = left || n < len(rows)
		}
		if _, err := l.exec("COMMIT"); err != nil {
			return 0, err
		}
		if !left {
			return time.Since(began), nil
		}
	}
}

type bareLoader struct {
	conn  *sql.Conn
	ctx   context.Context
	stmts map[string]*sql.Stmt
	args  []any
}

func (l *bareLoader) exec(query string, args ...any) (sql.Result, error) {
	s := l.stmts[query]
	if s == nil {
		var err error
		if s, err = l.conn.PrepareContext(l.ctx, query); err != nil {
			return nil, err
		}
		l.stmts[query] = s
	}
	return s.ExecContext(l.ctx, args...)
}

// insert writes rows as many a statement as the store does.
func (l *bareLoader) insert(into string, width int, rows []row) error {
	one := "(" + strings.TrimSuffix(strings.Repeat("?,", width), ",") + ")"
	many := into + strings.TrimSuffix(strings.Repeat(one+",", sqlitestore.RowsPerStatement), ",")
	for len(rows) > 0 {
		n, query := 1, into+one
		if len(rows) >= sqlitestore.RowsPerStatement {
			n, query = sqlitestore.RowsPerStatement, many
		}
		l.args = l.args[:0]
		for _, r := range rows[:n] {
			l.args = append(l.args, r.values...)
		}
		if _, err := l.exec(query, l.args...); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}
