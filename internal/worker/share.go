package worker

import (
	"crypto/rand"
	"os"
	"strings"

	"mneme.dev/mneme/internal/version"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/projection"
)

// NewLeases returns what takes the leases of this process and announces it to others. The name of the
// process is the host name and a suffix that changes at each start.
func NewLeases(log *eventlog.Log, program string) (*projection.Leases, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	return projection.NewLeases(projection.LeaseConfig{
		Conn: log.Conn(), Process: host + "-" + strings.ToLower(rand.Text()[:6]), Program: program, Version: version.Get().Short(),
	})
}
