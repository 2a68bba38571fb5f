package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	natsdeploy "mneme.dev/mneme/deploy/nats"
)

// copiesPatience is how long the cluster may take to tell where one stream is. Those that nobody answers for are asked
// about one after the other.
const copiesPatience = 2 * time.Second

// kept is a stream or bucket of the NATS server: how people call it, what raises the number of its copies, and what
// stops while nobody answers for it.
type kept struct{ stream, name, edit, without string }

var allKept = []kept{
	{natsdeploy.Stream, "the log", "nats stream edit " + natsdeploy.Stream, "nothing can be published, and nothing new is applied"},
	{"KV_" + natsdeploy.LeaseBucket, "the bucket " + natsdeploy.LeaseBucket, "nats kv edit " + natsdeploy.LeaseBucket, "no process drives a partition of a read model in Neo4j, so nothing new becomes readable"},
	{"KV_" + natsdeploy.ControlBucket, "the bucket " + natsdeploy.ControlBucket, "nats kv edit " + natsdeploy.ControlBucket, "nothing is rebuilt or erased"},
	{"KV_" + natsdeploy.TokenBucket, "the bucket " + natsdeploy.TokenBucket, "nats kv edit " + natsdeploy.TokenBucket, "new tokens are refused, none can be revoked, and a context-api that starts does not serve"},
	{natsdeploy.AuditStream, "the audit log", "nats stream edit " + natsdeploy.AuditStream, "changes are refused with 503"},
}

// copies checks, in a cluster, that every server holds what it should, and that one server may fail.
func (e *examination) copies(ctx context.Context, conn *nats.Conn, js jetstream.JetStream) {
	const check = "copies"
	if conn.ConnectedClusterName() == "" {
		return
	}
	found, before := 0, len(e.findings)
	behind := map[string][]string{} // by server, what it has no good copy of
	for _, k := range allKept {
		info, err := whereIs(ctx, js, k.stream)
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound): // nobody has needed it yet
			continue
		case err != nil && errors.Is(conn.LastError(), nats.ErrPermissionViolation):
			e.add(check, Warning, "not checked, because the NATS server does not let this user ask about "+k.stream, "give the NATS server the roles of this version: docs/operations/access.md")
			return
		case err != nil || info.Cluster == nil || info.Cluster.Leader == "":
			e.add(check, Failed, k.name+" does not answer: "+k.without, "start the NATS servers that are down: most of those with a copy must run; a single copy needs its one server")
			continue
		case len(info.Cluster.Replicas) == 0:
			e.add(check, Warning, fmt.Sprintf("%s has one copy, on %s: while that server is down, %s", k.name, info.Cluster.Leader, k.without),
				fmt.Sprintf("%s --replicas %d, as the user admin", k.edit, natsdeploy.ClusterReplicas))
		}
		found++
		for _, server := range natsdeploy.Away(info) {
			behind[server] = append(behind[server], k.name)
		}
	}
	for _, server := range slices.Sorted(maps.Keys(behind)) {
		e.add(check, Warning, fmt.Sprintf("the NATS server %s is down or behind, with its copies of: %s", server, strings.Join(behind[server], ", ")),
			"start it if it is down, and stop no other server of the cluster until this warning has gone")
	}
	if found > 0 && len(e.findings) == before {
		e.add(check, OK, "one server of the cluster may fail: everything has several copies, and all are up to date", "")
	}
}

func whereIs(ctx context.Context, js jetstream.JetStream, stream string) (*jetstream.StreamInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, copiesPatience)
	defer cancel()
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return nil, err
	}
	return s.CachedInfo(), nil
}
