package k8s

import (
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// check lists what is wrong with an overlay, sorted.
func check(r *rendered, p *programs) []string {
	wrong := slices.Clone(r.elsewhere)
	for _, name := range programNames {
		if r.workload(name) == nil {
			return []string{name + " is not there"}
		}
	}
	if len(r.namespaces) != 1 || r.namespaces[0].Name != "mneme" || r.namespaces[0].Labels["pod-security.kubernetes.io/enforce"] != "restricted" {
		wrong = append(wrong, "there is not one namespace mneme for restricted pods")
	}
	wrong = append(wrong, pods(r, p)...)
	wrong = append(wrong, services(r)...)
	wrong = append(wrong, budgets(r)...)
	wrong = append(wrong, network(r)...)
	wrong = append(wrong, models(r)...)
	wrong = append(wrong, natsServers(r)...)
	wrong = append(wrong, neo4jServer(r)...)
	page, err := os.ReadFile(filepath.Join(root, "docs/metrics.md"))
	if err != nil {
		return []string{err.Error()}
	}
	wrong = append(wrong, scaling(r, string(page))...)
	slices.Sort(wrong)
	return slices.Compact(wrong)
}

// services lead to existing ports of pods.
func services(r *rendered) (wrong []string) {
	for _, s := range r.services {
		found := false
		for _, w := range r.workloads {
			if !matches(&metav1.LabelSelector{MatchLabels: s.Spec.Selector}, w.pod.Labels) {
				continue
			}
			found = true
			if s.Name != w.name && s.Name != w.service {
				wrong = append(wrong, "Service "+s.Name+" leads to "+w.name)
			}
			for _, p := range s.Spec.Ports {
				if got, ok := w.port(p.TargetPort); !ok || got != p.Port {
					wrong = append(wrong, fmt.Sprintf("Service %s leads from port %d to %s, which %s does not have or is another", s.Name, p.Port, &p.TargetPort, w.name))
				}
			}
		}
		if !found {
			wrong = append(wrong, "Service "+s.Name+" leads nowhere")
		}
		if s.Spec.Type != "" && s.Spec.Type != corev1.ServiceTypeClusterIP {
			wrong = append(wrong, "Service "+s.Name+" is reached from outside of the cluster")
		}
	}
	return wrong
}

// resolves reports whether a URL names a Service with its port, or an external host.
func (r *rendered) resolves(text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return false
	}
	if strings.Contains(u.Hostname(), ".") {
		return true
	}
	return slices.ContainsFunc(r.services, func(s *corev1.Service) bool {
		return s.Name == u.Hostname() && slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return fmt.Sprint(p.Port) == u.Port() })
	})
}

// budgets allow one pod of each workload to be evicted at a time.
func budgets(r *rendered) (wrong []string) {
	needed := 0
	for _, w := range r.workloads {
		if w.job != nil {
			continue
		}
		needed++
		var found []string
		for _, b := range r.budgets {
			if matches(b.Spec.Selector, w.pod.Labels) {
				found = append(found, b.Name)
			}
			if m := b.Spec.MaxUnavailable; m == nil || *m != intstr.FromInt32(1) {
				wrong = append(wrong, "PodDisruptionBudget "+b.Name+" does not let one pod go at a time")
			}
		}
		if !slices.Equal(found, []string{w.name}) {
			wrong = append(wrong, fmt.Sprintf("%s has the budgets %q, not its own", w.name, found))
		}
	}
	if len(r.budgets) != needed {
		wrong = append(wrong, "there are budgets for nothing")
	}
	return wrong
}

