package service

import (
	"fmt"

	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/summarizer"
	"mneme.dev/mneme/pkg/insight"
	"mneme.dev/mneme/pkg/summary"
	"mneme.dev/mneme/pkg/summary/extractive"
	"mneme.dev/mneme/pkg/summary/llm"
)

// profiles returns the profiles of the settings: the default one, and those in the profiles
// file, which change parts of it. Their models come from endpoints.
func profiles(s settings.Summaries, endpoints *llm.Endpoints, prices *insight.Prices) (p summarizer.Profiles, err error) {
	if p.Default, err = profile(s, endpoints, prices); err != nil {
		return p, err
	}
	p.Without, p.Named = extractive.Writer{}, map[string]summarizer.Profile{}
	list, err := s.Profiles()
	if err != nil {
		return p, err
	}
	for name, own := range list {
		if p.Named[name], err = profile(own, endpoints, prices); err != nil {
			return p, fmt.Errorf("MNEME_PROFILES_FILE=%q: profile %q: %w", s.ProfilesFile, name, err)
		}
	}
	return p, nil
}

// Condensing returns a function from a profile to how its contexts show large tool results.
func Condensing(c settings.Condensing) (func(profile string) string, error) {
	modes, err := c.Modes()
	if err != nil {
		return nil, err
	}
	return func(profile string) string {
		if mode, ok := modes[profile]; ok {
			return mode
		}
		return modes[""]
	}, nil
}

// profile converts settings to a profile.
func profile(s settings.Summaries, endpoints *llm.Endpoints, prices *insight.Prices) (summarizer.Profile, error) {
	p := summarizer.Profile{
		Settings: summary.Settings{
			MaxContextChars: s.MaxContextChars, L1ThresholdPercent: s.L1Percent, L2ThresholdPercent: s.L2Percent,
			RawPercent: summary.DefaultSettings().RawPercent, MaxTurns: s.MaxTurns,
		},
		Deadline: s.Deadline, Titles: s.Titles, StoryAfter: s.StoryAfter,
	}
	if s.Writer == "" || s.Writer == "off" {
		return summarizer.Profile{Settings: p.Settings, Off: true}, nil
	}
	var budget *llm.Budget
	if of, ok := s.LLM(); ok {
		model, err := endpoints.New(priced(of, prices))
		if err != nil {
			return p, err
		}
		p.Model, p.Condenser, budget = model, model, model.Budget()
	}
	if of, ok := s.CondenseLLM(); ok {
		of.Budget = budget
		condenser, err := endpoints.New(priced(of, prices))
		if err != nil {
			return p, err
		}
		p.Condenser = condenser
	}
	p.Condense = s.Condense == "llm"
	return p, nil
}
