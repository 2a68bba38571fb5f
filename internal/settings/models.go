package settings

import (
	"errors"
	"fmt"
	"time"

	"mneme.dev/mneme/pkg/summary/llm"
)

// Model configures a language model.
type Model struct {
	URL         string        `name:"llm-url" envconfig:"MNEME_LLM_URL" desc:"the API of the model, for openai with /v1; empty for the provider's own"`
	Name        string        `name:"llm-model" envconfig:"MNEME_LLM_MODEL" desc:"the model"`
	Key         string        `name:"llm-key" envconfig:"MNEME_LLM_KEY" secret:"true" file:"true" desc:"the key for the API; empty if it needs none"`
	Timeout     time.Duration `name:"llm-timeout" envconfig:"MNEME_LLM_TIMEOUT" default:"2m" desc:"how long one call may take"`
	Deadline    time.Duration `name:"llm-deadline" envconfig:"MNEME_LLM_DEADLINE" default:"15m" desc:"how long a summary waits for a model that does not answer before it is written without one"`
	MaxTokens   int           `name:"llm-max-tokens" envconfig:"MNEME_LLM_MAX_TOKENS" default:"1200" desc:"maximum number of tokens of one answer; a model that thinks first needs more"`
	PromptFile  string        `name:"llm-prompt-file" envconfig:"MNEME_LLM_PROMPT_FILE" desc:"file with your own prompt; empty for the built-in one"`
	MaxCalls    int           `name:"llm-max-calls-per-hour" envconfig:"MNEME_LLM_MAX_CALLS_PER_HOUR" default:"600" desc:"maximum number of calls in any hour; 0 for no limit"`
	MaxCost     float64       `name:"llm-max-cost-per-hour" envconfig:"MNEME_LLM_MAX_COST_PER_HOUR" default:"0" desc:"maximum cost of the calls in any hour, in the currency of the prices; 0 for no limit"`
	InputPrice  float64       `name:"llm-input-price" envconfig:"MNEME_LLM_INPUT_PRICE" default:"0" desc:"price of a million input tokens"`
	OutputPrice float64       `name:"llm-output-price" envconfig:"MNEME_LLM_OUTPUT_PRICE" default:"0" desc:"price of a million output tokens"`
}

// CondenseModel configures the model that condenses tool results, where it differs from
// [Model].
type CondenseModel struct {
	CondenseName        string  `name:"condense-llm-model" envconfig:"MNEME_CONDENSE_LLM_MODEL" desc:"the model that condenses tool results; empty for MNEME_LLM_MODEL"`
	CondenseProvider    string  `name:"condense-llm-provider" envconfig:"MNEME_CONDENSE_LLM_PROVIDER" oneof:",openai,anthropic" desc:"the API of that model, openai or anthropic; empty for the one MNEME_SUMMARY_WRITER names"`
	CondenseURL         string  `name:"condense-llm-url" envconfig:"MNEME_CONDENSE_LLM_URL" desc:"the URL of that model's API; if neither this nor a provider is set, the URL and key of MNEME_LLM_MODEL apply"`
	CondenseKey         string  `name:"condense-llm-key" envconfig:"MNEME_CONDENSE_LLM_KEY" secret:"true" file:"true" desc:"the key for that model"`
	CondenseInputPrice  float64 `name:"condense-llm-input-price" envconfig:"MNEME_CONDENSE_LLM_INPUT_PRICE" default:"0" desc:"price of a million input tokens of that model; if neither price is set, those of MNEME_LLM_MODEL apply, or none if the model has its own provider or URL"`
	CondenseOutputPrice float64 `name:"condense-llm-output-price" envconfig:"MNEME_CONDENSE_LLM_OUTPUT_PRICE" default:"0" desc:"price of a million output tokens of that model"`
	CondensePromptFile  string  `name:"condense-prompt-file" envconfig:"MNEME_CONDENSE_PROMPT_FILE" desc:"file with your own prompt for condensing; empty for the built-in one"`
}

// LLM returns the model that writes summaries; ok is false if none does.
func (s *Summaries) LLM() (p llm.Profile, ok bool) {
	p = llm.Profile{
		URL: s.URL, Model: s.Name, Key: s.Key, Timeout: s.Timeout, MaxTokens: int64(s.MaxTokens), PromptFile: s.PromptFile, CondensePromptFile: s.CondensePromptFile,
		MaxCallsPerHour: s.MaxCalls, MaxCostPerHour: s.MaxCost, InputPrice: s.InputPrice, OutputPrice: s.OutputPrice,
	}
	if s.Writer != llm.OpenAI && s.Writer != llm.Anthropic {
		return p, false
	}
	p.Provider = s.Writer
	return p, true
}

