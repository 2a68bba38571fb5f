package summary

import "fmt"

// Settings say when summaries are due.
type Settings struct {
	// MaxContextChars is the budget of a context, in characters.
	MaxContextChars int
	// L1ThresholdPercent of MaxContextChars is how many characters that no summary covers
	// make a summary of level 1 due. L2ThresholdPercent is the same for each level above,
	// of the texts of summaries that no higher one covers.
	L1ThresholdPercent int
	L2ThresholdPercent int
	// RawPercent of MaxContextChars is what a context shows of the newest turns as they
	// are: no summary covers that, or the last two turns, whichever is smaller.
	RawPercent int
	// MaxTurns makes a summary of level 1 due by the number of turns too; 0 means no.
	MaxTurns int
}

// DefaultSettings are those of whoever sets nothing.
func DefaultSettings() Settings {
	return Settings{MaxContextChars: 100_000, L1ThresholdPercent: 10, L2ThresholdPercent: 10, RawPercent: 5}
}

// keepTurns is how many of the last turns stay out.
const keepTurns = 2

// MinThreshold is the least of [Settings.Threshold], in characters: it keeps small budgets from summaries that are longer than what they cover.
const MinThreshold = 2 * MaxText

// Validate names the first field that is out of its range.
func (s Settings) Validate() error {
	switch {
	case s.MaxContextChars < 1:
		return fmt.Errorf("max_context_chars is %d, the least is 1", s.MaxContextChars)
	case s.L1ThresholdPercent < 1 || s.L1ThresholdPercent > 100:
		return fmt.Errorf("l1_threshold_percent is %d, not from 1 to 100", s.L1ThresholdPercent)
	case s.L2ThresholdPercent < 1 || s.L2ThresholdPercent > 100:
		return fmt.Errorf("l2_threshold_percent is %d, not from 1 to 100", s.L2ThresholdPercent)
	case s.RawPercent < 0 || s.RawPercent > 100:
		return fmt.Errorf("raw_percent is %d, not from 0 to 100", s.RawPercent)
	case s.MaxTurns < 0:
		return fmt.Errorf("max_turns_before_summarize is %d, the least is 0 (off)", s.MaxTurns)
	}
	return nil
}

// Threshold is how many characters make a summary of a level due, at least twice the
// length of one.
func (s Settings) Threshold(level int) int {
	percent := s.L2ThresholdPercent
	if level == 1 {
		percent = s.L1ThresholdPercent
	}
	return max(MinThreshold, share(s.MaxContextChars, percent))
}

// Raw is how many characters of the newest turns stay out at most.
func (s Settings) Raw() int { return share(s.MaxContextChars, s.RawPercent) }

// share is a percentage of a number, however large.
func share(n, percent int) int { return n/100*percent + n%100*percent/100 }
