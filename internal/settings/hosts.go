package settings

import (
	"net/netip"
	"regexp"
	"strings"
)

// Hosts is under which names a program answers HTTP.
type Hosts struct {
	AllowedHosts string `placeholder:"NAMES" envconfig:"MNEME_ALLOWED_HOSTS" desc:"host names under which clients reach this program over HTTP, comma separated, without port; names of this machine's loopback need not be listed"`
}

// hostName is a DNS name, or one that docker compose gives a service.
var hostName = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$`)

// Names are the allowed host names and IP addresses in lower case, without brackets and
// without the dot of the root. The error names the variable.
func (h Hosts) Names() ([]string, error) {
	var names []string
	for one := range strings.SplitSeq(h.AllowedHosts, ",") {
		text := strings.TrimSpace(one)
		if text == "" {
			continue
		}
		name := strings.TrimSuffix(strings.ToLower(text), ".")
		if ip, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")); err == nil && ip.Zone() == "" {
			names = append(names, ip.Unmap().String())
			continue
		}
		if len(name) > 253 || !hostName.MatchString(name) {
			return nil, refuse("MNEME_ALLOWED_HOSTS", text, "not a host name: give names such as mneme.example.org, separated by commas, without scheme, port or *")
		}
		names = append(names, name)
	}
	return names, nil
}

// check tells whether every name can be one.
func (h Hosts) check() error {
	_, err := h.Names()
	return err
}
