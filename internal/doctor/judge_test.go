package doctor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/rebuild"
	"mneme.dev/mneme/pkg/projection"
)

func TestSkippedEventsAreToldBesideWhatHoldsAProjectionUp(t *testing.T) {
	t.Parallel()
	building := []httpapi.Rebuild{{Projection: "graph", State: string(rebuild.Building)}}
	for name, c := range map[string]struct {
		status   httpapi.ProjectionStatus
		rebuilds []httpapi.Rebuild
		level    Level
		what     string
	}{
		"nothing else": {httpapi.ProjectionStatus{Failed: 2}, nil, Warning, "events that were skipped: 2"},
		"an error":     {httpapi.ProjectionStatus{Failed: 2, Error: "timeout"}, nil, Warning, "timeout; events that were skipped: 2"},
		"idle":         {httpapi.ProjectionStatus{Failed: 2, State: "idle"}, nil, Warning, "no process is known to drive it; events that were skipped: 2"},
		"lag":          {httpapi.ProjectionStatus{Failed: 2, Lag: manyBehind + 1}, nil, Warning, "it lags far behind; events that were skipped: 2"},
		"halted":       {httpapi.ProjectionStatus{Failed: 2, State: "halted", Error: "no"}, nil, Failed, "no"},
		"a rebuild":    {httpapi.ProjectionStatus{Failed: 2, State: "halted", Error: "no"}, building, OK, "it is being rebuilt from the log; mneme status shows the progress"},
		"none":         {httpapi.ProjectionStatus{Error: "timeout"}, nil, Warning, "timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			c.status.Name = "graph"
			level, what, remedy := Judge(c.status, c.rebuilds)
			require.Equal(t, c.level, level)
			require.Equal(t, c.what, what)
			if c.level == Warning && c.status.Failed > 0 {
				require.Contains(t, remedy, "mneme failed retry")
			}
		})
	}
}

func TestAReadModelOfAnotherVersionIsSaidToBeRebuiltByMnemeUp(t *testing.T) {
	t.Parallel()
	why := projection.OtherBuild("files", "files/v1/00000000", "files/v2/00000000").Error()
	_, what, remedy := Judge(httpapi.ProjectionStatus{Name: "files", State: "halted", Error: why}, nil)
	require.Equal(t, why, what)
	require.Contains(t, remedy, "mneme up does that itself")
}
