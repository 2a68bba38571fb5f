package k8s

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	_ "github.com/kedacore/keda/v2/version" // pins in go.mod the version whose definition is read
	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"
)

// scaledObject has the fields of KEDA's ScaledObject that the rules need. The complete object
// is checked against KEDA's own definition.
type scaledObject struct {
	Metadata struct{ Name string }
	Spec     struct {
		ScaleTargetRef                   struct{ Name string }
		MinReplicaCount, MaxReplicaCount int32
		Triggers                         []struct {
			Type     string
			Metadata map[string]string
		}
	}
}

// scaledSchema is the definition that KEDA installs in a cluster.
var scaledSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/kedacore/keda/v2").Output()
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "config/crd/bases/keda.sh_scaledobjects.yaml"))
	if err != nil {
		return nil, err
	}
	var definition struct {
		Spec struct {
			Versions []struct {
				Name   string
				Schema struct {
					OpenAPIV3Schema map[string]any `json:"openAPIV3Schema"`
				}
			}
		}
	}
	if err := yaml.Unmarshal(text, &definition); err != nil {
		return nil, err
	}
	for _, version := range definition.Spec.Versions {
		if version.Name == "v1alpha1" {
			compiler := jsonschema.NewCompiler()
			if err := compiler.AddResource("scaledobject.json", closed(version.Schema.OpenAPIV3Schema)); err != nil {
				return nil, err
			}
			return compiler.Compile("scaledobject.json")
		}
	}
	return nil, fmt.Errorf("KEDA does not define v1alpha1")
})

// closed makes a schema refuse fields that it does not name.
func closed(schema any) any {
	switch s := schema.(type) {
	case map[string]any:
		for key, value := range s {
			s[key] = closed(value)
		}
		_, named := s["properties"].(map[string]any)
		if _, open := s["additionalProperties"]; named && !open && s["type"] == "object" && s["x-kubernetes-preserve-unknown-fields"] != true {
			s["additionalProperties"] = false
		}
		if s["x-kubernetes-int-or-string"] == true {
			delete(s, "pattern") // it applies to strings, but the value can be a number
		}
	case []any:
		for i := range s {
			s[i] = closed(s[i])
		}
	}
	return schema
}

func decodeScaled(text []byte) (*scaledObject, error) {
	schema, err := scaledSchema()
	if err != nil {
		return nil, err
	}
	raw, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, err
	}
	object, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
	if err != nil {
		return nil, err
	}
	// The definition leaves metadata to Kubernetes.
	metadata := object.(map[string]any)["metadata"].(map[string]any)
	object.(map[string]any)["metadata"] = map[string]any{}
	if err := schema.Validate(object); err != nil {
		return nil, err
	}
	if metadata["name"] == nil {
		return nil, fmt.Errorf("it has no name")
	}
	s := &scaledObject{}
	return s, json.Unmarshal(raw, s)
}

// Match a query's metrics with their labels, and the labels of its sums.
var (
	selected = regexp.MustCompile(`([a-z_]+)\{([^}]*)\}`)
	matched  = regexp.MustCompile(`([a-z_]+)=~?"([^"]*)"`)
	grouped  = regexp.MustCompile(`by \(([a-z_, ]+)\)`)
)

// documented returns the labels of each metric in docs/metrics.md.
func documented(page string) map[string][]string {
	metrics := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| [a-z]+ \\| (.*?) \\|").FindAllStringSubmatch(page, -1) {
		metrics[row[1]] = strings.Split(strings.ReplaceAll(row[2], "`", ""), ", ")
	}
	return metrics
}

// scaling follows a metric that the programs have, within the partitions of the log.
func scaling(r *rendered, page string) (wrong []string) {
	metrics := documented(page)
	for _, s := range r.scaled {
		complain := func(format string, args ...any) {
			wrong = append(wrong, "ScaledObject "+s.Metadata.Name+" "+fmt.Sprintf(format, args...))
		}
		target := r.workload(s.Spec.ScaleTargetRef.Name)
		if target == nil {
			complain("scales %s, which is not there", s.Spec.ScaleTargetRef.Name)
			continue
		}
		if target.replicas != nil {
			complain("scales %s, which says itself how many there are", target.name)
		}
		variables, _ := r.environment(target.container())
		if partitions, _ := strconv.Atoi(variables["MNEME_PARTITIONS"]); int(s.Spec.MaxReplicaCount) > partitions {
			complain("makes %d of what %d partitions are shared by", s.Spec.MaxReplicaCount, partitions)
		}
		if s.Spec.MinReplicaCount < 1 {
			complain("lets nobody run, and then nobody shows a lag")
		}
		for _, trigger := range s.Spec.Triggers {
			query := trigger.Metadata["query"]
			found := selected.FindAllStringSubmatch(query, -1)
			if trigger.Type != "prometheus" || len(found) == 0 {
				complain("asks for no metric")
			}
			for _, m := range found {
				labels, ok := metrics[m[1]]
				if !ok {
					complain("asks for %s, which docs/metrics.md does not have", m[1])
				}
				labels = append(slices.Clone(labels), "namespace") // added by Prometheus
				for _, by := range grouped.FindAllStringSubmatch(query, -1) {
					if !slices.Contains(labels, by[1]) {
						complain("sums by %s, which is not a label of %s", by[1], m[1])
					}
				}
				for _, l := range matched.FindAllStringSubmatch(m[2], -1) {
					if !slices.Contains(labels, l[1]) {
						complain("asks for %s, which is not a label of %s", l[1], m[1])
					}
					if want := projections[target.name]; l[1] == "projection" && l[2] != want {
						complain("looks at the projection %s, %s drives %s", l[2], target.name, want)
					}
				}
			}
		}
	}
	return wrong
}

// projections that programs drive.
var projections = map[string]string{"ingestor": "graph", "file-tracker": "files", "summarizer": "summaries"}
