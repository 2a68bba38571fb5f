// Package events is the vocabulary of mneme: the facts an agent publishes, as CloudEvents 1.0, and
// their addresses in the log.
//
// An [Event] is the envelope: the CloudEvents attributes and the data, as bytes.
// A [Payload] is the typed body of one event type. A [Recorded] event is both of
// them together with the tenant and the sequence that the log gave it.
//
//	bytes ──DecodeMessage──▶ Event ──Record──▶ Recorded (valid, typed)
//	bytes ◀──EncodeMessage── Event ◀──New───── Payload
//
// Every refusal is an [*Invalid] that names the field and the reason; errors.Is(err, [ErrInvalid])
// holds for each of them. The package returns no other error: input is either valid or the error
// says why not.
//
// The package imports no other package of the project. It decodes and encodes binary mode itself
// because that is the hot path, and decodes structured mode itself because a source, as part of an
// event's identity, must be kept byte for byte. The CloudEvents SDK encodes structured mode, and
// the tests use the SDK as the judge of both modes.
//
// Sources: CloudEvents 1.0.2, its JSON format, and its NATS protocol binding.
package events
