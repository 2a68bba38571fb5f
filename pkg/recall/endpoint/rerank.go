package endpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"mneme.dev/mneme/events"
)

// Shapes of requests of a reranker.
const (
	// ShapeDocuments sends model, query, documents and top_n: Cohere, Jina, vLLM, llama.cpp.
	ShapeDocuments = "documents"
	// ShapeTexts sends query and texts: TEI, which serves one model.
	ShapeTexts = "texts"
)

// maxRerankBody limits how much of an answer of a reranker is read, in bytes. Some repeat the texts.
const maxRerankBody = 4 << 20

// keptOrders is how many answers of a reranker are kept: an agent asks for a context after each step,
// and most of them ask the same.
const keptOrders = 64

// RerankConfig describes a reranker and its endpoint.
type RerankConfig struct {
	URL     string // of the API; "rerank" is appended
	Model   string // may be empty for [ShapeTexts]
	Key     string // empty for a server that needs none
	Shape   string
	Timeout time.Duration // of one search
}

// Reranker scores texts by how well they answer a query. It is safe for concurrent use.
type Reranker struct {
	*guarded[[]float64, RerankStats]
	config RerankConfig
	kept   *lru.Cache[events.Digest, []float64]
	most   atomic.Int64 // how many texts the server takes at once, 0 until it has refused some
}

// RerankStats counts since the reranker was made.
type RerankStats struct {
	Calls    int64 // of the endpoint, failed ones included
	Failures int64 // of calls
	Kept     int64 // answers that were reused without a call
}

// NewReranker makes a reranker.
func NewReranker(c RerankConfig) (*Reranker, error) {
	guarded, err := newGuarded[[]float64, RerankStats](c.URL, c.Key, maxRerankBody)
	if err != nil {
		return nil, err
	}
	if c.Model == "" && c.Shape != ShapeTexts {
		return nil, errors.New("the reranking model has no name")
	}
	r := &Reranker{guarded: guarded, config: c}
	r.kept, _ = lru.New[events.Digest, []float64](keptOrders) // fails only for a size below 1
	return r, nil
}

// Model returns the model's name, or without one that of the endpoint's API.
func (r *Reranker) Model() string {
	if r.config.Model == "" {
		return "tei"
	}
	return r.config.Model
}

// Rerank returns a score for each text, the highest for the text that answers the query best. It does not
// ask again after a failure, because a search waits for it. An error says what is wrong with the
// endpoint or its answer; it contains nothing that was sent.
func (r *Reranker) Rerank(ctx context.Context, query string, texts []string) ([]float64, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	if len(query) > maxQuery {
		query = strings.ToValidUTF8(query[:maxQuery], "")
	}
	key := events.DigestOf(append([]string{query}, texts...)...)
	if scores, ok := r.kept.Get(key); ok {
		r.count(func(s *RerankStats) { s.Kept++ })
		return scores, nil
	}
	scores, err := r.call(func() ([]float64, error) {
		within, cancel := context.WithTimeoutCause(ctx, r.config.Timeout, errSlow)
		defer cancel()
		return r.ask(within, query, texts)
	}, func(s *RerankStats, failed bool) {
		if failed {
			s.Failures++
		}
	})
	if err == nil {
		r.kept.Add(key, scores)
	}
	return scores, err
}

type rerankRequest struct {
	Model     string   `json:"model"`
	Query     string   `json:"query"`
	Documents []string `json:"documents"`
	TopN      int      `json:"top_n"`
}

type rerankTextsRequest struct {
	Query    string   `json:"query"`
	Texts    []string `json:"texts"`
	Truncate bool     `json:"truncate"` // instead of refusing a text that is too long for the model
}

// ranked is the score of a text. Cohere and those like it call it relevance_score, TEI score.
type ranked struct {
	Index     *int     `json:"index"`
	Relevance *float64 `json:"relevance_score"`
	Score     *float64 `json:"score"`
}

// leastPart is the smallest part that is halved: a server that refuses fewer texts refuses what they say.
const leastPart = 16

// ask asks for all texts, in parts if the server refuses so many: TEI takes 32 unless it is told otherwise. A model scores
// each text by itself, so the scores of parts can be compared.
func (r *Reranker) ask(ctx context.Context, query string, texts []string) ([]float64, error) {
	most := len(texts)
	if known := int(r.most.Load()); known > 0 {
		most = min(most, known)
	}
	scores := make([]float64, 0, len(texts))
	for len(scores) < len(texts) {
		part := texts[len(scores):min(len(scores)+most, len(texts))]
		got, err := r.askOnce(ctx, query, part)
		if tooMany(err) && len(part) >= leastPart {
			most = len(part) / 2
			continue
		}
		if err != nil {
			return nil, err
		}
		scores = append(scores, got...)
	}
	if most < len(texts) {
		r.most.Store(int64(most))
	}
	return scores, nil
}

// tooMany reports whether a server may have refused a number of texts.
func tooMany(err error) bool {
	e, ok := errors.AsType[*statusError](err)
	return ok && (e.status == http.StatusRequestEntityTooLarge || e.status == http.StatusUnprocessableEntity)
}

func (r *Reranker) askOnce(ctx context.Context, query string, texts []string) ([]float64, error) {
	r.count(func(s *RerankStats) { s.Calls++ })
	var request any = rerankRequest{Model: r.config.Model, Query: query, Documents: texts, TopN: len(texts)}
	if r.config.Shape == ShapeTexts {
		request = rerankTextsRequest{query, texts, true}
	}
	answer, err := r.api.Post(ctx, "rerank", request)
	if err != nil {
		return nil, explain(ctx, err)
	}
	if !answer.OK() {
		return nil, refused(answer)
	}
	return scoresOf(answer.Body, len(texts))
}

// scoresOf reads an answer of either shape: an object with results, or a list. Each of the n texts
// must have one score.
func scoresOf(body []byte, n int) ([]float64, error) {
	var list []ranked
	if body = bytes.TrimSpace(body); len(body) > 0 && body[0] == '[' {
		if json.Unmarshal(body, &list) != nil {
			return nil, errForm
		}
	} else {
		var object struct {
			Results []ranked `json:"results"`
		}
		if json.Unmarshal(body, &object) != nil {
			return nil, errForm
		}
		list = object.Results
	}
	if len(list) != n {
		return nil, fmt.Errorf("the endpoint answers %d texts with %d scores", n, len(list))
	}
	scores, filled := make([]float64, n), make([]bool, n)
	for _, one := range list {
		score := one.Relevance
		if score == nil {
			score = one.Score
		}
		switch {
		case one.Index == nil || score == nil || math.IsNaN(*score) || math.IsInf(*score, 0):
			return nil, errForm
		case *one.Index < 0 || *one.Index >= n:
			return nil, fmt.Errorf("the endpoint scores text %d of %d", *one.Index, n)
		case filled[*one.Index]:
			return nil, fmt.Errorf("the endpoint scores text %d twice", *one.Index)
		}
		scores[*one.Index], filled[*one.Index] = *score, true
	}
	return scores, nil
}
