// Package helm tests the chart in deploy/helm: it renders it with Helm's own code, decodes it like the
// Kubernetes API, and compares it with deploy/k8s, whose rules test/k8s checks.
package helm

import (
	"io"
	"log"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const root = "../.."

// The values that say what an overlay of deploy/k8s says.
const production = `
image: {repository: registry.example.com/mneme, tag: 1.0.0}
neo4j: {uri: "neo4j+s://neo4j.example.com:7687"}
`

var overlays = map[string]string{
	"production":    production,
	"external-nats": production + "nats: {enabled: false, address: \"nats.example.com:4222\"}\n",
	"llm":           production + "secrets: {llm: llm}\nsummaries: {MNEME_SUMMARY_WRITER: openai, MNEME_LLM_MODEL: gpt-5-mini, MNEME_LLM_MAX_TOKENS: 6000, MNEME_LLM_MAX_CALLS_PER_HOUR: 300}\n",
	"backup":        production + "backup: {schedule: \"17 3 * * *\"}\n",
	"embeddings":    production + "secrets: {embeddings: embeddings}\ncontexts: {MNEME_EMBEDDINGS: openai, MNEME_EMBEDDINGS_MODEL: text-embedding-3-small}\n",
}

// withBackup is an overlay that an operator makes: production, and the component that backs up the log.
const withBackup = `
namespace: mneme
resources: [../production]
components: [../../components/backup]
images: [{name: mneme, newName: registry.example.com/mneme, newTag: 1.0.0}]
`

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // Helm says that it follows the links to deploy/nats
	os.Exit(m.Run())
}

var decoder = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, batchv1.AddToScheme, corev1.AddToScheme, networkingv1.AddToScheme, policyv1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}()

// chart renders the chart with values, and returns its documents by template.
func chart(t *testing.T, values string) (map[string]string, error) {
	t.Helper()
	c, err := loader.Load(filepath.Join(root, "deploy/helm/mneme"))
	require.NoError(t, err)
	var given map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(values), &given))
	all, err := chartutil.ToRenderValues(c, given, chartutil.ReleaseOptions{Name: "memory", Namespace: "mneme", IsInstall: true}, nil)
	if err != nil {
		return nil, err
	}
	return engine.Render(c, all)
}

// objects decodes what the chart makes, by kind and name.
func objects(t *testing.T, values string) map[string]runtime.Object {
	t.Helper()
	files, err := chart(t, values)
	require.NoError(t, err)
	list := map[string]runtime.Object{}
	for name, text := range files {
		if path.Ext(name) != ".yaml" {
			continue
		}
		for _, document := range regexp.MustCompile(`(?m)^---\s*$`).Split(text, -1) {
			if strings.TrimSpace(document) == "" {
				continue
			}
			add(t, list, []byte(document))
		}
	}
	return list
}

// overlay renders an overlay of deploy/k8s, with passwords, and decodes it.
func overlay(t *testing.T, name string) map[string]runtime.Object {
	t.Helper()
	disk := filesys.MakeFsInMemory()
	for _, dir := range []string{"deploy/k8s", "deploy/nats"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, dir), func(file string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(file) == ".go" || filepath.Ext(file) == ".env" {
				return err
			}
			raw, err := os.ReadFile(file)
			require.NoError(t, err)
			relative, err := filepath.Rel(root, file)
			require.NoError(t, err)
			to := "/" + filepath.ToSlash(relative)
			if example, ok := strings.CutSuffix(to, ".example"); ok {
				to, raw = example, regexp.MustCompile(`(?m)=$`).ReplaceAll(raw, []byte("=of-a-test"))
			}
			require.NoError(t, disk.MkdirAll(path.Dir(to)))
			return disk.WriteFile(to, raw)
		}))
	}
	require.NoError(t, disk.MkdirAll("/deploy/k8s/overlays/backup"))
	require.NoError(t, disk.WriteFile("/deploy/k8s/overlays/backup/kustomization.yaml", []byte(withBackup)))
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(disk, "/deploy/k8s/overlays/"+name)
	require.NoError(t, err)
	raw, err := resources.AsYaml()
	require.NoError(t, err)
	// Kustomize puts a hash behind the names of what it generates.
	text := regexp.MustCompile(`(name: (?:programs|stream|summaries|contexts|nats|nats-server|neo4j|llm|embeddings))-[a-z0-9]{10}\b`).ReplaceAllString(string(raw), "$1")
	list := map[string]runtime.Object{}
	for _, document := range regexp.MustCompile(`(?m)^---\s*$`).Split(text, -1) {
		add(t, list, []byte(document))
	}
	return list
}

