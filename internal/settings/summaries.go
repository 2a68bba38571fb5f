package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Summaries configures when summaries are written, and by whom.
type Summaries struct {
	MaxContextChars int    `envconfig:"MNEME_MAX_CONTEXT_CHARS" default:"100000" desc:"budget of a context in characters, of which the thresholds are percentages; a conversation may set its own"`
	L1Percent       int    `name:"l1-threshold-percent" envconfig:"MNEME_L1_THRESHOLD_PERCENT" default:"10" desc:"percentage of the budget: so many characters without a summary make one due"`
	L2Percent       int    `name:"l2-threshold-percent" envconfig:"MNEME_L2_THRESHOLD_PERCENT" default:"10" desc:"percentage of the budget: so many characters of summaries make one of the next level due"`
	MaxTurns        int    `name:"max-turns-before-summarize" envconfig:"MNEME_MAX_TURNS_BEFORE_SUMMARIZE" default:"0" desc:"so many turns without a summary make one due too; 0 for no"`
	Writer          string `name:"summary-writer" envconfig:"MNEME_SUMMARY_WRITER" default:"extractive" oneof:"extractive,openai,anthropic,off" desc:"who writes summaries: extractive needs no model, openai is every server with OpenAI's API, anthropic that of Anthropic; off for none and no titles"`
	Titles          bool   `envconfig:"MNEME_TITLES" default:"true" negatable:"" desc:"name conversations that nobody named, after their first turn"`
	Parallel        int    `name:"summarize-parallel" envconfig:"MNEME_SUMMARIZE_PARALLEL" default:"4" desc:"conversations that are summarised at once"`
	Condensing
	Model
	CondenseModel
}

// Condensing is how contexts show large results of tools.
type Condensing struct {
	Condense     string `envconfig:"MNEME_CONDENSE" default:"extractive" oneof:"off,clear,extractive,llm" desc:"how contexts show large results of tools that are not among the newest: off as they are, clear as a placeholder, extractive by what they say of errors, paths and counts, llm as the model has condensed them"`
	ProfilesFile string `envconfig:"MNEME_PROFILES_FILE" desc:"JSON file of profiles, which conversations name; see docs/summaries.md"`
}

var condenseModes = []string{"off", "clear", "extractive", "llm"}

// Check tells which settings can't be right.
func (c *Condensing) Check() error {
	_, err := c.Modes()
	return err
}

// Modes are how contexts of conversations with a profile show large results, by profile;
// "" is that of all others.
func (c *Condensing) Modes() (map[string]string, error) {
	modes := map[string]string{"": c.Condense}
	list, err := readProfiles(c.ProfilesFile)
	if err != nil {
		return nil, err
	}
	for name, raw := range list {
		own := Condensing{Condense: c.Condense}
		if err := json.Unmarshal(raw, &own); err != nil {
			return nil, refuse("MNEME_PROFILES_FILE", c.ProfilesFile, fmt.Sprintf("profile %q is no object of settings: %v", name, err))
		}
		if !slices.Contains(condenseModes, own.Condense) {
			return nil, refuse("MNEME_PROFILES_FILE", c.ProfilesFile, fmt.Sprintf("profile %q has condense %q, none of %s", name, own.Condense, strings.Join(condenseModes, ", ")))
		}
		modes[name] = own.Condense
	}
	return modes, nil
}

// readProfiles reads a file of profiles; there are none if there is no file.
func readProfiles(path string) (list map[string]json.RawMessage, err error) {
	if path == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, refuse("MNEME_PROFILES_FILE", path, "can't be read: "+err.Error())
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, refuse("MNEME_PROFILES_FILE", path, "is no JSON object of profiles: "+err.Error())
	}
	return list, nil
}

// Check tells which settings can't be right.
func (s *Summaries) Check() error {
	errs := []error{
		between("MNEME_MAX_CONTEXT_CHARS", s.MaxContextChars, 1, 1_000_000_000),
		between("MNEME_L1_THRESHOLD_PERCENT", s.L1Percent, 1, 100), between("MNEME_L2_THRESHOLD_PERCENT", s.L2Percent, 1, 100),
		between("MNEME_MAX_TURNS_BEFORE_SUMMARIZE", s.MaxTurns, 0, 1_000_000), between("MNEME_SUMMARIZE_PARALLEL", s.Parallel, 1, 1000),
		s.checkModels(),
	}
	if _, err := s.Profiles(); err != nil && errors.Join(errs...) == nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Profiles are those of the file of profiles, by name: the settings with what each
// changes of them.
func (s Summaries) Profiles() (map[string]Summaries, error) {
	list, err := readProfiles(s.ProfilesFile)
	if err != nil {
		return nil, err
	}
	profiles := map[string]Summaries{}
	for name, changes := range list {
		own := s
		own.ProfilesFile = ""
		if err := own.change(changes); err != nil {
			return nil, refuse("MNEME_PROFILES_FILE", s.ProfilesFile, fmt.Sprintf("profile %q: %v", name, err))
		}
		profiles[name] = own
	}
	return profiles, nil
}

// ofAll are the settings that a profile can't change.
var ofAll = []string{"MNEME_PROFILES_FILE", "MNEME_SUMMARIZE_PARALLEL"}

// change applies the changes of a profile: a JSON object of values by the names of the
// variables, in lower case and without their prefix. It returns an error that names what
// is wrong.
func (s *Summaries) change(raw []byte) error {
	var changes map[string]json.RawMessage
	if err := json.Unmarshal(raw, &changes); err != nil {
		return fmt.Errorf("not an object of settings: %w", err)
	}
	known := map[string]reflect.Value{}
	for _, f := range fields(reflect.ValueOf(s).Elem()) {
		if !slices.Contains(ofAll, f.Variable) {
			known[strings.ToLower(strings.TrimPrefix(f.Variable, prefix))] = f.value
		}
	}
	names := slices.Sorted(maps.Keys(known))
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		value, ok := known[name]
		if !ok {
			return fmt.Errorf("%q: no such setting of a profile%s", name, didYouMean(name, names))
		}
		if err := set(value, changes[name]); err != nil {
			return fmt.Errorf("%q: %w", name, err)
		}
	}
	return Check(s)
}

// set reads a JSON value; a duration is a text such as "5s".
func set(value reflect.Value, raw []byte) error {
	if d, ok := value.Addr().Interface().(*time.Duration); ok {
		var text string
		err := json.Unmarshal(raw, &text)
		if err == nil {
			*d, err = time.ParseDuration(text)
		}
		if err != nil {
			return fmt.Errorf("%s is not a duration such as \"5s\"", raw)
		}
		return nil
	}
	if err := json.Unmarshal(raw, value.Addr().Interface()); err != nil {
		return fmt.Errorf("%s is not a %s", raw, value.Type())
	}
	return nil
}
