package settings

import (
	"errors"
	"fmt"
	"time"

	"mneme.dev/mneme/pkg/recall/endpoint"
)

// Reranking configures a model that orders the best results of a search in a conversation.
type Reranking struct {
	Rerank        string        `envconfig:"MNEME_RERANK" default:"off" oneof:"off,openai,cohere,tei" desc:"which reranking API orders the best 100 messages of a search: openai or cohere (Cohere, Jina, vLLM, llama.cpp and others, which take documents), tei (which takes texts), or off"`
	RerankURL     string        `envconfig:"MNEME_RERANK_URL" desc:"the API of the reranking model; /rerank is appended, so include the version, such as /v1 or /v2, if the server wants one"`
	RerankModel   string        `envconfig:"MNEME_RERANK_MODEL" desc:"the reranking model; TEI serves only one and needs no name"`
	RerankKey     string        `envconfig:"MNEME_RERANK_KEY" secret:"true" file:"true" desc:"the key for that API; empty if it needs none"`
	RerankTimeout time.Duration `envconfig:"MNEME_RERANK_TIMEOUT" default:"2s" desc:"how long a search waits for that model before it keeps its own order"`
	RerankAlways  bool          `envconfig:"MNEME_RERANK_ALWAYS" default:"false" desc:"rerank every search in a conversation and every context that does not say rerank=false; otherwise only those that say rerank=true"`
}

// Reranker returns the endpoint that reranks; ok is false if none does.
func (s *Reranking) Reranker() (c endpoint.RerankConfig, ok bool) {
	c = endpoint.RerankConfig{URL: s.RerankURL, Model: s.RerankModel, Key: s.RerankKey, Shape: endpoint.ShapeDocuments, Timeout: s.RerankTimeout}
	if s.Rerank == "tei" {
		c.Shape = endpoint.ShapeTexts
	}
	return c, s.Rerank != "off" && s.Rerank != ""
}

// Check reports every invalid setting by its variable.
func (s *Reranking) Check() error {
	if _, ok := s.Reranker(); !ok {
		if s.RerankAlways {
			return errors.New("MNEME_RERANK is off, but MNEME_RERANK_ALWAYS needs a model")
		}
		return nil
	}
	var model error
	if s.RerankModel == "" && s.Rerank != "tei" {
		model = fmt.Errorf("MNEME_RERANK_MODEL is empty, but MNEME_RERANK=%s needs a model", s.Rerank)
	}
	return errors.Join(httpURL("MNEME_RERANK_URL", s.RerankURL, "http://127.0.0.1:8080/v1"), model, positive("MNEME_RERANK_TIMEOUT", s.RerankTimeout))
}
