package compose

import (
	"fmt"
	"net"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/docker/go-units"
)

// ours reports whether a service runs a program of mneme.
func ours(s types.ServiceConfig, project *types.Project) bool {
	return s.Image == project.Services["ingestor"].Image
}

// scaled lists the services that may run more than once.
var scaled = []string{"ingestor", "file-tracker", "summarizer"}

// check lists what is wrong with a project, sorted.
func check(project *types.Project, p *programs) []string {
	var wrong []string
	for name, service := range project.Services {
		var list []string
		for _, rule := range []func(types.ServiceConfig) []string{checked, reachable, contained, memory, waits} {
			list = append(list, rule(service)...)
		}
		if ours(service, project) {
			list = append(list, program(service, p)...)
		} else {
			list = append(list, image(service)...)
		}
		if slices.Contains(scaled, name) && len(service.Ports) > 0 {
			list = append(list, "has a port of the host, of which there is one, and may run more than once")
		}
		for _, w := range list {
			wrong = append(wrong, name+" "+w)
		}
	}
	wrong = append(wrong, natsServer(project)...)
	wrong = append(wrong, neo4jServer(project)...)
	wrong = append(wrong, password(project)...)
	wrong = append(wrong, ofSummaries(project, p)...)
	slices.Sort(wrong)
	return wrong
}

// pinned matches an image with a full version or a digest.
var pinned = regexp.MustCompile(`:\d+\.\d+\.\d+[^/]*$|@sha256:[0-9a-f]{64}$`)

func image(s types.ServiceConfig) []string {
	if !pinned.MatchString(s.Image) {
		return []string{fmt.Sprintf("runs an image without a full version: %s", s.Image)}
	}
	return nil
}

// checked services have a health check, restart when they end, and get time to end
// gracefully.
func checked(s types.ServiceConfig) (wrong []string) {
	if h := s.HealthCheck; h == nil || h.Disable || len(h.Test) < 2 || h.Test[0] != "CMD" || h.Interval == nil || h.Timeout == nil || h.StartPeriod == nil {
		wrong = append(wrong, "has no whole health check")
	}
	if s.Restart != types.RestartPolicyUnlessStopped {
		wrong = append(wrong, "does not start again when it ends")
	}
	if s.StopGracePeriod == nil {
		wrong = append(wrong, "is not given time to stop")
	}
	return wrong
}

func reachable(s types.ServiceConfig) (wrong []string) {
	for _, port := range s.Ports {
		if ip := net.ParseIP(port.HostIP); ip == nil || !ip.IsLoopback() {
			wrong = append(wrong, fmt.Sprintf("publishes port %s off loopback", port.Published))
		}
	}
	if s.NetworkMode != "" {
		wrong = append(wrong, "has another network than the project's")
	}
	return wrong
}

// contained services have no rights that they don't need, and can run twice.
func contained(s types.ServiceConfig) (wrong []string) {
	if s.Privileged || len(s.CapAdd) > 0 || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") {
		wrong = append(wrong, "has rights of root")
	}
	if s.ContainerName != "" {
		wrong = append(wrong, "has a container_name, of which there is one")
	}
	return wrong
}

// memory is limited, and the target of Go's collector is below the limit.
func memory(s types.ServiceConfig) []string {
	if s.MemLimit == 0 {
		return []string{"has no memory limit"}
	}
	aim := s.Environment["GOMEMLIMIT"]
	if aim == nil {
		return nil
	}
	bytes, err := units.RAMInBytes(*aim)
	if err != nil || bytes >= int64(s.MemLimit) {
		return []string{fmt.Sprintf("has GOMEMLIMIT=%s, not below its memory limit", *aim)}
	}
	return nil
}

// waits until its dependencies are healthy, not only started.
func waits(s types.ServiceConfig) (wrong []string) {
	for name, d := range s.DependsOn {
		if d.Condition != types.ServiceConditionHealthy {
			wrong = append(wrong, fmt.Sprintf("does not wait until %s is healthy", name))
		}
	}
	return wrong
}

// program compares a service with the settings that its program knows.
func program(s types.ServiceConfig, p *programs) (wrong []string) {
	if len(s.Entrypoint) > 0 || len(s.Command) != 1 || !slices.Contains(p.names, s.Command[0]) {
		return []string{fmt.Sprintf("runs %q, which is none of %s", append(slices.Clone(s.Entrypoint), s.Command...), strings.Join(p.names, ", "))}
	}
	name := s.Command[0]
	if h := s.HealthCheck; h == nil || !slices.Equal(h.Test, []string{"CMD", name, "--healthy"}) {
		wrong = append(wrong, "does not check itself by --healthy")
	}
	known, err := p.settings(name, s.Environment)
	if err != nil {
		return append(wrong, "is refused by "+name+": "+err.Error())
	}
	traces, err := p.settings("traces", s.Environment)
	if err != nil {
		return append(wrong, "is refused by traces: "+err.Error())
	}
	known = slices.Concat(known, traces, []string{"GOMEMLIMIT", "GOGC"})
	for variable := range s.Environment {
		if !slices.Contains(known, variable) {
			wrong = append(wrong, "sets "+variable+", which "+name+" does not know")
		}
	}
	_, port, _ := net.SplitHostPort(value(s, "MNEME_LISTEN"))
	for _, published := range s.Ports {
		if port != fmt.Sprint(published.Target) {
			wrong = append(wrong, fmt.Sprintf("publishes port %d and listens on %s", published.Target, port))
		}
	}
	return wrong
}

