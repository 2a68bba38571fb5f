package summary

import (
	"fmt"
	"strconv"

	"mneme.dev/mneme/events"
)

// Hash returns the hash of a conversation's rows: its marks and summaries in the order of
// their sequences. The sequences themselves don't count, see projection.ReadStore.
func Hash(c Conversation, marks []Mark, taken []Taken) events.Digest {
	parts := []string{
		c.ID.Tenant, c.ID.ID, c.Profile,
		fmt.Sprint(c.Turn, c.Chars, c.CoveredTurn, c.CoveredChars, c.MaxContextChars, c.Titled, c.FirstUser != 0, c.Answered, c.DeletedSeq != 0, len(c.Ledger.Levels)),
	}
	for _, level := range c.Ledger.Levels {
		parts = append(parts, strconv.Itoa(level.Open))
	}
	for _, m := range marks {
		parts = append(parts, "mark", strconv.Itoa(m.Turn), strconv.Itoa(m.Chars))
	}
	for _, t := range taken {
		parts = append(parts, "summary", t.ID, fmt.Sprint(t.Level, t.FirstTurn, t.LastTurn, t.Chars, t.Revised))
	}
	return events.DigestOf(parts...)
}
