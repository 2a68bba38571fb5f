package insight

import (
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"

	"mneme.dev/mneme/internal/yamlfile"
)

// Prices are what tokens cost, read from a file: see [ReadPrices]. There are none built in.
type Prices struct {
	Currency string           `yaml:"currency"`
	Models   map[string]Price `yaml:"models"`
}

// Price is what a million tokens of a model cost. A price that is missing is unknown; 0 is free.
type Price struct {
	Input      *float64 `yaml:"input"`
	Output     *float64 `yaml:"output"`
	CacheRead  *float64 `yaml:"cache_read"`
	CacheWrite *float64 `yaml:"cache_write"`
}

// ReadPrices reads a YAML or JSON file:
//
//	currency: USD
//	models:
//	  claude-opus-4*: {input: 15, output: 75, cache_read: 1.5, cache_write: 18.75}
//
// A name that ends in * is for every model that begins with what is before it, unless a longer name fits.
func ReadPrices(path string) (*Prices, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	p := &Prices{}
	if err := yamlfile.Decode(raw, p); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if p.Currency == "" {
		return nil, fmt.Errorf("%s: say the currency, such as currency: USD", path)
	}
	if len(p.Models) == 0 {
		return nil, fmt.Errorf("%s: give the price of a model below models", path)
	}
	for name, m := range p.Models {
		for _, price := range []*float64{m.Input, m.Output, m.CacheRead, m.CacheWrite} {
			if price != nil && (*price < 0 || math.IsNaN(*price) || math.IsInf(*price, 0)) {
				return nil, fmt.Errorf("%s: the price of %s is %v; give what a million tokens cost", path, name, *price)
			}
		}
	}
	return p, nil
}

// Rates returns what a million tokens of a model cost, in and out; known is false if the file says neither price or only one.
// Nil prices know no model.
func (p *Prices) Rates(model string) (input, output float64, known bool) {
	if p == nil {
		return 0, 0, false
	}
	price, ok := p.of(model)
	if !ok || price.Input == nil || price.Output == nil {
		return 0, 0, false
	}
	return *price.Input, *price.Output, true
}

// of returns the price of a model by the longest name that fits.
func (p *Prices) of(model string) (price Price, ok bool) {
	if price, ok = p.Models[model]; ok {
		return price, true
	}
	longest := -1
	for name, at := range p.Models {
		if prefix, is := strings.CutSuffix(name, "*"); is && strings.HasPrefix(model, prefix) && len(prefix) > longest {
			price, ok, longest = at, true, len(prefix)
		}
	}
	return price, ok
}

// Cost is what tokens cost. Amount is nil if models used tokens and none of them has a price.
type Cost struct {
	Amount   *float64 `json:"amount,omitempty" doc:"without the models in unknown; absent if that leaves none"`
	Currency string   `json:"currency"`
	Unknown  []string `json:"unknown,omitempty" doc:"models that used tokens and whose price is not in the file, sorted; the empty name stands for steps that name no model"`
}

// Cost returns what the tokens of models cost.
func (p *Prices) Cost(used map[string]Tokens) *Cost {
	c := &Cost{Currency: p.Currency}
	sum, priced := 0.0, false
	for _, model := range slices.Sorted(maps.Keys(used)) { // sums of floats depend on the order
		t := used[model]
		if t == (Tokens{}) {
			continue
		}
		price, known := p.of(model)
		amount := 0.0
		for _, part := range []struct {
			n     int64
			price *float64
		}{{t.Input, price.Input}, {t.Output, price.Output}, {t.CacheRead, price.CacheRead}, {t.CacheWrite, price.CacheWrite}} {
			if part.n == 0 {
				continue
			}
			if known = known && part.price != nil; !known {
				break
			}
			amount += float64(part.n) / 1e6 * *part.price
		}
		if !known {
			c.Unknown = append(c.Unknown, model)
			continue
		}
		sum, priced = sum+amount, true
	}
	if priced || len(c.Unknown) == 0 {
		sum = math.Round(sum*1e6) / 1e6
		c.Amount = &sum
	}
	return c
}
