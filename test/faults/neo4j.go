package main

import (
	"context"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	neo4jdeploy "mneme.dev/mneme/deploy/neo4j"
)

// neo4jStart is how long the server may take to start after a crash.
const neo4jStart = 5 * time.Minute

// neo4jServer is a real Neo4j that can be started again.
type neo4jServer struct {
	uri     string // the same at each start
	crashed crash

	mu     sync.Mutex
	server *neo4jdeploy.Server
	runs   bool
}

func startNeo4j(ctx context.Context, cfg neo4jdeploy.Config, crashed crash) (*neo4jServer, error) {
	server, err := neo4jdeploy.Start(ctx, cfg)
	if err != nil {
		return nil, err
	}
	n := &neo4jServer{uri: server.URI(), crashed: crashed, server: server, runs: true}
	go n.watch(server)
	return n, nil
}

// watch reports when a server has ended by itself.
func (n *neo4jServer) watch(server *neo4jdeploy.Server) {
	<-server.Ended()
	n.mu.Lock()
	surprise := n.runs && n.server == server
	n.mu.Unlock()
	if surprise {
		n.crashed(targetNeo4j, nil, server.Log())
	}
}

// address returns the server's address.
func (n *neo4jServer) address() string { return strings.TrimPrefix(n.uri, "bolt://") }

func (n *neo4jServer) start() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.runs {
		select {
		case <-n.server.Ended():
		default:
			return nil
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), neo4jStart)
	defer cancel()
	server, err := n.server.Restart(ctx)
	if err != nil {
		return err
	}
	n.server, n.runs = server, true
	go n.watch(server)
	return nil
}

func (n *neo4jServer) kill() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.server.Kill()
	n.runs = false
}

func (n *neo4jServer) terminate() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.runs = false
	return n.server.Stop()
}

func (n *neo4jServer) signal(s syscall.Signal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.runs {
		return
	}
	if p, err := os.FindProcess(n.server.PID()); err == nil {
		_ = p.Signal(s)
	}
}
