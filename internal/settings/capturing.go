package settings

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Capturing configures how mneme up records what coding agents do.
type Capturing struct {
	Capture string `envconfig:"MNEME_CAPTURE" default:"claude-code,codex,gemini-cli,qwen-code,opencode,kilo,pi,kimi-code,hermes,droid,openclaw,cursor,copilot-cli,cline,goose,openhands" placeholder:"AGENT,…" desc:"agents whose transcripts are read, when one of their hooks calls or they are connected, separated by commas; none for no agent"`
	Redacting
}

// Captured are the agents whose transcripts can be read.
var Captured = []string{"claude-code", "codex", "gemini-cli", "qwen-code", "opencode", "kilo", "pi", "kimi-code", "hermes", "droid", "copilot-cli", "goose", "cline", "openhands", "cursor", "roo", "continue", "openclaw", "vscode-chat"}

// Agents returns the agents whose transcripts are read.
func (s *Capturing) Agents() []string {
	if s.Capture == "none" || s.Capture == "" {
		return nil
	}
	agents := strings.Split(s.Capture, ",")
	for i, name := range agents {
		agents[i] = strings.TrimSpace(name)
	}
	return agents
}

// Check reports every invalid setting by its variable.
func (s *Capturing) Check() error {
	errs := []error{s.Redacting.Check()}
	for _, name := range s.Agents() {
		if !slices.Contains(Captured, name) {
			errs = append(errs, fmt.Errorf("MNEME_CAPTURE: %.40q is not an agent whose transcripts can be read; there are %s, separated by commas, or none", name, strings.Join(Captured, ", ")))
		}
	}
	return errors.Join(errs...)
}

// Redacting says what is redacted before it is published.
type Redacting struct {
	Redact string `envconfig:"MNEME_REDACT" default:"auto" oneof:"auto,on,off" desc:"whether secrets are replaced before they are published: auto does so in transcripts that an agent wrote itself and in indexed code, on in every format, off never"`
	RedactRules
}

// RedactRules names rules of one's own.
type RedactRules struct {
	File string `name:"redact-rules" envconfig:"MNEME_REDACT_RULES" complete:"file" placeholder:"FILE" desc:"a YAML file with rules of your own for what this program itself reads, applied before mneme's"`
}

// Check reports an invalid setting by its variable.
func (s *RedactRules) Check() error { return file("MNEME_REDACT_RULES", s.File) }
