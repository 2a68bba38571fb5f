// Package eventlog is the client of the log: the JetStream stream that holds
// every event, in the order in which it was acknowledged.
//
// It publishes, follows one partition in order, and gets single events by
// sequence. The log is never scanned to answer a request; a scan of one
// conversation ([Log.Conversation]) is for repair and for operators.
//
// What it returns beside events is:
//
//	ErrFull        the stream is at its size limit: nothing was stored, publish again after room was made
//	ErrNotStored   the server could not write the batch, as on a full disk: nothing of it was stored, mneme doctor says more
//	ErrTooLarge    one event is over the limit of the server
//	ErrNotFound    no event has this sequence (it was purged, or is beyond the head)
//	ErrBeyondEnd   a follower was asked to begin after the end of the stream
//	ErrConflict    the newest event is not the one that an event was to come after: nothing was stored, look and decide again
//	ErrOtherContent the log has another event with the same identity: this one was not stored, publish it under another id
//	ErrInterrupted the server was away while events were read: read again from where it stopped
//	any other      the connection or the server; publish again with the same event: its identity makes a repeat harmless
//
// An acknowledgement of this package means that the event is in the log. JetStream alone
// does not promise that: within its duplicate window (30 s) it answers "duplicate" to every
// message whose Nats-Msg-Id it has seen, whatever that message held, and the id of an event
// can be computed by anyone who knows its tenant, conversation, source and id. So after
// "duplicate" this package reads the stored message and compares it. If it is not this
// event, this event is stored without a Nats-Msg-Id.
//
// A program that publishes with its own NATS client has to do the same: read the message
// at the acknowledged sequence and compare it. The log can't do it for such a program,
// since the server drops the message before any of our code sees it.
//
// A publish is a span of OpenTelemetry if its context has one, and hands its trace on
// beside the events; see [Message.TraceContext].
package eventlog
