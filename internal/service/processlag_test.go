package service_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/settings"
)

func TestAProcessLagsByWhatItsReadModelLacks(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	i := upOn(t, data, settings.Models{})
	i.applied(i.fill(1, 2))
	_, seq := hold(t, data, "graph", 1)
	last := i.publish(turns(t, "c0", 2, 6)) // nothing was delivered since it counted 0
	code, body := i.ask(http.MethodGet, "/v1/status", "")
	require.Equal(t, http.StatusOK, code)
	var status httpapi.Status
	require.NoError(t, json.Unmarshal([]byte(body), &status))
	p := status.Processes[0]
	n := slices.IndexFunc(p.Partitions, func(d httpapi.DrivenPartition) bool { return d.Projection == "graph" })
	require.Equal(t, last-seq, p.Partitions[n].Lag)
	require.GreaterOrEqual(t, p.Lag, last-seq)
}
