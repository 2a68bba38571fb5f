package summary

import "fmt"

// Settings say when summaries are due.
type Settings struct {
	// MaxContextChars is the budget of a context, in characters.
	MaxContextChars int
	// A summary of level 1 is due once L1ThresholdPercent of MaxContextChars, in
	// characters, have no summary. L2ThresholdPercent is the same for each higher level and
	// the texts of summaries that no higher one covers.
	L1ThresholdPercent int
	L2ThresholdPercent int
	// RawPercent of MaxContextChars is the part of the newest turns that contexts show
	// unchanged. Either that or the last two turns, whichever is smaller, gets no summary
	// yet.
	RawPercent int
	// MaxTurns turns without a summary also make one of level 1 due; 0 means no limit.
	MaxTurns int
}

// DefaultSettings returns the settings that apply if nothing is set.
func DefaultSettings() Settings {
	return Settings{MaxContextChars: 100_000, L1ThresholdPercent: 10, L2ThresholdPercent: 10, RawPercent: 5}
}

// keepTurns is how many of the last turns get no summary yet.
const keepTurns = 2

// MinThreshold is the least threshold, in characters. With a small budget, summaries would
// otherwise be longer than what they cover.
const MinThreshold = 2 * MaxText

// Validate returns an error that names the first field out of range.
func (s Settings) Validate() error {
	switch {
	case s.MaxContextChars < 1:
		return fmt.Errorf("max_context_chars is %d, must be at least 1", s.MaxContextChars)
	case s.L1ThresholdPercent < 1 || s.L1ThresholdPercent > 100:
		return fmt.Errorf("l1_threshold_percent is %d, not between 1 and 100", s.L1ThresholdPercent)
	case s.L2ThresholdPercent < 1 || s.L2ThresholdPercent > 100:
		return fmt.Errorf("l2_threshold_percent is %d, not between 1 and 100", s.L2ThresholdPercent)
	case s.RawPercent < 0 || s.RawPercent > 100:
		return fmt.Errorf("raw_percent is %d, not between 0 and 100", s.RawPercent)
	case s.MaxTurns < 0:
		return fmt.Errorf("max_turns_before_summarize is %d, must be at least 0 (off)", s.MaxTurns)
	}
	return nil
}

// Threshold returns how many characters make a summary of a level due: at least
// [MinThreshold].
func (s Settings) Threshold(level int) int {
	percent := s.L2ThresholdPercent
	if level == 1 {
		percent = s.L1ThresholdPercent
	}
	return max(MinThreshold, share(s.MaxContextChars, percent))
}

// Raw returns the most characters of the newest turns that get no summary yet.
func (s Settings) Raw() int { return share(s.MaxContextChars, s.RawPercent) }

// share returns a percentage of a number without overflow.
func share(n, percent int) int { return n/100*percent + n%100*percent/100 }
