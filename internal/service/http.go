package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/telemetry"
	"mneme.dev/mneme/pkg/projection"
)

// maxHeaderBytes is what a request's first line and headers may take: more than a query of
// 100,000 characters, each percent-encoded in 12 bytes, and more than the log takes of an
// event in binary mode, whose attributes are headers.
const maxHeaderBytes = 1300 << 10

// HTTP serves a handler on an address.
type HTTP struct {
	listener net.Listener
	server   *http.Server
	handler  atomic.Pointer[http.Handler]
	hosts    hosts
	logger   *slog.Logger
	stop     sync.Once
	ended    sync.WaitGroup
}

// Listen takes the address, which the settings let through; a port of 0 takes a free
// one. It says so if the port is in use. Requests for other hosts than the allowed ones
// never reach a handler; trusted allows every IP address. Until [HTTP.Start] it answers that the program
// lives but is not ready.
func Listen(name, address string, allowed settings.Hosts, trusted bool, logger *slog.Logger) (*HTTP, error) {
	answered, err := newHosts(allowed, trusted)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s=%s: the port is in use by another program; end it, or choose another port (:0 takes a free one)", name, address)
	}
	if err != nil {
		return nil, fmt.Errorf("%s=%s: %w", name, address, err)
	}
	h := &HTTP{listener: listener, hosts: answered, logger: logger}
	h.serve()
	return h, nil
}

// URL is where the server answers.
func (h *HTTP) URL() string { return "http://" + h.listener.Addr().String() }

// Start begins to answer with a handler.
func (h *HTTP) Start(handler http.Handler) { h.handler.Store(&handler) }

func (h *HTTP) serve() {
	h.Start(starting())
	h.server = &http.Server{
		Handler: h.hosts.only(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*h.handler.Load()).ServeHTTP(w, r) })),
		// Else net/http answers "OPTIONS *" itself, whatever the host.
		DisableGeneralOptionsHandler: true,
		ReadHeaderTimeout:            10 * time.Second,
		MaxHeaderBytes:               maxHeaderBytes,
		IdleTimeout:                  2 * time.Minute,
		ErrorLog:                     slog.NewLogLogger(h.logger.Handler(), slog.LevelWarn),
	}
	h.ended.Go(func() {
		if err := h.server.Serve(h.listener); !errors.Is(err, http.ErrServerClosed) {
			h.logger.Error("the HTTP server ended", "error", err)
		}
	})
}

// starting answers for a program that waits for its servers.
func starting() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", alive)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "not ready: the program waits for its servers, its log says for which", http.StatusServiceUnavailable)
	})
	return mux
}

func alive(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") }

// Stop lets requests in flight end, for five seconds at most.
func (h *HTTP) Stop() {
	h.stop.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := h.server.Shutdown(ctx); err != nil {
			_ = h.server.Close()
		}
		h.ended.Wait()
	})
}

// Health serves /healthz (the process runs), /readyz (its store answers) and /metrics.
// State and lag are in the body of /readyz; they don't make a program unready.
func Health(c Worker, t *telemetry.Telemetry) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", t.Metrics.Handler())
	mux.HandleFunc("GET /healthz", alive)
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := c.Ready(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		for _, s := range c.Status() {
			if s.State == projection.StateIdle && s.Holder != "" {
				fmt.Fprintf(w, "%s partition %d: %s, %s holds it\n", s.Projection, s.Partition, s.State, s.Holder)
				continue
			}
			fmt.Fprintf(w, "%s partition %d: %s, checkpoint %d, lag %d %s\n", s.Projection, s.Partition, s.State, s.Checkpoint.Seq, s.Lag, s.Error)
		}
	})
	return t.HTTP(mux, mux)
}
