package service

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/internal/settings"
)

// hosts are the names under which a listener answers.
//
// A page of any web site can have its own name point to 127.0.0.1 once it is loaded (DNS
// rebinding). The browser then takes this program for that site: it sends no sign of
// another origin and lets the page read the answers. What gives the page away is the name
// itself, which the browser sends as Host. Names of the loopback can't be the site's. Nor
// can an IP address: a browser that is given one resolves nothing.
type hosts struct {
	names       []string
	anyLiteral  bool // answer under every IP address, not only those of the loopback
	explanation string
}

// newHosts reads the names from the settings. In a trusted network every IP address will
// do: probes and collectors ask pods and containers by theirs.
func newHosts(s settings.Hosts, trusted bool) (hosts, error) {
	names, err := s.Names()
	if err != nil {
		return hosts{}, &UsageError{err}
	}
	known := "localhost and addresses of the loopback"
	if trusted {
		known = "localhost and IP addresses"
	}
	return hosts{names, trusted, "this program answers under " + known + ", and under the names in MNEME_ALLOWED_HOSTS; if this name is meant for it, add it there"}, nil
}

// allow tells whether a request for this authority, a host with or without a port, is
// answered.
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

// hostIn is the host of an authority, in lower case, without port, brackets and the dot
// of the root; false if it has none or is not well-formed.
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

// only answers requests for the allowed hosts by the handler, and refuses others before
// anything of them is looked at.
//
// The refusal is 421, not 403: nobody's rights are missing, the request went to a server
// that does not serve this name (RFC 9110, 15.5.20). One without a host is refused as
// well; HTTP/1.1 demands it and every browser sends it.
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
		body, err := json.Marshal(huma.ErrorModel{Status: http.StatusMisdirectedRequest, Title: http.StatusText(http.StatusMisdirectedRequest), Detail: detail})
		if err != nil {
			panic(err)
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Connection", "close") // the body, if any, is not read
		w.WriteHeader(http.StatusMisdirectedRequest)
		_, _ = w.Write(append(body, '\n'))
	})
}
