package insight

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func pricesOf(t *testing.T, text string) (*Prices, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "prices.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return ReadPrices(path)
}

func TestCostsAreOfTheLongestNameThatFitsAndNeverMadeUp(t *testing.T) {
	t.Parallel()
	p, err := pricesOf(t, `
currency: EUR
models:
  opus*: {input: 10, output: 50}
  opus-5*: {input: 1, output: 2, cache_read: 0.5, cache_write: 4}
  free: {input: 0, output: 0}
`)
	require.NoError(t, err)
	const million = 1_000_000
	for name, c := range map[string]struct {
		used    map[string]Tokens
		amount  any
		unknown []string
	}{
		"the longest name":                     {map[string]Tokens{"opus-5-1": {Input: million, CacheRead: million, CacheWrite: million, Output: million}}, 7.5, nil},
		"a shorter one":                        {map[string]Tokens{"opus-4": {Input: million, Output: million}}, 60.0, nil},
		"a part without a price makes none":    {map[string]Tokens{"opus-4": {Input: million, CacheRead: 1}}, nil, []string{"opus-4"}},
		"an unknown model beside a known one":  {map[string]Tokens{"opus-4": {Output: million}, "other": {Output: 1}, "": {Input: 1}}, 50.0, []string{"", "other"}},
		"unknown models alone cost not 0":      {map[string]Tokens{"other": {Output: 1}}, nil, []string{"other"}},
		"an unknown model that used no tokens": {map[string]Tokens{"other": {}}, 0.0, nil},
		"free":                                 {map[string]Tokens{"free": {Input: million, Output: 1}}, 0.0, nil},
	} {
		got := p.Cost(c.used)
		require.Equal(t, "EUR", got.Currency)
		require.Equal(t, c.unknown, got.Unknown, name)
		if c.amount == nil {
			require.Nil(t, got.Amount, name)
		} else {
			require.Equal(t, c.amount, *got.Amount, name)
		}
	}
}

func TestAPriceFileThatIsWrongSaysWhy(t *testing.T) {
	t.Parallel()
	for text, why := range map[string]string{
		"":                        "say the currency",
		"models: {a: {input: 1}}": "say the currency",
		"currency: EUR":           "give the price of a model",
		"currency: EUR\nmodels: {a: {input: -1}}":    "the price of a is -1",
		"currency: EUR\nmodels: {a: {input: .nan}}":  "the price of a is NaN",
		"currency: EUR\nmodels: {a: {inputs: 1}}":    `the field "inputs" is unknown`,
		"currency: EUR\nmodels: {a: {input: cheap}}": "`cheap` is a text; give a number",
	} {
		_, err := pricesOf(t, text)
		require.ErrorContains(t, err, why, text)
	}
	_, err := ReadPrices(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
