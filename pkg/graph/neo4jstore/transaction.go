package neo4jstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"

	"mneme.dev/mneme/pkg/projection"
)

// A disturbed transaction is retried after a pause that doubles each time, for a limited
// time after its first attempt: on a slow server that one alone may take longer.
const (
	retryFor   = 3 * time.Second
	firstPause = 20 * time.Millisecond
)

// grace is how much longer than the server's own time limit an answer may take. A server
// that is frozen, or behind a network that drops everything, enforces no limit.
const grace = 5 * time.Second

// Read runs one statement outside of any transaction and returns its rows.
func (d *db) Read(ctx context.Context, query string, params map[string]any) ([][]any, error) {
	return d.single(ctx, neo4j.AccessModeRead, d.ReadTimeout, query, params)
}

// scan is Read for the values of each row, up to the first row that scan can't read.
func (d *db) scan(ctx context.Context, query string, params map[string]any, scan func(*values)) error {
	rows, err := d.Read(ctx, query, params)
	if err != nil {
		return err
	}
	return scanRows(rows, scan)
}

// fetchedAtOnce is how many rows of a statement [db.each] has in memory.
const fetchedAtOnce = 100

// each runs one statement outside of any transaction and yields its rows, without having all of them in memory. Unlike
// Read it does not try again once it has yielded a row.
func (d *db) each(ctx context.Context, query string, params map[string]any, yield func(row []any) error) error {
	err := d.again(ctx, neo4j.AccessModeRead, d.ReadTimeout, func(ctx context.Context, session neo4j.SessionWithContext) error {
		begun := false
		err := walk(ctx, query, func(query string) (neo4j.ResultWithContext, error) {
			return session.Run(ctx, query, params, neo4j.WithTxTimeout(d.ReadTimeout))
		}, func(row []any) error {
			begun = true
			return yield(row)
		})
		if err = orLost(err); err != nil && begun {
			err = &partial{err}
		}
		return err
	}, fetchedAtOnce)
	return classifyOne(err)
}

// partial is an error after rows were yielded, so the statement must not run again.
type partial struct{ err error }

func (e *partial) Error() string { return e.err.Error() }
func (e *partial) Unwrap() error { return e.err }

// write runs one statement in a separate transaction.
func (d *db) write(ctx context.Context, query string, params map[string]any) ([][]any, error) {
	return d.single(ctx, neo4j.AccessModeWrite, d.WriteTimeout, query, params)
}

// single lets the server commit by itself, which saves two of three round trips. Use it only
// for writes that may be repeated: a broken connection leaves the commit in doubt.
func (d *db) single(ctx context.Context, mode neo4j.AccessMode, timeout time.Duration, query string, params map[string]any) (rows [][]any, err error) {
	err = d.again(ctx, mode, timeout, func(ctx context.Context, session neo4j.SessionWithContext) error {
		rows, err = run(ctx, query, func(query string) (neo4j.ResultWithContext, error) {
			return session.Run(ctx, query, params, neo4j.WithTxTimeout(timeout))
		})
		return orLost(err)
	}, neo4j.FetchAll)
	return rows, classifyOne(err)
}

// orLost marks an error of the connection.
func orLost(err error) error {
	if _, ok := errors.AsType[*neo4j.ConnectivityError](err); ok {
		return &lost{err}
	}
	return err
}

// inTransaction runs work in one transaction.
func (d *db) inTransaction(ctx context.Context, timeout time.Duration, work func(neo4j.ManagedTransaction) error) error {
	return d.again(ctx, neo4j.AccessModeWrite, timeout, func(ctx context.Context, session neo4j.SessionWithContext) error {
		_, err := session.ExecuteWrite(ctx, func(tx neo4j.ManagedTransaction) (any, error) { return nil, work(tx) }, neo4j.WithTxTimeout(timeout))
		return err
	}, neo4j.FetchAll)
}

