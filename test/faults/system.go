package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	neo4jdeploy "mneme.dev/mneme/deploy/neo4j"
	"mneme.dev/mneme/internal/mnemetest/netlink"
)

// memory of Neo4j, in MiB.
type memory struct{ heap, pageCache int }

// Below 1024 Neo4j is configured to start fast, because a short campaign starts it often. In a long
// campaign it is configured for throughput (see [neo4jdeploy.Config]).
var (
	little = memory{heap: 512, pageCache: 128}
	much   = memory{heap: 2000, pageCache: 2000}
)

// memoryFor returns the memory for this many events.
func memoryFor(events int) memory {
	if events <= 50_000 {
		return little
	}
	return much
}

// natsServer is the module of the real server.
const natsServer = "github.com/nats-io/nats-server/v2"

// machine can be killed, ended, frozen and restarted.
type machine interface {
	start() error
	kill()
	terminate() error
	signal(syscall.Signal)
}

// system is everything that runs, each in a separate process, and the links in between.
type system struct {
	dir      string
	natsAddr string
	neo4j    *neo4jServer
	machines map[string]machine
	links    map[string]*netlink.Link
	apis     map[string]*api
	over     atomic.Bool // nothing may start any more
}

// crash is called for a process that ended by itself.
type crash func(name string, err error, output string)

