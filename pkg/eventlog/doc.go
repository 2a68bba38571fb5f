// Package eventlog is the client of the log: the JetStream stream that holds
// every event, in the order in which it was acknowledged.
//
// It publishes, follows one partition in order, and gets single events by sequence. No request is
// answered by scanning the log; [Log.Conversation], which scans it for one conversation, is for
// repairs and operators.
//
// Its errors:
//
//	ErrFull        the stream is at its size limit: nothing was stored, publish again after room was made
//	ErrNotStored   the server could not write the batch, as on a full disk: nothing of it was stored, the NATS server's own log output says more
//	ErrUnconfirmed the server did not answer in time, as on a slow disk: the event may be stored; publish it again, which is harmless
//	ErrTooLarge    one event is over the limit of the server
//	ErrNotFound    no event has this sequence (it was purged, or is beyond the head)
//	ErrBeyondEnd   a follower was asked to begin after the end of the stream
//	ErrConflict    the conversation has a newer event than the one expected: nothing was stored, read it and decide again
//	ErrOtherContent the log has another event with the same identity: this one was not stored, publish it under another id
//	ErrSilent      the server did not answer a question in time: ask again
//	ErrNoLeader    no server of a cluster leads the log, as for seconds after a failure: nothing was stored, ask or publish again
//	natsdeploy.ErrNoStream somebody has deleted the log
//	ErrInterrupted the server was away while events were read: read again from where it stopped
//	ErrPartitions  the log has been given more partitions: open it again
//	any other      the connection or the server; publish again with the same event: its identity makes a repeat harmless
//
// An acknowledgement of this package means that the event is in the log. JetStream alone does not
// promise that: within its duplicate window (30 s) it answers "duplicate" to every message whose
// Nats-Msg-Id it has seen, whatever its content, and anyone who knows an event's tenant,
// conversation, source and id can compute that id. So after "duplicate" this package reads the
// stored message and compares it. If that has another identity, the new event is stored without a
// Nats-Msg-Id; if it has the same one and other content, the error is ErrOtherContent.
//
// A program that publishes with its own NATS client must do the same: read the message at the
// acknowledged sequence and compare it. The log can't do that for it, because the server drops the
// message before any of our code sees it.
//
// If the context of a publish has an OpenTelemetry span, the publish is a span too, and passes its
// trace on in the headers of the messages; see [Message.TraceContext].
package eventlog
