// Package summarizer is the reactor that writes summaries: it follows the read model
// "summaries", asks what is due, has it written, and publishes it as an event, which all
// read models then take from the log.
//
// It has no queue and no position of its own. What is due is a function of what is
// recorded ([mneme/pkg/summary.Due]), so nothing is lost when the process ends: whoever
// drives the partition next finds it due again. A call of a model that was under way is
// paid again.
//
// No summary is written twice. The event's id is made of the level, the range and the
// revision, and it is published only if the newest summary of the conversation in the log
// is still the one that the reactor knew: of two processes, one of them frozen for a
// while, one succeeds.
//
// The reactor works only on partitions that are live, so a replay never calls a model.
// One conversation is worked on by one goroutine at a time, some conversations at once.
//
//	the read model or the log is away    wait and try again
//	the model does not answer            wait and try again, until the deadline or until three thresholds wait; then without the model, and the event says why
//	the model's answer can't be used     without the model, and the event says why
//	the cap of calls or costs            wait until the hour allows it, like a model that does not answer
package summarizer
