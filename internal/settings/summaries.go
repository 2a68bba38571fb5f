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

// Summaries configures when summaries are written, and by what.
type Summaries struct {
	MaxContextChars int           `envconfig:"MNEME_MAX_CONTEXT_CHARS" default:"100000" desc:"size in characters of the contexts that agents read, of which the thresholds are percentages; the limit of a context is its max_chars; a conversation may set its own size"`
	L1Percent       int           `name:"l1-threshold-percent" envconfig:"MNEME_L1_THRESHOLD_PERCENT" default:"10" desc:"percentage of MNEME_MAX_CONTEXT_CHARS: once that many characters have no summary, one is due"`
	L2Percent       int           `name:"l2-threshold-percent" envconfig:"MNEME_L2_THRESHOLD_PERCENT" default:"10" desc:"percentage of MNEME_MAX_CONTEXT_CHARS: once summaries of one level reach that many characters, one of the next level is due"`
	MaxTurns        int           `name:"max-turns-before-summarize" envconfig:"MNEME_MAX_TURNS_BEFORE_SUMMARIZE" default:"0" desc:"also write a summary after this many turns without one; 0 to count characters only"`
	Writer          string        `name:"summary-writer" envconfig:"MNEME_SUMMARY_WRITER" default:"extractive" oneof:"extractive,openai,anthropic,off" desc:"what writes summaries: extractive needs no model, openai is any server with OpenAI's API, anthropic is Anthropic's API, off writes neither summaries nor titles"`
	Titles          bool          `envconfig:"MNEME_TITLES" default:"true" negatable:"" desc:"give a title to a conversation that has none after its first turn"`
	StoryAfter      time.Duration `envconfig:"MNEME_STORY_AFTER" default:"30m" desc:"with a model: a conversation without events for this long is finished: write down what it found and left to do, and continue the story of its project; 0 for never"`
	Parallel        int           `name:"summarize-parallel" envconfig:"MNEME_SUMMARIZE_PARALLEL" default:"4" desc:"how many conversations are summarized at the same time"`
	Condensing
	Model
	CondenseModel
}

// Condensing configures how contexts show large tool results.
type Condensing struct {
	Condense     string `envconfig:"MNEME_CONDENSE" default:"extractive" oneof:"off,clear,extractive,llm" desc:"how contexts show large tool results that are not among the newest: off shows them whole, clear shows a placeholder, extractive keeps errors, paths and counts, llm shows what the model condensed"`
	ProfilesFile string `envconfig:"MNEME_PROFILES_FILE" desc:"JSON file of profiles that conversations can name; see docs/summaries.md"`
}

var condenseModes = []string{"off", "clear", "extractive", "llm"}

// Check reports an invalid profiles file.
func (c *Condensing) Check() error {
	_, err := c.Modes()
	return err
}

// Modes maps each profile to the way its contexts show large results. The key "" stands for
// conversations without a profile.
func (c *Condensing) Modes() (map[string]string, error) {
	modes := map[string]string{"": c.Condense}
	list, err := readProfiles(c.ProfilesFile)
	if err != nil {
		return nil, err
	}
	for name, raw := range list {
		own := Condensing{Condense: c.Condense}
		if err := json.Unmarshal(raw, &own); err != nil {
			return nil, refuse("MNEME_PROFILES_FILE", c.ProfilesFile, fmt.Sprintf("profile %q is not an object of settings: %v", name, err))
		}
		if !slices.Contains(condenseModes, own.Condense) {
			return nil, refuse("MNEME_PROFILES_FILE", c.ProfilesFile, fmt.Sprintf("profile %q has condense %q, not one of %s", name, own.Condense, strings.Join(condenseModes, ", ")))
		}
		modes[name] = own.Condense
	}
	return modes, nil
}

// readProfiles reads a file of profiles. An empty path means that there are none.
func readProfiles(path string) (list map[string]json.RawMessage, err error) {
	if path == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, refuse("MNEME_PROFILES_FILE", path, "can't be read: "+err.Error())
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, refuse("MNEME_PROFILES_FILE", path, "is not a JSON object of profiles: "+err.Error())
	}
	return list, nil
}

// Check reports every invalid setting by its variable.
func (s *Summaries) Check() error {
	errs := []error{
		between("MNEME_MAX_CONTEXT_CHARS", s.MaxContextChars, 1, 1_000_000_000),
		between("MNEME_L1_THRESHOLD_PERCENT", s.L1Percent, 1, 100), between("MNEME_L2_THRESHOLD_PERCENT", s.L2Percent, 1, 100),
		between("MNEME_MAX_TURNS_BEFORE_SUMMARIZE", s.MaxTurns, 0, 1_000_000), between("MNEME_SUMMARIZE_PARALLEL", s.Parallel, 1, 1000),
		notNegative("MNEME_STORY_AFTER", int64(s.StoryAfter)),
		s.checkModels(),
	}
	if _, err := s.Profiles(); err != nil && errors.Join(errs...) == nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Profiles returns the profiles by name: these settings, with each profile's changes
// applied.
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

// ofAll lists the settings that a profile can't change.
var ofAll = []string{"MNEME_PROFILES_FILE", "MNEME_SUMMARIZE_PARALLEL"}

// change applies the changes of a profile: a JSON object whose keys are variable names in
// lower case without their prefix. The error names the wrong key.
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
			return fmt.Errorf("%q is not a setting of profiles%s", name, didYouMean(name, names))
		}
		if err := set(value, changes[name]); err != nil {
			return fmt.Errorf("%q: %w", name, err)
		}
	}
	return Check(s)
}

// set reads a JSON value. A duration is a string such as "5s".
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
		return fmt.Errorf("%s is not %s", raw, inWords(value.Type().String()))
	}
	return nil
}
