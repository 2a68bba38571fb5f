package k8s

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// matches reports whether a selector selects labels; no selector selects nothing.
func matches(selector *metav1.LabelSelector, set map[string]string) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(labels.Set(set))
}

// port finds a port of a pod by name or number.
func (w *workload) port(p intstr.IntOrString) (int32, bool) {
	for _, port := range w.container().Ports {
		if p.Type == intstr.String && port.Name == p.StrVal || p.Type == intstr.Int && port.ContainerPort == p.IntVal {
			return port.ContainerPort, true
		}
	}
	return 0, false
}

// peer is a pod that connects or is connected to.
type peer struct {
	name      string
	pod       map[string]string
	namespace map[string]string // labels of its namespace, nil for mneme's
	workload  *workload         // nil elsewhere
	address   netip.Addr        // outside of the cluster
}

func (r *rendered) peer(name string) peer {
	w := r.workload(name)
	return peer{name: name, pod: w.pod.Labels, workload: w}
}

// selects reports whether a rule's peers include this one. A rule without peers includes all.
func selects(list []networkingv1.NetworkPolicyPeer, p peer) bool {
	if len(list) == 0 {
		return true
	}
	return slices.ContainsFunc(list, func(one networkingv1.NetworkPolicyPeer) bool {
		if one.IPBlock != nil {
			return within(one.IPBlock, p.address)
		}
		if one.NamespaceSelector == nil && p.namespace != nil || one.NamespaceSelector != nil && !matches(one.NamespaceSelector, p.namespace) {
			return false
		}
		return one.PodSelector == nil || matches(one.PodSelector, p.pod)
	})
}

// within reports whether an address is in a block. Pods have no address here.
func within(block *networkingv1.IPBlock, address netip.Addr) bool {
	in := func(cidr string) bool { return netip.MustParsePrefix(cidr).Contains(address) }
	return address.IsValid() && in(block.CIDR) && !slices.ContainsFunc(block.Except, in)
}

// opens reports whether a rule opens a port of a pod, which resolves the port's name.
func opens(list []networkingv1.NetworkPolicyPort, to *workload, number int32) bool {
	return len(list) == 0 || slices.ContainsFunc(list, func(p networkingv1.NetworkPolicyPort) bool {
		if p.Protocol != nil && *p.Protocol != corev1.ProtocolTCP || p.Port == nil {
			return p.Port == nil
		}
		if to != nil {
			got, ok := to.port(*p.Port)
			return ok && got == number
		}
		return p.Port.Type == intstr.Int && p.Port.IntVal == number
	})
}

// connects reports whether the policies let one pod connect to a port of another.
func (r *rendered) connects(from, to peer, port int32) bool {
	leaves, enters := true, true
	for _, direction := range []networkingv1.PolicyType{networkingv1.PolicyTypeEgress, networkingv1.PolicyTypeIngress} {
		isolated, allowed := false, false
		for _, policy := range r.policies {
			ends, other := from, to
			if direction == networkingv1.PolicyTypeIngress {
				ends, other = to, from
			}
			if ends.workload == nil || !slices.Contains(policy.Spec.PolicyTypes, direction) || !matches(&policy.Spec.PodSelector, ends.pod) {
				continue
			}
			isolated = true
			for _, rule := range policy.Spec.Egress {
				allowed = allowed || direction == networkingv1.PolicyTypeEgress && selects(rule.To, other) && opens(rule.Ports, to.workload, port)
			}
			for _, rule := range policy.Spec.Ingress {
				allowed = allowed || direction == networkingv1.PolicyTypeIngress && selects(rule.From, other) && opens(rule.Ports, to.workload, port)
			}
		}
		if direction == networkingv1.PolicyTypeEgress {
			leaves = !isolated || allowed
		} else {
			enters = !isolated || allowed
		}
	}
	return leaves && enters
}

// link is a required connection.
type link struct{ from, to string }

