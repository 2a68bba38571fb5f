package doctor

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/natstest"
)

// copiesOn returns what the doctor says about copies, each with its level and remedy.
func copiesOn(t *testing.T, conn *nats.Conn, js jetstream.JetStream) (list []string) {
	t.Helper()
	e := &examination{now: time.Now}
	e.copies(mnemetest.Context(t), conn, js)
	for _, f := range e.findings {
		list = append(list, string(f.Level)+" "+f.Detail+" → "+f.Remedy)
	}
	return list
}

func TestDoctorSaysWhatACopyLacksInACluster(t *testing.T) {
	mnemetest.Long(t)
	t.Parallel()
	cluster := natstest.Start(t)
	conn, js := cluster.Log()
	stream, err := js.Stream(mnemetest.Context(t), natsdeploy.Stream)
	require.NoError(t, err)
	require.Equal(t, natsdeploy.ClusterReplicas, stream.CachedInfo().Config.Replicas, "unless told otherwise")
	_, _, err = natsdeploy.ApplyLeases(mnemetest.Context(t), js, 10*time.Second)
	require.NoError(t, err)
	said := func(what ...string) {
		t.Helper()
		var list []string
		require.Eventually(t, func() bool {
			list = copiesOn(t, conn, js)
			return !slices.ContainsFunc(what, func(w string) bool {
				return !slices.ContainsFunc(list, func(f string) bool { return strings.Contains(f, w) })
			})
		}, mnemetest.Patience, 100*time.Millisecond, "%q does not contain %q", &list, what)
	}
	said("ok one server of the cluster may fail")

	// With one copy, the bucket is gone while its server is down.
	bucket, err := js.Stream(mnemetest.Context(t), "KV_"+natsdeploy.LeaseBucket)
	require.NoError(t, err)
	config := bucket.CachedInfo().Config
	config.Replicas = 1
	_, err = js.UpdateStream(mnemetest.Context(t), config)
	require.NoError(t, err)
	said("warning the bucket AGENT_LEASES has one copy, on n", "nats kv edit AGENT_LEASES --replicas 3")
	var leader string
	require.Eventually(t, func() bool { // it has none for a moment
		info, err := bucket.Info(t.Context())
		if err != nil || len(info.Cluster.Replicas) > 0 {
			return false
		}
		leader = info.Cluster.Leader
		return leader != ""
	}, mnemetest.Patience, 10*time.Millisecond)
	cluster.Stop(slices.IndexFunc(cluster.Servers, func(s *server.Server) bool { return s.Name() == leader }))
	said("failed the bucket AGENT_LEASES does not answer: no process drives a partition", "warning the NATS server "+leader+" is down or behind, with its copies of: the log")
}