// add adds an object to those by kind and name, without what only one of the two tools adds.
func add(t *testing.T, list map[string]runtime.Object, document []byte) {
	t.Helper()
	object, kind, err := decoder.Decode(document, nil, nil)
	require.NoError(t, err, "%s", document)
	meta := object.(metav1.Object)
	meta.SetNamespace("")
	labels := meta.GetLabels()
	// The names of labels that say who made an object; what selects is compared.
	for _, label := range []string{"app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "app.kubernetes.io/name", "app.kubernetes.io/part-of", "helm.sh/chart"} {
		delete(labels, label)
	}
	if len(labels) == 0 {
		meta.SetLabels(nil)
	}
	var pod *corev1.PodTemplateSpec
	switch o := object.(type) {
	case *appsv1.Deployment:
		pod = &o.Spec.Template
	case *batchv1.CronJob:
		pod = &o.Spec.JobTemplate.Spec.Template
		delete(pod.Labels, "app.kubernetes.io/part-of")
	case *corev1.PersistentVolumeClaim:
		o.Annotations = nil
	case *appsv1.StatefulSet:
		pod = &o.Spec.Template
		for i := range o.Spec.VolumeClaimTemplates {
			o.Spec.VolumeClaimTemplates[i].Labels = nil
		}
	}
	if pod != nil {
		delete(pod.Annotations, "checksum/settings")
		if len(pod.Annotations) == 0 {
			pod.Annotations = nil
		}
		for i := range pod.Spec.Containers {
			pod.Spec.Containers[i].ImagePullPolicy = ""
		}
	}
	name := kind.Kind + " " + meta.GetName()
	require.NotContains(t, list, name)
	list[name] = object
}

func TestTheChartSaysWhatTheOverlaysSay(t *testing.T) {
	t.Parallel()
	for name, values := range overlays {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, got := overlay(t, name), objects(t, values)
			for object := range want {
				if strings.HasPrefix(object, "Namespace ") || strings.HasPrefix(object, "Secret ") {
					delete(want, object) // the chart takes both from its user
				}
			}
			require.Equal(t, names(want), names(got))
			for object := range want {
				require.Equal(t, want[object], got[object], object)
			}
		})
	}
}