// network allows exactly the required connections.
func network(r *rendered) (wrong []string) {
	needed := map[link][]int32{}
	for _, program := range programNames {
		needed[link{program, "nats"}] = []int32{4222}
		needed[link{program, "neo4j"}] = []int32{7687}
		needed[link{"prometheus", program}] = []int32{8420, 8421, 8422, 8423}
	}
	needed[link{"nats", "nats"}] = []int32{6222}
	needed[link{"agent", "nats"}] = []int32{4222}
	needed[link{"backup", "nats"}] = []int32{4222}
	needed[link{"agent", "context-api"}] = []int32{8420}

	peers := map[string]peer{
		"agent":      {name: "agent", namespace: map[string]string{"mneme.dev/access": "granted"}},
		"prometheus": {name: "prometheus", namespace: map[string]string{"mneme.dev/metrics": "granted"}},
		"a stranger": {name: "a stranger", namespace: map[string]string{}, pod: map[string]string{"app.kubernetes.io/component": "program"}},
		"a neighbor": {name: "a neighbor", pod: map[string]string{}, workload: &workload{pod: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{}}}}}},
		"elsewhere":  {name: "elsewhere", namespace: map[string]string{}, pod: map[string]string{}},
	}
	for _, w := range r.workloads {
		peers[w.name] = r.peer(w.name)
	}
	for _, from := range slices.Sorted(maps.Keys(peers)) {
		for _, to := range r.workloads {
			for _, port := range to.container().Ports {
				want := slices.Contains(needed[link{from, to.name}], port.ContainerPort)
				if got := r.connects(peers[from], r.peer(to.name), port.ContainerPort); got != want {
					wrong = append(wrong, fmt.Sprintf("NetworkPolicies: %s reaches port %d of %s: %t", from, port.ContainerPort, to.name, got))
				}
			}
		}
	}
	// Someone else's pod in the namespace.
	for _, name := range slices.Sorted(maps.Keys(peers)) {
		if r.connects(peers[name], peers["a neighbor"], 80) {
			wrong = append(wrong, "NetworkPolicies: "+name+" reaches a pod without a policy of its own")
		}
	}
	// Hosts outside the cluster.
	for _, program := range programNames {
		for name, port := range map[string]int32{"nats": 4222, "neo4j": 7687} {
			if want := r.workload(name) == nil; want != r.connects(r.peer(program), peers["elsewhere"], port) {
				wrong = append(wrong, fmt.Sprintf("NetworkPolicies: %s reaches port %d anywhere: %t", program, port, !want))
			}
		}
		if r.connects(r.peer(program), peers["elsewhere"], 443) {
			wrong = append(wrong, "NetworkPolicies: "+program+" reaches what it does not need")
		}
	}
	for _, w := range r.workloads {
		wrong = append(wrong, outside(r, w)...)
	}
	return append(wrong, selecting(r)...)
}

// outside: only programs that call a model reach hosts outside, and only public ones.
func outside(r *rendered, from *workload) (wrong []string) {
	variables, _ := r.environment(from.container())
	calls := slices.Contains([]string{"openai", "anthropic"}, variables["MNEME_SUMMARY_WRITER"]) || variables["MNEME_EMBEDDINGS"] == "openai"
	for address, public := range map[string]bool{
		"203.0.113.7": true, "2001:db8::7": true, "10.1.2.3": false, "100.64.1.2": false, "169.254.169.254": false, "172.20.1.2": false, "192.168.1.2": false, "fd00::7": false,
	} {
		for _, port := range []int32{80, 443} {
			to := peer{namespace: map[string]string{}, address: netip.MustParseAddr(address)}
			if want, got := calls && public && port == 443, r.connects(r.peer(from.name), to, port); got != want {
				wrong = append(wrong, fmt.Sprintf("NetworkPolicies: %s reaches port %d of %s: %t", from.name, port, address, got))
			}
		}
	}
	return wrong
}

// selecting policies select something, and the ports that they name exist.
func selecting(r *rendered) (wrong []string) {
	resolves := func(policy string, pod *metav1.LabelSelector, ports []networkingv1.NetworkPolicyPort) {
		var selected []*workload
		for _, w := range r.workloads {
			if matches(pod, w.pod.Labels) {
				selected = append(selected, w)
			}
		}
		if len(selected) == 0 {
			wrong = append(wrong, "NetworkPolicy "+policy+" selects no pod")
		}
		for _, w := range selected {
			for _, p := range ports {
				if _, ok := w.port(*p.Port); !ok {
					wrong = append(wrong, fmt.Sprintf("NetworkPolicy %s opens port %s, which %s does not have", policy, p.Port, w.name))
				}
			}
		}
	}
	for _, policy := range r.policies {
		resolves(policy.Name, &policy.Spec.PodSelector, nil)
		for _, rule := range policy.Spec.Ingress {
			resolves(policy.Name, &policy.Spec.PodSelector, rule.Ports)
			for _, from := range rule.From {
				if from.NamespaceSelector == nil && from.PodSelector != nil {
					resolves(policy.Name, from.PodSelector, nil)
				}
			}
		}
		for _, rule := range policy.Spec.Egress {
			for _, to := range rule.To {
				if to.NamespaceSelector == nil && to.PodSelector != nil {
					resolves(policy.Name, to.PodSelector, rule.Ports)
				}
			}
		}
	}
	return wrong
}
