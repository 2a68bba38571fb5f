package neo4jdeploy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Config says where and how a server runs.
type Config struct {
	// Dir holds everything the server stores, its configuration and its logs. It is
	// created if missing.
	Dir string
	// Jars is the folder that [Fetch] returned.
	Jars string
	// Listen is the loopback address of Bolt. Empty or a port of 0: a free port.
	Listen string
	// HeapMiB is the memory for statements and transactions, in MiB; default 384,
	// enough for a graph of 42,000 events. The process takes 300 MB in addition to heap
	// and page cache. Below 1024 the server is tuned to start fast and keeps plans for an
	// hour; from 1024 on it is tuned for sustained speed, so use that for benchmarks.
	HeapMiB int
	// PageCacheMiB is the memory for the store's files, in MiB; default 64.
	PageCacheMiB int
	// TransactionMiB is the memory that one transaction may take, in MiB; default 256.
	TransactionMiB int
	// Password is the password of the user "neo4j", at least 8 characters. If it is
	// empty, anyone who can reach the port has full access, even if the directory had a
	// password before.
	Password string
	// TLS makes the server accept only encrypted connections. Nil: only plain ones.
	TLS *TLS
}

// TLS names the PEM-encoded files that identify a server.
type TLS struct {
	CertFile string // for the host in Listen
	KeyFile  string // in PKCS #8, not encrypted
	CAFile   string // with which clients check CertFile

	// ClientCertFile and ClientKeyFile make the server refuse clients without a certificate signed by CAFile. They are
	// those of the client with which [Start] asks the server.
	ClientCertFile string
	ClientKeyFile  string
}

// User is the only user of a server started by this package.
const User = "neo4j"

// stopPatience is how long a stopping server may take to write its store.
const stopPatience = time.Minute

// Server is a running Neo4j in a separate process. On Linux it ends with this process;
// elsewhere it stays if this process ends without [Server.Stop], and the next Start on
// its directory returns [ErrDirInUse].
type Server struct {
	cfg     Config
	address string
	version string
	proc    *process
}

// Start starts a server and returns when it answers a query over Bolt, after 4 to 15
// seconds. It has everything that an earlier server committed in the directory, however
// that server ended.
//
// It returns [ErrNotFetched], [ErrNoJava], [ErrNotLoopback], [ErrPortInUse],
// [ErrDirInUse], [ErrPassword], or [ErrNotStarted] with the last lines of the log. The
// context applies only to the start.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	if err := cfg.complete(); err != nil {
		return nil, fmt.Errorf("Neo4j: %w", err)
	}
	s := &Server{cfg: cfg}
	if err := s.start(ctx); err != nil {
		return nil, fmt.Errorf("Neo4j in %s: %w", cfg.Dir, err)
	}
	return s, nil
}

// complete sets the defaults and checks what can be checked without a server.
func (c *Config) complete() error {
	if c.Dir == "" {
		return errors.New("no data directory")
	}
	c.HeapMiB = cmp.Or(c.HeapMiB, 384)
	c.PageCacheMiB = cmp.Or(c.PageCacheMiB, 64)
	c.TransactionMiB = cmp.Or(c.TransactionMiB, 256)
	if c.Password != "" && len(c.Password) < minPassword {
		return fmt.Errorf("%w: it needs %d characters or more", ErrPassword, minPassword)
	}
	var err error
	if c.Dir, err = filepath.Abs(c.Dir); err != nil {
		return err
	}
	if c.TLS == nil {
		return nil
	}
	files := *c.TLS // don't change the caller's
	for _, file := range []*string{&files.CertFile, &files.KeyFile, &files.CAFile, &files.ClientCertFile, &files.ClientKeyFile} {
		if *file == "" {
			continue
		}
		if *file, err = filepath.Abs(*file); err != nil {
			return err
		}
	}
	c.TLS = &files
	return nil
}

// freePortAttempts is how many free ports are tried: another program may take a port in
// the seconds before the server listens.
const freePortAttempts = 3

