package k8s

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// programNames lists mneme's programs that run in the cluster.
var programNames = []string{"ingestor", "file-tracker", "summarizer", "context-api"}

// The paths where programs answer probes; TestProbesAreAnswered requests them.
var paths = []string{"/healthz", "/readyz"}

// pods checks the rules for every pod.
func pods(r *rendered, p *programs) (wrong []string) {
	for _, w := range r.workloads {
		var list []string
		if len(w.pod.Spec.Containers) != 1 || len(w.pod.Spec.InitContainers) > 0 {
			wrong = append(wrong, w.name+" does not have exactly one container, as these rules expect")
			continue
		}
		rules := []func(*workload) []string{contained, bounded, mounted}
		if w.job == nil {
			rules = append(rules, selector, probed)
		}
		for _, rule := range rules {
			list = append(list, rule(w)...)
		}
		list = append(list, r.there(w)...)
		list = append(list, image(w)...)
		if slices.Contains(programNames, w.name) {
			list = append(list, r.program(w, p)...)
		}
		for _, text := range list {
			wrong = append(wrong, w.name+" "+text)
		}
	}
	return wrong
}

func selector(w *workload) (wrong []string) {
	if !matches(w.selector, w.pod.Labels) {
		wrong = append(wrong, "does not select its own pods")
	}
	for _, c := range w.pod.Spec.TopologySpreadConstraints {
		if !matches(c.LabelSelector, w.pod.Labels) {
			wrong = append(wrong, "spreads other pods than its own")
		}
	}
	if w.name != "neo4j" && len(w.pod.Spec.TopologySpreadConstraints) != 2 {
		wrong = append(wrong, "is not spread over nodes and zones")
	}
	return wrong
}

// contained pods have no rights that they don't need.
func contained(w *workload) (wrong []string) {
	complain := func(ok bool, text string) {
		if !ok {
			wrong = append(wrong, text)
		}
	}
	no := func(b *bool) bool { return b != nil && !*b }
	spec, pod, c := w.pod.Spec, w.pod.Spec.SecurityContext, w.container().SecurityContext
	if pod == nil || c == nil {
		return []string{"has no securityContext"}
	}
	complain(pod.RunAsNonRoot != nil && *pod.RunAsNonRoot && pod.RunAsUser != nil && *pod.RunAsUser > 0, "may run as root")
	complain(pod.SeccompProfile != nil && pod.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault, "has no seccomp profile")
	complain(no(c.AllowPrivilegeEscalation), "may gain rights")
	complain(c.Capabilities != nil && slices.Equal(c.Capabilities.Drop, []corev1.Capability{"ALL"}) && len(c.Capabilities.Add) == 0, "has capabilities")
	complain(w.name == "neo4j" || c.ReadOnlyRootFilesystem != nil && *c.ReadOnlyRootFilesystem, "can write to its image")
	complain(no(spec.AutomountServiceAccountToken), "has a token of the cluster")
	complain(no(spec.EnableServiceLinks), "has variables that nobody set")
	complain(!spec.HostNetwork && !spec.HostPID && !spec.HostIPC, "shares the node's namespaces")
	return wrong
}

// bounded pods have requests and limits, and the target of Go's collector is below the limit.
func bounded(w *workload) (wrong []string) {
	r := w.container().Resources
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if r.Requests.Name(name, resource.DecimalSI).IsZero() || r.Limits.Name(name, resource.DecimalSI).IsZero() {
			wrong = append(wrong, fmt.Sprintf("has no request and limit of %s", name))
		}
	}
	if r.Requests.Memory().Cmp(*r.Limits.Memory()) != 0 {
		wrong = append(wrong, "is promised less memory than it may take")
	}
	aim := ""
	for _, e := range w.container().Env {
		if e.Name == "GOMEMLIMIT" {
			aim = e.Value
		}
	}
	bytes, err := resource.ParseQuantity(strings.TrimSuffix(aim, "B"))
	if w.name != "neo4j" && (err != nil || bytes.Value() > r.Limits.Memory().Value()*9/10) {
		wrong = append(wrong, fmt.Sprintf("has GOMEMLIMIT=%s, not a tenth below its memory limit", aim))
	}
	return wrong
}

