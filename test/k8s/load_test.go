// Package k8s tests deploy/k8s: it renders every overlay like kubectl, decodes it like the
// Kubernetes API, and compares it with the programs that it starts.
package k8s

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
)

// root is the root of the repository.
const root = "../.."

// overlays lists the overlays that an operator applies, and base, which lacks a Neo4j.
var overlays = []string{"base", "overlays/trial", "overlays/production", "overlays/autoscaled", "overlays/external-nats", "overlays/llm", "overlays/embeddings"}

// The files that an operator creates.
const (
	secretFile       = "/deploy/k8s/components/credentials/neo4j.env"
	secretSample     = "password=one-of-a-test\n"
	natsFile         = "/deploy/k8s/components/credentials/nats.env"
	keyFile          = "/deploy/k8s/components/llm/llm.env"
	keySample        = "key=another of a test\n"
	embeddingsFile   = "/deploy/k8s/components/embeddings/embeddings.env"
	embeddingsSample = "key=a third of a test\n"
)

// tree reads deploy/k8s and the files it refers to into memory, by path.
func tree(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{secretFile: secretSample, natsFile: natsSample(t), keyFile: keySample, embeddingsFile: embeddingsSample}
	for _, dir := range []string{"deploy/k8s", "deploy/nats"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, dir), func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(name) == ".go" || filepath.Ext(name) == ".env" {
				return err
			}
			text, err := os.ReadFile(name)
			relative, _ := filepath.Rel(root, name)
			files["/"+filepath.ToSlash(relative)] = string(text)
			return err
		}))
	}
	return files
}

// natsSample gives each user of the example a password of its own.
func natsSample(t *testing.T) string {
	t.Helper()
	example, err := os.ReadFile(filepath.Join(root, "deploy/k8s/components/credentials/nats.env.example"))
	require.NoError(t, err)
	return regexp.MustCompile(`(?m)^([a-z-]+)=$`).ReplaceAllString(string(example), "$1=of-$1")
}

// rendered holds the objects of an overlay.
type rendered struct {
	overlay    string
	workloads  []*workload
	services   []*corev1.Service
	configMaps map[string]*corev1.ConfigMap
	secrets    map[string]*corev1.Secret
	policies   []*networkingv1.NetworkPolicy
	budgets    []*policyv1.PodDisruptionBudget
	scaled     []*scaledObject
	claims     []*corev1.PersistentVolumeClaim
	namespaces []*corev1.Namespace
	elsewhere  []string // objects outside of the namespace
}

// workload is a Deployment, a StatefulSet or a CronJob.
type workload struct {
	name     string
	job      *batchv1.CronJob // nil if it is none
	replicas *int32
	selector *metav1.LabelSelector
	pod      corev1.PodTemplateSpec
	service  string // that names the pods of a StatefulSet
	claims   []corev1.PersistentVolumeClaim
}

// container is the only one of the pod.
func (w *workload) container() *corev1.Container { return &w.pod.Spec.Containers[0] }

var decoder = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, batchv1.AddToScheme, corev1.AddToScheme, networkingv1.AddToScheme, policyv1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}()

// render renders an overlay from files; a field unknown to Kubernetes or KEDA is an error.
func render(files map[string]string, overlay string) (*rendered, error) {
	disk := filesys.MakeFsInMemory()
	for name, text := range files {
		if err := disk.MkdirAll(path.Dir(name)); err != nil {
			return nil, err
		}
		if err := disk.WriteFile(name, []byte(text)); err != nil {
			return nil, err
		}
	}
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(disk, "/deploy/k8s/"+overlay)
	if err != nil {
		return nil, err
	}
	r := &rendered{overlay: overlay, configMaps: map[string]*corev1.ConfigMap{}, secrets: map[string]*corev1.Secret{}}
	for _, resource := range resources.Resources() {
		text, err := resource.AsYAML()
		if err != nil {
			return nil, err
		}
		if err := r.add(resource.GetKind(), text); err != nil {
			return nil, fmt.Errorf("%s: %w", resource.CurId(), err)
		}
		if ns := resource.GetNamespace(); ns != "mneme" && resource.GetKind() != "Namespace" {
			r.elsewhere = append(r.elsewhere, resource.GetKind()+" "+resource.GetName()+" is in the namespace "+fmt.Sprintf("%q", ns))
		}
	}
	return r, nil
}

