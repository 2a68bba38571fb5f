package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	natsdeploy "mneme.dev/mneme/deploy/nats"
)

// Config says where and how the in-process server runs.
type Config struct {
	// Dir holds everything the server stores. It is created if missing.
	Dir string
	// Listen is an address such as "127.0.0.1:4222". Port 0 takes a free port. No host
	// means 127.0.0.1, not every interface as elsewhere in Go. If Listen is empty, the
	// server has no port and accepts only connections from within the process.
	Listen string
	// Logger gets the server's log lines. Nil discards them.
	Logger *slog.Logger
	// MaxBytes is the size of a new stream. 0 chooses a size that suits the disk, see the
	// package comment of natsdeploy. An existing stream keeps its size.
	MaxBytes int64
}

// Server is a NATS server inside this process.
//
// It shares the process's memory and ends with it. A lock file guards its directory,
// because two servers on one directory destroy each other's files and nats-server does not
// prevent it. The lock is released when the process ends, however it ends. Only embedded
// servers respect it: never point a separate nats-server at the directory of a running one,
// and never keep the directory on a network file system.
type Server struct {
	srv      *server.Server
	log      *slog.Logger
	dir      string
	listens  bool
	maxBytes int64 // from the configuration, or 0
	maxStore int64
	lock     *flock.Flock
	stop     sync.Once
}

// Start starts the server and returns once it accepts connections. [Server.Apply] creates
// the stream.
//
// It returns [natsdeploy.ErrNotLoopback], [natsdeploy.ErrPortInUse], [natsdeploy.ErrDirInUse], or the reason that
// the server gave. An empty directory takes a few milliseconds; after a kill −9 the
// server reads its newest files again, about 2.5 s per GB. Start checks the context before
// and after that, because the server cannot be interrupted while it starts.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	if cfg.Dir == "" {
		return nil, errors.New("embedded NATS: no data directory")
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	host, port := "", 0
	if cfg.Listen != "" {
		var err error
		if host, port, err = listenAddress(cfg.Listen); err != nil {
			return nil, err
		}
	}
	lock, err := lockDir(cfg.Dir)
	if err != nil {
		return nil, err
	}
	e := &Server{log: cfg.Logger, dir: cfg.Dir, listens: cfg.Listen != "", maxBytes: cfg.MaxBytes, lock: lock}
	if err := e.start(ctx, host, port); err != nil {
		e.Stop()
		return nil, fmt.Errorf("embedded NATS: %w", err)
	}
	return e, nil
}

func (e *Server) start(ctx context.Context, host string, port int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var err error
	if e.maxStore, err = storeShare(e.dir); err != nil {
		return err
	}
	if err := openable(filepath.Dir(e.streamDir())); err != nil {
		return fmt.Errorf("the log's files can't be used, and are left as they are: %w; the user that runs mneme must be able to read and write all of %s (chown -R), and its file system needs room for new files (df -i)", err, e.dir)
	}
	if err := mendChecksum(e.streamDir()); err != nil {
		return err
	}
	if err := overwriteRemoved(e.streamDir()); err != nil { // a full disk is no reason not to start
		e.log.Warn("what an erasure removed last from the log may still be in its files: start again once this works", "dir", e.streamDir(), "error", err)
	}
	opts := ServerOptions(ServerSettings{StoreDir: e.dir, Host: host, Port: port, MaxStore: e.serverLimit()})
	opts.DontListen = !e.listens
	opts.NoSigs = true // the program handles signals
	opts.DisableJetStreamBanner = true
	srv, err := server.NewServer(opts)
	if err != nil {
		return err
	}
	e.srv = srv
	log := newServerLog(e.log)
	srv.SetLoggerV2(log, log.debug, false, false)
	srv.Start()
	if err := log.fatal(); err != nil { // instead of nats-server's os.Exit
		return err
	}
	return ctx.Err()
}

// serverLimit returns how much the server may store: its share of the disk. If the log was given more than that,
// because the disk had more room then, the server creates no further stream, however small. But mneme refuses every
// change that it can't record in the audit log. So while there is no audit log, the limit leaves room for one.
func (e *Server) serverLimit() int64 {
	_, log, ok := readConfig(e.streamDir())
	if !ok {
		return e.maxStore
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(e.streamDir()), natsdeploy.AuditStream)); err == nil {
		return e.maxStore
	}
	return max(e.maxStore, log.MaxBytes+storeHeadroom)
}

