package program

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"mneme.dev/mneme/internal/settings"
)

// hosts are the names under which a listener answers.
//
// Any web site can make its own name resolve to 127.0.0.1 after its page has loaded (DNS
// rebinding). The browser then treats this program as part of that site: it marks no
// request as cross-origin and lets the page read the answers. Only the name gives the page
// away, because the browser sends it as Host. It can't be a loopback name, which the site
// does not own, nor an IP address, for which a browser does no lookup.
type hosts struct {
	names       []string
	anyLiteral  bool // answer under every IP address, not only loopback addresses
	explanation string
}

// newHosts reads the names from the settings. In a trusted network it allows every IP
// address, because probes and collectors address pods and containers by IP.
func newHosts(s settings.Hosts, trusted bool) (hosts, error) {
	names, err := s.Names()
	if err != nil {
		return hosts{}, &UsageError{err}
	}
	known := "localhost and loopback addresses"
	if trusted {
		known = "localhost and IP addresses"
	}
	return hosts{names, trusted, "this program answers under " + known + ", and under the names in MNEME_ALLOWED_HOSTS; if this name is legitimate, add it there"}, nil
}

// allow reports whether to answer a request for this authority, a host with or without a port.
func (h hosts) allow(authority string) bool {
	name, ok := hostIn(authority)
	if !ok {
		return false
	}
	if ip, err := netip.ParseAddr(name); err == nil {
		ip = ip.Unmap()
		return ip.Zone() == "" && (h.anyLiteral || ip.IsLoopback() || slices.Contains(h.names, ip.String()))
	}
	return name == "localhost" || strings.HasSuffix(name, ".localhost") && len(name) > len(".localhost") || slices.Contains(h.names, name)
}

// hostIn returns the host of an authority in lower case, without port, brackets and the
// trailing dot; false if there is none or the authority is malformed.
func hostIn(authority string) (string, bool) {
	name, port, _ := strings.Cut(authority, ":")
	if literal, ok := strings.CutPrefix(authority, "["); ok {
		if name, port, ok = strings.Cut(literal, "]"); !ok || !strings.Contains(name, ":") || port != "" && port[0] != ':' {
			return "", false
		}
		port = strings.TrimPrefix(port, ":")
	}
	if strings.Trim(port, "0123456789") != "" {
		return "", false
	}
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	return name, name != ""
}

// problem is a refusal as the API writes them (RFC 9457).
type problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

// only passes requests for the allowed hosts to the handler, and refuses all others before
// it looks at anything else.
//
// The refusal is 421, not 403: the client lacks no rights, but the server does not serve
// this name (RFC 9110, 15.5.20). Requests without a host are refused too; HTTP/1.1 requires
// one and every browser sends it.
func (h hosts) only(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.allow(r.Host) {
			next.ServeHTTP(w, r)
			return
		}
		detail := fmt.Sprintf("the host %.300q is not allowed: %s", r.Host, h.explanation)
		if r.Host == "" {
			detail = "the request names no host: " + h.explanation
		}
		body, err := json.Marshal(problem{http.StatusText(http.StatusMisdirectedRequest), http.StatusMisdirectedRequest, detail})
		if err != nil {
			panic(err)
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Connection", "close") // the body, if any, was not read
		w.WriteHeader(http.StatusMisdirectedRequest)
		_, _ = w.Write(append(body, '\n'))
	})
}
