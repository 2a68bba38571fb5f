package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"time"

	"mneme/events"
	"mneme/internal/httpapi"
	"mneme/internal/service"
	"mneme/internal/settings"
	"mneme/pkg/eventlog"
	"mneme/pkg/graph"
	"mneme/pkg/projection"
)

// Checked is what was looked at in the end.
type Checked struct {
	Acknowledged  int    `json:"acknowledged"` // events, each checked in the log and in both stores
	Messages      int    `json:"messages"`     // of the log
	Duplicates    uint64 `json:"duplicates"`   // copies in the log that read models dropped
	Refused       int    `json:"refused"`      // events that break a rule
	Conversations int    `json:"conversations"`
	LogBytes      uint64 `json:"log_bytes"`
	// GraphHash and FilesHash are what the log makes, as both stores have it.
	GraphHash string        `json:"graph_hash"`
	FilesHash string        `json:"files_hash"`
	Took      time.Duration `json:"took"`
}

// checking compares what was acknowledged with the log, and the log with both stores.
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
	c.say("checking what was acknowledged against the log")
	done.Acknowledged, err = o.checkLedger(func(yield func(entry) error) error { return readLedger(filepath.Join(c.dir, ledgerName), yield) }, c.found)
	if err != nil {
		return done, err
	}
	if err := c.checkStores(ctx, o); err != nil {
		return done, err
	}
	done.Duplicates, done.Refused, done.Conversations = o.graph.duplicates, len(o.graph.failed), len(o.rows)
	err = c.verify(ctx, &done)
	done.Took = time.Since(began)
	return done, err
}

// readLog makes an oracle of the whole log.
func (c *checking) readLog(ctx context.Context, done *Checked) (*oracle, error) {
	c.say("reading the log")
	conn, err := eventlog.Connect(c.system.natsURL(), "check", slog.New(slog.DiscardHandler))
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
		c.found("the log says that it holds %d messages, and delivers %d", state.Messages, done.Messages)
	}
	return o, nil
}

// pair is a read model "graph" and a read model "files" in one backend.
type pair struct {
	name  string
	graph graph.Reader
	files projection.ReadStore
}

// checkStores checks both stores against the log and against each other.
func (c *checking) checkStores(ctx context.Context, o *oracle) (err error) {
	lite := service.NewModels(c.system.sqliteDir(), service.NewStores(c.system.sqliteDir(), settings.Models{Store: "sqlite"}))
	defer func() { err = errors.Join(err, lite.Close()) }()
	neo := service.NewModels(c.system.sqliteDir(), service.NewStores(c.system.sqliteDir(), settings.Models{Store: "neo4j", Neo4j: settings.Neo4j{URI: c.system.neo4j.uri}}))
	defer func() { err = errors.Join(err, neo.Close()) }()
	var pairs []pair
	for _, one := range []struct {
		name   string
		models *service.Models
	}{{"neo4j", neo}, {"sqlite", lite}} {
		graph, err := one.models.Graph()
		if err != nil {
			return err
		}
		defer graph.Release()
		files, err := one.models.Files()
		if err != nil {
			return err
		}
		defer files.Release()
		pairs = append(pairs, pair{one.name, graph.Model, files.Model})
	}
	var graphs, files []map[string]events.Digest
	for _, p := range pairs {
		c.say("checking the read models in %s", p.name)
		if err := o.checkGraph(ctx, p.name, p.graph, c.found); err != nil {
			return err
		}
		if err := o.graph.checkModel(ctx, p.name, p.graph, c.found); err != nil {
			return err
		}
		if err := o.files.checkModel(ctx, p.name, p.files, c.found); err != nil {
			return err
		}
		inGraph, err := hashes(ctx, p.graph)
		if err != nil {
			return err
		}
		inFiles, err := hashes(ctx, p.files)
		if err != nil {
			return err
		}
		graphs, files = append(graphs, inGraph), append(files, inFiles)
	}
	o.checkHashes(o.graph.name, graphs[0], graphs[1], c.found)
	o.checkHashes(o.files.name, files[0], files[1], c.found)
	return nil
}

// verify lets each API replay the log, and compares what they say.
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
	done.GraphHash, done.FilesHash = said["graph"], said["files"]
	return nil
}
