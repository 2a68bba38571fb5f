package llm

import (
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

// defaultURL is where the providers themselves are.
var defaultURL = map[string]string{OpenAI: "https://api.openai.com/v1", Anthropic: "https://api.anthropic.com"}

// DefaultMaxTokens is enough for the longest summary, in any language.
const DefaultMaxTokens = 1_200

// maxPrompt is how long a prompt file may be, in bytes.
const maxPrompt = 64 << 10

// Profile configures a [Writer].
type Profile struct {
	Provider string // OpenAI or Anthropic.
	URL      string // Of the API, for OpenAI with /v1; default the provider's own.
	Model    string
	Key      string // Empty for a server that asks for none.

	Timeout     time.Duration // Of one call.
	Temperature float64       // 0 to 2. A model that refuses it is not sent it again.
	MaxTokens   int64         // Of one answer, with what the model thinks; default [DefaultMaxTokens].

	// Files with prompts of one's own, plain text of up to 64 KiB; default those of
	// this package. That the record is no instruction is added to them.
	PromptFile         string
	CondensePromptFile string

	// Caps of any hour; 0 for none. The cost is in the currency of the prices.
	MaxCallsPerHour int
	MaxCostPerHour  float64

	// Prices of a million tokens.
	InputPrice  float64
	OutputPrice float64
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

// prompt is a system prompt as it is sent.
type prompt struct{ text, hash string }

func newPrompt(text, schema string) prompt {
	p := prompt{text: strings.TrimSpace(text) + "\n\n" + strings.TrimSpace(guard)}
	sum := sha256.Sum256([]byte(p.text + schema))
	p.hash = hex.EncodeToString(sum[:])[:16]
	return p
}

// New makes the writer of a profile, which shares nothing. See [Endpoints.New].
func New(p Profile) (*Writer, error) { return new(Endpoints).New(p) }

// New makes the writer of a profile and reads its prompt files. The error names every
// field that can't be right.
func (s *Endpoints) New(p Profile) (*Writer, error) {
	if p.URL == "" {
		p.URL = defaultURL[p.Provider]
	}
	if p.MaxTokens == 0 {
		p.MaxTokens = DefaultMaxTokens
	}
	summaryText, summaryErr := readPrompt("PromptFile", p.PromptFile, summaryPrompt)
	condenseText, condenseErr := readPrompt("CondensePromptFile", p.CondensePromptFile, condensePrompt)
	if err := errors.Join(p.check(), summaryErr, condenseErr); err != nil {
		return nil, err
	}
	w := &Writer{
		profile:  p,
		summary:  newPrompt(summaryText, schema),
		condense: newPrompt(condenseText, ""),
		endpoint: s.of(&p),
		budget:   Budget{calls: p.MaxCallsPerHour, cost: p.MaxCostPerHour},
	}
	if p.Provider == Anthropic {
		w.provider = newMessages(&w.profile)
	} else {
		w.provider = newChat(&w.profile)
	}
	return w, nil
}

func (p *Profile) check() error {
	var errs []error
	refuse := func(wrong bool, field string, value any, why string) {
		if wrong {
			errs = append(errs, fmt.Errorf("%s=%v: %s", field, value, why))
		}
	}
	refuse(p.Provider != OpenAI && p.Provider != Anthropic, "Provider", p.Provider, "neither openai nor anthropic")
	if p.Provider == OpenAI || p.Provider == Anthropic || p.URL != "" {
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
	refuse(p.MaxCostPerHour > 0 && p.InputPrice == 0 && p.OutputPrice == 0, "MaxCostPerHour", p.MaxCostPerHour, "needs InputPrice or OutputPrice")
	return errors.Join(errs...)
}

// readPrompt reads a prompt file; without one it is the default.
func readPrompt(field, path, standard string) (string, error) {
	if path == "" {
		return standard, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("%s=%q: can't be read: %w", field, path, err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxPrompt+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("%s=%q: can't be read: %w", field, path, err)
	case len(data) > maxPrompt:
		return "", fmt.Errorf("%s=%q: has more than 64 KiB", field, path)
	case !utf8.Valid(data) || strings.ContainsRune(string(data), 0):
		return "", fmt.Errorf("%s=%q: is no text in UTF-8", field, path)
	case strings.TrimSpace(string(data)) == "":
		return "", fmt.Errorf("%s=%q: is empty", field, path)
	}
	return string(data), nil
}
