package service

import (
	"encoding/json"
	"fmt"
	"os"

	"mneme/internal/settings"
	"mneme/internal/summarizer"
	"mneme/pkg/summary"
	"mneme/pkg/summary/extractive"
	"mneme/pkg/summary/llm"
)

// profiles are those of the settings: the default one, and what the file of profiles
// changes of it.
func profiles(s settings.Summaries) (p summarizer.Profiles, err error) {
	endpoints := new(llm.Endpoints)
	if p.Default, err = profile(s, endpoints); err != nil {
		return p, err
	}
	p.Without, p.Named = extractive.Writer{MaxChars: summary.MaxDraft}, map[string]summarizer.Profile{}
	if s.ProfilesFile == "" {
		return p, nil
	}
	raw, err := os.ReadFile(s.ProfilesFile)
	if err != nil {
		return p, fmt.Errorf("MNEME_PROFILES_FILE=%q: %w", s.ProfilesFile, err)
	}
	var list map[string]json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return p, fmt.Errorf("MNEME_PROFILES_FILE=%q: not an object of profiles: %w", s.ProfilesFile, err)
	}
	for name, changes := range list {
		own := s
		if err := own.Change(changes); err != nil {
			return p, fmt.Errorf("MNEME_PROFILES_FILE=%q: profile %q: %w", s.ProfilesFile, name, err)
		}
		if p.Named[name], err = profile(own, endpoints); err != nil {
			return p, fmt.Errorf("MNEME_PROFILES_FILE=%q: profile %q: %w", s.ProfilesFile, name, err)
		}
	}
	return p, nil
}

// profile makes one profile of settings.
func profile(s settings.Summaries, endpoints *llm.Endpoints) (summarizer.Profile, error) {
	p := summarizer.Profile{
		Settings: summary.Settings{
			MaxContextChars: s.MaxContextChars, L1ThresholdPercent: s.L1Percent, L2ThresholdPercent: s.L2Percent,
			RawPercent: summary.DefaultSettings().RawPercent, MaxTurns: s.MaxTurns,
		},
		Deadline: s.Deadline, Titles: s.Titles,
	}
	switch s.Writer {
	case "", "off":
		return summarizer.Profile{Settings: p.Settings, Off: true}, nil
	case "extractive":
		return p, nil
	}
	model, err := endpoints.New(llm.Profile{
		Provider: s.Writer, URL: s.URL, Model: s.Name, Key: s.Key, Timeout: s.Timeout, PromptFile: s.PromptFile,
		MaxCallsPerHour: s.MaxCalls, MaxCostPerHour: s.MaxCost, InputPrice: s.InputPrice, OutputPrice: s.OutputPrice,
	})
	if err != nil {
		return p, err
	}
	p.Model, p.Condense = model, s.Condense == "llm"
	return p, nil
}
