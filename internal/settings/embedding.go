package settings

import (
	"errors"
	"time"

	"mneme.dev/mneme/pkg/recall/endpoint"
)

// Embedding configures how messages are compared by meaning. The program that embeds
// messages and the one that searches them need the same settings.
type Embedding struct {
	Embeddings             string        `envconfig:"MNEME_EMBEDDINGS" default:"builtin" oneof:"builtin,openai,off" desc:"how messages are compared by meaning: builtin needs no server, openai asks the endpoint at MNEME_EMBEDDINGS_URL, off ranks by words alone"`
	EmbeddingsURL          string        `envconfig:"MNEME_EMBEDDINGS_URL" default:"https://api.openai.com/v1" desc:"the API of the embedding model, with /v1: of OpenAI, Ollama, TEI, vLLM, llama.cpp and others"`
	EmbeddingsModel        string        `envconfig:"MNEME_EMBEDDINGS_MODEL" desc:"the embedding model; if you change it, run mneme rebuild embeddings"`
	EmbeddingsKey          string        `envconfig:"MNEME_EMBEDDINGS_KEY" secret:"true" file:"true" desc:"the key for that API; empty if it needs none"`
	EmbeddingsDimensions   int           `envconfig:"MNEME_EMBEDDINGS_DIMENSIONS" default:"0" desc:"dimensions to ask that model for, if it supports several; 0 for its default"`
	EmbeddingsBatch        int           `envconfig:"MNEME_EMBEDDINGS_BATCH" default:"64" desc:"maximum number of texts in one call"`
	EmbeddingsTimeout      time.Duration `envconfig:"MNEME_EMBEDDINGS_TIMEOUT" default:"1m" desc:"how long one call for messages may take"`
	EmbeddingsQueryTimeout time.Duration `envconfig:"MNEME_EMBEDDINGS_QUERY_TIMEOUT" default:"2s" desc:"how long a search waits for the vector of its query before it ranks by words alone"`
	EmbeddingsMinCosine    float64       `envconfig:"MNEME_EMBEDDINGS_MIN_COSINE" default:"0.3" desc:"a cosine that unrelated texts rarely reach with that model"`
}

// Endpoint returns the endpoint that embeds; ok is false if none does.
func (s *Embedding) Endpoint() (c endpoint.Config, ok bool) {
	return endpoint.Config{
		URL: s.EmbeddingsURL, Model: s.EmbeddingsModel, Key: s.EmbeddingsKey, Dimensions: s.EmbeddingsDimensions, Batch: s.EmbeddingsBatch, Timeout: s.EmbeddingsTimeout, QueryTimeout: s.EmbeddingsQueryTimeout,
	}, s.Embeddings == "openai"
}

// Check reports every invalid setting by its variable.
func (s *Embedding) Check() error {
	if s.Embeddings != "openai" {
		return nil
	}
	var cosine error
	if !(s.EmbeddingsMinCosine >= -1 && s.EmbeddingsMinCosine <= 1) {
		cosine = refuse("MNEME_EMBEDDINGS_MIN_COSINE", s.EmbeddingsMinCosine, "not between -1 and 1")
	}
	var model error
	if s.EmbeddingsModel == "" {
		model = errors.New("MNEME_EMBEDDINGS_MODEL is empty, but MNEME_EMBEDDINGS=openai needs a model")
	}
	return errors.Join(
		httpURL("MNEME_EMBEDDINGS_URL", s.EmbeddingsURL, "http://127.0.0.1:11434/v1"), model, cosine,
		between("MNEME_EMBEDDINGS_DIMENSIONS", s.EmbeddingsDimensions, 0, 16_384), between("MNEME_EMBEDDINGS_BATCH", s.EmbeddingsBatch, 1, 2_048),
		positive("MNEME_EMBEDDINGS_TIMEOUT", s.EmbeddingsTimeout), positive("MNEME_EMBEDDINGS_QUERY_TIMEOUT", s.EmbeddingsQueryTimeout),
	)
}