// Apply is [natsdeploy.Apply] over a connection within the process. In addition it gives a
// new stream a size that suits the disk, syncs the stream's files and directories, and does
// not create a stream if the directory holds events that the server could not read.
//
// It can also return [natsdeploy.ErrDamaged] and [natsdeploy.ErrNoSpace].
func (e *Server) Apply(ctx context.Context, s natsdeploy.Settings) (natsdeploy.Info, error) {
	s.MaxBytes = cmp.Or(s.MaxBytes, e.maxBytes)
	nc, err := nats.Connect("", e.InProcess())
	if err != nil {
		return natsdeploy.Info{}, fmt.Errorf("embedded NATS: %w", err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(patience))
	if err != nil {
		return natsdeploy.Info{}, fmt.Errorf("embedded NATS: %w", err)
	}

	if _, err := js.Stream(ctx, natsdeploy.Stream); errors.Is(err, jetstream.ErrStreamNotFound) {
		if held, err := holdsEvents(e.streamDir()); err != nil {
			return natsdeploy.Info{}, err
		} else if held {
			return natsdeploy.Info{}, fmt.Errorf("%w: %s; the server's log says why it left the stream out; restore the directory from a backup, or move it away to begin an empty log", natsdeploy.ErrDamaged, e.streamDir())
		}
		if s.MaxBytes == 0 {
			if s.MaxBytes, err = newStreamSize(e.maxStore); err != nil {
				return natsdeploy.Info{}, fmt.Errorf("%w in %s", err, e.dir)
			}
		}
	}
	info, err := natsdeploy.Apply(ctx, js, s)
	if errors.Is(err, natsdeploy.ErrNoSpace) {
		return natsdeploy.Info{}, fmt.Errorf("%w: the configured stream size is %d bytes, but the disk of %s allows only %d; configure a smaller size or make room", natsdeploy.ErrNoSpace, s.MaxBytes, e.dir, e.maxStore)
	}
	if err != nil {
		return natsdeploy.Info{}, err
	}
	if info.MaxBytes > e.maxStore {
		e.log.Warn("the disk has less room than the log may take, so events will be refused before the log is full: make room, or make the log smaller with `nats stream edit "+natsdeploy.Stream+" --max-bytes`",
			"dir", e.dir, "stream_max_bytes", info.MaxBytes, "disk_share_bytes", e.maxStore)
	}
	// Sync each time, not only after creating: if the process was killed between the two,
	// the next power cut would remove the whole stream.
	if err := syncMetadata(e.dir, e.streamDir()); err != nil {
		return natsdeploy.Info{}, fmt.Errorf("embedded NATS: sync %s: %w", e.dir, err)
	}
	return info, nil
}

// ClientURL returns the URL for other processes, "nats://127.0.0.1:4222"; empty if the
// server has no port.
func (e *Server) ClientURL() string {
	if !e.listens {
		return ""
	}
	return e.srv.ClientURL()
}

// InProcess returns an option that connects without a port, at half the latency of loopback:
//
//	nats.Connect("", e.InProcess())
//
// It also lets the server take a minute to begin, instead of the client's two seconds.
func (e *Server) InProcess() nats.Option {
	return func(o *nats.Options) error {
		o.InProcessServer, o.Timeout = e.srv, patience
		return nil
	}
}

// patience is how long a client in the same process waits for the server. The server can't be unreachable, but on a busy
// machine or disk it takes longer than the few seconds that a client waits for any other.
const patience = time.Minute

// WriteError returns why the log accepts no writes, nil if it does. The server notices at a
// write and does not retry: restart it once the cause is fixed.
func (e *Server) WriteError() error {
	health := e.srv.Healthz(&server.HealthzOptions{Account: server.DEFAULT_GLOBAL_ACCOUNT, Stream: natsdeploy.Stream})
	if health.Error == "" {
		return nil
	}
	return errors.New(health.Error)
}

// Stop closes all connections, writes the server's state and returns when the server has
// ended. Concurrent calls all wait for the end.
func (e *Server) Stop() {
	e.stop.Do(func() {
		if e.srv != nil {
			e.srv.Shutdown()
			e.srv.WaitForShutdown()
		}
		if err := e.lock.Unlock(); err != nil {
			e.log.Warn("unlock the data directory", "dir", e.dir, "error", err)
		}
	})
}

func (e *Server) streamDir() string {
	return filepath.Join(e.dir, server.JetStreamStoreDir, server.DEFAULT_GLOBAL_ACCOUNT, "streams", natsdeploy.Stream)
}

func lockDir(dir string) (*flock.Flock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("embedded NATS: data directory: %w", err)
	}
	lock := flock.New(filepath.Join(dir, "nats.lock"))
	ok, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("embedded NATS: lock %s: %w", lock.Path(), err)
	}
	if !ok {
		return nil, fmt.Errorf("embedded NATS: %w: another server runs on %s; stop it, or use another directory", natsdeploy.ErrDirInUse, dir)
	}
	return lock, nil
}

// listenAddress resolves the address to a loopback IP and a port for the server, where
// -1 means any free port. It tries the port, so that a clash is found before the server
// reads its files; the server itself finds later clashes.
func listenAddress(listen string) (host string, port int, err error) {
	addr, err := net.ResolveTCPAddr("tcp", listen)
	if err != nil {
		return "", 0, fmt.Errorf("embedded NATS: listen address %q: %w", listen, err)
	}
	if addr.IP == nil {
		addr.IP = net.IPv4(127, 0, 0, 1)
	}
	if !addr.IP.IsLoopback() {
		return "", 0, fmt.Errorf("embedded NATS: %q is %w: this server asks for no password, so anyone who can reach the port could read and write everything; listen on 127.0.0.1 or [::1], or run a nats-server with permissions.conf", listen, natsdeploy.ErrNotLoopback)
	}
	if addr.Port == 0 {
		return addr.IP.String(), server.RANDOM_PORT, nil
	}
	l, err := net.ListenTCP("tcp", addr)
	if isAddrInUse(err) {
		return "", 0, fmt.Errorf("embedded NATS: %w: something listens on %s already, perhaps another mneme or a nats-server; stop it, or choose another port (0 takes a free one)", natsdeploy.ErrPortInUse, addr)
	}
	if err != nil {
		return "", 0, fmt.Errorf("embedded NATS: %w", err)
	}
	return addr.IP.String(), addr.Port, l.Close()
}