func (s *Server) start(ctx context.Context) error {
	var err error
	if s.version, err = Version(s.cfg.Jars); err != nil {
		return err
	}
	java, err := findJava(ctx, s.version)
	if err != nil {
		return err
	}
	if pid := storeHolder(s.cfg.Dir); pid != 0 {
		return fmt.Errorf("%w: the process %d has it open; end it, or use another directory", ErrDirInUse, pid)
	}
	for attempt := 1; ; attempt++ {
		var chosen bool
		if s.address, chosen, err = listenAddress(s.cfg.Listen); err != nil {
			return err
		}
		err = s.launch(ctx, java)
		if !chosen || attempt == freePortAttempts || !errors.Is(err, ErrPortInUse) {
			return err
		}
	}
}

// launch runs the process and waits until it answers.
func (s *Server) launch(ctx context.Context, java java) error {
	if err := s.cfg.writeConf(s.version, s.address); err != nil {
		return err
	}
	command, err := s.cfg.command(java, s.version)
	if err != nil {
		return err
	}
	if s.proc, err = run(command); err != nil {
		return err
	}
	if err = s.wait(ctx); err == nil {
		return nil
	}
	s.Kill()
	return err
}

func (s *Server) wait(ctx context.Context) error {
	select {
	case <-s.proc.started:
	case <-s.proc.ended:
		return s.proc.reason()
	case <-ctx.Done():
		return fmt.Errorf("%w: %w; its log ends:\n%s", ErrNotStarted, context.Cause(ctx), s.proc.tail())
	}
	err := s.answers(ctx)
	if err == nil || errors.Is(err, ErrPassword) {
		return err
	}
	return fmt.Errorf("%w: it does not answer at %s: %w; its log ends:\n%s", ErrNotStarted, s.URI(), err, s.proc.tail())
}

// URI is where clients connect, "bolt://127.0.0.1:7687", or "bolt+s://…" with TLS.
func (s *Server) URI() string {
	if s.cfg.TLS != nil {
		return "bolt+s://" + s.address
	}
	return "bolt://" + s.address
}

// Version is Neo4j's version, "5.26.30".
func (s *Server) Version() string { return s.version }

// PID is the number of its process.
func (s *Server) PID() int { return s.proc.cmd.Process.Pid }

// Ended returns a channel that is closed when the process ends, for whatever reason.
func (s *Server) Ended() <-chan struct{} { return s.proc.ended }

// Log returns the last lines that the server logged. Dir/logs/debug.log has more.
func (s *Server) Log() string { return s.proc.tail() }

// Stop makes the server write its store and end, and waits for that, less than a
// second. It does nothing if the server has ended.
func (s *Server) Stop() error {
	if err := s.proc.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.Kill() // the system has no signals
		return nil
	}
	patience := time.NewTimer(stopPatience)
	defer patience.Stop()
	select {
	case <-s.proc.ended:
		return nil
	case <-patience.C:
		s.Kill()
		return fmt.Errorf("Neo4j in %s: killed, it did not stop within %s; its next start recovers what was committed", s.cfg.Dir, stopPatience)
	}
}

// Kill kills the server (kill -9) and waits until it has ended.
func (s *Server) Kill() {
	_ = s.proc.cmd.Process.Kill() // fails if it has ended
	<-s.proc.ended
}

// Restart returns a new server on the directory and address of this one, which must
// have ended.
func (s *Server) Restart(ctx context.Context) (*Server, error) {
	cfg := s.cfg
	cfg.Listen = s.address
	return Start(ctx, cfg)
}

// listenAddress resolves the address to listen on. chosen means that it chose a free
// port.
func listenAddress(listen string) (address string, chosen bool, err error) {
	listen = cmp.Or(listen, "127.0.0.1:0")
	addr, err := net.ResolveTCPAddr("tcp", listen)
	if err != nil {
		return "", false, fmt.Errorf("listen address %q: %w", listen, err)
	}
	if addr.IP == nil {
		addr.IP = net.IPv4(127, 0, 0, 1)
	}
	if !addr.IP.IsLoopback() {
		return "", false, fmt.Errorf("%q is %w: this server is for tests and development; listen on 127.0.0.1 or [::1]", listen, ErrNotLoopback)
	}
	if addr.Port == 0 {
		address, err = freePort(addr.IP)
		return address, true, err
	}
	l, err := net.ListenTCP("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return "", false, fmt.Errorf("%w: something listens on %s already, perhaps another Neo4j; stop it, or choose another port (0 takes a free one)", ErrPortInUse, addr)
	}
	if err != nil {
		return "", false, err
	}
	return addr.String(), false, l.Close()
}