func names(list map[string]runtime.Object) (names []string) {
	for name := range list {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func TestValuesThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	for values, says := range map[string]string{
		"":                                      "repository",
		"image: {repository: mneme}\n":          "uri",
		production + "replica: 3\n":             "replica",
		production + "nats: {tenants: [a b]}\n": "tenants",
		production + "settings: {MNEM_LOG_LEVEL: debug}\n":            "MNEM_LOG_LEVEL",
		strings.Replace(production, "neo4j+s://", "https://", 1):      "uri",
		production + "programs: {ingestor: {replicas: -1}}\n":         "replicas",
		production + "backup: {schedule: nightly}\n":                  "schedule",
		production + "scheduling: {nodeselector: {pool: memory}}\n":   "nodeselector",
		production + "programs: {ingestor: {memoryTarget: 400 MB}}\n": "memoryTarget",
		production + "nats: {address: \"nats://nats:4222\"}\n":        "address",
	} {
		_, err := chart(t, values)
		require.ErrorContains(t, err, says, values)
	}
}

func TestValuesChangeWhatTheyName(t *testing.T) {
	t.Parallel()
	got := objects(t, production+`
secrets: {nats: passwords}
networkPolicies: false
allowedHosts: [mneme.example.com]
imagePullSecrets: [{name: registry}]
scheduling: {nodeSelector: {pool: memory}, tolerations: [{key: pool, value: memory, effect: NoSchedule}], priorityClassName: high}
nats: {tenants: [team-a, operator], permissions: "# others", storage: 5Gi, storageClass: fast, whenUnsatisfiable: ScheduleAnyway}
settings: {MNEME_LOG_LEVEL: debug}
backup: {schedule: "@daily", keep: 30, storage: 1Ti, storageClass: slow}
stream: {MNEME_LOG_SIZE: 4294967296}
programs:
  ingestor: {replicas: null, env: {MNEME_MEMORY: 300}}
`)
	for name := range got {
		require.False(t, strings.HasPrefix(name, "NetworkPolicy"), name)
	}
	variables := func(object runtime.Object) map[string]string {
		list := map[string]string{}
		var pod corev1.PodSpec
		switch o := object.(type) {
		case *appsv1.Deployment:
			pod = o.Spec.Template.Spec
		case *appsv1.StatefulSet:
			pod = o.Spec.Template.Spec
		}
		require.Equal(t, "registry", pod.ImagePullSecrets[0].Name)
		require.Equal(t, []any{"memory", "memory", "high"}, []any{pod.NodeSelector["pool"], pod.Tolerations[0].Value, pod.PriorityClassName})
		for _, e := range pod.Containers[0].Env {
			list[e.Name] = e.Value
			if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
				list[e.Name] = e.ValueFrom.SecretKeyRef.Name + "/" + e.ValueFrom.SecretKeyRef.Key
			}
		}
		return list
	}
	require.Equal(t, "passwords/ingestor", variables(got["Deployment ingestor"])["NATS_PASSWORD"])
	require.Equal(t, "300", variables(got["Deployment ingestor"])["MNEME_MEMORY"])
	require.Nil(t, got["Deployment ingestor"].(*appsv1.Deployment).Spec.Replicas)
	require.True(t, strings.HasSuffix(variables(got["Deployment context-api"])["MNEME_ALLOWED_HOSTS"], ",mneme.example.com"))
	nats := got["StatefulSet nats"].(*appsv1.StatefulSet)
	require.Equal(t, "passwords/agent-team-a", variables(nats)["MNEME_NATS_AGENT_TEAM_A_PASSWORD"])
	require.Equal(t, "passwords/agent-operator", variables(nats)["MNEME_NATS_AGENT_OPERATOR_PASSWORD"])
	require.Equal(t, "passwords/operator", variables(nats)["MNEME_NATS_OPERATOR_PASSWORD"])
	job := got["CronJob backup"].(*batchv1.CronJob).Spec
	require.Equal(t, "@daily", job.Schedule)
	require.Equal(t, []string{"--keep", "30"}, job.JobTemplate.Spec.Template.Spec.Containers[0].Command[6:])
	require.Equal(t, "high", job.JobTemplate.Spec.Template.Spec.PriorityClassName)
	require.Equal(t, "slow", *got["PersistentVolumeClaim backups"].(*corev1.PersistentVolumeClaim).Spec.StorageClassName)
	claim := nats.Spec.VolumeClaimTemplates[0].Spec
	require.Equal(t, "5Gi", claim.Resources.Requests.Storage().String())
	require.Equal(t, "fast", *claim.StorageClassName)
	require.Equal(t, "# others", got["ConfigMap nats-server"].(*corev1.ConfigMap).Data["permissions.conf"])
	require.Equal(t, "debug", got["ConfigMap programs"].(*corev1.ConfigMap).Data["MNEME_LOG_LEVEL"])
	require.Equal(t, "4294967296", got["ConfigMap stream"].(*corev1.ConfigMap).Data["MNEME_LOG_SIZE"])
}

