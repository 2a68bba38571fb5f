package program

import (
	"context"
	"crypto/tls"
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
)

// maxHeaderBytes bounds a request line with its headers. It allows a query of 100,000
// characters, each percent-encoded in 12 bytes, and the attributes of any event in binary
// mode that the log accepts.
const maxHeaderBytes = 1300 << 10

// maxStreams is how many requests a connection of HTTP/2 carries at the same time.
const maxStreams = 16

// HTTP serves a handler on an address.
type HTTP struct {
	listener net.Listener
	server   *http.Server
	handler  atomic.Pointer[http.Handler]
	cert     *certificate // nil: without TLS
	http2    bool
	hosts    hosts
	logger   *slog.Logger
	stop     sync.Once
	ended    sync.WaitGroup
}

// Serving says under which names, and how, a listener answers.
type Serving struct {
	Hosts             settings.Hosts
	AnyAddress        bool   // answer under every IP address, not only loopback
	CertFile, KeyFile string // empty: without TLS
	HTTP2             bool   // speak HTTP/2 too, also without TLS
}

// Listen binds the address, which the settings have checked; port 0 picks a free port. The
// error says if the port is in use. Requests for hosts that are not allowed never reach a
// handler. Until [HTTP.Start] the server answers that the
// program is alive but not ready.
func Listen(name, address string, s Serving, logger *slog.Logger) (*HTTP, error) {
	answered, err := newHosts(s.Hosts, s.AnyAddress)
	if err != nil {
		return nil, err
	}
	var cert *certificate
	if s.CertFile != "" {
		if cert, err = newCertificate(s.CertFile, s.KeyFile, logger); err != nil {
			return nil, &UsageError{fmt.Errorf("MNEME_TLS_CERT_FILE=%q: %w", s.CertFile, err)}
		}
	}
	listener, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s=%s: the port is in use by another program; stop it, or choose another port (:0 picks a free one)", name, address)
	}
	if err != nil {
		return nil, fmt.Errorf("%s=%s: %w", name, address, err)
	}
	h := &HTTP{listener: listener, hosts: answered, cert: cert, http2: s.HTTP2, logger: logger}
	h.serve()
	return h, nil
}

// URL returns the server's base URL.
func (h *HTTP) URL() string {
	if h.cert != nil {
		return "https://" + h.listener.Addr().String()
	}
	return "http://" + h.listener.Addr().String()
}

// Start passes requests to a handler from now on.
func (h *HTTP) Start(handler http.Handler) { h.handler.Store(&handler) }

func (h *HTTP) serve() {
	h.Start(starting())
	h.server = &http.Server{
		Handler: h.hosts.only(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*h.handler.Load()).ServeHTTP(w, r) })),
		// Otherwise net/http itself answers "OPTIONS *", for any host.
		DisableGeneralOptionsHandler: true,
		ReadHeaderTimeout:            10 * time.Second,
		MaxHeaderBytes:               maxHeaderBytes,
		IdleTimeout:                  2 * time.Minute,
		ErrorLog:                     slog.NewLogLogger(clientsLeave{h.logger.Handler()}, slog.LevelWarn),
	}
	if h.http2 {
		h.server.Protocols = &http.Protocols{}
		h.server.Protocols.SetHTTP1(true)
		h.server.Protocols.SetHTTP2(true)
		h.server.Protocols.SetUnencryptedHTTP2(true)
		h.server.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: maxStreams}
	}
	h.ended.Go(func() {
		serve := h.server.Serve
		if h.cert != nil {
			h.server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: h.cert.get}
			if !h.http2 { // the API's limits for slow clients are made for one request at a time on a connection
				h.server.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
			}
			serve = func(l net.Listener) error { return h.server.ServeTLS(l, "", "") }
		}
		if err := serve(h.listener); !errors.Is(err, http.ErrServerClosed) {
			h.logger.Error("the HTTP server stopped", "error", err)
		}
	})
}

// starting returns the handler of a program that still waits for its servers.
func starting() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", Alive)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "not ready: the program is waiting for its servers; its log says for which", http.StatusServiceUnavailable)
	})
	return mux
}

// Alive answers /healthz: the process runs.
func Alive(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") }

// Stop waits at most five seconds for requests in flight.
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