// storeDir is where a server with our configuration keeps the log.
var storeDir = regexp.MustCompile(`(?m)^\s*store_dir: "(.*)"$`)

// natsServer runs with our configuration and permissions, and keeps the log on a volume.
func natsServer(project *types.Project) (wrong []string) {
	const permissions, included = "deploy/nats/permissions.conf", "deploy/nats/server.conf"
	s := project.Services["nats"]
	text, err := os.ReadFile(filepath.Join(root, included))
	if err != nil {
		return []string{err.Error()}
	}
	mounted, kept := map[string]string{}, false
	for _, v := range s.Volumes {
		if relative, err := filepath.Rel(project.WorkingDir, v.Source); v.Type == types.VolumeTypeBind && err == nil {
			mounted[relative] = v.Target
		}
		kept = kept || v.Type == types.VolumeTypeVolume && v.Target == storeDir.FindStringSubmatch(string(text))[1]
	}
	if i := slices.Index(s.Command, "--config"); i < 0 || i+1 == len(s.Command) || s.Command[i+1] != mounted[permissions] {
		wrong = append(wrong, "nats does not run with "+permissions)
	}
	if path.Join(path.Dir(mounted[permissions]), path.Base(included)) != mounted[included] {
		wrong = append(wrong, "nats does not find "+included+" beside "+permissions)
	}
	if !kept {
		wrong = append(wrong, "nats does not keep the log on a volume")
	}
	return append(wrong, natsUsers(project)...)
}

// natsPassword matches a password that the configuration takes from the environment.
var natsPassword = regexp.MustCompile(`user: "([^"]+)", password: \$(\w+)`)

// natsUsers have the same password at the server as in the URL of the program with their name.
func natsUsers(project *types.Project) (wrong []string) {
	text, err := os.ReadFile(filepath.Join(root, "deploy/nats/permissions.conf"))
	if err != nil {
		return []string{err.Error()}
	}
	for _, match := range natsPassword.FindAllStringSubmatch(string(text), -1) {
		user, variable := match[1], match[2]
		password := project.Services["nats"].Environment[variable]
		if password == nil || *password == "" {
			wrong = append(wrong, "nats has no "+variable)
			continue
		}
		program, ok := project.Services[user]
		if url := program.Environment["MNEME_NATS_URL"]; ok && (url == nil || *url != "nats://"+user+":"+*password+"@nats:4222") {
			wrong = append(wrong, user+" does not connect to NATS as itself, with the password in "+variable)
		}
	}
	return wrong
}

// setting matches a line of neo4j.conf.
var setting = regexp.MustCompile(`(?m)^([a-z._]+)=(.*)$`)

// neo4jServer runs with our settings. Its image takes them from variables; "_" in a name
// means a dot, and "__" means "_".
func neo4jServer(project *types.Project) (wrong []string) {
	text, err := os.ReadFile(filepath.Join(root, "deploy/neo4j/neo4j.conf"))
	if err != nil {
		return []string{err.Error()}
	}
	ours := setting.FindAllStringSubmatch(string(text), -1)
	if len(ours) == 0 {
		return []string{"deploy/neo4j/neo4j.conf has no settings"}
	}
	for _, s := range ours {
		variable := "NEO4J_" + strings.NewReplacer("_", "__", ".", "_").Replace(s[1])
		if value(project.Services["neo4j"], variable) != s[2] {
			wrong = append(wrong, "neo4j runs without "+s[0])
		}
	}
	return wrong
}

// password is the same for Neo4j and its clients.
func password(project *types.Project) (wrong []string) {
	auth := value(project.Services["neo4j"], "NEO4J_AUTH")
	for name, s := range project.Services {
		if ours(s, project) && auth != "neo4j/"+value(s, "MNEME_NEO4J_PASSWORD") {
			wrong = append(wrong, name+" has another password than Neo4j")
		}
	}
	return wrong
}

// ofSummaries checks the settings of summaries, which ingestor does not have. The environment
// sets them, the key of a model above all; settings that name files need a volume too.
func ofSummaries(project *types.Project, p *programs) (wrong []string) {
	others, err := p.settings("ingestor", nil)
	if err != nil {
		return []string{err.Error()}
	}
	for _, name := range []string{"summarizer", "context-api"} {
		all, err := p.settings(name, nil)
		if err != nil {
			return []string{err.Error()}
		}
		for _, variable := range all {
			set, named := project.Services[name].Environment[variable]
			switch outside, there := project.Environment[variable]; {
			case slices.Contains(others, variable) || strings.HasSuffix(variable, "_FILE"):
			case !named:
				wrong = append(wrong, name+" is not given "+variable+" of the environment")
			case set != nil && !(there && *set == outside):
				wrong = append(wrong, name+" sets "+variable+" itself")
			}
		}
	}
	return wrong
}

func value(s types.ServiceConfig, variable string) string {
	if v := s.Environment[variable]; v != nil {
		return *v
	}
	return ""
}
