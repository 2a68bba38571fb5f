package graph

import (
	"slices"
	"time"
)

// ConversationQuery selects conversations. The zero value selects the newest 50.
type ConversationQuery struct {
	Limit int // 0 means 50
	// Created orders by first event, else by newest event: the order of creation
	// stays as it is while conversations move on.
	Created bool
	Before  uint64 // Next of the page before: only events of the order below it; 0 means all

	Status   string
	Tags     []string // all of them
	Agent    string
	Project  string
	BranchOf string // only branches of this conversation
	// The producer's times of the first and the newest event that have one; without
	// one a conversation is in no range.
	CreatedAt, UpdatedAt TimeRange
}

// TimeRange is from a time, included, up to another one, not included. The zero
// value of either is no bound.
type TimeRange struct{ After, Before time.Time }

// Matches tells whether the query's filters let a conversation through.
func (q *ConversationQuery) Matches(c *Conversation) bool {
	for _, f := range [][2]string{{q.Status, c.Status}, {q.Agent, c.Agent}, {q.Project, c.Project}} {
		if f[0] != "" && f[0] != f[1] {
			return false
		}
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

// holds compares times, not texts: an RFC 3339 text may have fractions of any
// length.
func (r TimeRange) holds(text string) bool {
	if r.After.IsZero() && r.Before.IsZero() {
		return true
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	return err == nil && !at.Before(r.After) && (r.Before.IsZero() || at.Before(r.Before))
}

// Position is what the query orders conversations by.
func (q *ConversationQuery) Position(c *Conversation) uint64 {
	if q.Created {
		return c.FirstSeq
	}
	return c.LastSeq
}
