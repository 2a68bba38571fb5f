package compose

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// cache is the folder that prepare.sh fills.
const cache = root + "/.cache/compose"

// supervised runs a command until its standard input ends, so that it ends with the test,
// however the test ends.
const supervised = `"$@" & read -r _; kill $!; wait`

// engine makes sure that a Docker engine answers, and returns the environment for docker and
// docker compose to find it. If it starts an engine, that engine has its own folders, changes
// neither the firewall nor the routes of the machine, and ends with the test.
func engine(t *testing.T) []string {
	t.Helper()
	if exec.Command("docker", "version").Run() == nil {
		return os.Environ()
	}
	unpacked, err := filepath.Abs(cache + "/engine")
	require.NoError(t, err)
	data, err := filepath.Abs(cache + "/data")
	require.NoError(t, err)
	run, err := os.MkdirTemp("", "mneme-engine-") // short, because the path of a socket is limited to 108 bytes
	require.NoError(t, err)

	lib, err := filepath.Glob(unpacked + "/usr/lib/*-linux-gnu")
	require.NoError(t, err)
	path := unpacked + "/usr/sbin:" + unpacked + "/usr/bin:" + os.Getenv("PATH")
	env := append(os.Environ(), "PATH="+path, "DOCKER_HOST=unix://"+run+"/docker.sock")
	var log bytes.Buffer
	daemon := exec.Command("sh", "-c", supervised, "sh", "dockerd", "--host", "unix://"+run+"/docker.sock",
		"--data-root", data, "--exec-root", run, "--pidfile", run+"/dockerd.pid",
		"--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false")
	daemon.Env = append(env, "LD_LIBRARY_PATH="+strings.Join(lib, ":"))
	for _, dir := range lib {
		daemon.Env = append(daemon.Env, "XTABLES_LIBDIR="+dir+"/xtables")
	}
	daemon.Stdout, daemon.Stderr = &log, &log
	input, err := daemon.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, daemon.Start())
	t.Cleanup(func() {
		require.NoError(t, input.Close())
		_ = daemon.Wait()
		require.NoError(t, os.RemoveAll(run))
		left, err := exec.Command("pgrep", "--full", run).Output()
		assert.Error(t, err, "processes of the engine are left: %s", left)
		if t.Failed() {
			t.Logf("the engine: %s", tail(log.String(), 20))
		}
	})
	answers := func() bool {
		cmd := exec.Command(unpacked+"/usr/bin/docker", "version")
		cmd.Env = env
		return cmd.Run() == nil
	}
	require.Eventually(t, answers, patience, 100*time.Millisecond, "no engine")
	return env
}

// tail returns the last lines of a text.
func tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// project is docker-compose.yml running for a test.
type project struct {
	t     *testing.T
	env   []string
	files []string

	url, nats string // where the services answer on this machine
}

// name of the project, the same in each run, so that a run finds the remains of a killed
// one.
const name = "mneme-test"

// images not named by an environment variable are built as stand-ins.
var images = map[string]string{"NATS_IMAGE": "nats", "NEO4J_IMAGE": "neo4j", "BUILD_IMAGE": "golang"}

// newProject builds the images of the compose file and chooses free ports.
func newProject(t *testing.T) *project {
	t.Helper()
	p := &project{t: t, env: engine(t), files: []string{"docker-compose.yml"}}
	p.env = append(p.env, "PROGRAMS_IMAGE="+name+"/mneme:local", "NEO4J_PASSWORD=another-password", "API_PORT=0", "NATS_PORT=0", "NEO4J_PORT=0")
	var standIns []string
	for variable, service := range images {
		if os.Getenv(variable) == "" {
			p.env = append(p.env, variable+"="+name+"/"+service+":local")
			standIns = append(standIns, service)
		}
	}
	if len(standIns) > 0 {
		context, err := filepath.Abs(cache + "/context")
		require.NoError(t, err)
		proxy, err := exec.Command("go", "env", "GOPROXY").Output()
		require.NoError(t, err)
		p.env = append(p.env, "STANDIN_CONTEXT="+context, "GOPROXY="+strings.TrimSpace(string(proxy)))
		p.files = append(p.files, "test/compose/standin/compose.yml")
	}
	t.Cleanup(p.remove)
	p.compose("down", "--volumes", "--remove-orphans")
	for _, service := range standIns {
		p.compose("build", service)
	}
	p.compose("build")
	return p
}

// remove deletes the project. In an engine that the test started it keeps the images, for
// the next run.
func (p *project) remove() {
	if p.t.Failed() {
		p.t.Logf("%s", p.try("docker", "ps", "--all"))
		p.t.Logf("%s", tail(p.try(p.command("logs", "--no-color", "--tail", "40")...), 200))
	}
	p.compose("down", "--volumes", "--remove-orphans", "--timeout", "20")
	p.try("docker", "image", "prune", "--force")
	for _, kind := range []string{"container", "volume", "network"} {
		all := []string{"docker", kind, "ls", "--quiet", "--filter", "label=com.docker.compose.project=" + name}
		if kind == "container" {
			all = append(all, "--all")
		}
		assert.Empty(p.t, p.try(all...), "a %s is left", kind)
	}
}

func (p *project) command(args ...string) []string {
	binary, err := filepath.Abs(cache + "/docker-compose")
	require.NoError(p.t, err)
	list := []string{binary, "--progress", "plain", "--project-name", name}
	for _, file := range p.files {
		list = append(list, "--file", file)
	}
	return append(list, args...)
}

// compose runs a command of docker compose and returns what it printed.
func (p *project) compose(args ...string) string {
	p.t.Helper()
	begun := time.Now()
	out, err := p.run(p.command(args...)...)
	require.NoError(p.t, err, "docker compose %s: %s", strings.Join(args, " "), tail(out, 40))
	if took := time.Since(begun); took > time.Second {
		p.t.Logf("docker compose %s: %s", strings.Join(args, " "), took.Round(time.Second))
	}
	return out
}

// docker runs a command that must succeed.
func (p *project) docker(args ...string) string {
	p.t.Helper()
	out, err := p.run(append([]string{"docker"}, args...)...)
	require.NoError(p.t, err, "docker %s: %s", strings.Join(args, " "), out)
	return strings.TrimSpace(out)
}

// try runs a command and returns its output, even if it fails.
func (p *project) try(command ...string) string {
	out, _ := p.run(command...)
	return strings.TrimSpace(out)
}

func (p *project) run(command ...string) (string, error) {
	path := command[0]
	if unpacked := cache + "/engine/usr/bin/" + path; !filepath.IsAbs(path) {
		if absolute, err := filepath.Abs(unpacked); err == nil {
			if _, err := os.Stat(absolute); err == nil {
				path = absolute
			}
		}
	}
	cmd := exec.Command(path, command[1:]...)
	cmd.Dir, cmd.Env = root, p.env
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	if err != nil {
		return out.String() + said.String(), err
	}
	return out.String(), nil
}
