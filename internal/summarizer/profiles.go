package summarizer

import (
	"context"
	"time"

	"mneme/pkg/summary"
)

// Model writes with a language model.
type Model interface {
	summary.Writer
	Model() string
	PromptHash() string
}

// Titler is a model that names conversations too.
type Titler interface {
	Title(ctx context.Context, message string) (string, summary.Usage, error)
}

// Profile is how conversations are summarised.
type Profile struct {
	Off      bool // nothing is written
	Settings summary.Settings
	Model    Model // nil: none, [Profiles] has the writer that needs none
	// Condenser is the model that condenses results of tools; nil: none.
	Condenser Condenser
	// Deadline is how long to wait for a model that does not answer.
	Deadline time.Duration
	Condense bool // have large results of tools condensed as they come; needs a Condenser
	Titles   bool // name conversations that nobody named
}

// Profiles are those that an operator has set up.
type Profiles struct {
	Default Profile
	Named   map[string]Profile
	Without summary.Writer // a writer that always succeeds
}

// Of is the profile of a conversation that names one and its budget, or neither.
func (p *Profiles) Of(name string, maxContextChars int) Profile {
	profile, ok := p.Named[name]
	if !ok {
		profile = p.Default
	}
	if maxContextChars > 0 {
		profile.Settings.MaxContextChars = maxContextChars
	}
	return profile
}

// waiting selects the conversations that any profile may find something to do in.
func (p *Profiles) waiting() summary.WaitingQuery {
	q := summary.WaitingQuery{Pending: summary.MinThreshold, Limit: scanPage}
	for _, profile := range p.all() {
		if turns := profile.Settings.MaxTurns; turns > 0 && (q.Turns == 0 || turns < q.Turns) {
			q.Turns = turns
		}
		q.Untitled = q.Untitled || profile.Titles
	}
	return q
}

func (p *Profiles) all() []Profile {
	list := []Profile{p.Default}
	for _, profile := range p.Named {
		list = append(list, profile)
	}
	return list
}