// again runs work, and retries it if another transaction disturbed it or a pooled connection
// had died. The driver could retry too, but also does so when it is useless: it treats a
// batch that is too large as a transient error, and keeps asking an absent server for seconds
// while a caller waits.
func (d *db) again(ctx context.Context, mode neo4j.AccessMode, timeout time.Duration, work func(context.Context, neo4j.SessionWithContext) error, fetch int) error {
	pause, dead := firstPause, 0
	var failed time.Time // for the first time
	for {
		err := d.once(ctx, mode, timeout, work, fetch)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil: // the caller gave up, so the server did not fail
			return fmt.Errorf("Neo4j: %w", ctx.Err())
		case errors.As(err, new(*partial)):
			return err
		case died(err) && dead < d.PoolSize: // every connection in the pool may have died
			dead++
			continue
		case !disturbed(err):
			return err
		case failed.IsZero():
			failed = time.Now()
		case time.Since(failed) > retryFor:
			return err
		}
		select {
		case <-time.After(pause/2 + rand.N(pause)): // random, so that two transactions don't collide again
		case <-ctx.Done():
			return err
		}
		pause *= 2
	}
}

// once runs work. A connection that is lost during the commit leaves the commit in doubt, so
// it does not count as one that had died before: see died.
func (d *db) once(ctx context.Context, mode neo4j.AccessMode, timeout time.Duration, work func(context.Context, neo4j.SessionWithContext) error, fetch int) error {
	bounded, cancel := context.WithTimeout(ctx, timeout+grace)
	defer cancel()
	session := d.session(bounded, mode, fetch)
	defer func() { _ = session.Close(context.WithoutCancel(ctx)) }()
	err := work(bounded, session)
	var limit *neo4j.TransactionExecutionLimit
	if errors.As(err, &limit) && len(limit.Errors) > 0 { // the driver was told not to retry
		if err = limit.Errors[len(limit.Errors)-1]; codeOf(err) == "" {
			err = &lost{err}
		}
	}
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case bounded.Err() != nil:
		return fmt.Errorf("%w within %s: %w", projection.ErrUnavailable, timeout+grace, err)
	case cutOff(err) && !errors.As(err, new(*partial)):
		return fmt.Errorf("%w: %w", projection.ErrUnavailable, err)
	}
	return err
}

// cutOff reports whether the server fell silent or hung up during the handshake, as a busy or stopping server does. The driver
// does not report that as an error of the connection. A passed deadline is a [net.Error] too.
func cutOff(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, new(net.Error))
}

// session uses no bookmarks, because a single server shows commits at once. In a cluster,
// neo4j://, everything goes to the leader for the same reason.
func (d *db) session(ctx context.Context, mode neo4j.AccessMode, fetch int) neo4j.SessionWithContext {
	if strings.HasPrefix(d.URI, "neo4j") {
		mode = neo4j.AccessModeWrite
	}
	return d.driver.NewSession(ctx, neo4j.SessionConfig{DatabaseName: d.Database, AccessMode: mode, FetchSize: fetch})
}

// kept is put before every statement that has a plan, to keep the plan. Otherwise Neo4j
// replans whenever the size of the graph has changed much, which takes up to a second while a
// young graph grows. Our statements name the indexes that they use, so plans don't depend on
// the size.
const kept = "CYPHER replan=skip "

// planned lists the words that statements with a plan begin with.
var planned = []string{"MATCH ", "UNWIND ", "CALL (", "CALL db.index.", "MERGE "}

// run runs one statement and returns its rows.
func run(ctx context.Context, query string, send func(query string) (neo4j.ResultWithContext, error)) (rows [][]any, err error) {
	err = walk(ctx, query, send, func(row []any) error {
		rows = append(rows, row)
		return nil
	})
	return rows, err
}

// walk runs one statement and yields its rows.
func walk(ctx context.Context, query string, send func(query string) (neo4j.ResultWithContext, error), yield func(row []any) error) error {
	for _, word := range planned {
		if strings.HasPrefix(query, word) {
			query = kept + query
		}
	}
	result, err := send(query)
	if err != nil {
		return err
	}
	for result.Next(ctx) {
		if err := yield(result.Record().Values); err != nil {
			return err
		}
	}
	return result.Err()
}

// lost is an error of the connection, not of the server.
type lost struct{ err error }

func (e *lost) Error() string { return e.err.Error() }
func (e *lost) Unwrap() error { return e.err }

// died reports whether an existing connection broke before the commit. Failing to connect is
// no reason to retry at once.
func died(err error) bool {
	var l *lost
	if !errors.As(err, &l) {
		return false
	}
	var op *net.OpError
	cause := inner(l.err)
	return errors.Is(cause, io.EOF) || errors.As(cause, &op) && op.Op != "dial" && !op.Timeout()
}

// inner returns the error that the driver wrapped without an Unwrap method.
func inner(err error) error {
	if c, ok := errors.AsType[*neo4j.ConnectivityError](err); ok {
		return c.Inner
	}
	return err
}