func (r *rendered) add(kind string, text []byte) error {
	if kind == "ScaledObject" {
		s, err := decodeScaled(text)
		r.scaled = append(r.scaled, s)
		return err
	}
	object, _, err := decoder.Decode(text, nil, nil)
	if err != nil {
		return err
	}
	switch o := object.(type) {
	case *appsv1.Deployment:
		r.workloads = append(r.workloads, &workload{name: o.Name, replicas: o.Spec.Replicas, selector: o.Spec.Selector, pod: o.Spec.Template})
	case *appsv1.StatefulSet:
		r.workloads = append(r.workloads, &workload{name: o.Name, replicas: o.Spec.Replicas, selector: o.Spec.Selector, pod: o.Spec.Template,
			service: o.Spec.ServiceName, claims: o.Spec.VolumeClaimTemplates})
	case *batchv1.CronJob:
		r.workloads = append(r.workloads, &workload{name: o.Name, job: o, pod: o.Spec.JobTemplate.Spec.Template})
	case *corev1.PersistentVolumeClaim:
		r.claims = append(r.claims, o)
	case *corev1.Service:
		r.services = append(r.services, o)
	case *corev1.ConfigMap:
		r.configMaps[o.Name] = o
	case *corev1.Secret:
		r.secrets[o.Name] = o
	case *corev1.Namespace:
		r.namespaces = append(r.namespaces, o)
	case *networkingv1.NetworkPolicy:
		r.policies = append(r.policies, o)
	case *policyv1.PodDisruptionBudget:
		r.budgets = append(r.budgets, o)
	default:
		return fmt.Errorf("no rule knows a %s", kind)
	}
	return nil
}

// workload returns the workload with a name, or nil.
func (r *rendered) workload(name string) *workload {
	for _, w := range r.workloads {
		if w.name == name {
			return w
		}
	}
	return nil
}

// expand puts variables in place of their names, as Kubernetes does for those before.
func expand(text string, variables map[string]string) string {
	return regexp.MustCompile(`\$\([A-Z0-9_]+\)`).ReplaceAllStringFunc(text, func(name string) string {
		if value, ok := variables[name[2:len(name)-1]]; ok {
			return value
		}
		return name
	})
}

// environment returns a container's variables at its start. A missing password gets any
// value.
func (r *rendered) environment(c *corev1.Container) (map[string]string, error) {
	variables := map[string]string{}
	var errs []error
	for _, from := range c.EnvFrom {
		if from.ConfigMapRef == nil || r.configMaps[from.ConfigMapRef.Name] == nil {
			errs = append(errs, fmt.Errorf("%s takes variables from something that is not there", c.Name))
			continue
		}
		for name, value := range r.configMaps[from.ConfigMapRef.Name].Data {
			variables[name] = value
		}
	}
	for _, e := range c.Env {
		switch {
		case e.ValueFrom == nil:
			variables[e.Name] = expand(e.Value, variables)
		case e.ValueFrom.SecretKeyRef != nil:
			variables[e.Name] = strings.TrimSpace(strings.TrimPrefix(secretSample, "password="))
			if s := r.secrets[e.ValueFrom.SecretKeyRef.Name]; s != nil {
				value, ok := s.Data[e.ValueFrom.SecretKeyRef.Key]
				if !ok {
					errs = append(errs, fmt.Errorf("%s wants the key %q of the Secret, which has none", c.Name, e.ValueFrom.SecretKeyRef.Key))
				}
				variables[e.Name] = string(value)
			} else if r.overlay != "base" {
				errs = append(errs, fmt.Errorf("%s wants the Secret %q, which is not there", c.Name, e.ValueFrom.SecretKeyRef.Name))
			}
		case e.ValueFrom.ConfigMapKeyRef != nil:
			from := e.ValueFrom.ConfigMapKeyRef
			if m := r.configMaps[from.Name]; m != nil && m.Data[from.Key] != "" {
				variables[e.Name] = m.Data[from.Key]
			} else {
				errs = append(errs, fmt.Errorf("%s wants the key %q of the ConfigMap %q, which is not there", c.Name, from.Key, from.Name))
			}
		case e.ValueFrom.FieldRef != nil:
			variables[e.Name] = e.ValueFrom.FieldRef.FieldPath
		default:
			errs = append(errs, fmt.Errorf("%s takes %s from somewhere unknown", c.Name, e.Name))
		}
	}
	return variables, errors.Join(errs...)
}