// start builds the programs and starts everything in a directory. Data of an earlier run is used
// again.
func start(ctx context.Context, dir, jars string, m memory, crashed crash) (_ *system, err error) {
	s := &system{dir: dir, machines: map[string]machine{}, links: map[string]*netlink.Link{}, apis: map[string]*api{}}
	defer func() {
		if err != nil {
			s.kill()
		}
	}()
	var building sync.WaitGroup
	var built error
	building.Go(func() { built = s.build(ctx) }) // while Neo4j starts
	s.neo4j, err = startNeo4j(ctx, neo4jdeploy.Config{Dir: filepath.Join(dir, "neo4j"), Jars: jars, HeapMiB: m.heap, PageCacheMiB: m.pageCache}, crashed)
	building.Wait()
	if err == nil {
		s.machines[targetNeo4j] = s.neo4j
	}
	if err := errors.Join(err, built); err != nil {
		return nil, err
	}
	if err := s.startNATS(crashed); err != nil {
		return nil, err
	}
	if err := s.linkAll(); err != nil {
		return nil, err
	}
	if err := s.applyStream(ctx); err != nil {
		return nil, err
	}
	for _, p := range programs {
		if err := s.startProgram(p, crashed); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// build makes the binaries once, from this repository.
func (s *system) build(ctx context.Context) error {
	args := []string{"build", "-ldflags=-s -w", "-o", filepath.Join(s.dir, "bin") + string(filepath.Separator), natsServer}
	for _, p := range programs {
		if target := "mneme.dev/mneme/cmd/" + p.binary; !slices.Contains(args, target) {
			args = append(args, target)
		}
	}
	if out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

func (s *system) process(name, binary string, crashed crash) *process {
	return &process{
		name: name, path: filepath.Join(s.dir, "bin", binary),
		output: filepath.Join(s.dir, "output", name+".log"), crashed: crashed, over: &s.over,
	}
}

// startNATS starts the server with the configuration and the permissions of deploy/nats.
func (s *system) startNATS(crashed crash) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	const storeDir = `store_dir: "/data"`
	if strings.Count(natsdeploy.ServerConf, storeDir) != 1 {
		return fmt.Errorf("deploy/nats/server.conf does not have %s", storeDir)
	}
	dir := filepath.Join(s.dir, "nats-conf")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	conf := filepath.Join(dir, "permissions.conf")
	text := strings.Replace(natsdeploy.ServerConf, storeDir, fmt.Sprintf("store_dir: %q", filepath.Join(s.dir, "nats")), 1)
	if err := errors.Join(
		os.WriteFile(filepath.Join(dir, "server.conf"), []byte(text), 0o600), // which the next one includes
		os.WriteFile(conf, []byte(natsdeploy.PermissionsConf), 0o600),
	); err != nil {
		return err
	}
	s.natsAddr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	p := s.process(targetNATS, "nats-server", crashed)
	p.args = []string{"-c", conf, "-p", strconv.Itoa(port)}
	for _, user := range append(natsdeploy.Roles(), natsdeploy.Role{Name: natsdeploy.AgentUser("default")}) {
		p.env = append(p.env, natsdeploy.PasswordVariable(user.Name)+"="+natsPassword)
	}
	s.machines[targetNATS] = p
	return p.start()
}

// linkAll makes a link from each program, and one from the publishers, to each server
// that it uses.
func (s *system) linkAll() error {
	add := func(server, from, address string) (err error) {
		s.links[link(server, from)], err = netlink.New(address)
		return err
	}
	if err := add(targetNATS, publishers, s.natsAddr); err != nil {
		return err
	}
	for _, p := range programs {
		if err := add(targetNATS, p.name, s.natsAddr); err != nil {
			return err
		}
		if p.neo4j {
			if err := add(targetNeo4j, p.name, s.neo4j.address()); err != nil {
				return err
			}
		}
	}
	return nil
}

// linked returns the links that a name stands for.
func (s *system) linked(name string) (list []*netlink.Link) {
	if linkFrom(name) != everybody {
		return []*netlink.Link{s.links[name]}
	}
	for other, p := range s.links {
		if linkServer(other) == linkServer(name) {
			list = append(list, p)
		}
	}
	return list
}

// natsPassword is the password of every user.
const natsPassword = "for-faults"

// as returns the URL with which a user connects to an address of the server.
func as(user, address string) string { return "nats://" + user + ":" + natsPassword + "@" + address }

// natsURL returns the server's address without a link, for a user.
func (s *system) natsURL(user string) string { return as(user, s.natsAddr) }

// refusals returns what the server has refused its users.
func (s *system) refusals() (list []string, err error) {
	for _, name := range []string{".log.old", ".log"} {
		text, err := os.ReadFile(filepath.Join(s.dir, "output", targetNATS+name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "Violation") {
				list = append(list, strings.TrimSpace(line))
			}
		}
	}
	return list, nil
}

// logBytes is the size of the log: it is full only when a fault makes it so.
const logBytes = 60 << 30

// natsStart is how long the server may take to answer.
const natsStart = time.Minute

// applyStream makes the log before any program does, with a short duplicate window.
func (s *system) applyStream(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, natsStart)
	defer cancel()
	for {
		err := s.withJetStream(func(js jetstream.JetStream) error {
			_, err := natsdeploy.Apply(ctx, js, natsdeploy.Settings{Partitions: partitions, MaxBytes: logBytes, DuplicateWindow: duplicateWindow})
			return err
		})
		if err == nil || errors.Is(err, natsdeploy.ErrIncompatible) || ctx.Err() != nil {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// withJetStream runs do on a separate connection, without a link. The server may be unavailable:
// what do asks for then fails or waits, and withJetStream tries again.
func (s *system) withJetStream(do func(jetstream.JetStream) error) error {
	conn, err := nats.Connect(s.natsURL("admin"), nats.CustomInboxPrefix(natsdeploy.InboxPrefix("admin")), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond))
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	return do(js)
}

// resize sets the largest size of the log; 0 means its present size.
func (s *system) resize(ctx context.Context, bytes int64) error {
	return s.withJetStream(func(js jetstream.JetStream) error {
		stream, err := js.Stream(ctx, natsdeploy.Stream)
		if err != nil {
			return err
		}
		config := stream.CachedInfo().Config
		if config.MaxBytes = bytes; bytes == 0 {
			config.MaxBytes = int64(stream.CachedInfo().State.Bytes)
		}
		_, err = js.UpdateStream(ctx, config)
		return err
	})
}

// insistOnSize sets the size even if the server has just started and does not answer yet.
func (s *system) insistOnSize(ctx context.Context, bytes int64) error {
	for {
		err := s.resize(ctx, bytes)
		if err == nil || ctx.Err() != nil {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// sqliteDir is the data directory of the programs on SQLite.
func (s *system) sqliteDir() string { return filepath.Join(s.dir, "sqlite") }

func (s *system) startProgram(program program, crashed crash) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	listen := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	p := s.process(program.name, program.binary, crashed)
	p.env = []string{
		"MNEME_NATS_URL=" + as(program.binary, s.links[link(targetNATS, program.name)].Address()),
		"MNEME_PARTITIONS=" + strconv.Itoa(partitions), "MNEME_LISTEN=" + listen,
	}
	if program.neo4j {
		p.env = append(p.env, "MNEME_STORE=neo4j", "MNEME_DATA="+filepath.Join(s.dir, program.name),
			"MNEME_NEO4J_WARM=false", // a restart of the server would cost half a minute of planning
			"MNEME_NEO4J_URI=bolt://"+s.links[link(targetNeo4j, program.name)].Address())
	} else {
		p.env = append(p.env, "MNEME_STORE=sqlite", "MNEME_DATA="+s.sqliteDir())
	}
	switch program.binary {
	case "context-api":
		s.apis[program.name] = newAPI(program.name, listen)
	case "summarizer":
		p.env = append(p.env, "MNEME_SUMMARY_WRITER="+program.writer(), "MNEME_MAX_CONTEXT_CHARS="+strconv.Itoa(contextChars))
	}
	s.machines[program.name] = p
	return p.start()
}

// heal undoes all faults: everything runs, every link works, the log has room.
func (s *system) heal(ctx context.Context) error {
	for _, l := range s.links {
		l.Heal()
	}
	var errs []error
	for _, m := range s.machines {
		m.signal(sigThaw)
		errs = append(errs, m.start())
	}
	return errors.Join(append(errs, s.insistOnSize(ctx, logBytes))...)
}

// stop ends everything gracefully, programs first.
func (s *system) stop() error {
	s.over.Store(true)
	var mu sync.Mutex
	var errs []error
	end := func(m machine) {
		err := m.terminate()
		mu.Lock()
		defer mu.Unlock()
		errs = append(errs, err)
	}
	var all sync.WaitGroup
	for name, m := range s.machines {
		if name != targetNATS && name != targetNeo4j {
			all.Go(func() { end(m) })
		}
	}
	all.Wait()
	end(s.machines[targetNATS])
	end(s.machines[targetNeo4j])
	for _, l := range s.links {
		l.Close()
	}
	return errors.Join(errs...)
}

// kill ends everything at once.
func (s *system) kill() {
	s.over.Store(true)
	for _, m := range s.machines {
		m.kill()
	}
	for _, l := range s.links {
		l.Close()
	}
}

func freePort() (int, error) {
	l, err := netlink.Listener()
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}