// models: the program that embeds messages and the one that searches them use the same settings, and so do the one that
// has summaries written and the one that has analyses done.
func models(r *rendered) (wrong []string) {
	of := func(name string) map[string]string {
		variables, _ := r.environment(r.workload(name).container())
		maps.DeleteFunc(variables, func(name, _ string) bool {
			return !strings.HasPrefix(name, "MNEME_EMBEDDINGS") && !strings.HasPrefix(name, "MNEME_LLM") && name != "MNEME_SUMMARY_WRITER"
		})
		return variables
	}
	embeds, searches := of("summarizer"), of("context-api")
	names := maps.Clone(embeds)
	maps.Copy(names, searches)
	for name := range names {
		there, too := searches[name]
		if here, set := embeds[name]; set != too || here != there {
			wrong = append(wrong, "summarizer and context-api have not the same "+name)
		}
	}
	return wrong
}

// flag returns the value of an argument of nats-server.
func flag(w *workload, name string) string {
	for _, arg := range w.container().Args {
		if value, ok := strings.CutPrefix(arg, "--"+name+"="); ok {
			return value
		}
	}
	return ""
}

// setting finds a value in server.conf.
func setting(text, name string) string {
	found := regexp.MustCompile(`(?m)^\s*` + name + `: "?(.*?)"?$`).FindStringSubmatch(text)
	if found == nil {
		return ""
	}
	return found[1]
}

// natsServers run with deploy/nats/server.conf, know each other, and keep the log.
func natsServers(r *rendered) (wrong []string) {
	w := r.workload("nats")
	variables, _ := r.environment(r.workload("ingestor").container())
	replicas, _ := strconv.Atoi(variables["MNEME_REPLICAS"])
	partitions, _ := strconv.Atoi(variables["MNEME_PARTITIONS"])
	for name := range projections {
		if n := r.workload(name).replicas; n != nil && int(*n) > partitions {
			wrong = append(wrong, fmt.Sprintf("%s runs %d times and shares %d partitions", name, *n, partitions))
		}
	}
	if w == nil {
		return wrong
	}
	complain := func(ok bool, text string) {
		if !ok {
			wrong = append(wrong, "nats "+text)
		}
	}
	conf, err := os.ReadFile(filepath.Join(root, "deploy/nats/server.conf"))
	if err != nil {
		return []string{err.Error()}
	}
	permissions, err := os.ReadFile(filepath.Join(root, "deploy/nats/permissions.conf"))
	if err != nil {
		return []string{err.Error()}
	}
	wrong = append(wrong, natsUsers(r, w, string(permissions))...)
	complain(slices.Equal(w.container().Command, []string{"nats-server"}), "runs something else than nats-server")
	mounts := map[string]string{} // by volume
	for _, m := range w.container().VolumeMounts {
		mounts[m.Name] = m.MountPath
	}
	runs := false
	for _, v := range w.pod.Spec.Volumes {
		if v.ConfigMap != nil && r.configMaps[v.ConfigMap.Name] != nil {
			data := r.configMaps[v.ConfigMap.Name].Data
			runs = runs || data["server.conf"] == string(conf) && data["permissions.conf"] == string(permissions) && flag(w, "config") == mounts[v.Name]+"/permissions.conf"
		}
	}
	complain(runs, "does not run with deploy/nats/permissions.conf and server.conf")
	complain(*w.replicas == 3 && replicas == 3, "does not keep three copies")
	var routes []string
	for i := range int(*w.replicas) {
		routes = append(routes, fmt.Sprintf("nats://%s-%d.%s:6222", w.name, i, w.service))
	}
	complain(flag(w, "routes") == strings.Join(routes, ","), "does not know its other servers")
	complain(flag(w, "cluster") == "nats://0.0.0.0:6222" && flag(w, "http_port") == "8222", "listens elsewhere than its ports say")
	complain(flag(w, "server_name") == "$(POD_NAME)" && flag(w, "cluster_name") != "", "has no name of its own in a cluster")
	var stop []string
	if l := w.container().Lifecycle; l != nil && l.PreStop != nil && l.PreStop.Exec != nil {
		stop = l.PreStop.Exec.Command
	}
	pid := flag(w, "pid")
	complain(slices.Equal(stop, []string{"nats-server", "--signal=ldm=" + pid}) && mounts["run"] == filepath.Dir(pid), "does not hand over before it stops")
	complain(*w.pod.Spec.TerminationGracePeriodSeconds > 130, "is not given the time to hand over")

	kept := false
	for _, c := range w.claims {
		kept = kept || mounts[c.Name] == setting(string(conf), "store_dir")
		has, want := c.Spec.Resources.Requests.Storage(), quantity(setting(string(conf), "max_file_store"))
		complain(r.overlay == "overlays/trial" || has.Value() >= want*5/4, "has a smaller disk than the log may take, and a fifth left")
	}
	complain(kept, "does not keep the log on a volume")
	headless := slices.ContainsFunc(r.services, func(s *corev1.Service) bool {
		return s.Name == w.service && s.Spec.ClusterIP == corev1.ClusterIPNone && s.Spec.PublishNotReadyAddresses
	})
	complain(headless, "has servers that don't find each other before they are ready")
	return wrong
}

