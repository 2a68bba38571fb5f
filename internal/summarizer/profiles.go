package summarizer

import (
	"context"
	"slices"
	"time"

	"mneme.dev/mneme/pkg/summary"
)

// Model is a language model that writes summaries.
type Model interface {
	summary.Writer
	Model() string
	PromptHash() string
}

// Titler is a model that can also name conversations.
type Titler interface {
	Title(ctx context.Context, message string) (string, summary.Usage, error)
}

// Profile says how conversations are summarized.
type Profile struct {
	Off      bool // nothing is written
	Settings summary.Settings
	Model    Model // nil for none: Profiles.Without writes
	// Condenser is the model that condenses tool results, or nil.
	Condenser Condenser
	// Deadline is how long to wait for a model that does not answer.
	Deadline time.Duration
	Condense bool // condense large tool results as they come; needs a Condenser
	Titles   bool // give untitled conversations a title
	// StoryAfter is how long a conversation must be quiet before it is analysed; 0 for never. It needs a Model that is
	// an [Analyst].
	StoryAfter time.Duration
}

// Profiles holds the profiles that an operator has set up.
type Profiles struct {
	Default Profile
	Named   map[string]Profile
	Without summary.Writer // a writer that always succeeds
}

// Of returns the profile of a conversation. An unknown name gives the default profile;
// maxContextChars replaces the budget unless it is 0.
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

// waiting selects the conversations in which any profile may find work.
func (p *Profiles) waiting() summary.WaitingQuery {
	q := summary.WaitingQuery{Pending: summary.MinThreshold, Limit: scanPage}
	for _, profile := range p.all() {
		if turns := profile.Settings.MaxTurns; turns > 0 && (q.Turns == 0 || turns < q.Turns) {
			q.Turns = turns
		}
		q.Untitled = q.Untitled || profile.Titles
	}
	if p.tells() {
		q.Pending = 0 // any conversation may still need an analysis
	}
	return q
}

// tells reports whether sessions are analysed with any profile.
func (p *Profiles) tells() bool {
	return slices.ContainsFunc(p.all(), func(profile Profile) bool {
		_, ok := profile.Model.(Analyst)
		return ok && profile.StoryAfter > 0
	})
}

func (p *Profiles) all() []Profile {
	list := []Profile{p.Default}
	for _, profile := range p.Named {
		list = append(list, profile)
	}
	return list
}
