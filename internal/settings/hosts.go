package settings

import (
	"net/netip"
	"regexp"
	"strings"
)

// Hosts configures the host names under which a program answers HTTP.
type Hosts struct {
	AllowedHosts string `placeholder:"NAMES" envconfig:"MNEME_ALLOWED_HOSTS" desc:"host names under which clients reach this program over HTTP, comma separated, without port; names of this machine's loopback need not be listed"`
}

// hostName matches a DNS name or the name of a docker compose service.
var hostName = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$`)

// Names returns the allowed host names and IP addresses in lower case, without brackets and
// without a trailing dot. The error names the variable.
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

// check reports an invalid host name.
func (h Hosts) check() error {
	_, err := h.Names()
	return err
}
