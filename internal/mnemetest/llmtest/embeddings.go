package llmtest

import (
	"encoding/json"
	"net/http"
	"testing"

	"mneme.dev/mneme/pkg/recall/static"
)

// Embedding makes an endpoint that serves the built-in embedding model, whose vectors are
// meaningful and the same on every machine. It accepts any model name.
func Embedding(t testing.TB) *Endpoint {
	t.Helper()
	return start(t, &Endpoint{t: t, pass: http.HandlerFunc(embeddings)})
}

func embeddings(w http.ResponseWriter, r *http.Request) {
	var request struct{ Input []string }
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil || r.URL.Path != "/v1/embeddings" {
		Failure(http.StatusBadRequest, "invalid_request_error", "not a request for embeddings")(w, r)
		return
	}
	vectors := make([][]float32, len(request.Input))
	for i, text := range request.Input {
		vectors[i] = static.Embed(text)
	}
	Vectors(vectors...)(w, r)
}

// Vectors returns a reply with embeddings, in this order.
func Vectors(list ...[]float32) Reply {
	data := make([]map[string]any, len(list))
	for i, v := range list {
		data[i] = map[string]any{"object": "embedding", "index": i, "embedding": v}
	}
	return reply(http.StatusOK, map[string]any{
		"object": "list", "model": "canned", "data": data, "usage": map[string]any{"prompt_tokens": 10 * len(list), "total_tokens": 10 * len(list)},
	})
}
