package settings

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/pkg/recall/endpoint"
)

func TestRerankingSettingsAreRefusedByTheirVariables(t *testing.T) {
	valid := Reranking{Rerank: "openai", RerankURL: "http://127.0.0.1:8080/v1", RerankModel: "m", RerankTimeout: time.Second}
	require.NoError(t, valid.Check())
	c, ok := valid.Reranker()
	require.True(t, ok)
	require.Equal(t, endpoint.ShapeDocuments, c.Shape)
	tei := Reranking{Rerank: "tei", RerankURL: "http://127.0.0.1:8080", RerankTimeout: time.Second, RerankAlways: true}
	require.NoError(t, tei.Check())
	c, _ = tei.Reranker()
	require.Equal(t, endpoint.ShapeTexts, c.Shape)
	require.NoError(t, (&Reranking{Rerank: "off"}).Check())
	_, ok = (&Reranking{Rerank: "off"}).Reranker()
	require.False(t, ok)
	for variable, change := range map[string]func(*Reranking){
		"MNEME_RERANK_URL":     func(s *Reranking) { s.RerankURL = "" },
		"MNEME_RERANK_MODEL":   func(s *Reranking) { s.RerankModel = "" },
		"MNEME_RERANK_TIMEOUT": func(s *Reranking) { s.RerankTimeout = 0 },
		"MNEME_RERANK_ALWAYS":  func(s *Reranking) { s.Rerank, s.RerankAlways = "off", true },
	} {
		s := valid
		change(&s)
		require.ErrorContains(t, s.Check(), variable)
	}
}