// Quotas, claims and certificates are files. A probe that speaks HTTP to a server with TLS would restart it forever, and
// without a rule for its network context-api would never fetch the provider's keys.
func TestAProgramGetsTheFilesThatItsSettingsNameAndReachesItsIdentityProvider(t *testing.T) {
	t.Parallel()
	got := objects(t, production+`
programs:
  summarizer: {files: summarizer-files, env: {MNEME_QUOTAS_FILE: /etc/mneme/quotas.yaml}}
  context-api:
    files: api-files
    env: {MNEME_TLS_CERT_FILE: /etc/mneme/tls.crt, MNEME_TLS_KEY_FILE: /etc/mneme/tls.key, MNEME_OIDC_ISSUER: "https://login.example.com"}
`)
	pod := func(name string) corev1.PodSpec {
		return got["Deployment "+name].(*appsv1.Deployment).Spec.Template.Spec
	}
	mounts := func(name string) map[string]string {
		secrets, list := map[string]string{}, map[string]string{}
		for _, v := range pod(name).Volumes {
			if v.Secret != nil {
				secrets[v.Name] = v.Secret.SecretName
			}
		}
		for _, m := range pod(name).Containers[0].VolumeMounts {
			list[m.MountPath] = secrets[m.Name]
		}
		return list
	}
	require.Equal(t, map[string]string{"/etc/mneme": "summarizer-files"}, mounts("summarizer"))
	require.Equal(t, map[string]string{"/data": "", "/etc/mneme": "api-files"}, mounts("context-api"))
	require.Empty(t, mounts("ingestor"))

	for name, scheme := range map[string]corev1.URIScheme{"context-api": corev1.URISchemeHTTPS, "summarizer": ""} {
		require.Equal(t, scheme, pod(name).Containers[0].ReadinessProbe.HTTPGet.Scheme)
		require.Equal(t, scheme, pod(name).Containers[0].LivenessProbe.HTTPGet.Scheme)
	}
	require.Equal(t, "https", got["Deployment context-api"].(*appsv1.Deployment).Spec.Template.Annotations["prometheus.io/scheme"])
	require.Contains(t, got, "NetworkPolicy context-api-to-oidc")
	require.NotContains(t, objects(t, production), "NetworkPolicy context-api-to-oidc")
}

// A model in the cluster is reached neither at port 443 nor at a public address.
func TestProgramsReachModelsInTheCluster(t *testing.T) {
	t.Parallel()
	got := objects(t, production+`
secrets: {rerank: reranker}
programs:
  context-api:
    env: {MNEME_RERANK: cohere, MNEME_RERANK_MODEL: rerank-v3.5, MNEME_RERANK_URL: "https://api.cohere.com/v2"}
  summarizer:
    egress: [{to: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: models}}}], ports: [{protocol: TCP, port: 8000}]}]
`)
	rule := got["NetworkPolicy summarizer-egress"].(*networkingv1.NetworkPolicy).Spec
	require.Equal(t, map[string]string{"app.kubernetes.io/name": "summarizer"}, rule.PodSelector.MatchLabels)
	require.Equal(t, []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}, rule.PolicyTypes)
	require.Equal(t, 8000, rule.Egress[0].Ports[0].Port.IntValue())
	require.Equal(t, "models", rule.Egress[0].To[0].NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"])
	require.NotContains(t, got, "NetworkPolicy context-api-egress")

	keys := func(program string) (from []string) {
		for _, e := range got["Deployment "+program].(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Env {
			if e.Name == "MNEME_RERANK_KEY" {
				from = append(from, e.ValueFrom.SecretKeyRef.Name+"/"+e.ValueFrom.SecretKeyRef.Key)
			}
		}
		return from
	}
	require.Equal(t, []string{"reranker/key"}, keys("context-api"))
	require.Empty(t, keys("summarizer"), "only context-api calls it")
	reach := got["NetworkPolicy context-api-to-rerank"].(*networkingv1.NetworkPolicy).Spec
	require.Equal(t, map[string]string{"app.kubernetes.io/name": "context-api"}, reach.PodSelector.MatchLabels)
	require.Equal(t, 443, reach.Egress[0].Ports[0].Port.IntValue())

	_, err := chart(t, production+"programs: {summarizer: {egress: models}}\n")
	require.ErrorContains(t, err, "egress")
}

func TestABackupReachesYourOwnNATS(t *testing.T) {
	t.Parallel()
	got := objects(t, production+"nats: {enabled: false, address: \"nats.example.com:4333\"}\nbackup: {schedule: \"@daily\"}\n")
	require.NotContains(t, got, "NetworkPolicy nats-from-backup")
	rule := got["NetworkPolicy backup"].(*networkingv1.NetworkPolicy).Spec.Egress[0]
	require.Empty(t, rule.To)
	require.Equal(t, 4333, rule.Ports[0].Port.IntValue())
}
