// Package summary decides which ranges of a conversation are due for a summary, and holds
// what the writers of summaries share. It is pure: it reads no clock, store or network. The
// writers are [mneme.dev/mneme/pkg/summary/extractive], which needs no model, and
// [mneme.dev/mneme/pkg/summary/llm], which calls one.
//
// A summary of level 1 covers a range of the log's sequences, in whole steps of its
// conversation. A summary of level n+1 consolidates consecutive summaries of level n.
// Ranges of one level never overlap and leave no gap.
package summary
