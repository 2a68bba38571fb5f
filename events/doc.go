// Package events is the vocabulary of mneme: the facts an agent publishes, as
// CloudEvents 1.0, and where they live in the log.
//
// An [Event] is the envelope: the CloudEvents attributes and the data, as bytes.
// A [Payload] is the typed body of one event type. A [Recorded] event is both of
// them together with the tenant and the sequence that the log gave it.
//
//	bytes ──DecodeMessage──▶ Event ──Record──▶ Recorded (valid, typed)
//	bytes ◀──EncodeMessage── Event ◀──New───── Payload
//
// Every refusal is an [*Invalid] that names the field and the reason;
// errors.Is(err, [ErrInvalid]) holds for each of them. Nothing else is returned
// by this package: input is either valid or it says why not.
//
// The package imports nothing of the project. Binary mode is decoded and encoded
// here because it is the hot path, structured mode because a source must come
// through byte for byte: it is part of an event's identity. Structured mode is
// encoded by the CloudEvents SDK, and the tests use the SDK as the judge of both.
//
// Sources: CloudEvents 1.0.2, its JSON format, and its NATS protocol binding.
package events
