package k8s

import (
	"bufio"
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEveryOverlayMatchesThePrograms(t *testing.T) {
	t.Parallel()
	dirs, err := filepath.Glob(filepath.Join(root, "deploy/k8s/overlays/*"))
	require.NoError(t, err)
	require.Len(t, dirs, len(overlays)-1, "an overlay is not tested")
	for _, overlay := range overlays {
		t.Run(overlay, func(t *testing.T) {
			t.Parallel()
			r, err := render(tree(t), overlay)
			require.NoError(t, err)
			require.Empty(t, check(r, built(t)))
			require.Equal(t, overlay != "overlays/external-nats", r.workload("nats") != nil)
			require.Equal(t, overlay == "overlays/trial", r.workload("neo4j") != nil)
			require.Equal(t, overlay == "overlays/autoscaled", len(r.scaled) == len(projections))
		})
	}
}

func TestOverlaysFailWithoutTheirSecrets(t *testing.T) {
	t.Parallel()
	files := tree(t)
	for file, overlay := range map[string]string{keyFile: "overlays/llm", embeddingsFile: "overlays/embeddings"} {
		delete(files, file)
		_, err := render(files, overlay)
		require.ErrorContains(t, err, path.Base(file))
	}
	for _, file := range []string{secretFile, natsFile} {
		files := tree(t)
		delete(files, file)
		for _, overlay := range overlays[1:] {
			_, err := render(files, overlay)
			require.ErrorContains(t, err, path.Base(file))
		}
	}
	examples := 0
	for name, text := range files {
		if strings.HasSuffix(name, ".env.example") {
			examples++
			require.Regexp(t, `(?m)^[a-z-]+=$`, text, "%s has a secret", name)
			for _, list := range []string{".gitignore", ".dockerignore"} {
				ignored, err := os.ReadFile(filepath.Join(root, list))
				require.NoError(t, err)
				require.Contains(t, strings.Split(string(ignored), "\n"), strings.TrimSuffix(name, ".example"), "%s lets a secret through", list)
			}
		}
	}
	require.Equal(t, 4, examples)
}

func TestSummaryAndEmbeddingModelsCanBeCombined(t *testing.T) {
	t.Parallel()
	files := tree(t)
	files["/deploy/k8s/overlays/own/kustomization.yaml"] = strings.Replace(files["/deploy/k8s/overlays/embeddings/kustomization.yaml"], "../production", "../llm", 1)
	r, err := render(files, "overlays/own")
	require.NoError(t, err)
	require.Empty(t, check(r, built(t)))
	for program, want := range map[string][]string{"ingestor": {"", ""}, "file-tracker": {"", ""}, "summarizer": {keySample, embeddingsSample}, "context-api": {keySample, embeddingsSample}} {
		variables, err := r.environment(r.workload(program).container())
		require.NoError(t, err)
		for i, name := range []string{"MNEME_LLM_KEY", "MNEME_EMBEDDINGS_KEY"} {
			require.Equal(t, strings.TrimSpace(strings.TrimPrefix(want[i], "key=")), variables[name], "%s of %s", name, program)
		}
	}
}

// Each of these mistakes must be found, to prove that the checks can fail.
func TestMistakesAreFound(t *testing.T) {
	t.Parallel()
	right := tree(t)
	for _, c := range []struct{ overlay, from, to, says string }{
		{"base", "MNEME_PARTITIONS=8", "MNEME_PARTITION=8", "ingestor sets MNEME_PARTITION, which it does not know"},
		{"base", "MNEME_PARTITIONS=8", "MNEME_PARTITIONS=99", "ingestor is refused: mneme: MNEME_PARTITIONS=99: not between 1 and 32"},
		{"base", "MNEME_PARTITIONS=8", "MNEME_PARTITIONS=1", "ingestor runs 2 times and shares 1 partitions"},
		{"base", "MNEME_REPLICAS=3", "MNEME_REPLICAS=1", "nats does not keep three copies"},
		{"base", "- MNEME_TRUST_NETWORK=true", "- GOGC=50", "loopback only"},
		{"base", "command: [ingestor]", "command: [summarizer]", `ingestor runs ["summarizer"]`},
		{"base", "command: [ingestor]", "command: [ingestor, --fast]", `ingestor runs ["ingestor" "--fast"]`},
		{"base", "command: [ingestor]", "comand: [ingestor]", `unknown field "spec.template.spec.containers[0].comand"`},
		{"base", "path: /readyz", "path: /ready", "context-api is probed at /ready, where nothing answers"},
		{"base", "httpGet: {path: /healthz, port: http}", "httpGet: {path: /healthz, port: health}", "file-tracker is probed at port health"},
		{"base", "image: mneme:local", "image: mneme:latest", "ingestor runs mneme:latest, neither"},
		{"base", "nats:2.15.2-alpine", "nats:2.14.0-alpine", "nats runs nats:2.14.0-alpine, neither"},
		{"base", "value: 0.0.0.0:8421", "value: 0.0.0.0:8429", "ingestor listens on 0.0.0.0:8429"},
		{"base", "limits: {cpu: \"2\", memory: 512Mi}", "limits: {memory: 512Mi}", "ingestor has no request and limit of cpu"},
		{"base", "requests: {cpu: 250m, memory: 512Mi}", "requests: {cpu: 250m, memory: 5Mi}", "ingestor is promised less memory"},
		{"base", "value: 400MiB", "value: 500MiB", "ingestor has GOMEMLIMIT=500MiB"},
		{"base", "value: 400MiB", "value: 400 MB", "ingestor has GOMEMLIMIT=400 MB"},
		{"base", "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", "nats can write to its image"},
		{"base", "seccompProfile: {type: RuntimeDefault}", "seccompProfile: {type: Unconfined}", "nats has no seccomp profile"},
		{"base", "runAsUser: 1000", "runAsUser: 0", "nats may run as root"},
		{"base", "terminationGracePeriodSeconds: 30", "terminationGracePeriodSeconds: 10", "context-api is not given the 25 s that it may need to stop"},
		{"base", "terminationGracePeriodSeconds: 150", "terminationGracePeriodSeconds: 60", "nats is not given the time to hand over"},
		{"base", "--signal=ldm=/run/nats/nats.pid", "--signal=ldm=/run/nats.pid", "nats does not hand over before it stops"},
		{"base", "nats-2.nats-headless:6222", "nats-2.nats:6222", "nats does not know its other servers"},
		{"base", "--config=/etc/mneme/permissions.conf", "--config=/etc/mneme/server.conf", "nats does not run with deploy/nats/permissions.conf"},
		{"base", "files: [server.conf, permissions.conf]", "files: [permissions.conf]", "nats does not run with deploy/nats/permissions.conf"},
		{"base", "nats://ingestor:", "nats://admin:", "ingestor does not connect to NATS as itself"},
		{"base", "name: MNEME_NATS_BACKUP_PASSWORD", "name: MNEME_NATS_BACKUPS_PASSWORD", "nats has no MNEME_NATS_BACKUP_PASSWORD"},
		{"base", "address=nats:4222", "adress=nats:4222", `wants the key "address" of the ConfigMap`},
		{"overlays/trial", "{name: nats, key: ingestor}", "{name: nats, key: ingester}", `ingestor wants the key "ingester" of the Secret`},
		{"base", "sync_interval: always", "sync_interval: 2m", "nats does not run with deploy/nats/permissions.conf"},
		{"base", "{name: data, mountPath: /data}", "{name: data, mountPath: /store}", "nats does not keep the log on a volume"},
		{"base", "storage: 82Gi", "storage: 65Gi", "nats has a smaller disk"},
		{"base", "publishNotReadyAddresses: true", "publishNotReadyAddresses: false", "don't find each other"},
		{"base", "{name: http, port: 8420, targetPort: http}", "{name: http, port: 80, targetPort: http}", "Service context-api leads from port 80"},
		{"base", "selector: {app.kubernetes.io/name: context-api}", "selector: {app.kubernetes.io/name: api}", "Service context-api leads nowhere"},
		{"base", "maxUnavailable: 1\n  selector:\n    matchLabels: {app.kubernetes.io/name: ingestor}", "maxUnavailable: 1\n  selector:\n    matchLabels: {app.kubernetes.io/name: ingester}", `ingestor has the budgets [], not its own`},
		{"base", "podSelector: {}\n  policyTypes: [Ingress, Egress]", "podSelector: {}\n  policyTypes: [Egress]", "NetworkPolicies: agent reaches a pod without a policy of its own"},
		{"base", "- namespaceSelector: {matchLabels: {mneme.dev/access: granted}}", "- namespaceSelector: {}", "NetworkPolicies: a stranger reaches port 4222 of nats: true"},
		{"base", "{protocol: TCP, port: cluster}", "{protocol: TCP, port: clusters}", "NetworkPolicies: nats reaches port 6222 of nats: false"},
		{"base", "{protocol: TCP, port: http}", "{protocol: TCP, port: https}", "opens port https, which context-api does not have"},
		{"base", "- {protocol: TCP, port: 7687}", "- {protocol: TCP, port: 7688}", "NetworkPolicies: ingestor reaches port 7687 anywhere: false"},
		{"overlays/trial", "namespace: mneme\n", "\n", `is in the namespace ""`},
		{"overlays/trial", "resources:\n  - neo4j.yaml", "resources: []", "ingestor connects to bolt://neo4j:7687, which is not there"},
		{"overlays/trial", "key: password}", "key: pass}", `wants the key "pass" of the Secret`},
		{"overlays/trial", "NEO4J_db_lock_acquisition_timeout", "NEO4J_db_lock__acquisition_timeout", "neo4j runs without db.lock.acquisition.timeout=20s"},
		{"overlays/trial", "enableServiceLinks: false # otherwise", "enableServiceLinks: true # otherwise", "neo4j has variables that nobody set"},
		{"overlays/production", "newTag: 1.0.0", "newTag: latest", "context-api runs registry.example.com/mneme:latest, neither"},
		{"overlays/production", "neo4j+s://neo4j.example.com:7687", "https://neo4j.example.com", "ingestor is refused: mneme: MNEME_NEO4J_URI"},
		{"overlays/autoscaled", "mneme_projection_lag_events", "mneme_projection_lag", "ScaledObject ingestor asks for mneme_projection_lag, which docs/metrics.md does not have"},
		{"overlays/autoscaled", "min by (partition)", "min by (shard)", "ScaledObject ingestor sums by shard"},
		{"overlays/autoscaled", `projection="files"`, `projection="graph"`, "ScaledObject file-tracker looks at the projection graph"},
		{"overlays/autoscaled", `projection="summaries"`, `projection="graph"`, "ScaledObject summarizer looks at the projection graph"},
		{"overlays/autoscaled", "maxReplicaCount: 8", "maxReplicaCount: 9", "ScaledObject ingestor makes 9 of what 8 partitions"},
		{"overlays/autoscaled", "maxReplicaCount: 8", "maxReplicas: 8", "maxReplicas"},
		{"overlays/autoscaled", `threshold: "5000"`, "threshold: 5000", "got number, want string"},
		{"overlays/autoscaled", "op: remove\n        path: /spec/replicas", "op: replace\n        path: /spec/replicas\n        value: 3", "which says itself how many there are"},
		{"base", "MNEME_SUMMARY_WRITER=extractive", "MNEME_SUMMARY_WRITER=openai", "summarizer is refused: mneme: MNEME_LLM_MODEL is empty"},
		{"base", "value: 0.0.0.0:8423", "value: 0.0.0.0:8422", "summarizer listens on 0.0.0.0:8422"},
		{"overlays/llm", "MNEME_LLM_MODEL=gpt-5-mini", "MNEME_LLM_NAME=gpt-5-mini", "summarizer is refused: mneme: MNEME_LLM_MODEL is empty"},
		{"base", "MNEME_CONDENSE=extractive", "MNEME_CONDENSE=llm", `summarizer is refused: mneme: MNEME_CONDENSE="llm": needs a model`},
		{"overlays/llm", "{name: llm, key: key}", "{name: llm, key: token}", `summarizer wants the key "token" of the Secret`},
		{"overlays/llm", "name: summarizer|context-api}", "name: summarizer}", "summarizer and context-api have not the same MNEME_LLM_KEY"},
		{"overlays/llm", "resources:\n  - network.yaml\nsecret", "secret", "NetworkPolicies: summarizer reaches port 443 of 203.0.113.7: false"},
		{"overlays/llm", "values: [summarizer, context-api]", "values: [summarizer]", "NetworkPolicies: context-api reaches port 443 of 203.0.113.7: false"},
		{"overlays/llm", "except: [10.0.0.0/8, ", "except: [", "NetworkPolicies: summarizer reaches port 443 of 10.1.2.3: true"},
		{"overlays/llm", "values: [summarizer, context-api]", "values: [summarizer, context-api, ingestor]", "NetworkPolicies: ingestor reaches port 443 of 203.0.113.7: true"},
		{"overlays/llm", "- {protocol: TCP, port: 443}", "- {protocol: TCP, port: 80}", "NetworkPolicies: summarizer reaches port 80 of 203.0.113.7: true"},
		{"base", "MNEME_EMBEDDINGS=builtin", "MNEME_EMBEDDINGS=openai", "context-api is refused: mneme: MNEME_EMBEDDINGS_MODEL is empty"},
		{"base", "MNEME_EMBEDDINGS=builtin", "MNEME_EMBEDDING=builtin", "context-api sets MNEME_EMBEDDING, which it does not know"},
		{"overlays/embeddings", "MNEME_EMBEDDINGS_MODEL=text", "MNEME_EMBEDDINGS_NAME=text", "summarizer is refused: mneme: MNEME_EMBEDDINGS_MODEL is empty"},
		{"overlays/embeddings", "MNEME_EMBEDDINGS_MODEL=text-embedding-3-small", "MNEME_EMBEDDINGS_MODEL=m\n      - MNEME_EMBEDDINGS_URL=api.example.com", "context-api is refused: mneme: MNEME_EMBEDDINGS_URL"},
		{"overlays/embeddings", "name: MNEME_EMBEDDINGS_KEY", "name: MNEME_EMBEDDINGS_TOKEN", "context-api sets MNEME_EMBEDDINGS_TOKEN, which it does not know"},
		{"overlays/embeddings", "{name: embeddings, key: key}", "{name: embeddings, key: token}", `context-api wants the key "token" of the Secret`},
		{"overlays/embeddings", "{name: embeddings, key: key}", "{name: openai, key: key}", `summarizer wants the Secret "openai", which is not there`},
		{"overlays/embeddings", "name: summarizer|context-api}", "name: summarizer}", "summarizer and context-api have not the same MNEME_EMBEDDINGS_KEY"},
		{"overlays/embeddings", "name: summarizer|context-api}", "name: summarizer|context-api|ingestor}", "ingestor sets MNEME_EMBEDDINGS_KEY, which it does not know"},
		{"overlays/embeddings", "programs}\n            - configMapRef: {name: summaries}\n            - configMapRef: {name: contexts}\n", "programs}\n            - configMapRef: {name: summaries}\n", "summarizer and context-api have not the same MNEME_EMBEDDINGS_MODEL"},
		{"overlays/embeddings", "resources:\n  - network.yaml\nsecret", "secret", "NetworkPolicies: context-api reaches port 443 of 203.0.113.7: false"},
		{"overlays/embeddings", "values: [summarizer, context-api]", "values: [summarizer]", "NetworkPolicies: context-api reaches port 443 of 203.0.113.7: false"},
		{"overlays/embeddings", "values: [summarizer, context-api]", "values: [context-api]", "NetworkPolicies: summarizer reaches port 443 of 203.0.113.7: false"},
		{"overlays/embeddings", "values: [summarizer, context-api]", "values: [summarizer, context-api, nats]", "NetworkPolicies: nats reaches port 443 of 203.0.113.7: true"},
		{"overlays/embeddings", "{key: app.kubernetes.io/name, operator: In, values: [summarizer, context-api]}", "{key: app.kubernetes.io/component, operator: In, values: [program]}", "NetworkPolicies: file-tracker reaches port 443 of 203.0.113.7: true"},
		{"overlays/embeddings", "except: [10.0.0.0/8, ", "except: [", "NetworkPolicies: context-api reaches port 443 of 10.1.2.3: true"},
		{"overlays/embeddings", "except: [\"fc00::/7\", ", "except: [", "NetworkPolicies: context-api reaches port 443 of fd00::7: true"},
		{"overlays/embeddings", "- {protocol: TCP, port: 443}", "- {protocol: TCP, port: 80}", "NetworkPolicies: context-api reaches port 80 of 203.0.113.7: true"},
		{"overlays/external-nats", "  - patch: |\n      {apiVersion: v1, kind: Service, metadata: {name: nats-headless}, $patch: delete}\n", "", "Service nats-headless leads nowhere"},
		{"overlays/external-nats", "value: [{ports: [{protocol: TCP, port: 4222}]}]", "value: []", "NetworkPolicies: ingestor reaches port 4222 anywhere: false"},
	} {
		t.Run(c.to, func(t *testing.T) {
			t.Parallel()
			files, found := map[string]string{}, false
			for name, text := range right {
				// server.conf is compared with itself on the disk.
				files[name] = strings.ReplaceAll(text, c.from, c.to)
				found = found || strings.Contains(text, c.from)
			}
			require.True(t, found, "%q is in no file", c.from)
			r, err := render(files, c.overlay)
			if err != nil {
				require.ErrorContains(t, err, c.says)
				return
			}
			require.Contains(t, strings.Join(check(r, built(t)), "\n"), c.says)
		})
	}
}

// TestProbesAreAnswered starts each program with the settings of its Deployment, except for
// the addresses of servers, and sends its probes.
func TestProbesAreAnswered(t *testing.T) {
	t.Parallel()
	r, err := render(tree(t), "overlays/production")
	require.NoError(t, err)
	p := built(t)
	nats := p.up(t)

	data := t.TempDir() // shared, because context-api reads what the others write
	for _, name := range programNames {
		c := r.workload(name).container()
		variables, err := r.environment(c)
		require.NoError(t, err)
		maps.Copy(variables, map[string]string{
			"MNEME_NATS_URL": nats, "MNEME_STORE": "sqlite", "MNEME_DATA": data, "MNEME_LISTEN": free(t),
			"MNEME_NEO4J_URI": "bolt://127.0.0.1:7687",
		})
		if variables["MNEME_PARTITIONS"] != "" { // for an existing log
			variables["MNEME_PARTITIONS"], variables["MNEME_REPLICAS"] = "1", "1"
		}
		program := exec.Command(filepath.Join(p.dir, c.Command[0]))
		program.Env, program.Stderr = environ(variables), t.Output()
		start(t, program)
		for _, path := range []string{c.ReadinessProbe.HTTPGet.Path, c.LivenessProbe.HTTPGet.Path, "/metrics"} {
			require.Eventually(t, func() bool {
				response, err := http.Get("http://" + variables["MNEME_LISTEN"] + path)
				if err != nil {
					return false
				}
				_ = response.Body.Close()
				require.NotEqual(t, http.StatusNotFound, response.StatusCode, "%s%s", name, path)
				return response.StatusCode == http.StatusOK
			}, 5*time.Minute, 10*time.Millisecond, "%s%s", name, path)
		}
	}
	require.Equal(t, []string{"/healthz", "/readyz"}, slices.Sorted(slices.Values(paths)))
}

// up runs mneme up until the end of the test, and returns the address of its NATS server.
func (p *programs) up(t *testing.T) (nats string) {
	t.Helper()
	up := exec.Command(filepath.Join(p.dir, "mneme"), "up", "--json", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--nats-listen", "127.0.0.1:0")
	up.Env, up.Stderr = []string{}, t.Output()
	out, err := up.StdoutPipe()
	require.NoError(t, err)
	start(t, up)
	line, err := bufio.NewReader(out).ReadBytes('\n')
	require.NoError(t, err)
	var servers struct{ NATS string }
	require.NoError(t, json.Unmarshal(line, &servers))
	return servers.NATS
}

// start runs a command until the end of the test.
func start(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

// free returns an unused address.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}
