package settings

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/pkg/summary/llm"
)

func TestInvalidModelSettingsNameTheirVariable(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "prompt")
	require.NoError(t, os.WriteFile(binary, []byte{0xff}, 0o600))
	for want, variables := range map[string]map[string]string{
		`MNEME_LLM_MODEL is empty`:               {"MNEME_SUMMARY_WRITER": "openai"},
		`MNEME_LLM_URL="here": not a URL`:        {"MNEME_LLM_URL": "here"},
		`MNEME_LLM_URL="http://me:xxxxx@a/v1"`:   {"MNEME_LLM_URL": "http://me:hush@a/v1"},
		`MNEME_LLM_KEY="(not shown)"`:            {"MNEME_LLM_KEY": "hush\n"},
		`MNEME_LLM_PROMPT_FILE="` + binary:       {"MNEME_LLM_PROMPT_FILE": binary},
		`MNEME_LLM_MAX_TOKENS=0`:                 {"MNEME_LLM_MAX_TOKENS": "0"},
		`MNEME_LLM_INPUT_PRICE=-1`:               {"MNEME_LLM_INPUT_PRICE": "-1"},
		`MNEME_CONDENSE_PROMPT_FILE="/nowhere"`:  {"MNEME_CONDENSE_PROMPT_FILE": "/nowhere"},
		`MNEME_CONDENSE="llm": needs a model`:    {"MNEME_CONDENSE": "llm"},
		`MNEME_CONDENSE_LLM_PROVIDER is empty`:   {"MNEME_CONDENSE_LLM_MODEL": "small"},
		`MNEME_CONDENSE_LLM_PROVIDER="acme"`:     {"MNEME_CONDENSE_LLM_PROVIDER": "acme", "MNEME_CONDENSE_LLM_MODEL": "small"},
		`MNEME_CONDENSE_LLM_MODEL is empty`:      {"MNEME_CONDENSE_LLM_KEY": "hush"},
		`MNEME_CONDENSE_LLM_URL="here"`:          {"MNEME_CONDENSE_LLM_PROVIDER": "openai", "MNEME_CONDENSE_LLM_MODEL": "small", "MNEME_CONDENSE_LLM_URL": "here"},
		`MNEME_CONDENSE_LLM_INPUT_PRICE=-1`:      {"MNEME_CONDENSE_LLM_INPUT_PRICE": "-1"},
		`MNEME_CONDENSE_LLM_KEY="(not shown)"`:   {"MNEME_CONDENSE_LLM_PROVIDER": "openai", "MNEME_CONDENSE_LLM_MODEL": "small", "MNEME_CONDENSE_LLM_KEY": "hush\n"},
		`MNEME_CONDENSE="llm": needs a model: s`: {"MNEME_CONDENSE": "llm", "MNEME_SUMMARY_WRITER": "off", "MNEME_CONDENSE_LLM_PROVIDER": "openai", "MNEME_CONDENSE_LLM_MODEL": "small"},
	} {
		t.Run(want, func(t *testing.T) {
			for name, value := range variables {
				t.Setenv(name, value)
			}
			err := Read(ForSummarizer())
			require.ErrorContains(t, err, want)
			require.NotContains(t, err.Error(), "hush")
		})
	}
}

func TestCondensingModelInheritsFromWriter(t *testing.T) {
	read := func(variables map[string]string) (llm.Profile, bool) {
		for name, value := range variables {
			t.Setenv(name, value)
		}
		s := ForSummarizer()
		require.NoError(t, Read(s))
		return s.CondenseLLM()
	}
	_, own := read(map[string]string{"MNEME_SUMMARY_WRITER": "openai", "MNEME_LLM_MODEL": "large", "MNEME_LLM_URL": "http://a/v1", "MNEME_LLM_KEY": "a"})
	require.False(t, own)
	p, own := read(map[string]string{"MNEME_CONDENSE_LLM_MODEL": "small"})
	require.True(t, own)
	require.Equal(t, []string{"openai", "http://a/v1", "a", "small"}, []string{p.Provider, p.URL, p.Key, p.Model})
	p, _ = read(map[string]string{"MNEME_CONDENSE_LLM_URL": "http://b/v1"})
	require.Equal(t, []string{"openai", "http://b/v1", "", "small"}, []string{p.Provider, p.URL, p.Key, p.Model}, "a key is never sent to another server")
	p, _ = read(map[string]string{"MNEME_CONDENSE_LLM_PROVIDER": "anthropic", "MNEME_CONDENSE_LLM_URL": "", "MNEME_CONDENSE_LLM_KEY": "b", "MNEME_SUMMARY_WRITER": "extractive"})
	require.Equal(t, []string{"anthropic", "", "b", "small"}, []string{p.Provider, p.URL, p.Key, p.Model})
}

func TestCondensingModelPrices(t *testing.T) {
	prices := func(variables map[string]string) ([]float64, error) {
		for name, value := range variables {
			t.Setenv(name, value)
		}
		s := ForSummarizer()
		err := Read(s)
		p, own := s.CondenseLLM()
		require.True(t, own)
		return []float64{p.InputPrice, p.OutputPrice}, err
	}
	got, err := prices(map[string]string{
		"MNEME_SUMMARY_WRITER": "openai", "MNEME_LLM_MODEL": "large", "MNEME_LLM_INPUT_PRICE": "3", "MNEME_LLM_OUTPUT_PRICE": "15", "MNEME_LLM_MAX_COST_PER_HOUR": "1",
		"MNEME_CONDENSE_LLM_MODEL": "small",
	})
	require.NoError(t, err)
	require.Equal(t, []float64{3, 15}, got, "same server as the writer, so same price unless set")
	got, err = prices(map[string]string{"MNEME_CONDENSE_LLM_INPUT_PRICE": "0.5"})
	require.NoError(t, err)
	require.Equal(t, []float64{0.5, 0}, got)
	got, err = prices(map[string]string{"MNEME_CONDENSE_LLM_INPUT_PRICE": "0", "MNEME_CONDENSE_LLM_URL": "http://127.0.0.1:11434/v1"})
	require.NoError(t, err)
	require.Equal(t, []float64{0, 0}, got, "a private server")
	_, err = prices(map[string]string{"MNEME_CONDENSE_LLM_URL": "", "MNEME_CONDENSE_LLM_PROVIDER": "anthropic"})
	require.ErrorContains(t, err, "needs MNEME_CONDENSE_LLM_INPUT_PRICE", "a provider is never free")
	_, err = prices(map[string]string{"MNEME_CONDENSE_LLM_URL": "http://127.0.0.1:11434/v1", "MNEME_SUMMARY_WRITER": "extractive"})
	require.ErrorContains(t, err, "needs MNEME_CONDENSE_LLM_INPUT_PRICE", "a cost cap needs a price")
	got, err = prices(map[string]string{"MNEME_CONDENSE_LLM_OUTPUT_PRICE": "2", "MNEME_LLM_INPUT_PRICE": "0", "MNEME_LLM_OUTPUT_PRICE": "0"})
	require.NoError(t, err, "no other model needs prices")
	require.Equal(t, []float64{0, 2}, got)
}
