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

	"mneme/pkg/projection"
)

// How a transaction that was disturbed is begun again: after a pause that doubles, for
// so long in all.
const (
	retryFor   = 3 * time.Second
	firstPause = 20 * time.Millisecond
)

// grace is what an answer may take beyond the server's own time limit. A server that is
// frozen, or behind a network that drops everything, keeps no limit.
const grace = 5 * time.Second

// read runs one statement and returns its rows.
func (d *db) read(ctx context.Context, query string, params map[string]any) ([][]any, error) {
	return d.single(ctx, neo4j.AccessModeRead, d.ReadTimeout, query, params)
}

// write runs one statement in a transaction of its own.
func (d *db) write(ctx context.Context, query string, params map[string]any) ([][]any, error) {
	return d.single(ctx, neo4j.AccessModeWrite, d.WriteTimeout, query, params)
}

// single lets the server commit by itself, which saves two of three round trips. What is
// written so may be written twice: a connection that breaks leaves it in doubt.
func (d *db) single(ctx context.Context, mode neo4j.AccessMode, timeout time.Duration, query string, params map[string]any) (rows [][]any, err error) {
	err = d.again(ctx, mode, timeout, func(ctx context.Context, session neo4j.SessionWithContext) error {
		rows, err = run(ctx, query, func(query string) (neo4j.ResultWithContext, error) {
			return session.Run(ctx, query, params, neo4j.WithTxTimeout(timeout))
		})
		var broken *neo4j.ConnectivityError
		if errors.As(err, &broken) {
			return &lost{err}
		}
		return err
	})
	return rows, classify(err)
}

// inTransaction runs work in one transaction.
func (d *db) inTransaction(ctx context.Context, timeout time.Duration, work func(neo4j.ManagedTransaction) error) error {
	return d.again(ctx, neo4j.AccessModeWrite, timeout, func(ctx context.Context, session neo4j.SessionWithContext) error {
		_, err := session.ExecuteWrite(ctx, func(tx neo4j.ManagedTransaction) (any, error) { return nil, work(tx) }, neo4j.WithTxTimeout(timeout))
		return err
	})
}

// again runs work, and once more if it was disturbed by another transaction or came upon
// a connection that had died meanwhile. The driver would do so too, but also where it is
// no use: it takes a batch that is too large for transient and asks a server that is
// away for seconds, while somebody waits for an answer.
func (d *db) again(ctx context.Context, mode neo4j.AccessMode, timeout time.Duration, work func(context.Context, neo4j.SessionWithContext) error) error {
	began, pause, dead := time.Now(), firstPause, 0
	for {
		err := d.once(ctx, mode, timeout, work)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil: // whoever asked has waited long enough, which is not the server's trouble
			return fmt.Errorf("Neo4j: %w", ctx.Err())
		case died(err) && dead < d.PoolSize: // all that the pool holds may have died
			dead++
			continue
		case !disturbed(err) || time.Since(began) > retryFor:
			return err
		}
		select {
		case <-time.After(pause/2 + rand.N(pause)): // two that met shall not meet again
		case <-ctx.Done():
			return err
		}
		pause *= 2
	}
}

// once runs work. A connection that is lost while the commit is on its way leaves it in
// doubt, and is not one that had died before: see died.
func (d *db) once(ctx context.Context, mode neo4j.AccessMode, timeout time.Duration, work func(context.Context, neo4j.SessionWithContext) error) error {
	bounded, cancel := context.WithTimeout(ctx, timeout+grace)
	defer cancel()
	session := d.session(bounded, mode)
	defer func() { _ = session.Close(context.WithoutCancel(ctx)) }()
	err := work(bounded, session)
	var limit *neo4j.TransactionExecutionLimit
	if errors.As(err, &limit) && len(limit.Errors) > 0 { // all that the driver can retry, which it was told not to
		if err = limit.Errors[len(limit.Errors)-1]; codeOf(err) == "" {
			err = &lost{err}
		}
	}
	if err != nil && ctx.Err() == nil && bounded.Err() != nil {
		err = fmt.Errorf("%w within %s: %w", projection.ErrUnavailable, timeout+grace, err)
	}
	return err
}

// session has no bookmarks: on one server what was committed is seen at once. In a
// cluster, neo4j://, everything goes to the leader for that.
func (d *db) session(ctx context.Context, mode neo4j.AccessMode) neo4j.SessionWithContext {
	if strings.HasPrefix(d.URI, "neo4j") {
		mode = neo4j.AccessModeWrite
	}
	return d.driver.NewSession(ctx, neo4j.SessionConfig{DatabaseName: d.Database, AccessMode: mode, FetchSize: neo4j.FetchAll})
}

// kept is said before every statement that has a plan: keep the plan that you have.
// Neo4j would plan anew each time that the size of the graph has changed by much, for up
// to a second while a young graph grows. Our statements name the indexes that they use,
// so that no plan depends on how much there is.
const kept = "CYPHER replan=skip "

// planned are the words that such statements begin with.
var planned = []string{"MATCH ", "UNWIND ", "CALL (", "CALL db.index.", "MERGE "}

// run runs one statement and returns its rows.
func run(ctx context.Context, query string, send func(query string) (neo4j.ResultWithContext, error)) (rows [][]any, err error) {
	for _, word := range planned {
		if strings.HasPrefix(query, word) {
			query = kept + query
		}
	}
	result, err := send(query)
	if err != nil {
		return nil, err
	}
	for result.Next(ctx) {
		rows = append(rows, result.Record().Values)
	}
	return rows, result.Err()
}

// lost is an error of the connection and not of the server.
type lost struct{ err error }

func (e *lost) Error() string { return e.err.Error() }
func (e *lost) Unwrap() error { return e.err }

// died tells whether a connection that was there broke before the commit. One that does
// not come about is no reason to try again at once.
func died(err error) bool {
	var l *lost
	if !errors.As(err, &l) {
		return false
	}
	var op *net.OpError
	cause := inner(l.err)
	return errors.Is(cause, io.EOF) || errors.As(cause, &op) && op.Op != "dial" && !op.Timeout()
}

// inner is what the driver has wrapped without saying so.
func inner(err error) error {
	var c *neo4j.ConnectivityError
	if errors.As(err, &c) {
		return c.Inner
	}
	return err
}