// natsUsers have the same password at the server as in the URL of the program with their name.
func natsUsers(r *rendered, w *workload, permissions string) (wrong []string) {
	server, err := r.environment(w.container())
	if err != nil {
		wrong = append(wrong, err.Error())
	}
	users := regexp.MustCompile(`user: "([^"]+)", password: \$(\w+)`).FindAllStringSubmatch(permissions, -1)
	if len(users) == 0 {
		wrong = append(wrong, "deploy/nats/permissions.conf has no users")
	}
	for _, m := range users {
		user, password := m[1], server[m[2]]
		if password == "" {
			wrong = append(wrong, "nats has no "+m[2])
			continue
		}
		if !slices.Contains(programNames, user) {
			continue
		}
		variables, _ := r.environment(r.workload(user).container())
		if variables["MNEME_NATS_URL"] != "nats://"+user+":"+password+"@nats:4222" {
			wrong = append(wrong, user+" does not connect to NATS as itself, with the password in "+m[2])
		}
	}
	return wrong
}

// quantity reads a size of nats-server's configuration, "65GiB".
func quantity(text string) int64 {
	q, err := resource.ParseQuantity(strings.TrimSuffix(text, "B"))
	if err != nil {
		return 0
	}
	return q.Value()
}

// neo4jServer runs with our settings. Its image takes them from variables; "_" in a name
// means a dot, and "__" means "_". An unknown variable stops the server.
func neo4jServer(r *rendered) (wrong []string) {
	w := r.workload("neo4j")
	if w == nil {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(root, "deploy/neo4j/neo4j.conf"))
	if err != nil {
		return []string{err.Error()}
	}
	variables, err := r.environment(w.container())
	if err != nil {
		wrong = append(wrong, err.Error())
	}
	if variables["NEO4J_AUTH"] != "neo4j/"+variables["PASSWORD"] || variables["PASSWORD"] == "" {
		wrong = append(wrong, "neo4j does not take its password from the Secret")
	}
	compose, err := os.ReadFile(filepath.Join(root, "docker-compose.yml"))
	if err != nil {
		return []string{err.Error()}
	}
	ours := 0
	for _, s := range regexp.MustCompile(`(?m)^([a-z._]+)=(.*)$`).FindAllStringSubmatch(string(text), -1) {
		ours++
		if variables["NEO4J_"+strings.NewReplacer("_", "__", ".", "_").Replace(s[1])] != s[2] {
			wrong = append(wrong, "neo4j runs without "+s[0])
		}
	}
	for name := range variables {
		if strings.HasPrefix(name, "NEO4J_") && !strings.Contains(string(compose), name+":") {
			wrong = append(wrong, "neo4j has the setting "+name+", which docker-compose.yml does not have")
		}
	}
	if ours == 0 {
		wrong = append(wrong, "deploy/neo4j/neo4j.conf has no settings")
	}
	return wrong
}