// CondenseLLM returns the model that condenses; ok is false if it has no settings of its
// own.
func (s *Summaries) CondenseLLM() (p llm.Profile, ok bool) {
	p, _ = s.LLM()
	if s.CondenseName == "" {
		return p, false
	}
	elsewhere := s.CondenseURL != "" || s.CondenseProvider != ""
	if p.Model = s.CondenseName; elsewhere {
		p.URL, p.Key = s.CondenseURL, "" // a key is never sent to another server
	}
	if elsewhere || s.CondenseInputPrice != 0 || s.CondenseOutputPrice != 0 {
		p.InputPrice, p.OutputPrice = s.CondenseInputPrice, s.CondenseOutputPrice
	}
	if s.CondenseProvider != "" {
		p.Provider = s.CondenseProvider
	}
	if s.CondenseKey != "" {
		p.Key = s.CondenseKey
	}
	return p, p.Provider != ""
}

// checkModels reports the invalid model settings.
func (s *Summaries) checkModels() error {
	errs := []error{
		positive("MNEME_LLM_TIMEOUT", s.Timeout), positive("MNEME_LLM_DEADLINE", s.Deadline), between("MNEME_LLM_MAX_TOKENS", s.MaxTokens, 1, 1_000_000),
		notNegative("MNEME_LLM_MAX_CALLS_PER_HOUR", int64(s.MaxCalls)),
	}
	for _, price := range []struct {
		name  string
		value float64
	}{
		{"MNEME_LLM_MAX_COST_PER_HOUR", s.MaxCost}, {"MNEME_LLM_INPUT_PRICE", s.InputPrice}, {"MNEME_LLM_OUTPUT_PRICE", s.OutputPrice},
		{"MNEME_CONDENSE_LLM_INPUT_PRICE", s.CondenseInputPrice}, {"MNEME_CONDENSE_LLM_OUTPUT_PRICE", s.CondenseOutputPrice},
	} {
		if !(price.value >= 0) {
			errs = append(errs, refuse(price.name, price.value, "must not be negative"))
		}
	}
	model, writes := s.LLM()
	condenser, own := s.CondenseLLM()
	switch free := func(p *llm.Profile) bool { return p.InputPrice == 0 && p.OutputPrice == 0 }; {
	case s.MaxCost == 0:
	case (writes || !own) && free(&model):
		errs = append(errs, refuse("MNEME_LLM_MAX_COST_PER_HOUR", s.MaxCost, "needs MNEME_LLM_INPUT_PRICE and MNEME_LLM_OUTPUT_PRICE"))
	case own && free(&condenser) && (!writes || condenser.URL == ""): // a private server may be free, a provider never is
		errs = append(errs, refuse("MNEME_LLM_MAX_COST_PER_HOUR", s.MaxCost, "needs MNEME_CONDENSE_LLM_INPUT_PRICE and MNEME_CONDENSE_LLM_OUTPUT_PRICE"))
	}
	if writes && s.Name == "" {
		errs = append(errs, fmt.Errorf("MNEME_LLM_MODEL is empty, but MNEME_SUMMARY_WRITER=%s needs a model", s.Writer))
	}
	errs = append(errs, refuseAll(&model, map[string]string{"URL": "MNEME_LLM_URL", "Key": "MNEME_LLM_KEY", "PromptFile": "MNEME_LLM_PROMPT_FILE", "CondensePromptFile": "MNEME_CONDENSE_PROMPT_FILE"})...)
	switch {
	case own:
		errs = append(errs, refuseAll(&condenser, map[string]string{"URL": "MNEME_CONDENSE_LLM_URL", "Key": "MNEME_CONDENSE_LLM_KEY"})...)
	case s.CondenseName != "":
		errs = append(errs, fmt.Errorf("MNEME_CONDENSE_LLM_PROVIDER is empty, but MNEME_SUMMARY_WRITER=%s is not a provider that MNEME_CONDENSE_LLM_MODEL could use", s.Writer))
	case s.CondenseProvider != "" || s.CondenseURL != "" || s.CondenseKey != "" || s.CondenseInputPrice != 0 || s.CondenseOutputPrice != 0:
		errs = append(errs, errors.New("MNEME_CONDENSE_LLM_MODEL is empty, but another MNEME_CONDENSE_LLM_… setting is not"))
	}
	if s.Condense == "llm" && (s.Writer == "off" || !own && !writes) {
		errs = append(errs, refuse("MNEME_CONDENSE", s.Condense, "needs a model: set MNEME_SUMMARY_WRITER to openai or anthropic, or MNEME_CONDENSE_LLM_PROVIDER and MNEME_CONDENSE_LLM_MODEL"))
	}
	return errors.Join(errs...)
}

// refuseAll reports each problem of a model under the variable of its field.
func refuseAll(p *llm.Profile, variables map[string]string) (errs []error) {
	for _, problem := range p.Problems() {
		if variable, ok := variables[problem.Field]; ok {
			errs = append(errs, refuse(variable, problem.Value, problem.Reason))
		}
	}
	return errs
}
