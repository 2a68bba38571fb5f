package graph

import (
	"slices"
	"time"

	"mneme.dev/mneme/pkg/plain"
)

// ConversationQuery selects conversations. The zero value selects the newest 50.
type ConversationQuery struct {
	Limit int // 0 means 50
	// Created orders by first event instead of newest event. The order of creation does
	// not change while conversations get new events.
	Created bool
	Before  uint64 // Next of the previous page: only positions below it; 0 means all

	Status   string
	Tags     []string // all of them
	Agent    string   // in any spelling, see [plain.SameName]
	BranchOf string   // only branches of this conversation
	// Ranges for the producer's times of the first and newest event that have one.
	// Without a time a conversation is in no range.
	CreatedAt, UpdatedAt TimeRange
}

// TimeRange is from After, included, to Before, excluded. A zero time means no bound.
type TimeRange struct{ After, Before time.Time }

// Matches reports whether a conversation passes the query's filters.
func (q *ConversationQuery) Matches(c *Conversation) bool {
	if q.Status != "" && q.Status != c.Status {
		return false
	}
	if q.Agent != "" && !plain.SameName(q.Agent, c.Agent) {
		return false
	}
	if q.BranchOf != "" && (c.BranchedFrom == nil || c.BranchedFrom.ConversationID != q.BranchOf) {
		return false
	}
	for _, tag := range q.Tags {
		if !slices.Contains(c.Tags, tag) {
			return false
		}
	}
	return q.CreatedAt.holds(c.CreatedAt) && q.UpdatedAt.holds(c.UpdatedAt)
}

// holds reports whether a time is in the range. It compares times, not strings, because
// an RFC 3339 string may have fractions of any length.
func (r TimeRange) holds(text string) bool {
	if r.After.IsZero() && r.Before.IsZero() {
		return true
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	return err == nil && !at.Before(r.After) && (r.Before.IsZero() || at.Before(r.Before))
}

// Position returns the sequence by which the query orders a conversation.
func (q *ConversationQuery) Position(c *Conversation) uint64 {
	if q.Created {
		return c.FirstSeq
	}
	return c.LastSeq
}
