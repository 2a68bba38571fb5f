package k8s

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestModelsInTheClusterAreReached(t *testing.T) {
	t.Parallel()
	files := tree(t)
	files["/deploy/k8s/overlays/own/kustomization.yaml"] = `
namespace: mneme
resources: [../production]
components: [../../components/models]
configMapGenerator:
  - name: summaries
    behavior: merge
    literals: [MNEME_SUMMARY_WRITER=openai, MNEME_LLM_URL=http://vllm.models:8000/v1, MNEME_LLM_MODEL=qwen3-8b]
  - name: contexts
    behavior: merge
    literals: [MNEME_EMBEDDINGS=openai, MNEME_EMBEDDINGS_URL=http://tei.models:8080/v1, MNEME_EMBEDDINGS_MODEL=bge-m3]
`
	r, err := render(files, "overlays/own")
	require.NoError(t, err)
	models := peer{name: "models", namespace: map[string]string{"mneme.dev/models": "granted"}}
	elsewhere := peer{name: "elsewhere", namespace: map[string]string{}}
	var reach []string
	for _, w := range r.workloads {
		if r.connects(r.peer(w.name), models, 8000) {
			reach = append(reach, w.name)
		}
		require.False(t, r.connects(r.peer(w.name), elsewhere, 8000), w.name)
	}
	require.ElementsMatch(t, []string{"summarizer", "context-api"}, reach)
	for _, wrong := range check(r, built(t)) { // the programs take these settings
		require.Regexp(t, `reaches port 443 of [0-9a-f.:]+: false$`, wrong, "only models at public addresses are out of reach")
	}
}
