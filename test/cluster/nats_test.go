package cluster

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/internal/mnemetest"
)

// manifest is the NATS container in deploy/k8s.
type manifest struct {
	Spec struct {
		Replicas int
		Template struct {
			Spec struct {
				Grace      int `yaml:"terminationGracePeriodSeconds"`
				Containers []struct {
					Args           []string
					StartupProbe   probe `yaml:"startupProbe"`
					ReadinessProbe probe `yaml:"readinessProbe"`
					LivenessProbe  probe `yaml:"livenessProbe"`
					Lifecycle      struct {
						PreStop struct{ Exec struct{ Command []string } } `yaml:"preStop"`
					}
				}
			}
		}
	}
}

type probe struct {
	HTTPGet struct{ Path string } `yaml:"httpGet"`
}

// natsManifest reads the StatefulSet, which comes first in its file.
func natsManifest(t *testing.T) (m manifest) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "deploy/k8s/base/nats.yaml"))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &m))
	return m
}

// natsServer is a server of the cluster. It can be restarted.
type natsServer struct {
	*process
	t       *testing.T
	name    string // nats-0
	host    string // with port, for clients
	command []string
	stop    []string // the command that Kubernetes runs before it stops a server
	grace   time.Duration
	ready   []string // paths of its probes
}

// startNATS runs the servers of the manifest, on ports of this machine.
func startNATS(t *testing.T) []*natsServer {
	t.Helper()
	m := natsManifest(t)
	container := m.Spec.Template.Spec.Containers[0]
	binary, dir := program(t, "nats-server"), t.TempDir()
	routes := make([]string, m.Spec.Replicas)
	var here []string // pairs for a Replacer
	for i := range routes {
		routes[i] = "127.0.0.1:" + mnemetest.FreePort(t)
		here = append(here, "nats-"+strconv.Itoa(i)+".nats-headless:6222", routes[i])
	}
	var servers []*natsServer
	for i, route := range routes {
		s := &natsServer{t: t, name: "nats-" + strconv.Itoa(i), grace: time.Duration(m.Spec.Template.Spec.Grace) * time.Second}
		client, monitor := mnemetest.FreePort(t), mnemetest.FreePort(t)
		s.host = "127.0.0.1:" + client
		own := strings.NewReplacer(append(here, "/etc/mneme", filepath.Join(dir, s.name), "0.0.0.0:6222", route, "0.0.0.0", "127.0.0.1",
			"--http_port=8222", "--http_port="+monitor, "$(POD_NAME)", s.name, "/run/nats", filepath.Join(dir, s.name))...)
		s.command = []string{binary}
		for _, arg := range container.Args {
			s.command = append(s.command, own.Replace(arg))
		}
		s.command = append(s.command, "--port="+client)
		for _, arg := range container.Lifecycle.PreStop.Exec.Command {
			s.stop = append(s.stop, own.Replace(arg))
		}
		s.stop[0] = binary
		s.ready = []string{container.StartupProbe.HTTPGet.Path, container.ReadinessProbe.HTTPGet.Path, container.LivenessProbe.HTTPGet.Path}
		require.NoError(t, os.MkdirAll(filepath.Join(dir, s.name), 0o700))
		conf := strings.Replace(natsdeploy.ServerConf, `"/data"`, strconv.Quote(filepath.Join(dir, s.name)), 1)
		require.NoError(t, os.WriteFile(filepath.Join(dir, s.name, "server.conf"), []byte(conf), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, s.name, "permissions.conf"), []byte(natsdeploy.PermissionsConf), 0o600))
		s.process = start(t, s.name, "http://127.0.0.1:"+monitor, passwords(), s.command...)
		servers = append(servers, s)
	}
	for _, s := range servers {
		s.awaitReady()
	}
	return servers
}

// password returns the password of a user of NATS in these tests.
func password(user string) string { return "of-" + user }

// passwords are the variables of the servers.
func passwords() (list []string) {
	for _, r := range natsdeploy.Roles() {
		list = append(list, natsdeploy.PasswordVariable(r.Name)+"="+password(r.Name))
	}
	agent := natsdeploy.AgentUser("default")
	return append(list, natsdeploy.PasswordVariable(agent)+"="+password(agent))
}

func (s *natsServer) awaitReady() {
	s.t.Helper()
	for _, path := range s.ready {
		s.await(path)
	}
}

// again restarts a server that has ended.
func (s *natsServer) again() {
	s.t.Helper()
	s.process = start(s.t, s.name, s.url, passwords(), s.command...)
	s.awaitReady()
}

// handOver stops a server as Kubernetes does.
func (s *natsServer) handOver() {
	s.t.Helper()
	start(s.t, s.name+" preStop", "", nil, s.stop...).awaitEnd(patience)
	s.terminate(s.grace)
}
