package natsdeploy

import (
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// Away lists the servers of a cluster whose copy of a stream is not up to date, sorted: they are down, or
// catching up. It is empty for a stream with one copy.
func Away(info *jetstream.StreamInfo) (servers []string) {
	if info.Cluster == nil {
		return nil
	}
	for _, r := range info.Cluster.Replicas {
		if r.Offline || !r.Current {
			servers = append(servers, r.Name)
		}
	}
	slices.Sort(servers)
	return servers
}
