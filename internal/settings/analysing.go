package settings

import "mneme.dev/mneme/pkg/summary/llm"

// Analysing configures the model that analyses ask: that of the summarizer.
type Analysing struct {
	Writer string `name:"summary-writer" envconfig:"MNEME_SUMMARY_WRITER" default:"extractive" oneof:"extractive,openai,anthropic,off" desc:"the API of the model: openai is any server with OpenAI's API, anthropic is Anthropic's API; with extractive and off there is none"`
	Model
}

// summaries returns the settings as those of summaries.
func (a *Analysing) summaries() *Summaries { return &Summaries{Writer: a.Writer, Model: a.Model} }

// Check reports every invalid setting by its variable.
func (a *Analysing) Check() error { return a.summaries().checkModels() }

// LLM returns the model; ok is false if none is configured.
func (a *Analysing) LLM() (p llm.Profile, ok bool) { return a.summaries().LLM() }
