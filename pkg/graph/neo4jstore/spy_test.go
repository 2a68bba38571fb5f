package neo4jstore

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"
	"github.com/stretchr/testify/require"
)

// spy is a driver that records what was really sent to the server.
type spy struct {
	neo4j.DriverWithContext
	prefix string // PROFILE, or empty
	mu     sync.Mutex
	sent   []sent
}

// sent is one statement with its result.
type sent struct {
	statement string
	params    map[string]any
	took      time.Duration
	summary   neo4j.ResultSummary // nil if it failed
}

// watch puts a spy between stores and their driver.
func watch(stores ...*store) *spy {
	s := &spy{DriverWithContext: stores[0].driver}
	for _, of := range stores {
		of.driver = s
	}
	return s
}

// since returns the statements sent since the last call.
func (s *spy) since() []sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.sent
	s.sent = nil
	return list
}

func (s *spy) NewSession(ctx context.Context, config neo4j.SessionConfig) neo4j.SessionWithContext {
	return &spySession{s.DriverWithContext.NewSession(ctx, config), s}
}

type spySession struct {
	neo4j.SessionWithContext
	spy *spy
}

func (s *spySession) Run(ctx context.Context, statement string, params map[string]any, configurers ...func(*neo4j.TransactionConfig)) (neo4j.ResultWithContext, error) {
	return s.spy.run(ctx, statement, params, func(statement string) (neo4j.ResultWithContext, error) {
		return s.SessionWithContext.Run(ctx, statement, params, configurers...)
	})
}

func (s *spySession) ExecuteWrite(ctx context.Context, work neo4j.ManagedTransactionWork, configurers ...func(*neo4j.TransactionConfig)) (any, error) {
	watched := func(tx neo4j.ManagedTransaction) (any, error) { return work(&spyTx{tx, s.spy}) }
	return s.SessionWithContext.ExecuteWrite(ctx, watched, configurers...)
}

type spyTx struct {
	neo4j.ManagedTransaction
	spy *spy
}

func (t *spyTx) Run(ctx context.Context, statement string, params map[string]any) (neo4j.ResultWithContext, error) {
	return t.spy.run(ctx, statement, params, func(statement string) (neo4j.ResultWithContext, error) {
		return t.ManagedTransaction.Run(ctx, statement, params)
	})
}

func (s *spy) run(ctx context.Context, statement string, params map[string]any, send func(string) (neo4j.ResultWithContext, error)) (neo4j.ResultWithContext, error) {
	statement = strings.TrimPrefix(statement, kept)
	began := time.Now()
	result, err := send(s.prefix + statement)
	if err != nil {
		return nil, err
	}
	return &spyResult{result, func() {
		one := sent{statement: statement, params: params, took: time.Since(began)}
		if result.Err() == nil {
			one.summary, _ = result.Consume(ctx)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sent = append(s.sent, one)
	}}, nil
}

type spyResult struct {
	neo4j.ResultWithContext
	done func()
}

func (r *spyResult) Next(ctx context.Context) bool {
	more := r.ResultWithContext.Next(ctx)
	if !more && r.done != nil {
		r.done()
		r.done = nil
	}
	return more
}

// hits returns the cost of statements: the server's accesses to its store.
func hits(t *testing.T, list []sent) (n int64) {
	t.Helper()
	for _, one := range list {
		require.NotNil(t, one.summary, one.statement)
		n += profiledHits(one.summary.Profile())
	}
	return n
}

func profiledHits(p neo4j.ProfiledPlan) int64 {
	if p == nil {
		return 0
	}
	n := p.DbHits()
	for _, child := range p.Children() {
		n += profiledHits(child)
	}
	return n
}
