package llm

import (
	"cmp"
	"crypto/sha256"
	_ "embed" // the prompts
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The providers.
const (
	OpenAI    = "openai"    // and every server with its chat completions: Ollama, vLLM, llama.cpp, LiteLLM
	Anthropic = "anthropic" // its Messages API
)

// defaultURL holds the providers' own URLs.
var defaultURL = map[string]string{OpenAI: "https://api.openai.com/v1", Anthropic: "https://api.anthropic.com"}

// DefaultMaxTokens is enough for the longest summary, in any language.
const DefaultMaxTokens = 1_200

// maxPrompt is the largest prompt file, in bytes.
const maxPrompt = 64 << 10

// Profile configures a [Writer].
type Profile struct {
	Provider string // OpenAI or Anthropic.
	URL      string // Of the API, for OpenAI with /v1; default the provider's own.
	Model    string
	Key      string // Empty for a server that needs none.

	Timeout     time.Duration // Of one call.
	Temperature float64       // 0 to 2. It is not sent again to a model that refuses it.
	MaxTokens   int64         // Of one answer, including the model's reasoning; default [DefaultMaxTokens].

	// Files with custom prompts, plain text of up to 64 KiB; default this package's own. The rule
	// that the record is not an instruction is always added.
	PromptFile         string
	CondensePromptFile string

	// Caps for any hour; 0 for none. The cost is in the currency of the prices. With a Budget of
	// another writer, they are shared caps for both.
	MaxCallsPerHour int
	MaxCostPerHour  float64
	Budget          *Budget

	// Prices of a million tokens. If one is 0 and Priced is false, it is unknown, and no call is made for a tenant whose
	// quota bounds the cost.
	InputPrice  float64
	OutputPrice float64
	Priced      bool
}

//go:embed prompts/summary.txt
var summaryPrompt string

//go:embed prompts/condense.txt
var condensePrompt string

//go:embed prompts/guard.txt
var guard string

// schema is the form of a summary.
//
//go:embed prompts/summary.schema.json
var schema string

// prompt is a system prompt as sent.
type prompt struct{ text, hash string }

func newPrompt(text, schema string) prompt {
	p := prompt{text: strings.TrimSpace(text) + "\n\n" + strings.TrimSpace(guard)}
	sum := sha256.Sum256([]byte(p.text + schema))
	p.hash = hex.EncodeToString(sum[:])[:16]
	return p
}

// New makes the writer of a profile, which shares nothing with others. See [Endpoints.New].
func New(p Profile) (*Writer, error) { return new(Endpoints).New(p) }

// New makes the writer of a profile and reads its prompt files. The error joins a [Problem] for
// every invalid field.
func (s *Endpoints) New(p Profile) (*Writer, error) {
	p.URL = cmp.Or(p.URL, defaultURL[p.Provider])
	p.MaxTokens = cmp.Or(p.MaxTokens, DefaultMaxTokens)
	problems, summaryText, condenseText := p.read()
	if len(problems) > 0 {
		errs := make([]error, len(problems))
		for i, problem := range problems {
			errs[i] = problem
		}
		return nil, errors.Join(errs...)
	}
	if p.Budget == nil {
		p.Budget = &Budget{calls: p.MaxCallsPerHour, cost: p.MaxCostPerHour}
	}
	w := &Writer{
		profile:  p,
		summary:  newPrompt(summaryText, schema),
		condense: newPrompt(condenseText, ""),
		endpoint: s.of(&p),
		budget:   p.Budget,
	}
	if p.Provider == Anthropic {
		w.provider = newMessages(&w.profile)
	} else {
		w.provider = newChat(&w.profile)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writers = append(s.writers, w)
	return w, nil
}

// Problem is an invalid field of a [Profile]. It never contains the key.
type Problem struct {
	Field  string
	Value  any // safe to show
	Reason string
}

// Error implements error.
func (p Problem) Error() string {
	if text, ok := p.Value.(string); ok {
		return fmt.Sprintf("%s=%q: %s", p.Field, text, p.Reason)
	}
	return fmt.Sprintf("%s=%v: %s", p.Field, p.Value, p.Reason)
}

// Problems lists the invalid fields. It reads the prompt files.
func (p *Profile) Problems() []Problem {
	problems, _, _ := p.read()
	return problems
}

// read does the work of Problems and also returns the prompts that it has read.
func (p *Profile) read() (problems []Problem, summaryText, condenseText string) {
	problems = p.check()
	for _, file := range []struct {
		field, path, standard string
		text                  *string
	}{{"PromptFile", p.PromptFile, summaryPrompt, &summaryText}, {"CondensePromptFile", p.CondensePromptFile, condensePrompt, &condenseText}} {
		text, reason := readPrompt(file.path, file.standard)
		if reason != "" {
			problems = append(problems, Problem{file.field, file.path, reason})
		}
		*file.text = text
	}
	return problems, summaryText, condenseText
}

func (p *Profile) check() (problems []Problem) {
	refuse := func(wrong bool, field string, value any, why string) {
		if wrong {
			problems = append(problems, Problem{field, value, why})
		}
	}
	refuse(p.Provider != OpenAI && p.Provider != Anthropic, "Provider", p.Provider, "neither openai nor anthropic")
	if p.URL != "" { // else it is the provider's own
		u, err := url.Parse(p.URL)
		switch {
		case err != nil:
			refuse(true, "URL", "(not shown)", "not a URL such as http://127.0.0.1:11434/v1")
		case u.User != nil:
			refuse(true, "URL", u.Redacted(), "must not hold a user or a password; Key is for the key")
		default:
			refuse(u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"), "URL", p.URL, "not a URL such as http://127.0.0.1:11434/v1")
		}
	}
	refuse(p.Model == "", "Model", p.Model, "must not be empty")
	refuse(strings.ContainsFunc(p.Key, unicode.IsControl), "Key", "(not shown)", "holds a line break or another control character")
	refuse(p.Timeout <= 0, "Timeout", p.Timeout, "not a duration such as 60s")
	refuse(!(p.Temperature >= 0 && p.Temperature <= 2), "Temperature", p.Temperature, "not between 0 and 2")
	refuse(p.MaxTokens < 0, "MaxTokens", p.MaxTokens, "must not be negative")
	refuse(p.MaxCallsPerHour < 0, "MaxCallsPerHour", p.MaxCallsPerHour, "must not be negative")
	refuse(!(p.MaxCostPerHour >= 0), "MaxCostPerHour", p.MaxCostPerHour, "must not be negative")
	refuse(!(p.InputPrice >= 0), "InputPrice", p.InputPrice, "must not be negative")
	refuse(!(p.OutputPrice >= 0), "OutputPrice", p.OutputPrice, "must not be negative")
	refuse(p.Budget == nil && p.MaxCostPerHour > 0 && p.InputPrice == 0 && p.OutputPrice == 0, "MaxCostPerHour", p.MaxCostPerHour, "needs InputPrice or OutputPrice")
	return problems
}

// readPrompt reads a prompt file, or says why it can't be used; without one it returns the default.
func readPrompt(path, standard string) (text, problem string) {
	if path == "" {
		return standard, ""
	}
	file, err := os.Open(path)
	if err != nil {
		return "", "can't be read: " + err.Error()
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxPrompt+1))
	switch {
	case err != nil:
		return "", "can't be read: " + err.Error()
	case len(data) > maxPrompt:
		return "", "has more than 64 KiB"
	case !utf8.Valid(data) || strings.ContainsRune(string(data), 0):
		return "", "is not text in UTF-8"
	case strings.TrimSpace(string(data)) == "":
		return "", "is empty"
	}
	return string(data), ""
}
