package service

import (
	"crypto/rand"
	"os"
	"strings"

	"mneme/pkg/eventlog"
	"mneme/pkg/projection"
)

// Share is the option of a projector whose store several processes write to. The
// process takes leases as its host and a suffix that is another one at each start.
func Share(log *eventlog.Log) (projection.Option, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	leases, err := projection.NewLeases(projection.LeaseConfig{Conn: log.Conn(), Process: host + "-" + strings.ToLower(rand.Text()[:6])})
	if err != nil {
		return nil, err
	}
	return projection.Shared(leases, generation), nil
}
