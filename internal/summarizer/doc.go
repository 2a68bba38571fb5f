// Package summarizer is the reactor that writes summaries. It follows the read model
// "summaries", finds what is due, has it written and publishes it as an event, which every
// read model then takes from the log.
//
// It has no queue on disk and no position of its own. What is due is a function of what is
// recorded ([mneme.dev/mneme/pkg/summary.Due]), so nothing is lost when the process ends: the next
// process to drive the partition finds it due again. A model call that was under way is
// paid for twice.
//
// No summary is written twice. The event's id is made of the level, the range and the
// revision, and the event is published only if the newest summary of the conversation in
// the log is still the one that the reactor knew. If two processes try, one of them after
// being frozen for a while, only one succeeds.
//
// The reactor works only on live partitions, so a replay never calls a model. Several
// conversations are worked on at once, each by one goroutine at a time.
//
//	the read model or the log is away    wait and try again; an answer that the log did not take is kept and published then
//	the model does not answer            wait and try again until the deadline, or until three thresholds of text wait; then write without the model; the event says why
//	the model's answer can't be used     write without the model; the event says why
//	a cap of calls or costs is reached   wait until the hour allows it, as for a model that does not answer
package summarizer
