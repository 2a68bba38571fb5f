// Package summary decides which ranges of a conversation are due to be summarised, and
// holds what the writers of summaries share. It is pure: it reads no clock, no store and
// no network. The writers are in [mneme/pkg/summary/extractive], which needs no model,
// and [mneme/pkg/summary/llm], which calls one.
//
// A summary of level 1 covers a range of the log's sequences, in whole steps of its
// conversation. One of level n+1 consolidates summaries of level n that follow each
// other. Ranges of one level never overlap and leave no gap.
package summary
