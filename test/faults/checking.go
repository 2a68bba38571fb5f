package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"time"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/service"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/worker"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/projection"
)

// Checked says what was checked at the end.
type Checked struct {
	Acknowledged  int    `json:"acknowledged"` // events, each checked in the log and in both stores
	Messages      int    `json:"messages"`     // of the log
	Duplicates    uint64 `json:"duplicates"`   // copies in the log that read models dropped
	Refused       int    `json:"refused"`      // invalid events
	Conversations int    `json:"conversations"`
	LogBytes      uint64 `json:"log_bytes"`
	Told
	// Hashes holds the hash of each projection's read model, made from the log and equal in both
	// stores.
	Hashes map[string]string `json:"hashes"`
	Took   time.Duration     `json:"took"`
}

// checking compares the acknowledged events with the log, and the log with both stores.
type checking struct {
	dir    string
	system *system
	found  findings
	say    func(format string, args ...any)
}

func (c *checking) run(ctx context.Context) (done Checked, err error) {
	began := time.Now()
	o, err := c.readLog(ctx, &done)
	if err != nil {
		return done, err
	}
	c.say("checking the acknowledged events against the log")
	done.Acknowledged, err = o.checkLedger(func(yield func(entry) error) error { return readLedger(filepath.Join(c.dir, ledgerName), yield) }, c.found)
	if err != nil {
		return done, err
	}
	done.Told = o.checkStories(c.found)
	if err := c.checkStores(ctx, o); err != nil {
		return done, err
	}
	refusals, err := c.system.refusals()
	if err != nil {
		return done, err
	}
	for _, line := range refusals[:min(len(refusals), 5)] {
		c.found("the server refuses what a role needs: %s", line)
	}
	done.Duplicates, done.Refused, done.Conversations = o.graph.duplicates, len(o.graph.failed), len(o.rows)
	err = c.verify(ctx, &done)
	done.Took = time.Since(began)
	return done, err
}

// readLog makes an oracle of the whole log.
func (c *checking) readLog(ctx context.Context, done *Checked) (*oracle, error) {
	c.say("reading the log")
	conn, err := eventlog.Connect(c.system.natsURL("operator"), "check", slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	log, err := eventlog.Open(ctx, conn)
	if err != nil {
		return nil, err
	}
	state, err := log.State(ctx)
	if err != nil {
		return nil, err
	}
	o := newOracle()
	if err := log.Tail(ctx, eventlog.Filter{}, eventlog.TailOptions{From: 1, ToEnd: true}, o.message); err != nil {
		return nil, err
	}
	if done.Messages, done.LogBytes = len(o.log), state.Bytes; uint64(done.Messages) != state.Messages {
		c.found("the log claims to hold %d messages, but delivers %d", state.Messages, done.Messages)
	}
	return o, nil
}

// openModels opens the read models of a store.
func (s *system) openModels(store string) *service.Models {
	return service.NewModels(s.sqliteDir(), worker.NewStores(s.sqliteDir(), settings.Models{Store: store, Neo4j: settings.Neo4j{URI: s.neo4j.uri}}))
}

// checkStores checks both stores against the log and against each other.
func (c *checking) checkStores(ctx context.Context, o *oracle) error {
	stored := map[string][]map[string]events.Digest{} // by projection
	for _, store := range []string{targetNeo4j, targetSQLite} {
		c.say("checking the read models in %s", store)
		models := c.system.openModels(store)
		err := c.checkStore(ctx, o, store, models, func(projection string, list map[string]events.Digest) {
			stored[projection] = append(stored[projection], list)
		})
		if err := errors.Join(err, models.Close()); err != nil {
			return err
		}
	}
	for _, name := range projections {
		o.checkHashes(name, stored[name][0], stored[name][1], c.found)
	}
	return nil
}

// checkStore checks the read models of one store, and returns the hashes of their conversations.
func (c *checking) checkStore(ctx context.Context, o *oracle, store string, models *service.Models, tell func(projection string, list map[string]events.Digest)) error {
	graph, err := models.Graph(ctx)
	if err != nil {
		return err
	}
	defer graph.Release()
	files, err := models.Files(ctx)
	if err != nil {
		return err
	}
	defer files.Release()
	summaries, err := models.Summaries(ctx)
	if err != nil {
		return err
	}
	defer summaries.Release()
	if err := o.checkGraph(ctx, store, graph.Model, c.found); err != nil {
		return err
	}
	if err := o.checkSummaries(ctx, store, graph.Model, summaries.Model, c.found); err != nil {
		return err
	}
	for want, model := range map[*expected]projection.ReadStore{o.graph: graph.Model, o.files: files.Model, o.summaries: summaries.Model} {
		if err := want.checkModel(ctx, store, model, c.found); err != nil {
			return err
		}
		list, err := hashes(ctx, model)
		if err != nil {
			return err
		}
		tell(want.name, list)
	}
	return nil
}

// verify lets each API replay the log, and compares the results.
func (c *checking) verify(ctx context.Context, done *Checked) error {
	said := map[string]string{}
	for name, a := range c.system.apis {
		c.say("%s verifies", name)
		slow := *a.client
		slow.Timeout = 0
		patient := api{name: name, base: a.base, client: &slow}
		var v httpapi.Verification
		if err := patient.call(ctx, http.MethodPost, "/v1/verify", nil, "", nil, &v); err != nil {
			return fmt.Errorf("%s: verify: %w", name, err)
		}
		for _, p := range v.Projections {
			if !p.Equal || p.Behind > 0 {
				c.found("%s: verify: %s differs in %d conversations and is %d events behind: %+v", name, p.Name, len(p.Differences), p.Behind, p.Differences[:min(3, len(p.Differences))])
			}
			if other, both := said[p.Name]; both && other != p.Hash {
				c.found("%s: verify: the hash of %s is %s for one store and %s for the other", name, p.Name, other, p.Hash)
			}
			said[p.Name] = p.Hash
		}
	}
	for _, name := range projections {
		if said[name] == "" {
			c.found("verify does not report on %s", name)
		}
	}
	done.Hashes = said
	return nil
}