func probed(w *workload) (wrong []string) {
	c := w.container()
	for name, probe := range map[string]*corev1.Probe{"readiness": c.ReadinessProbe, "liveness": c.LivenessProbe, "startup": c.StartupProbe} {
		switch {
		case probe == nil:
			if name != "startup" {
				wrong = append(wrong, "has no "+name+" probe")
			}
		case probe.HTTPGet != nil:
			if _, ok := w.port(probe.HTTPGet.Port); !ok {
				wrong = append(wrong, fmt.Sprintf("is probed at port %s, which it does not have", &probe.HTTPGet.Port))
			}
			if slices.Contains(programNames, w.name) && !slices.Contains(paths, probe.HTTPGet.Path) {
				wrong = append(wrong, "is probed at "+probe.HTTPGet.Path+", where nothing answers")
			}
		case probe.TCPSocket != nil:
			if _, ok := w.port(probe.TCPSocket.Port); !ok {
				wrong = append(wrong, fmt.Sprintf("is probed at port %s, which it does not have", &probe.TCPSocket.Port))
			}
		default:
			wrong = append(wrong, "is probed in a way that these rules don't know")
		}
	}
	// The time that programs need to end: 10 s for a batch, 5 s for requests, and the steps before.
	need := int64(20)
	if c.Lifecycle != nil && c.Lifecycle.PreStop != nil && c.Lifecycle.PreStop.Sleep != nil {
		need += c.Lifecycle.PreStop.Sleep.Seconds
	}
	if grace := w.pod.Spec.TerminationGracePeriodSeconds; grace == nil || *grace < need {
		wrong = append(wrong, fmt.Sprintf("is not given the %d s that it may need to stop", need))
	}
	return wrong
}

func mounted(w *workload) (wrong []string) {
	names := []string{}
	for _, v := range w.pod.Spec.Volumes {
		names = append(names, v.Name)
	}
	for _, c := range w.claims {
		names = append(names, c.Name)
	}
	for _, m := range w.container().VolumeMounts {
		if !slices.Contains(names, m.Name) {
			wrong = append(wrong, "mounts "+m.Name+", which it does not have")
		}
	}
	if len(names) != len(w.container().VolumeMounts) {
		wrong = append(wrong, "has volumes that it does not mount")
	}
	return wrong
}

// there checks that everything a pod refers to exists.
func (r *rendered) there(w *workload) (wrong []string) {
	for _, v := range w.pod.Spec.Volumes {
		if v.ConfigMap != nil && r.configMaps[v.ConfigMap.Name] == nil {
			wrong = append(wrong, "mounts the ConfigMap "+v.ConfigMap.Name+", which is not there")
		}
	}
	for _, v := range w.pod.Spec.Volumes {
		if c := v.PersistentVolumeClaim; c != nil && !slices.ContainsFunc(r.claims, func(p *corev1.PersistentVolumeClaim) bool { return p.Name == c.ClaimName }) {
			wrong = append(wrong, "mounts the claim "+c.ClaimName+", which is not there")
		}
	}
	if w.service != "" && !slices.ContainsFunc(r.services, func(s *corev1.Service) bool { return s.Name == w.service }) {
		wrong = append(wrong, "has names by the Service "+w.service+", which is not there")
	}
	return wrong
}

// pinned matches an image with a full version or a digest.
var pinned = regexp.MustCompile(`:\d+\.\d+\.\d+[^/]*$|@sha256:[0-9a-f]{64}$`)

// image is the image in docker-compose.yml, or mneme under another name, with a version.
func image(w *workload) (wrong []string) {
	compose, err := os.ReadFile(filepath.Join(root, "docker-compose.yml"))
	if err != nil {
		return []string{err.Error()}
	}
	name := w.container().Image
	if strings.Contains(string(compose), ":-"+name+"}") {
		return nil
	}
	ours := (slices.Contains(programNames, w.name) || w.job != nil) && strings.HasPrefix(name[strings.LastIndex(name, "/")+1:], "mneme:")
	if !ours || !pinned.MatchString(name) {
		wrong = append(wrong, "runs "+name+", neither an image of docker-compose.yml nor a version of mneme")
	}
	return wrong
}

// program compares a container with the settings that its program knows.
func (r *rendered) program(w *workload, p *programs) (wrong []string) {
	c := w.container()
	if len(c.Command) != 1 || len(c.Args) > 0 || !slices.Contains(p.names, c.Command[0]) || c.Command[0] != w.name {
		return []string{fmt.Sprintf("runs %q, which is not the program of its name", append(slices.Clone(c.Command), c.Args...))}
	}
	variables, err := r.environment(c)
	if err != nil {
		return []string{err.Error()}
	}
	known := []string{"GOMEMLIMIT", "GOGC", "NATS_PASSWORD", "NATS_ADDRESS"}
	for _, part := range []string{w.name, "traces"} {
		names, err := p.settings(part, variables)
		if err != nil {
			return append(wrong, "is refused: "+err.Error())
		}
		known = append(known, names...)
	}
	for variable := range variables {
		if !slices.Contains(known, variable) {
			wrong = append(wrong, "sets "+variable+", which it does not know")
		}
	}
	host, port, _ := net.SplitHostPort(variables["MNEME_LISTEN"])
	if ports := c.Ports; host != "0.0.0.0" || len(ports) != 1 || fmt.Sprint(ports[0].ContainerPort) != port || w.pod.Annotations["prometheus.io/port"] != port {
		wrong = append(wrong, "listens on "+variables["MNEME_LISTEN"]+", not where others look for it")
	}
	if r.overlay != "base" {
		for _, name := range []string{"MNEME_NATS_URL", "MNEME_NEO4J_URI"} {
			if !r.resolves(variables[name]) {
				wrong = append(wrong, "connects to "+variables[name]+", which is not there")
			}
		}
	}
	return wrong
}
